"""The command line: what is understood, what is refused and how, and that nothing ends in a traceback."""

from __future__ import annotations

import contextlib
import gc
import io
import stat
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from sandbox_chat import __version__, arguments, cli, crash, doctor, headless, logs, session_list, sessions
from sandbox_chat.arguments import build_parser, parse
from sandbox_chat.cli import main
from sandbox_chat.journal import SessionNotFound
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import IMAGE_MODES, SANDBOXES, THEMES, Settings, fields
from sandbox_chat.ui import face

CANARY = "canary-7f3e9c1b5d8a2046"


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A home, data and working folder of the test's own, and no logging set up in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    for name in (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_MODEL",
        "E2B_API_KEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(logs, "set_up", lambda _settings: None)
    return tmp_path


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What was said on stderr: one line of the program's own."""
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.count("\n") == 1, shown.err
    line = shown.err.rstrip("\n")
    assert line.startswith("sandbox-chat: ")
    return line.removeprefix("sandbox-chat: ")


# --- what is understood ---------------------------------------------------------------------------------


def asked(*words: str) -> Namespace:
    return parse(list(words))


def test_no_command_is_the_chat() -> None:
    assert vars(asked()) == {"command": None}


COMMON = {
    "model": "m",
    "sandbox": "off",
    "mcp": "time,git",
    "sandbox_mcp": "time",
    "code_mode": "both",
    "images": "half",
    "theme": "light",
    "log": "f",
}
APART = [word for name, value in COMMON.items() for word in ("--" + name.replace("_", "-"), value)]


@pytest.mark.parametrize(
    "words",
    [
        ("--demo", *APART, "run", "p"),
        ("run", "--demo", *(f"--{name.replace('_', '-')}={value}" for name, value in COMMON.items()), "p"),
        ("run", "p", "--demo", *APART),
        ("--demo", *APART[:4], "run", *APART[4:], "p"),
    ],
)
def test_common_options_go_before_or_after_the_command(words: tuple[str, ...]) -> None:
    options = asked(*words)
    assert options.prompt == "p"
    found = {name: getattr(options, name) for name in cli.OVERRIDES}
    assert found == {"demo": True, **COMMON}


@pytest.mark.parametrize(
    ("words", "resume", "prompt"),
    [
        (["--resume"], "", None),
        (["--resume", "abc1"], "abc1", None),
        (["--resume=abc1", "--demo"], "abc1", None),
        (["--resume", "nonsense"], "nonsense", None),
        (["--resume", "run", "p"], "", "p"),
        (["--resume", "abc1", "run", "p"], "abc1", "p"),
        (["run", "--resume", "abc1", "p"], "abc1", "p"),
        (["run", "p", "--resume"], "", "p"),
        (["run", "--resume", "what is 1 + 1?"], "", "what is 1 + 1?"),
        (["run", "--resume", "-"], "", "-"),
        (["run", "--json", "--resume", "--", "p"], "", "p"),
        (["run", "run"], None, "run"),
        (["run", "p"], None, "p"),
        (["run", "--", "-5 + 3?"], None, "-5 + 3?"),
    ],
)
def test_resume_takes_an_id_or_nothing(words: list[str], resume: str | None, prompt: str | None) -> None:
    options = parse(words)
    assert getattr(options, "resume", None) == resume
    assert getattr(options, "prompt", None) == prompt


def test_sessions_and_doctor() -> None:
    assert (asked("sessions").action, hasattr(asked("sessions"), "json")) == (None, False)
    assert asked("sessions", "--json").json
    assert asked("sessions", "list", "--json").json
    assert (asked("sessions", "show").action, asked("sessions", "show").id) == ("show", None)
    assert asked("sessions", "show", "abc", "--json").json
    assert asked("sessions", "--json", "show", "abc").json
    assert asked("sessions", "--search", "x y").search == "x y"
    assert asked("sessions", "list", "--search", "x").search == "x"
    assert (asked("sessions", "delete", "a", "b").ids, asked("sessions", "delete", "a").yes) == (
        ["a", "b"],
        False,
    )
    assert (
        asked("sessions", "rename", "a", "new", "title").title,
        asked("sessions", "rename", "a").title,
    ) == (
        ["new", "title"],
        [],
    )
    assert not asked("doctor").json
    assert asked("doctor", "--json", "--sandbox", "e2b").sandbox == "e2b"


def test_overrides_are_settings() -> None:
    assert set(cli.OVERRIDES) <= {item.name for item in fields()}


