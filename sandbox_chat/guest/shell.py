"""The persistent Python shell: IPython without a terminal, its results sent as frames."""

from __future__ import annotations

import base64
import binascii
import builtins
import contextlib
import json
import os
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

from IPython.core.autocall import ExitAutocall
from IPython.core.display import Image
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.error import StdinNotImplementedError
from IPython.core.formatters import DisplayFormatter
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Type
from traitlets.config import Config

from .link import Link
from .streams import settle

TEXT_MIMES = ("text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml", "application/json")
SCRIPT = "application/javascript"
"""What draws into a page that was displayed before it, as bokeh does: sent as a page that is nothing else."""
BYTE_MIMES = ("image/png", "image/jpeg", "image/gif", "image/webp")
MAX_TEXT = 1_000_000
"""Characters of one result's text; plain text beyond is cut, other kinds are left out."""
MAX_ALL_TEXT = 2 * MAX_TEXT
"""Characters of all the forms of one result together; forms beyond are left out."""
MAX_HTML = 24 << 20
"""Bytes of one result's HTML: plots bring their whole library with them. It goes as bytes when it is long."""
MAX_PICTURE = 32 << 20
"""Bytes of one picture; a larger one is left out, and standard error says so."""
MAX_TRACEBACK = 100_000
"""Characters kept of a traceback's end."""
DEEP = 100
"""Frames above which a traceback is written in Python's own form: IPython's would take seconds."""
MAX_MORE = 3
"""Tracebacks that are shown beside that of the code itself."""
MAX_VALUE = 10_000
"""Characters kept of an exception's own text."""


class _Publisher(DisplayPublisher):
    """Sends what code displays."""

    def publish(
        self,
        data: dict[str, Any],
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: bool = False,
        **_: Any,
    ) -> None:
        """Send one display of ``data``, which maps MIME types to text or bytes."""
        shell: Any = self.shell
        shell.send_output(data, is_result=False)

    def clear_output(self, wait: bool = False) -> None:
        """Do nothing: what was shown stays shown."""


class _Hook(DisplayHook):
    """Sends the value of the last expression."""

    def write_output_prompt(self) -> None:
        """Write no prompt."""

    def write_format_data(self, format_dict: dict[str, Any], md_dict: Any = None) -> None:
        """Send the value in all its forms."""
        shell: Any = self.shell
        shell.send_output(format_dict, is_result=True)

    def log_output(self, format_dict: dict[str, Any]) -> None:
        """Keep no second copy of what was sent."""

    def finish_displayhook(self) -> None:
        """Write no end of line."""
        self._is_active = False


class _Formatter(DisplayFormatter):
    """Forms of a value. A picture that is bytes already stays bytes, instead of becoming text and bytes again."""

    def format(self, obj: Any, include: Any = None, exclude: Any = None) -> Any:
        """Return what the value looks like by MIME type, and facts about that."""
        if type(obj) is Image and obj.embed and isinstance(obj.data, bytes):
            mime = f"image/{obj.format}"
            if mime in BYTE_MIMES:
                return {mime: obj.data, "text/plain": repr(obj)}, {}
        plain: Any = super()
        return plain.format(obj, include=include, exclude=exclude)


