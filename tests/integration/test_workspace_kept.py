"""A workspace that is kept with the session: by the real engine, the agent and sandboxes of each kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.e2b_server import Cloud
from support.engines import engine
from support.sandboxes import PATIENCE
from support.scripted import call, text, tool_results

from sandbox_chat.events import Notice
from sandbox_chat.journal.keeping import delete

LIST = "import os\nprint('THERE', sorted(os.listdir('/workspace')), *[open('/workspace/' + n).read() for n in os.listdir('/workspace')])"
WRITE = "open('/workspace/a.txt', 'w').write('kept words')\nimport os\nos.symlink('/etc/passwd', '/workspace/link')"


def folder_of(tmp_path: Path, session_id: str) -> Path:
    return tmp_path / "data" / "sessions" / session_id / "workspace"


def said(running: Any) -> str:
    """What the last run printed, as the model got it."""
    return str(tool_results(running.server))


@pytest.fixture(params=["local", "docker", "e2b"])
def kind(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """Settings of a kind of sandbox."""
    if request.param == "local":
        yield {"sandbox_warm": False}
    elif request.param == "docker":
        daemon = request.getfixturevalue("docker")
        yield {"sandbox": "docker", "docker_image": daemon.image}
    else:
        with Cloud() as cloud:
            yield {"sandbox": "e2b", **cloud.settings()}
            assert not cloud.sandboxes


@pytest.mark.slow
def test_kept_and_brought_back(kind: dict[str, Any], tmp_path: Path) -> None:
    values = {**kind, "keep_workspace": True, "start_timeout": PATIENCE}
    with engine(tmp_path, call("run_code", code=WRITE), text("Written."), **values) as e:
        assert e.ask("write").subtype == "success"
    kept = folder_of(tmp_path, e.engine.session_id)
    assert [(path.name, path.read_text()) for path in kept.iterdir()] == [("a.txt", "kept words")]
    assert any("link" in event.text and "/workspace" in event.text for event in e.of(Notice))
    resume = e.engine.session_id
    with engine(tmp_path, call("run_code", code=LIST), text("Read."), resume=resume, **values) as again:
        assert again.ask("read").subtype == "success"
        assert "THERE ['a.txt'] kept words" in said(again)
    assert (kept / "a.txt").read_text() == "kept words"
    with engine(tmp_path, call("run_code", code=LIST), text("Read."), **values) as other:
        other.ask("read")
        assert "THERE []" in said(other)
    assert not folder_of(tmp_path, other.engine.session_id).exists()
    delete(tmp_path / "data", resume)
    assert not kept.exists()


def test_nothing_is_kept_unless_the_user_asks(tmp_path: Path) -> None:
    with engine(tmp_path, call("run_code", code=WRITE), text("Written."), sandbox_warm=False) as e:
        assert e.ask("write").subtype == "success"
    assert not folder_of(tmp_path, e.engine.session_id).exists()


@pytest.mark.slow
def test_a_sandbox_that_died_gets_what_was_kept_after_the_last_turn(tmp_path: Path) -> None:
    steps = (
        call("run_code", code=WRITE), text("Written."),
        call("run_code", code="open('/workspace/b.txt', 'w').write('lost')\nos._exit(1)"), text("Died."),
        call("run_code", code=LIST), text("Read."),
    )  # fmt: skip
    with engine(tmp_path, *steps, keep_workspace=True, sandbox_warm=False) as e:
        for prompt in ("write", "die", "read"):
            e.ask(prompt)
        assert "THERE ['a.txt'] kept words" in said(e)


@pytest.mark.slow
def test_a_branch_takes_it_along(tmp_path: Path) -> None:
    values: dict[str, Any] = {"keep_workspace": True, "sandbox_warm": False}
    with engine(tmp_path, call("run_code", code=WRITE), text("Written."), **values) as e:
        e.ask("write")
    origin = e.engine.session_id
    change = "open('/workspace/a.txt', 'w').write('changed')"
    with engine(
        tmp_path, call("run_code", code=change), text("Ok."), resume=origin, fork=True, **values
    ) as b:
        b.ask("change")
    assert (folder_of(tmp_path, b.engine.session_id) / "a.txt").read_text() == "changed"
    assert (folder_of(tmp_path, origin) / "a.txt").read_text() == "kept words"


@pytest.mark.slow
def test_a_folder_of_the_users_is_neither_copied_nor_deleted(tmp_path: Path) -> None:
    import os

    from support import ordinary

    with ordinary.open_folder() as place:
        (place / "mine.txt").write_text("mine")
        if os.geteuid() == 0:
            os.chown(place, 1236, 1236)
        values: dict[str, Any] = {"keep_workspace": True, "sandbox_workspace": place, "sandbox_warm": False}
        with engine(
            tmp_path, call("run_code", code="open('/workspace/a', 'w').close()"), text("Ok."), **values
        ) as e:
            e.ask("write")
        assert sorted(path.name for path in place.iterdir()) == ["a", "mine.txt"]
        assert not folder_of(tmp_path, e.engine.session_id).exists()
