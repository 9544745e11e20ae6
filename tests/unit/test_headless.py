"""The plain and JSON printers, the prompt, and the way out of a turn."""

from __future__ import annotations

import io
import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest

from sandbox_chat import engine, headless
from sandbox_chat.engine import Engine
from sandbox_chat.events import (
    ApprovalAnswered,
    ApprovalRequested,
    Attached,
    Choice,
    Event,
    ImageContent,
    Notice,
    Progress,
    Retry,
    ServerChanged,
    ServerTool,
    SessionFinished,
    SessionStarted,
    Sink,
    Status,
    Text,
    TextContent,
    TextDelta,
    ThinkingDelta,
    ToolFinished,
    ToolOutput,
    ToolStarted,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.headless import read_prompt
from sandbox_chat.printers import JsonPrinter, PlainPrinter
from sandbox_chat.settings import ConfigError, Settings
from sandbox_chat.sgr import Styles

TOOL = "mcp__sandbox__run_code"


def started(sandbox: str = "local", demo: bool = False) -> SessionStarted:
    return SessionStarted(session_id="sid", model="m", sandbox=sandbox, demo=demo)


def finished(
    turn_id: str = "t", *, is_error: bool = False, interrupted: bool = False, error: str = ""
) -> TurnFinished:
    return TurnFinished(
        turn_id=turn_id,
        subtype="success",
        is_error=is_error,
        interrupted=interrupted,
        num_turns=1,
        duration_ms=1000,
        cost_usd=None,
        total_cost_usd=None,
        error=error,
    )


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed(*past: Event, terminal: bool = False) -> tuple[str, str]:
    out, err = (Terminal(), Terminal()) if terminal else (io.StringIO(), io.StringIO())
    printer = PlainPrinter(out, err)
    for event in past:
        printer.take(event)
    return out.getvalue(), err.getvalue()


ASKED = ApprovalRequested(
    approval_id="a1",
    kind="overwrite",
    question="x exists already. Replace it?",
    detail="/x",
    choices=(Choice("replace", "r", "replace it"), Choice("keep_both", "k", "keep both")),
    default="keep_both",
    tool_use_id="u",
)


# --- plain text -----------------------------------------------------------------------------------------


def test_background_output_files_and_answers_go_to_stderr() -> None:
    out, err = printed(
        ToolStarted(tool_use_id="u", name=TOOL, input={"code": "1"}),
        ToolFinished(tool_use_id="u", is_error=False, content=(), duration_ms=10),
        ToolOutput(tool_use_id="u", stream="stdout", text="tick\ntock\n", late=True),
        ToolOutput(tool_use_id="u", stream="stdout", text="live\n"),
        Progress(subject="u", label="big", done=5_000_000, total=10_000_000),
        Progress(subject="u", label="big", done=10_000_000, total=10_000_000, over=True),
        Attached(attach_id="x", name="d.csv", path="/tmp/attached/d.csv", size=12, kind="text/csv"),
        Attached(attach_id="y", name="e", path="", size=0, error="There is no file e."),
        ASKED,
        ApprovalAnswered(approval_id="a1", choice="keep_both", by="default"),
    )
    assert out == ""
    assert err.splitlines() == [
        "· run_code 0.01 s ok",
        "· run_code background output:",
        "  tick",
        "  tock",
        "  big: 5.0 MB of 10 MB, 50 %",
        "Attached d.csv (12 bytes, text/csv): it is at /tmp/attached/d.csv in the sandbox.",
        "error: There is no file e.",
        "? x exists already. Replace it? → keep both (nobody was asked)",
        "  Allow it with: --allow overwrite",
    ]


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def late(text: str, rewind: int = 0, styles: Styles = ()) -> ToolOutput:
    return ToolOutput(tool_use_id="u", stream="stderr", text=text, late=True, rewind=rewind, styles=styles)


PROGRESS = (
    ToolStarted(tool_use_id="u", name=TOOL, input={"code": "1"}),
    late("10%", 0, ((0, 3, "red"),)),
    late("50%", 3, ((0, 3, "red"),)),
    late("100%\nres", 3, ((0, 4, "bold green"),)),
    late("t"),
    SessionFinished(),
)


def test_only_settled_lines_of_background_output_are_printed() -> None:
    out, err = printed(*PROGRESS)
    assert out == ""
    assert err.splitlines() == [
        "· run_code background output:",
        "  100%",
        "· run_code background output:",
        "  rest",
    ]


def test_a_terminal_gets_the_colours_of_background_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for no_colour, shown in (("", "  \x1b[1;32m100%\x1b[0m\n"), ("1", "  100%\n")):
        monkeypatch.setenv("NO_COLOR", no_colour)
        err = Screen()
        printer = PlainPrinter(io.StringIO(), err)
        for event in PROGRESS:
            printer.take(event)
        assert shown in err.getvalue()


def test_the_answer_is_printed_as_it_comes() -> None:
    out = io.StringIO()
    printer = PlainPrinter(out, io.StringIO())
    printer.take(TextDelta(text="The ans"))
    assert out.getvalue() == "The ans"
    printer.take(TextDelta(text="wer"))
    printer.take(Text(text="The answer."))
    assert out.getvalue() == "The answer.\n"


def test_blocks_are_set_apart() -> None:
    out, _ = printed(
        Text(text="one"),
        ToolStarted(tool_use_id="u", name=TOOL, input={}),
        TextDelta(text="tw"),
        Text(text="two"),
    )
    assert out == "one\n\ntwo\n"


def test_a_whole_block_that_differs_is_printed_whole() -> None:
    out, _ = printed(TextDelta(text="draft"), Text(text="final"))
    assert out == "draft\n\nfinal\n"


def test_a_retry_ends_the_block_and_is_said() -> None:
    out, err = printed(
        TextDelta(text="par"), Retry(reason="overloaded", attempt=1, delay_ms=500), TextDelta(text="partial")
    )
    assert out == "par\n\npartial"
    assert err == "asking again in 0.50 s (attempt 1): overloaded\n"


def test_tool_calls_are_short_lines() -> None:
    trace = "[error]\nZeroDivisionError: division by zero\n[traceback]\n  line 1\nZeroDivisionError: division by zero\n"
    picture = ImageContent("/p/a.png", "image/png", 4, 3)
    out, err = printed(
        ToolStarted(tool_use_id="a", name=TOOL, input={"code": "1"}),
        ToolStarted(tool_use_id="b", name="mcp__sandbox__read_image", input={}),
        ToolFinished(tool_use_id="b", is_error=False, content=(picture,), duration_ms=10),
        ToolFinished(tool_use_id="a", is_error=True, content=(TextContent(trace),), duration_ms=420),
        ToolFinished(tool_use_id="x", is_error=True, interrupted=True, content=(), duration_ms=0),
    )
    assert out == ""
    assert err == (
        "· read_image 0.01 s ok\n  picture 4×3: /p/a.png\n"
        "· run_code 0.42 s failed: ZeroDivisionError: division by zero\n"
        "· tool 0.00 s interrupted\n"
    )


def test_a_failed_call_says_the_reason_and_not_what_the_model_is_to_do() -> None:
    broken = "[tool_error] SandboxUnavailable: The Python /x cannot be run.\nDo not try again: tell the user."
    note = "Too many processes: the limit of 30 was reached (SANDBOX_CHAT_SANDBOX_PROCESSES)."
    limit = (
        f"[success] False\n[error]\nBlockingIOError: again\n[note] {note}\n[note] The whole output is in /x."
    )
    _, err = printed(
        ToolFinished(tool_use_id="a", is_error=True, content=(TextContent(broken),), duration_ms=10),
        ToolFinished(tool_use_id="b", is_error=True, content=(TextContent(limit),), duration_ms=10),
    )
    assert err == (
        "· tool 0.01 s failed: The Python /x cannot be run.\n"
        f"· tool 0.01 s failed: BlockingIOError: again\n  {note}\n"
    )


def test_the_end_says_how_it_went_and_what_it_cost() -> None:
    _, err = printed(started(demo=True), finished(is_error=True, error="The model is not known."))
    assert err == (
        "demo: rules answer here, no model\n"
        "error: The model is not known.\n"
        "failed · 1 step · 1.00 s · cost n/a · 0 tokens in, 0 out · session sid\n"
    )


def test_unsafe_is_said() -> None:
    assert "without isolation" in printed(started(sandbox="unsafe-local"))[1]


def test_what_plain_text_does_not_show() -> None:
    assert printed(
        Status(component="agent", state="ready"),
        TurnStarted(turn_id="t", prompt="p"),
        ThinkingDelta(text="hm"),
        SessionFinished(),
    ) == ("", "")


def test_on_one_terminal_lines_do_not_run_into_each_other() -> None:
    out, err = printed(TextDelta(text="half"), Notice(level="info", text="a note"), terminal=True)
    assert (out, err) == ("half\n", "info: a note\n")
    out, err = printed(TextDelta(text="half"), Notice(level="info", text="a note"))
    assert (out, err) == ("half", "info: a note\n")


def test_json_is_one_event_a_line() -> None:
    out = io.StringIO()
    printer = JsonPrinter(out)
    for event in (started(), TextDelta(text="a\nb 한"), finished()):
        printer.take(event)
    lines = out.getvalue().splitlines()
    assert [json.loads(line)["type"] for line in lines] == ["session_started", "text_delta", "turn_finished"]
    assert "한" in lines[1]


# --- the prompt -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_an_empty_prompt_is_refused(empty: str) -> None:
    with pytest.raises(ConfigError, match=r"The prompt from the command line is empty\."):
        read_prompt(empty)


def test_the_prompt_may_come_from_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.stdin", io.TextIOWrapper(io.BytesIO("\ufeff  two\nlines é\n\n".encode() + b"\xff\n"))
    )
    assert read_prompt("-") == "  two\nlines é\n\n\ufffd"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    with pytest.raises(ConfigError, match="The prompt from stdin is empty"):
        read_prompt("-")


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert "\udcff" not in read_prompt("a\udcff")
    assert "\ud83c" not in read_prompt("a\ud83c")