class Shell(InteractiveShell):
    """One namespace in which code is run piece by piece."""

    displayhook_class = Type(_Hook)
    display_pub_class = Type(_Publisher)
    link: Link
    shown: str
    """Traceback of the present (or last) run, empty if there is none."""
    later: list[str]
    """Tracebacks of what ran after its code."""

    def init_history(self) -> None:
        """Keep history in memory only."""
        self.config.HistoryManager.enabled = False
        ipython: Any = super()
        ipython.init_history()

    def init_sys_modules(self) -> None:
        """Make the namespace the main module, as pickling and multiprocessing expect."""
        ipython: Any = super()
        ipython.init_sys_modules()
        self.user_module.__dict__["__spec__"] = None

    @contextlib.contextmanager
    def _tee(self, channel: str) -> Iterator[None]:
        """Keep no copy of what is written: IPython would hold all of it in memory for a history that nobody reads."""
        yield

    def init_display_formatter(self) -> None:
        """Give values their forms by ``_Formatter``."""
        ipython: Any = self
        ipython.display_formatter = _Formatter(parent=self)
        ipython.configurables.append(ipython.display_formatter)

    def enable_gui(self, gui: Any = None) -> None:
        """Accept any, as ``%matplotlib`` asks for one: there is no window here, and figures are shown in the answer."""

    def init_traceback_handlers(self, custom_exceptions: Any) -> None:
        """Let a traceback that IPython cannot format, as when memory is short, be told in Python's own form.

        IPython would print its own failure among the code's output.
        """
        ipython: Any = super()
        ipython.init_traceback_handlers(custom_exceptions)
        handler: Any = self.InteractiveTB
        usual = handler.structured_traceback

        def surely(kind: Any, error: Any, frames: Any, *args: Any, **options: Any) -> list[str]:
            with contextlib.suppress(Exception):
                shown: list[str] = usual(kind, error, frames, *args, **options)
                return shown
            with contextlib.suppress(Exception):
                return ["".join(traceback.format_exception(kind, error, frames)).rstrip("\n")]
            return [f"{kind.__name__} (there is no room to say where)"]

        handler.structured_traceback = surely

    def _format_exception_for_storage(
        self, exception: BaseException, *_args: Any, **_options: Any
    ) -> dict[str, Any]:
        """Format nothing: IPython would keep a second traceback for a history that nobody reads, and it takes long."""
        return {"ename": type(exception).__name__, "evalue": "", "traceback": []}

    def showtraceback(self, *args: Any, **options: Any) -> None:
        """Format the present exception, undisturbed by a second interrupt."""
        if not self.link.here:  # a forked child fell out of its code; it is not the shell
            traceback.print_exc()
            os._exit(1)
        ipython: Any = super()
        with self.link.holding():
            error = sys.exc_info()[1]
            if error is not None:
                error.__traceback__ = _without_ours(error.__traceback__)
            if self.link.stopped and isinstance(error, KeyboardInterrupt):
                # IPython's own format takes long, and who interrupts does not want to wait.
                self.keep("".join(traceback.format_exception(error)))
                return
            # IPython would write a group to standard error, beside the answer.
            if _beyond_ipython(error) or (
                error is not None and sum(1 for _ in traceback.walk_tb(error.__traceback__)) > DEEP
            ):
                self.keep("".join(traceback.format_exception(error)))
                return
            ipython.showtraceback(*args, **options)

    def _showtraceback(self, etype: Any, evalue: BaseException | None, stb: list[str]) -> None:
        self.keep("\n".join(stb))

    def keep(self, shown: str) -> None:
        """Keep a traceback for the run's answer: the first is the code's own, later ones are of what runs after it."""
        if self.shown:
            self.later.append(shown)
        else:
            self.shown = shown

    def system(self, cmd: str) -> None:
        """Run a shell command (``!cmd``); its output goes where the code's goes."""
        ipython: Any = self  # its methods have no types
        command = ipython.var_expand(cmd, depth=1)
        self.user_ns["_exit_code"] = subprocess.call(command, shell=True)  # noqa: S602 - what ``!`` is for

    def show_usage_error(self, exc: BaseException) -> None:
        """Keep what is said of a magic command that was used wrongly."""
        self.keep(f"UsageError: {exc}")

    def send_output(self, data: dict[str, Any], *, is_result: bool) -> None:
        """Send one result or display, without the kinds that nobody shows and within the limits."""
        text: dict[str, str] = {}
        parts: list[tuple[str, bytes]] = []
        if isinstance(script := data.get(SCRIPT), str) and "text/html" not in data:
            data = {**data, "text/html": "<script>" + script.replace("</script", "<\\/script") + "</script>"}
        for mime, value in data.items():
            if mime in BYTE_MIMES:
                picture = _as_bytes(value)
                if picture is not None and len(picture) <= MAX_PICTURE:
                    parts.append((mime, picture))
                elif picture is not None:
                    warnings.warn(f"a picture of {len(picture):,} bytes is too large to show", stacklevel=2)
            elif mime in TEXT_MIMES:
                chars = value if isinstance(value, str) else json.dumps(value, default=str)
                room = MAX_ALL_TEXT - sum(len(value) for value in text.values())
                if len(chars) <= min(MAX_TEXT, room):
                    text[mime] = settle(chars)
                elif mime == "text/html":
                    page = settle(chars[: MAX_HTML + 1]).encode("utf-8", "replace")
                    if len(page) <= MAX_HTML:
                        parts.append((mime, page))
                elif mime == "text/plain":
                    cut = len(chars) - MAX_TEXT
                    text[mime] = settle(chars[:MAX_TEXT]) + f"\n[… {cut:,} more characters …]"
        if sum(len(part) for _, part in parts) > MAX_PICTURE:
            parts = sorted(parts, key=lambda part: part[0] == "text/html")[:1]
        self.link.send(
            {
                "op": "display",
                "id": self.link.last_cell,
                "result": is_result,
                "text": text,
                "sizes": [[mime, len(part)] for mime, part in parts],
            },
            b"".join(part for _, part in parts),
        )

    def run(self, code: str, cell: int) -> dict[str, str] | None:
        """Run ``code`` as number ``cell``; return what is told of its exception, or None."""
        self.shown = ""
        self.later = []
        error: BaseException | None = None
        try:
            try:
                self.link.begin(cell)
                ipython: Any = self
                result = ipython.run_cell(code, store_history=True)
                error = result.error_before_exec or result.error_in_exec
            finally:
                self.link.end()
                if not self.link.here:
                    os._exit(0)
        except BaseException as caught:
            self.link.end()
            error = caught
        # What draws the figures after the code may fail too; IPython only says that it did, not why.
        rest = [self.shown, *self.later] if error is None and self.shown else self.later
        for text in rest[:MAX_MORE]:
            with contextlib.suppress(Exception):
                sys.stderr.write(text[-MAX_TRACEBACK:] + "\n")
        return None if error is None else self._describe(error)

    def _describe(self, error: BaseException) -> dict[str, str]:
        name = type(error).__name__
        try:
            value = str(error)
        except Exception:
            value = "(its text cannot be made)"
        shown = self.shown
        if not shown or isinstance(error, SystemExit):
            try:
                shown = "".join(traceback.format_exception(error))
            except Exception:
                shown = f"{name}: {value}"
        if isinstance(error, SystemExit):
            value = f"the code ended itself with exit code {error.code!r}; the shell goes on"
            shown = f"{name}: {value}"
        return {
            "name": settle(name),
            "value": settle(value[:MAX_VALUE]),
            "traceback": settle(shown[-MAX_TRACEBACK:]),
        }


