"""The agent's record is copied for a branch, and messages are found in a copy by the ids that they had before."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from sandbox_chat.agent.branch import branch_record, record_path


def new_id() -> str:
    return str(uuid.uuid4())


def write(config: Path, session_id: str, words: list[str]) -> list[str]:
    """Write a record with these messages, and return their ids."""
    folder = config / "projects" / "-work"
    folder.mkdir(parents=True, exist_ok=True)
    ids = [new_id() for _ in words]
    lines = []
    for place, text in enumerate(words):
        role = "assistant" if place % 2 else "user"
        lines.append(
            {
                "type": role,
                "uuid": ids[place],
                "parentUuid": ids[place - 1] if place else None,
                "sessionId": session_id,
                "timestamp": f"2026-01-01T00:00:{place:02}.000Z",
                "message": {"role": role, "content": [{"type": "text", "text": text}]},
            }
        )
    path = folder / f"{session_id}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"cut')
    return ids


def read(config: Path, session_id: str) -> list[dict[str, Any]]:
    path = record_path(config, session_id)
    assert path is not None
    found = [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]
    return [entry for entry in found if entry.get("type") in ("user", "assistant")]


def said(config: Path, session_id: str) -> list[str]:
    return [entry["message"]["content"][0]["text"] for entry in read(config, session_id)]


async def test_a_branch_of_a_branch_of_a_branch_from_a_turn_of_the_first(tmp_path: Path) -> None:
    first, *copies = (new_id() for _ in range(4))
    ids = write(tmp_path, first, ["q1", "a1", "q2", "a2", "q3", "a3"])
    source = first
    for copy, anchor in zip(copies, (ids[5], ids[3], ids[1]), strict=True):
        assert await branch_record(tmp_path, source, copy, anchor)
        source = copy
    assert [said(tmp_path, each) for each in (first, *copies)] == [
        ["q1", "a1", "q2", "a2", "q3", "a3"],
        ["q1", "a1", "q2", "a2", "q3", "a3"],
        ["q1", "a1", "q2", "a2"],
        ["q1", "a1"],
    ]
    present = {entry["uuid"] for each in (first, *copies) for entry in read(tmp_path, each)}
    assert len(present) == 6 + 6 + 4 + 2
    assert all(entry["sessionId"] == copies[2] for entry in read(tmp_path, copies[2]))


async def test_an_id_that_only_the_latest_copy_has(tmp_path: Path) -> None:
    first, second, third = new_id(), new_id(), new_id()
    write(tmp_path, first, ["q1", "a1", "q2", "a2"])
    assert await branch_record(tmp_path, first, second, "")
    anchor = read(tmp_path, second)[1]["uuid"]
    assert await branch_record(tmp_path, second, third, anchor)
    assert said(tmp_path, third) == ["q1", "a1"]


async def test_what_is_not_there_is_not_copied(tmp_path: Path) -> None:
    first = new_id()
    write(tmp_path, first, ["q1", "a1"])
    assert not await branch_record(tmp_path, first, new_id(), new_id())
    assert not await branch_record(tmp_path, new_id(), new_id(), "")
    assert len(list(tmp_path.rglob("*.jsonl"))) == 1