def test_a_prompt_that_no_model_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headless, "PROMPT_LIMIT", 10)
    with pytest.raises(ConfigError, match="is longer than 10 characters"):
        read_prompt("x" * 11)


# --- a turn, with an engine that plays what it is told ---------------------------------------------------


class PlayedEngine:
    """Takes the place of the engine: plays events, and more of them when it is interrupted or closed."""

    script: tuple[Event, ...] = ()
    on_interrupt: tuple[Event, ...] = ()
    on_close: tuple[Event, ...] = (SessionFinished(),)
    made: list[PlayedEngine] = []  # noqa: RUF012 - the tests look at the one that was made

    def __init__(
        self, settings: Settings, sink: Sink, *, resume: str | None = None, fork: bool = False
    ) -> None:
        self.sink = sink
        self.resume = resume
        self.fork = fork
        self.closed = 0
        self.interrupted = 0
        PlayedEngine.made.append(self)

    def start(self) -> None:
        self.sink(started())

    def send(self, prompt: str) -> str:
        for event in self.script:
            self.sink(event)
        return "t"

    def emit(self, event: Event) -> None:
        self.sink(event)

    def interrupt(self) -> None:
        self.interrupted += 1
        for event in self.on_interrupt:
            self.sink(event)

    def close(self) -> None:
        self.closed += 1
        for event in self.on_close:
            self.sink(event)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[PlayedEngine]]:
    monkeypatch.setattr(engine, "Engine", PlayedEngine)
    for name, value in (("script", ()), ("on_interrupt", ()), ("made", [])):
        monkeypatch.setattr(PlayedEngine, name, value)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    yield PlayedEngine
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
    for each in PlayedEngine.made:
        assert each.closed == 1


