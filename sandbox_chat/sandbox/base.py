"""The protocol that every sandbox back end keeps, and its vocabulary.

A back end is a plain blocking object. It is driven by one thread (``SandboxWorker``), which calls
its methods one at a time; only ``interrupt`` and ``close`` may be called from other threads.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol

from sandbox_chat.events import Stream
from sandbox_chat.values import Secret

OutputSink = Callable[[Stream, str], None]
"""Takes output while code runs, or what comes after it. Called from the worker's thread; must return quickly."""
RawSink = Callable[[Stream, bytes], None]
"""Takes every byte of a run's output, without a bound. Called from the worker's thread; must return quickly."""
Progress = Callable[[int, int], None]
"""Takes how far a transfer has come: bytes done, bytes in all. Called from the worker's thread; must return quickly."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a back end can do beyond running code.

    ``network``: code reaches the internet. ``rich_output``: results come in other forms than text.
    ``pause``: the machine can be put to sleep and woken. ``mcp``: it can run MCP servers behind a gateway.
    """

    network: bool = False
    rich_output: bool = True
    pause: bool = False
    mcp: bool = False


@dataclass(frozen=True, slots=True)
class RichOutput:
    """One result or display of the code. ``data`` maps a MIME type to text, or to bytes for pictures."""

    data: dict[str, str | bytes]
    is_result: bool = False
    """True for the value of the last expression, false for what was displayed on the way."""


@dataclass(frozen=True, slots=True)
class CodeError:
    """The exception that ended the code. ``traceback`` is plain text without colours."""

    name: str
    value: str
    traceback: str


StopReason = Literal["", "timeout", "interrupted", "died"]


@dataclass(frozen=True, slots=True)
class Execution:
    """What came of one run of code.

    ``stdout`` and ``stderr`` are bounded by the back end's output limit (head and tail are kept and
    what was cut is said in the text). ``stopped`` tells why the code did not run to its end:
    ``timeout`` and ``interrupted`` keep the variables, ``died`` loses them (the next run starts afresh).
    ``fresh`` is true when this run was the first in a new shell although an earlier one was lost.
    ``notes`` are sentences of the back end about this run, for the user and the model: a limit that struck,
    output that went elsewhere.
    """

    stdout: str = ""
    stderr: str = ""
    outputs: tuple[RichOutput, ...] = ()
    error: CodeError | None = None
    stopped: StopReason = ""
    duration_ms: int = 0
    fresh: bool = False
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """True when the code ran to its end without an exception."""
        return self.error is None and not self.stopped

    @property
    def result_text(self) -> str:
        """Plain text of the last expression's value, empty if there is none."""
        for output in reversed(self.outputs):
            if output.is_result:
                value = output.data.get("text/plain", "")
                return value if isinstance(value, str) else ""
        return ""


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file or folder in a sandbox. ``size`` in bytes, 0 for a folder; ``path`` is absolute.

    ``is_link``: it is a link, and the rest is what it leads to. ``changed`` is when, in a unit of the back end's own; 0 when
    that is not known.
    """

    path: str
    is_dir: bool
    size: int
    is_link: bool = False
    changed: int = 0


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """What a back end is: ``kind`` as in the settings, ``label`` for people, ``safe`` if code is isolated.

    ``keep_every``: seconds between two calls of ``Sandbox.keep`` while nothing else is asked of it; 0 for never.
    ``costs``: it is billed while it lives, so it must not be started ahead of need.
    """

    kind: str
    label: str
    safe: bool = True
    capabilities: Capabilities = field(default_factory=Capabilities)
    keep_every: float = 0.0
    costs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAddress:
    """Where the MCP servers in a sandbox answer: one address over streamable HTTP, and the ``token`` that opens it.

    ``headers`` are those by which the way to the sandbox is found, to be sent with every request.
    """

    url: str
    token: Secret
    headers: Mapping[str, Secret] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """How code of a run reaches tools of the host.

    ``serve`` gets a socket for each connection that the code makes; it is called on a thread of the back end's, returns
    at once, and believes nothing that is said there. ``token`` is what the code's own side says first.
    ``waited`` tells how many seconds the run has waited for the host so far, which are not the code's own time. Any thread.
    """

    token: Secret
    serve: Callable[[socket.socket], None]
    waited: Callable[[], float]


class SandboxError(Exception):
    """The sandbox itself failed (not the code in it). The message says what happened and what to do."""


class SandboxUnavailable(SandboxError):
    """No sandbox of this kind can be had here: the message says why and what to do instead."""


class SandboxClosed(SandboxError):
    """The sandbox was used after it had been closed."""


class SandboxLost(SandboxError):
    """The shell is gone, and the operation was not begun. The worker starts a new one and tries once more."""


class SandboxLetGo(SandboxLost):
    """The sandbox was unused for so long that it was ended on purpose; the message says so."""


class SandboxFileError(SandboxError):
    """A file operation failed for a reason of the caller's: no such file, too large, not permitted."""