def test_help_names_every_choice() -> None:
    text = " ".join(build_parser().format_help().split())
    for choice in (*SANDBOXES, *IMAGE_MODES, *THEMES, *arguments.COMMANDS):
        assert choice in text, choice
    for command in (
        ["run"],
        ["sessions"],
        ["sessions", "delete"],
        ["export"],
        ["costs"],
        ["docker", "build"],
        ["sandboxes", "kill"],
        ["mcp", "add"],
        ["mcp", "serve"],
        ["serve"],
        ["skills", "promote"],
    ):
        with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
            build_parser().parse_args([*command, "--help"])
        text += out.getvalue()
    for option in arguments._OPTIONS:
        assert option in text, option


# --- what is refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["sesions"], "there is no command 'sesions'; did you mean 'sessions'? See: sandbox-chat --help"),
        (["xyz"], "there is no command 'xyz'. See: sandbox-chat --help"),
        (["sessions", "shwo"], "there is no command 'shwo'; did you mean 'show'? See: sandbox-chat --help"),
        (["sessions", "--resume"], "there is no option '--resume' here. See: sandbox-chat --help"),
        (["--resum"], "there is no option '--resum' here; did you mean '--resume'? See: sandbox-chat --help"),
        (["run", "p", "--jsn"], "there is no option '--jsn' here; did you mean '--json'? See: sandbox-chat --help"),
        (["run", "p", "--sandboxx=off"], "there is no option '--sandboxx=off' here; did you mean '--sandbox'? See: sandbox-chat --help"),
        (["run", "a", "b"], "'b' is one argument too many; put a prompt into quotes. See: sandbox-chat --help"),
        (["run"], "the prompt is missing; give it in quotes, or - to read it from stdin. See: sandbox-chat --help"),
        (["run", "--resume", "abc1"], "the prompt is missing; give it in quotes, or - to read it from stdin. See: sandbox-chat --help"),
        (["--model"], "argument --model: expected one argument. See: sandbox-chat --help"),
        (["--resume", "sessions"], "--resume does not go with 'sessions'. See: sandbox-chat --help"),
        (["--resume", "doctor"], "--resume does not go with 'doctor'. See: sandbox-chat --help"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line_and_code_2(
    words: list[str], line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(words)
    assert caught.value.code == 2
    assert said(capsys) == line


@pytest.mark.parametrize(
    ("words", "start"),
    [
        (["run", "--sandbox", "lcal", "p"], "--sandbox must be one of local, e2b, docker, off, unsafe-local; did you mean 'local'?"),
        (["run", "--images", "png", "p"], "--images must be one of auto, kitty, sixel, iterm, sharp, symbols, half, ascii, off."),
        (["--theme", "blue", "sessions"], "--theme must be one of auto, dark, light, contrast, terminal."),
        (["run", "--demo", ""], "The prompt from the command line is empty."),
        (["sessions", "show", "abc"], "There is no session 'abc'."),
        (["sessions", "show", "../x"], "'../x' is not the id of a session."),
        (["run", "--demo", "--resume", "abc", "p"], "There is no session 'abc'."),
        (["run", "--demo", "--resume", "p"], "There is no session yet."),
        (["run", "--demo", "--log", "/nowhere/at/all.log", "p"], "The log file /nowhere/at/all.log cannot be written (No such file or directory)."),
    ],
)  # fmt: skip
def test_wrong_configuration_is_one_line_and_code_2(
    words: list[str],
    start: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    gc.collect()  # what earlier tests left says so now, and not in the middle of this
    monkeypatch.undo()
    monkeypatch.setenv("SANDBOX_CHAT_DATA_DIR", str(tmp_path))  # never the sessions of who runs the tests
    assert main(words) == 2
    assert said(capsys).startswith(start)


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in ((["--version"], f"sandbox-chat {__version__}"), (["--help"], "usage: sandbox-chat")):
        assert main(words) == 0
        assert capsys.readouterr().out.startswith(shown)


class Screen:
    """A stream that says whether it is a terminal."""

    closed = False

    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminals", "term", "start"),
    [
        ((False, True, True), "xterm", "The chat needs a terminal, and the input is not one."),
        ((True, False, True), "xterm", "The chat needs a terminal, and the output is not one."),
        ((True, True, False), "xterm", "The chat needs a terminal, and the error output is not one."),
        ((True, True, True), "dumb", "The chat needs a terminal that can place text, and TERM is dumb."),
        ((True, True, True), "xterm", ""),
    ],
)
def test_the_chat_needs_a_terminal(
    terminals: tuple[bool, bool, bool], term: str, start: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    for name, terminal in zip(("stdin", "stdout", "stderr"), terminals, strict=True):
        monkeypatch.setattr(f"sys.{name}", Screen(terminal))
    problem = cli._terminal_problem()
    assert problem.startswith(start)
    assert bool(problem) == bool(start)
    if problem:
        assert 'sandbox-chat run "your prompt"' in problem


def test_a_stream_that_is_missing_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert "the input is not one" in cli._terminal_problem()


def test_a_web_page_is_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """textual-serve sets the driver that draws on a page, and gives no terminal."""
    monkeypatch.setenv("TEXTUAL_DRIVER", "textual.drivers.web_driver:WebDriver")
    monkeypatch.setattr("sys.stdin", None)
    assert cli._terminal_problem() == ""


# --- what goes wrong later ------------------------------------------------------------------------------


def raising(error: BaseException) -> object:
    def fail(*_args: object, **_kwargs: object) -> int:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (SandboxUnavailable("No isolation here. Use Docker."), 2, "No isolation here. Use Docker."),
        (SessionNotFound("No such session."), 2, "No such session."),
    ],
)
def test_expected_failures_are_one_line(
    error: Exception,
    code: int,
    line: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(headless, "run", raising(error))
    assert main(["run", "--demo", "p"]) == code
    assert said(capsys) == line


def test_an_expected_failure_shows_no_credential(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("E2B_API_KEY", CANARY)
    monkeypatch.setattr(headless, "run", raising(SandboxUnavailable(f"refused {CANARY} \x1b[2J")))
    assert main(["run", "--demo", "p"]) == 2
    assert said(capsys) == "refused [secret] ␛[2J"


def test_ctrl_c_and_a_closed_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "run", raising(KeyboardInterrupt()))
    assert main(["run", "--demo", "p"]) == 130
    monkeypatch.setattr(cli, "_abandon_stdout", lambda: None)
    monkeypatch.setattr(session_list, "print_list", raising(BrokenPipeError()))
    assert main(["sessions"]) == 141


@pytest.mark.parametrize(
    ("words", "log", "prompt"),
    [
        (("--log",), "auto", None),
        (("--log", "f"), "f", None),
        (("--log", "run", "p"), "auto", "p"),
        (("run", "--log", "f", "p"), "f", "p"),
        (("run", "p", "--log"), "auto", "p"),
        (("run", "--log", "two words"), "auto", "two words"),
        (("run", "--log=two words", "p"), "two words", "p"),
    ],
)
def test_a_log_needs_no_file(words: tuple[str, ...], log: str, prompt: str | None) -> None:
    options = asked(*words)
    assert options.log == log
    assert getattr(options, "prompt", None) == prompt


def test_a_run_with_a_log_still_needs_a_prompt(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--log", "f"]) == 2
    assert "the prompt is missing" in capsys.readouterr().err


def test_a_fault_of_a_part_is_said_at_the_end(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def face(settings: Settings, *_: object, **__: object) -> int:
        crash.report(KeyError(CANARY), settings)
        return 0

    monkeypatch.setattr(headless, "run", face)
    assert main(["run", "--demo", "p"]) == 0
    (report,) = (own_home / "data" / "crashes").iterdir()
    assert said(capsys) == (
        f"A part of the program failed because of a fault of its own (KeyError). The report is in {report}."
    )


def test_a_fault_leaves_a_private_report_and_no_traceback(
    own_home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    monkeypatch.setattr(headless, "run", raising(ZeroDivisionError(f"with {CANARY}")))
    assert main(["run", "p"]) == 1
    line = said(capsys)
    (report,) = (own_home / "data" / "crashes").iterdir()
    assert line == (
        f"The program failed because of a fault of its own (ZeroDivisionError). The report is in {report}."
    )
    text = report.read_text()
    assert text.startswith(f"sandbox-chat {__version__}, Python ")
    assert "\nZeroDivisionError\n  sandbox_chat/cli.py:" in text
    assert "settings that were changed: anthropic_api_key" in text
    assert CANARY not in text
    assert stat.S_IMODE(report.stat().st_mode) == 0o600


def test_a_fault_before_the_settings_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor, "run", raising(ZeroDivisionError(f"with {CANARY}")))
    assert main(["doctor"]) == 1
    line = said(capsys)
    report = Path(line.partition("The report is in ")[2].rstrip("."))
    text = report.read_text()
    report.unlink()
    assert CANARY not in text
    assert "\nZeroDivisionError\n" in text


@pytest.mark.parametrize(
    "command",
    [
        "sessions",
        "sessions --search x",
        "sessions show",
        "costs",
        "export --to a.md",
        "run --demo --resume p",
    ],
)
def test_sessions_that_cannot_be_read_are_not_said_to_be_none(
    own_home: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    (own_home / "data").mkdir(exist_ok=True)
    (own_home / "data" / "sessions").touch()
    assert main(command.split()) == 2
    assert said(capsys) == (
        f"The sessions in {own_home}/data/sessions cannot be read (Not a directory). Check the permissions of that folder."
    )


@pytest.mark.parametrize(
    ("place", "command"),
    [
        ("session_list.print_list", "sessions"), ("sessions.show", "sessions show"), ("costs.run", "costs"),
        ("export_face.run", "export --to a.md"), ("doctor.run", "doctor"), ("settings.load", "costs"),
        ("headless.run", "run --demo p"),
    ],
)  # fmt: skip
def test_no_fault_of_a_face_is_printed_with_what_it_holds(tmp_path: Path, place: str, command: str) -> None:
    module, _, name = place.partition(".")
    program = (
        f"import logging, sys\nfrom sandbox_chat import cli, {module}\n"
        f"def fail(*a, **k):\n    logging.getLogger('sandbox_chat').warning('{CANARY}')\n    raise ValueError('{CANARY}')\n"
        f"{module}.{name} = fail\nsys.exit(cli.main({command.split()!r}))"
    )
    done = subprocess.run(  # in a test, pytest takes what is logged
        [sys.executable, "-c", program],
        env={"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert CANARY not in done.stderr + done.stdout
    [line] = done.stderr.splitlines()
    assert "a fault of its own (ValueError)" in line


def test_a_report_that_cannot_be_written_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(crash, "_folders", lambda _settings: [(Path("/proc/nowhere"), "")])
    monkeypatch.setattr(headless, "run", raising(ZeroDivisionError()))
    assert main(["run", "--demo", "p"]) == 1
    assert said(capsys).endswith("(ZeroDivisionError). A report could not be written.")


def test_nothing_is_raised_without_an_error_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "run", raising(SessionNotFound("x")))
    monkeypatch.setattr("sys.stderr", None)
    assert main(["run", "--demo", "p"]) == 2


def test_faces_get_what_was_asked(monkeypatch: pytest.MonkeyPatch, own_home: Path) -> None:
    calls: list[tuple[object, ...]] = []

    def note(*args: object, **kwargs: object) -> int:
        calls.append((*args, kwargs))
        return 7

    monkeypatch.setattr(headless, "run", note)
    for name in ("print_list", "delete", "rename"):
        monkeypatch.setattr(session_list, name, note)
    monkeypatch.setattr(sessions, "show", note)
    monkeypatch.setattr(doctor, "run", note)
    root = own_home / "data" / "sessions"
    (root / "abc").mkdir(parents=True)
    (root / "abc" / "events.jsonl").write_text('{"type":"turn_started","turn_id":"t","prompt":"p"}\n')
    assert main(["run", "--json", "--demo", "--resume", "ab", "p"]) == 7
    settings, prompt, kwargs = calls.pop()
    assert isinstance(settings, Settings)
    assert (settings.demo, prompt, kwargs) == (
        True,
        "p",
        {"resume": "abc", "fork": False, "as_json": True, "attach": [], "allow": []},
    )
    assert main(["run", "--attach", "a", "--attach", "b", "--allow", "overwrite", "p"]) == 7
    assert calls.pop()[-1] == {
        "resume": None,
        "fork": False,
        "as_json": False,
        "attach": ["a", "b"],
        "allow": ["overwrite"],
    }
    assert main(["sessions"]) == 7
    assert calls.pop() == (root.parent, {"search": None, "as_json": False})
    assert main(["sessions", "--search", "two words", "--json"]) == 7
    assert calls.pop() == (root.parent, {"search": "two words", "as_json": True})
    assert main(["sessions", "delete", "a", "b", "--yes"]) == 7
    assert calls.pop() == (root.parent, ["a", "b"], {"yes": True})
    assert main(["sessions", "rename", "a", "new", "title"]) == 7
    assert calls.pop() == (root.parent, "a", "new title", {})
    assert main(["sessions", "show", "x", "--json"]) == 7
    assert calls.pop() == (root, "x", {"as_json": True})
    assert main(["doctor", "--json", "--demo"]) == 7
    overrides, kwargs = calls.pop()
    assert kwargs == {"as_json": True, "faults": face.faults}
    assert overrides == {**dict.fromkeys(cli.OVERRIDES), "plain": None, "demo": True}


@pytest.mark.parametrize("start", [["-m", "sandbox_chat"], ["-m", "sandbox_chat.cli"]])
def test_the_module_is_the_same_program(start: list[str]) -> None:
    done = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"sandbox-chat {__version__}\n", "")