@contextmanager
def signals(*numbers: int) -> Iterator[None]:
    """Send signals to this process while the body runs a turn: the first once the engine was made, each
    further one once the one before was taken. Never before the turn's own handlers are in place.
    """
    stop = threading.Event()

    def wait_for(ready: Callable[[], object]) -> None:
        while not ready() and not stop.wait(0.02):
            pass

    def work() -> None:
        wait_for(lambda: PlayedEngine.made)
        for number in numbers:
            if stop.wait(0.1):
                return
            os.kill(os.getpid(), number)
            if number == signal.SIGINT:
                wait_for(lambda: PlayedEngine.made[0].interrupted)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (finished(), 0),
        (finished(is_error=True), 1),
        (finished(is_error=True, interrupted=True), 130),
        (SessionFinished(), 1),
    ],
)
def test_exit_codes(
    played: type[PlayedEngine], end: Event, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    played.script = (TurnStarted(turn_id="t", prompt="p"), finished("other"), end)
    assert headless.run(Settings(), "p", resume="sid", as_json=True) == code
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["type"] == "session_started"
    assert lines[-1]["type"] == "session_finished"
    assert played.made[0].resume == "sid"


def test_ctrl_c_interrupts_the_turn_and_waits_for_its_end(
    played: type[PlayedEngine], capsys: pytest.CaptureFixture[str]
) -> None:
    played.script = (TextDelta(text="part"),)
    played.on_interrupt = (Text(text="part"), finished(is_error=True, interrupted=True))
    with signals(signal.SIGINT):
        assert headless.run(Settings(), "p") == 130
    assert played.made[0].interrupted == 1
    assert capsys.readouterr().out == "part\n"


def test_a_turn_that_does_not_end_after_ctrl_c_is_left(played: type[PlayedEngine]) -> None:
    start = time.monotonic()
    with signals(signal.SIGINT):
        assert headless.run(Settings(close_timeout=0.5), "p") == 130
    assert time.monotonic() - start < 20


def test_a_second_ctrl_c_leaves_at_once(played: type[PlayedEngine]) -> None:
    start = time.monotonic()
    with signals(signal.SIGINT, signal.SIGINT):
        assert headless.run(Settings(close_timeout=60), "p") == 130
    assert time.monotonic() - start < 30


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_the_program_is_told_to_end(
    played: type[PlayedEngine], number: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    with signals(number):
        assert headless.run(Settings(), "p", as_json=True) == code
    assert '"session_finished"' in capsys.readouterr().out


@pytest.mark.parametrize("moment", ["entered", "closing"])
def test_a_signal_between_two_steps_still_closes_in_order(
    played: type[PlayedEngine], monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    class Badly(headless.Signals):
        """As if the signal came just after the handlers were set, or just before they are held back."""

        def __enter__(self) -> Badly:
            super().__enter__()
            if moment == "entered":
                self.__exit__(None, None, None)  # as ``with`` does when its body raises
                raise headless.Leave(143)
            return self

        def __setattr__(self, name: str, value: object) -> None:
            if name == "held" and value and moment == "closing" and not getattr(self, "struck", False):
                object.__setattr__(self, "struck", True)
                raise headless.Leave(143)
            object.__setattr__(self, name, value)

    monkeypatch.setattr(headless, "Signals", Badly)
    monkeypatch.setattr(PlayedEngine, "script", (finished(),))
    assert headless.run(Settings(), "p") == 143
    assert [one.closed for one in PlayedEngine.made] == ([] if moment == "entered" else [1])


def test_signals_that_the_parent_ignores_stay_ignored(played: type[PlayedEngine]) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        played.script = ()
        played.on_interrupt = (finished(interrupted=True),)
        with signals(signal.SIGHUP, signal.SIGINT):
            assert headless.run(Settings(), "p") == 130
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_reader_that_goes_away(
    played: type[PlayedEngine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    played.script = (TextDelta(text="x"), finished())
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        assert headless.run(Settings(), "p") == 141


def test_a_tool_that_is_allowed_and_unknown_is_a_warning(
    played: type[PlayedEngine],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SANDBOX_CHAT_CONFIG_DIR", str(tmp_path / "config"))
    path = tmp_path / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"notes": {"command": "notes"}}}))
    known = ServerChanged(name="notes", place="host", state="idle", tools=(ServerTool("add", "add"),))
    played.script = (known, finished())
    settings = Settings(data_dir=tmp_path, mcp_config=path)
    assert headless.run(settings, "p", allow=["mcp:notes/ad", "mcp:notes/add"]) == 0
    said = "--allow mcp:notes/ad allows nothing: the MCP server notes has no such tool. Its tools: add."
    assert capsys.readouterr().err.count(f"warning: {said}\n") == 1
    with pytest.raises(ConfigError, match="no MCP server note in this chat"):
        headless.run(settings, "p", allow=["mcp:note"])
    assert len(played.made) == 1


def test_a_failed_start_raises_before_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_args: object, **_kwargs: object) -> Engine:
        raise ConfigError("No model.")

    monkeypatch.setattr(engine, "Engine", refuse)
    with pytest.raises(ConfigError, match="No model"):
        headless.run(Settings(), "p")


def test_the_marks_of_the_signal_handler_are_not_printed() -> None:
    events: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
    events.put(None)
    events.put(SessionFinished())
    out = io.StringIO()
    assert headless._print_rest(events, JsonPrinter(out), 5) == 5
    assert len(out.getvalue().splitlines()) == 1
    assert cast("object", events.empty())


def test_a_question_that_nobody_answered_names_the_option() -> None:
    err = io.StringIO()
    printer = PlainPrinter(io.StringIO(), err)
    for event in (ASKED, ApprovalAnswered(approval_id="a1", choice="keep_both", by="default")):
        printer.take(event)
    assert err.getvalue().splitlines() == [
        "? x exists already. Replace it? → keep both (nobody was asked)",
        "  Allow it with: --allow overwrite",
    ]