def _beyond_ipython(error: BaseException | None) -> bool:
    """Whether IPython cannot format an error: it, or what it came after, is a group of errors, or that goes in a circle."""
    seen: set[int] = set()
    while error is not None:
        if isinstance(error, BaseExceptionGroup) or id(error) in seen or len(seen) > DEEP:
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _without_ours(tb: types.TracebackType | None) -> types.TracebackType | None:
    """Return a traceback without the frames of this package: they tell nobody what is wrong with the code."""
    kept = []
    while tb is not None:
        # By the package, not the file: in a container this one is loaded from memory and has no folder.
        if dict.get(tb.tb_frame.f_globals, "__package__") != __package__:
            kept.append(tb)
        tb = tb.tb_next
    found: types.TracebackType | None = None
    for one in reversed(kept):
        found = types.TracebackType(found, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return found


def _as_bytes(value: Any) -> bytes | None:
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, str):
        try:
            return base64.b64decode(value)
        except (binascii.Error, ValueError):
            return None
    return None


class _Leave(ExitAutocall):
    """``exit`` and ``quit``, with and without brackets: end the run, not the shell."""

    def __call__(self, code: Any = None) -> NoReturn:
        __tracebackhide__ = True
        raise SystemExit(code)


def _no_input(*_args: Any, **_options: Any) -> NoReturn:
    __tracebackhide__ = True
    raise StdinNotImplementedError(
        "input() is not available here: nobody can type into the sandbox. Put the value into the code."
    )


def _os_system(command: str | bytes) -> int:
    # The C library's own waits without letting Python see an interrupt.
    __tracebackhide__ = True
    status = subprocess.call(command, shell=True)  # noqa: S602 - what os.system is for
    return -status if status < 0 else status << 8


class _Nowhere:
    """Takes what a shell that is not connected sends, and forgets it."""

    last_cell = 0
    here = True

    def send(self, _message: dict[str, Any], _blob: bytes = b"") -> None:
        """Do nothing."""


NOWHERE: Any = _Nowhere()


def make_shell() -> Shell:
    """Return a shell whose output goes nowhere before its ``link`` is set. There is one per process."""
    import getpass

    config = Config()
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.color_info = False
    config.InteractiveShell.xmode = "Context"
    config.InteractiveShell.automagic = False
    config.HistoryManager.enabled = False
    main = types.ModuleType("__main__")
    shell = Shell.instance(config=config, user_module=main)
    shell.link = NOWHERE

    make_leave: Any = _Leave
    leave = make_leave(shell)
    for name in ("exit", "quit"):
        shell.user_ns[name] = shell.user_ns_hidden[name] = leave
    for owner, name, function in (
        (builtins, "input", _no_input),
        (getpass, "getpass", _no_input),
        (os, "system", _os_system),
    ):
        setattr(owner, name, function)
    warnings.filterwarnings("ignore", message="To exit: use 'exit'")
    # Forking beside IPython's threads is what every notebook does; the warning only worries.
    warnings.filterwarnings(
        "ignore", message="This process .* is multi-threaded", category=DeprecationWarning
    )
    return shell
