"""The whole output of a run on disk: only when it was cut, private, bounded, said to the user alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.toolbox import Tools

from sandbox_chat.events import FileContent, TextContent
from sandbox_chat.settings import Settings
from sandbox_chat.tools.context import ToolOutcome
from sandbox_chat.tools.keeper import HiddenOutput, OutputKeeper


@pytest.fixture
def keeping(tmp_path: Path) -> Tools:
    return Tools(Settings(text_limit=1000, output_keep_mb=1), tmp_path, keep_output=True)


async def test_short_output_leaves_no_file(keeping: Tools, tmp_path: Path) -> None:
    outcome = await keeping.call("run_code", code="print('x' * 500)")
    assert not (tmp_path / "output").exists()
    assert outcome.display == (TextContent(outcome.text),)


async def test_long_output_is_kept_whole_and_said(keeping: Tools, tmp_path: Path) -> None:
    outcome = await keeping.call("run_code", code="print('x' * 5000 + 'end')")
    path = tmp_path / "output" / "id-1.txt"
    assert path.read_bytes() == b"x" * 5000 + b"end\n"
    assert path.stat().st_mode & 0o777 == 0o600
    shown, whole = outcome.display
    assert whole == FileContent(str(path), "text/plain", 5004, "whole output")
    assert isinstance(shown, TextContent)
    assert f"The whole output (5,004 bytes) is in {path} on this computer." in shown.text
    assert str(tmp_path) not in outcome.text  # the model cannot use a path of the user's computer
    assert "Write long output to a file under /tmp" in outcome.text
    assert len(outcome.text) <= 1000


async def test_more_than_the_limit_is_said(keeping: Tools, tmp_path: Path) -> None:
    outcome = await keeping.call("run_code", code="print('x' * 1_500_000)")
    assert (tmp_path / "output" / "id-1.txt").stat().st_size == 1_000_000
    shown, whole = outcome.display
    assert isinstance(whole, FileContent) and whole.size == 1_000_000
    assert isinstance(shown, TextContent)
    assert "The first 1,000,000 of 1,500,001 bytes of the output are in" in shown.text


async def test_keeping_can_be_switched_off(tmp_path: Path) -> None:
    tools = Tools(Settings(text_limit=1000, output_keep_mb=0), tmp_path, keep_output=True)
    await tools.call("run_code", code="print('x' * 5000)")
    assert not (tmp_path / "output").exists()


def test_names_are_safe_and_never_shared(tmp_path: Path) -> None:
    for _ in range(2):
        keeper = OutputKeeper(tmp_path, "../../a/b\0c", spare=0, limit=100)
        keeper.take("stdout", b"data")
        assert keeper.close() is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["_a_b_c-2.txt", "_a_b_c.txt"]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    folder = tmp_path / "output"
    folder.mkdir()
    (folder / "call.txt").symlink_to(victim)
    keeper = OutputKeeper(folder, "call", spare=0, limit=100)
    keeper.take("stdout", b"data")
    kept = keeper.close()
    assert kept is not None and kept.path.name == "call-2.txt"
    assert victim.read_bytes() == b"precious"


def test_a_disk_that_takes_nothing_costs_only_the_file(tmp_path: Path) -> None:
    (tmp_path / "output").write_text("a file is in the way")
    keeper = OutputKeeper(tmp_path / "output", "call", spare=10, limit=100)
    for _ in range(5):
        keeper.take("stdout", b"data data")
    assert keeper.close() is None


class Tokens:
    """Hides one word, a line at a time."""

    async def outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        return outcome

    def stream(self) -> tuple[Callable[[str], str], Callable[[], str]]:
        held: list[str] = []

        def feed(text: str) -> str:
            whole = "".join(held) + text
            end = whole.rfind("\n") + 1
            held[:] = [whole[end:]]
            return whole[:end].replace("secret", "<S>")

        return feed, lambda: held.pop().replace("secret", "<S>") if held else ""


def test_output_is_kept_without_personal_data(tmp_path: Path) -> None:
    keeper = OutputKeeper(tmp_path, "c", spare=5, limit=1000)
    hidden = HiddenOutput(keeper, Tokens())
    for piece in ("a sec", "ret\nand sec"):
        hidden.take("stdout", piece.encode())
    hidden.take("stderr", b"\xe4\xb8")
    hidden.take("stderr", b"\xad secret \xff")
    hidden.take("stdout", b"ret")
    hidden.close()
    hidden.close()
    kept = keeper.close()
    assert kept is not None
    assert kept.path.read_text("utf-8") == "a <S>\nand <S>\u4e2d <S> \ufffd"


def test_what_is_not_looked_at_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sandbox_chat.tools.keeper.HIDDEN_LIMIT", 50)
    keeper = OutputKeeper(tmp_path, "c", spare=5, limit=10_000)
    hidden = HiddenOutput(keeper, Tokens())
    for _ in range(100):
        hidden.take("stdout", b"secret\n" * 3)
    hidden.close()
    kept = keeper.close()
    assert kept is not None
    assert "secret" not in kept.path.read_text()
    assert kept.size == 3 * 3 * len("<S>\n")
    assert kept.total > 97 * 21
