"""What is run once in a cloud's own Jupyter kernel, so that it behaves as the shell of the other sandboxes does.

The host sends this file's text as a cell that executes it in a namespace of its own; no name is left in the user's.
After every cell it says a line (a display whose text begins with ``MARK``) that the host takes out of the results:
by its absence the host notices that the kernel is another one than before. Plain Python 3.8 and IPython 7 suffice.
"""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
import types
import warnings
from pathlib import Path
from typing import Any, Callable, Iterator  # noqa: UP035 - Python 3.8 must read this

MARK = "\x1fsandbox-chat\x1f"
MODULE = "_sandbox_chat"
"""Name in ``sys.modules`` under which later cells of the host find this."""
LATE_LIMIT = 100_000
"""Characters of late output kept until the host asks for it."""
FLUSH_AFTER = 1 << 18
"""Characters of output after which the code waits until they are sent."""
PICTURES = 20
_MESSAGES = ("To exit: use 'exit'", "FigureCanvasAgg is non-interactive", "Matplotlib is currently using agg")
_PASSES = 50


def settle(text: str) -> str:
    """Return ``text`` fit for UTF-8: surrogate pairs are joined, lone ones become U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def settled(value: Any) -> Any:
    """Return ``value`` (of JSON's kinds) with all its text fit for UTF-8."""
    if isinstance(value, str):
        return settle(value)
    if isinstance(value, dict):
        return {settled(key): settled(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [settled(item) for item in value]
    return value


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Pass over interrupts for a while: a second one, meant for the code, must not break off what tells of the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


class Outlet:
    """Stands before one of the kernel's output streams. (IPython replaces the ``write`` of an object for each cell.)"""

    def __init__(self, cells: Cells, name: str, plain: Any) -> None:
        self._cells = cells
        self._stream = name
        self._plain = plain

    def write(self, text: Any) -> Any:
        """Write text. Returns its length."""
        __tracebackhide__ = True
        return self._cells.write(self._stream, self._plain, text)

    def writelines(self, lines: Any) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Do nothing: code that closes ``sys.stdout`` does not lose the output of what follows."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


class Cells:
    """Follows the cells: their numbers, threads, processes, late output and pictures."""

    def __init__(self, shell: Any, folder: str, charts: str) -> None:
        self.shell = shell
        self.charts = charts
        self.cell = 0
        self.busy = False
        self._folder = folder
        self._local = threading.local()
        self._threads: list[threading.Thread] = []
        self._late: list[list[Any]] = []
        self._late_size = 0
        self._unsent = 0
        self._before: set[int] = set()
        self._shown: list[tuple[str, str]] = []
        self._files: list[str] = []
        self._outlets = {
            name: Outlet(self, name, stream)
            for name in ("stdout", "stderr")
            if (stream := getattr(sys, name)) is not None
        }

    # -- cells -----------------------------------------------------------------------------------------

    def before(self, *_: Any) -> None:
        """A cell begins."""
        self.cell += 1
        self.busy = True
        self._shown = []
        self._before = _processes()
        self.restore()

    def restore(self) -> None:
        """Make the streams what they were: code may have replaced them."""
        for name, outlet in self._outlets.items():
            setattr(sys, name, outlet)

    def after(self, result: Any = None) -> None:
        """A cell has ended: end what a stopped one left, save its figures, tell the host."""
        with undisturbed():
            self._after(result)

    def _after(self, result: Any) -> None:
        self.busy = False
        self.restore()
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "CancelledError":
            with contextlib.suppress(Exception):
                _end(self._before)
        if self.charts != "inline":
            with contextlib.suppress(Exception):
                self._save_figures()
        self.say()

    def say(self) -> None:
        """Tell the host what is new, in a display that it takes out of the results."""
        late, self._late, self._late_size = self._late, [], 0
        files, self._files = self._files, []
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        told = {
            "cell": self.cell,
            "pid": os.getpid(),
            "late": late,
            "threads": len(self._threads),
            "files": files,
            "pictures": len(self._shown),
        }
        self.shell.display_pub.publish({"text/plain": MARK + json.dumps(told)}, {})

    # -- output ----------------------------------------------------------------------------------------

    def write(self, name: str, plain: Any, text: Any) -> Any:
        """Write to the stream ``plain`` of that name, or keep apart what a thread of an ended cell writes."""
        __tracebackhide__ = True
        if isinstance(text, str):
            try:
                text.encode()
            except UnicodeEncodeError:
                text = settle(text)
            cell = getattr(self._local, "cell", 0)
            if cell and not (self.busy and cell == self.cell):
                self._keep(cell, name, text)
                return len(text)
            self._unsent += len(text)
            if self._unsent > FLUSH_AFTER:
                # Code that writes faster than the kernel sends would fill the memory, and could not be stopped in time.
                self._unsent = 0
                plain.flush()
        return plain.write(text)

    def _keep(self, cell: int, name: str, text: str) -> None:
        text = text[: max(LATE_LIMIT - self._late_size, 0)]
        if not text:
            return
        self._late_size += len(text)
        if self._late and self._late[-1][:2] == [cell, name]:
            self._late[-1][2] += text
        else:
            self._late.append([cell, name, text])

    def follow_threads(self) -> None:
        """Make new threads remember the cell that started them."""
        start = threading.Thread.start

        def start_thread(thread: threading.Thread) -> None:
            cell, run = getattr(self._local, "cell", 0) or self.cell, thread.run

            def run_with_cell() -> None:
                thread.__dict__.pop("run", None)
                self._local.cell = cell
                run()

            thread.__dict__["run"] = run_with_cell
            start(thread)
            self._threads.append(thread)

        setattr(threading.Thread, "start", start_thread)  # noqa: B010 - mypy would call it a wrong assignment

    # -- pictures --------------------------------------------------------------------------------------

    def note_picture(self, message: Any) -> Any:
        """Remember a picture that is displayed, in case the cloud does not hand it on."""
        with contextlib.suppress(Exception):
            data = message["content"]["data"]
            for mime, ending in (("image/png", "png"), ("image/jpeg", "jpg")):
                if isinstance(data.get(mime), str) and len(self._shown) < PICTURES:
                    self._shown.append((data[mime], ending))
                    break
        return message

    def save_shown(self) -> None:
        """Write the pictures of the cell before this one to files: they did not reach the host."""
        import base64

        for number, (text, ending) in enumerate(self._kept_shown, 1):
            with contextlib.suppress(Exception):
                path = self._path(f"{self.cell}-shown-{number}.{ending}")
                Path(path).write_bytes(base64.b64decode(text))
                self._files.append(path)

    def keep_shown(self, *_: Any) -> None:
        """Called before ``before``: what the last cell showed can still be had during the present one."""
        self._kept_shown = self._shown

    _kept_shown: list[tuple[str, str]] = []  # noqa: RUF012 - replaced, never changed

    def _save_figures(self) -> None:
        plt = sys.modules.get("matplotlib.pyplot")
        if plt is None:
            return
        numbers = plt.get_fignums()
        for number in numbers[:PICTURES]:
            path = self._path(f"{self.cell}-{number}.png")
            with contextlib.suppress(Exception):
                plt.figure(number).savefig(path, format="png", bbox_inches="tight")
                self._files.append(path)
        plt.close("all")

    def _path(self, name: str) -> str:
        os.makedirs(self._folder, exist_ok=True)  # noqa: PTH103 - quick
        return f"{self._folder}/{name}"

    def no_inline(self) -> None:
        """From now on figures are left open by the code and saved to files after its cell."""
        self.charts = "files"
        os.environ["MPLBACKEND"] = "agg"
        matplotlib = sys.modules.get("matplotlib")
        if matplotlib is not None:
            matplotlib.use("agg", force=True)


def _processes() -> set[int]:
    """Ids of the processes below this one, and of those in its session that it may be told apart by."""
    me, session = os.getpid(), os.getsid(0)
    parents: dict[int, int] = {}
    found: set[int] = set()
    try:
        names = os.listdir("/proc")  # noqa: PTH208 - names only, quickly
    except OSError:
        return found
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - on the way of every cell
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] in (b"Z", b"X"):
            continue
        parents[int(name)] = int(fields[1])
        # The session tells only when the kernel leads it; otherwise the server's processes are in it too.
        if session == me and int(fields[3]) == session:
            found.add(int(name))
    below = {me}
    while True:
        more = {pid for pid, parent in parents.items() if parent in below} - below
        if not more:
            return (found | below) - {me}
        below |= more


def _end(before: set[int]) -> None:
    for _ in range(_PASSES):
        new = _processes() - before
        if not new:
            return
        for pid in new:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def _mend_session(shell: Any) -> None:
    """Make the kernel's messages fit for UTF-8 whatever text the code made."""
    session = shell.kernel.session
    pack: Callable[[Any], bytes] = session.pack

    def fit(value: Any) -> bytes:
        try:
            data = pack(value)
            data.decode("utf-8")
        except UnicodeError:
            return pack(settled(value))
        return data

    session.pack = fit


def _mend_traceback(shell: Any) -> None:
    plain = shell.showtraceback
    group: Any = getattr(builtins, "BaseExceptionGroup", None)

    def showtraceback(*args: Any, **options: Any) -> None:
        error = sys.exc_info()[1]
        with undisturbed():
            if group is not None and isinstance(error, group):
                # IPython prints those to standard error only, and nobody would hear that the code failed.
                shell._showtraceback(type(error), error, traceback.format_exception(error))
            else:
                plain(*args, **options)

    shell.showtraceback = showtraceback


def _mend_exit(shell: Any) -> None:
    from IPython.core.autocall import ExitAutocall

    class Leave(ExitAutocall):
        """``exit`` and ``quit`` end the cell, not the kernel."""

        def __call__(self, code: Any = None) -> None:
            raise SystemExit(code)

    make_leave: Any = Leave
    leave = make_leave(shell)
    for name in ("exit", "quit"):
        shell.user_ns[name] = leave
        if name in shell.user_ns_hidden:
            shell.user_ns_hidden[name] = leave


def _os_system(command: Any) -> int:
    # The C library's own waits without letting Python see an interrupt.
    status = subprocess.call(command, shell=True)  # noqa: S602 - what os.system is for
    return -status if status < 0 else status << 8


def _mend_colors(shell: Any) -> None:
    for name in ("nocolor", "NoColor"):
        try:
            shell.colors = name
        except Exception:  # noqa: S112 - each version knows one of the two
            continue
        return


def _forget_this_cell(shell: Any) -> None:
    for history in ("input_hist_parsed", "input_hist_raw"):
        with contextlib.suppress(Exception):
            getattr(shell.history_manager, history)[-1] = ""
    for name in ("_i", f"_i{shell.execution_count}"):
        if name in shell.user_ns:
            shell.user_ns[name] = ""


def install(folder: str, charts: str) -> None:
    """Change the kernel that this runs in; each change that fails is left out."""
    from IPython import get_ipython

    shell: Any = get_ipython()
    if MODULE in sys.modules:
        return
    cells = Cells(shell, folder, charts)
    module: Any = types.ModuleType(MODULE)
    module.cells = cells
    sys.modules[MODULE] = module
    with contextlib.suppress(OSError):
        os.chdir("/tmp")  # noqa: S108 - the sandbox's own folder
    steps: list[Callable[[], Any]] = [
        lambda: _mend_session(shell),
        lambda: _mend_exit(shell),
        lambda: _mend_traceback(shell),
        lambda: setattr(os, "system", _os_system),
        lambda: _mend_colors(shell),
        cells.follow_threads,
        lambda: shell.display_pub.register_hook(cells.note_picture),
        lambda: cells.no_inline() if charts == "files" else None,
        lambda: _forget_this_cell(shell),
    ]
    for step in steps:
        with contextlib.suppress(Exception):
            step()
    for message in _MESSAGES:
        warnings.filterwarnings("ignore", message=message)
    shell.events.register("pre_run_cell", cells.keep_shown)
    shell.events.register("pre_run_cell", cells.before)
    shell.events.register("post_run_cell", cells.after)
