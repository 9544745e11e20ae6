"""``sandbox-chat export``: what is written, asked and said, and the exit code."""

from __future__ import annotations

import io
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.exported import ID, write_session

from sandbox_chat import events as ev
from sandbox_chat import words
from sandbox_chat.cli import main
from sandbox_chat.journal import Journal
from sandbox_chat.journal.export import ExportError, export, markdown
from sandbox_chat.journal.export.asked import Asked, carry_out, read, said
from sandbox_chat.journal.export.work import Work


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A home, data and working folder of the test's own, with the made-up session in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.delenv("LC_ALL", raising=False)
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "canary-7f3e9c1b5d8a2046")
    write_session(tmp_path / "data" / "sessions")
    yield tmp_path
    words.use("en")


def test_the_newest_session_is_exported(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "--to", "a.md"]) == 0
    out, err = capsys.readouterr()
    assert out == f"Exported to {home}/a.md, with 2 files in {home}/a_files\n"
    assert err == "sandbox-chat: 1 page for the browser, such as an interactive plot, was left out.\n"
    assert (home / "a.md").read_text().startswith("# Plot a damped sine")


def test_a_session_is_named_by_the_beginning_of_its_id(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", ID[:6], "--to", "a.ipynb", "--include-failed"]) == 0
    assert main(["export", "zz", "--to", "b.md"]) == 2
    assert "There is no session 'zz'" in capsys.readouterr().err
    assert not (home / "b.md").exists()


@pytest.mark.parametrize(
    ("arguments", "words_"),
    [
        (["export"], "--to"),
        (["export", "--to"], "--to"),
        (["export", "--to", "a.pdf"], "names no kind of document. Use .md, .html, .ipynb or .json."),
        (["export", "--to", "no/a.md"], "There is no folder"),
        (["export", "--to", "data", "--force"], "names no kind"),
        (["export", "--to", "a.html", "--pictures-beside"], "Leave that option out"),
        (["export", "--to", "a.md", "--resume", "x"], "--resume"),
        (["export", "--to", "a.md", "--scrubb"], "did you mean '--scrub'?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    arguments: list[str], words_: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words_ in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_an_export_that_is_ended_leaves_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    def end(work: Work) -> None:
        work.target.out.write("half a document")
        work.target.add(b"a picture", "png")
        os.kill(os.getpid(), number)

    monkeypatch.setattr(markdown, "write", end)
    before = sorted(home.iterdir())
    kept = signal.signal(number, signal.SIG_DFL)
    try:
        assert main(["export", "--to", "a.md"]) == 128 + number
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, kept)
    assert sorted(home.iterdir()) == before


class Terminal(io.StringIO):
    """Something typed at a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_long_export_says_at_a_terminal_that_it_is_alive(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sandbox_chat.export_face.QUIET", 0.01)
    terminal = Terminal()
    real = markdown.write

    def slow(work: Work) -> None:
        real(work)
        until = time.monotonic() + 60
        while "100 %" not in terminal.getvalue():
            assert time.monotonic() < until
            time.sleep(0.01)

    monkeypatch.setattr(markdown, "write", slow)
    monkeypatch.setattr("sys.stderr", terminal)
    assert main(["export", "--to", "a.md"]) == 0
    *_, alive, rest = terminal.getvalue().split("\r\x1b[K")
    assert alive.startswith("Exporting the session … 100 %, ")
    assert rest.startswith("sandbox-chat: 1 page"), "nothing of it stays on the line"
    assert capsys.readouterr().out.startswith("Exported to")


def test_a_short_export_and_one_without_a_terminal_say_nothing_of_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal()
    with monkeypatch.context() as patch:
        patch.setattr("sandbox_chat.export_face.QUIET", 60)
        patch.setattr("sys.stderr", terminal)
        assert main(["export", "--to", "a.md"]) == 0
    assert terminal.getvalue().startswith("sandbox-chat: 1 page")
    capsys.readouterr()
    monkeypatch.setattr("sandbox_chat.export_face.QUIET", 0.001)
    real = markdown.write

    def slow(work: Work) -> None:
        time.sleep(0.1)
        real(work)

    monkeypatch.setattr(markdown, "write", slow)
    assert main(["export", "--to", "b.md"]) == 0
    assert capsys.readouterr().err.startswith("sandbox-chat: 1 page")


@pytest.mark.parametrize("ending", ["md", "html", "json", "ipynb"])
def test_the_share_that_is_done_grows_from_0_to_1(home: Path, ending: str) -> None:
    shares: list[float] = []
    export(home / "data" / "sessions" / ID, home / f"a.{ending}", told=shares.append)
    assert shares == sorted(shares)
    assert 0 < shares[0] < 0.2
    assert shares[-1] == 1.0


def test_a_file_that_is_there_is_replaced_only_when_that_is_said(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    there = home / "a.md"
    there.write_text("mine")
    assert main(["export", "--to", "a.md"]) == 2
    assert "exists already, and nothing was written" in capsys.readouterr().err
    for typed, code, text in (("n\n", 1, "mine"), ("\n", 1, "mine"), ("", 1, "mine"), ("y\n", 0, "# Plot")):
        monkeypatch.setattr("sys.stdin", Terminal(typed))
        monkeypatch.setattr("sys.stderr", Terminal())
        assert main(["export", "--to", "a.md"]) == code
        assert there.read_text().startswith(text)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    there.write_text("mine")
    assert main(["export", "--to", "a.md", "--force"]) == 0
    assert there.read_text().startswith("# Plot")


def test_scrubbing_is_said(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def past(_: Journal) -> list[ev.Event]:
        return [ev.TurnStarted(turn_id="t", prompt=f"canary-7f3e9c1b5d8a2046 in {home}/x")]

    session = write_session(home / "data" / "sessions", past)
    assert main(["export", "--to", "a.md", "--scrub"]) == 0
    name = carry_out(read("--scrub"), session, home / "out", ["canary-7f3e9c1b5d8a2046"]).path.name
    assert name == "secret-in-home-x.html"
    assert "Taken out: 2 credentials, 2 home paths." in capsys.readouterr().err
    assert "[secret\\] in \\[home\\]/x" in (home / "a.md").read_text()


def test_chinese(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANG", "zh_CN.UTF-8")
    assert main(["export", "--to", "a.html"]) == 0
    assert capsys.readouterr().out == f"已导出到 {home}/a.html\n"
    assert '<html lang="zh-Hans">' in (home / "a.html").read_text()


# -- what is typed in a chat ---------------------------------------------------------------------------------


def test_what_is_typed_after_the_command(home: Path) -> None:
    assert read("") == Asked()
    assert read(" --scrub ") == Asked(scrub=True)
    assert read("a.md") == Asked(home / "a.md")
    assert read("~/'my notes.ipynb' --include-failed --force") == Asked(
        home / "my notes.ipynb", include_failed=True, force=True
    )
    for wrong in ("a.pdf", "a", "a.md b.md", "--what a.md", "'a.md", "''", "a.md\\"):
        with pytest.raises(ExportError):
            read(wrong)


def test_without_a_name_the_title_names_the_file(home: Path) -> None:
    session = home / "data" / "sessions" / ID
    names = [carry_out(read(""), session, home / "out", []).path.name for _ in range(3)]
    stem = "Plot-a-damped-sine-and-tell-me-its-half-life"
    assert names == [f"{stem}.html", f"{stem}-2.html", f"{stem}-3.html"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("../../etc/passwd", "etc-passwd.html"),
        ("画一条衰减的正弦曲线", "画一条衰减的正弦曲线.html"),
        ("???", "session.html"),
        ("x" * 200, "x" * 60 + ".html"),
    ],
)
def test_a_title_is_never_a_path(home: Path, title: str, name: str) -> None:
    session = write_session(home / "data" / "sessions", lambda _: [ev.TurnStarted(turn_id="t", prompt=title)])
    assert carry_out(read(""), session, home / "out", []).path == home / "out" / name


def test_a_folder_that_cannot_be_made_is_said(home: Path) -> None:
    (home / "file").touch()
    with pytest.raises(ExportError, match="could not be written"):
        carry_out(read(""), home / "data" / "sessions" / ID, home / "file" / "out", [])


def test_what_is_said_of_a_document(home: Path) -> None:
    done = carry_out(read("--scrub a.json"), home / "data" / "sessions" / ID, home, [])
    assert said(done) == [
        f"Exported to {home}/a.json",
        "1 page for the browser, such as an interactive plot, was left out.",
        "Nothing was found that had to be taken out.",
        "Look at 1 picture yourself: pictures are not scrubbed.",
    ]