class GatewayFailed(SandboxError):
    """The MCP servers in the sandbox cannot be had; the sandbox goes on. The message is what the gateway says."""


class GatewayGone(GatewayFailed):
    """The gateway was there and was ended, by code or by a limit; asking again starts another one."""


class Sandbox(Protocol):
    """A back end: one isolated machine with one persistent Python shell."""

    @property
    def info(self) -> SandboxInfo:
        """What this back end is."""

    def start(self) -> None:
        """Bring the sandbox up. Raises ``SandboxUnavailable`` or ``SandboxError``."""

    def run_code(
        self,
        code: str,
        *,
        timeout: float,
        on_output: OutputSink | None = None,
        on_late: OutputSink | None = None,
        on_raw: RawSink | None = None,
        bridge: Bridge | None = None,
    ) -> Execution:
        """Run ``code`` in the persistent shell for at most ``timeout`` seconds.

        ``bridge``: offer the code tools of the host; what it waits for them does not count.

        ``on_late`` gets what threads of this code write after it has ended, whenever that is noticed
        (during later calls, ``keep`` among them). ``on_raw`` gets all output of the run itself, also what
        ``on_output`` and the ``Execution`` leave out beyond the output limit. Failures of the code are in the ``Execution``;
        ``SandboxError`` means that the sandbox failed. A child process that an earlier run has left behind
        writes where this run writes: its output cannot be told apart and counts as this run's.
        """

    def interrupt(self) -> None:
        """Stop the code or transfer that runs now, keeping variables. Does nothing when idle. Any thread."""

    def write_file(self, path: str, data: bytes) -> str:
        """Write ``data`` to ``path`` (relative ones are under ``/tmp``), making folders. Returns the absolute path."""

    def read_file(self, path: str, *, max_bytes: int) -> bytes:
        """Return the bytes of a regular file of at most ``max_bytes``. Raises ``SandboxFileError``."""

    def list_files(self, path: str, *, limit: int) -> list[FileEntry]:
        """List a folder by name, at most ``limit`` entries. Raises ``SandboxFileError``."""

    def upload(self, source: BinaryIO, size: int, path: str, on_progress: Progress | None = None) -> str:
        """Copy ``size`` bytes of ``source`` to ``path`` piece by piece, whatever their number. Returns the absolute path.

        Raises ``SandboxFileError``; then the file may be there in part.
        """

    def download(
        self, path: str, target: BinaryIO, *, max_bytes: int, on_progress: Progress | None = None
    ) -> int:
        """Copy a regular file of at most ``max_bytes`` to ``target`` piece by piece. Returns its size in bytes."""

    def mcp_endpoint(self) -> Callable[[], McpAddress]:
        """Have the MCP servers of the settings (``sandbox_mcp``) started, and see that they are well if they are.

        Returns at once a function that waits until all of them answer and gives their address; it may be called from
        any thread, as long as the sandbox is there. Both raise ``GatewayFailed``.
        """

    def keep(self, unused: float) -> None:
        """Look after a sandbox that has not been used for ``unused`` seconds: prolong it, notice its death, late output.

        Raises ``SandboxLost`` when it is gone, ``SandboxLetGo`` when it was let go as the settings say.
        """

    def close(self) -> None:
        """End the sandbox and everything in it, for good. Any thread, any number of times."""

    def release(self) -> None:
        """Give back what this process holds for it; only from the thread that drives it, after ``close``."""


@dataclass(frozen=True, slots=True)
class BackEnd:
    """How a worker gets its sandboxes: what makes one (not started), what they are, what to do at the very end.

    ``warm`` begins what makes the first start quick, in the background; it returns at once.
    """

    factory: Callable[[], Sandbox]
    info: SandboxInfo
    on_close: Callable[[], None] | None = None
    warm: Callable[[], None] | None = None
