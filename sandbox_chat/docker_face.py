"""The face of ``sandbox-chat docker build``: shows how the build goes, and what came of it."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import FrameType

from sandbox_chat.settings import Settings


def build(
    settings: Settings, *, base: str, wheels: str, tag: str, quiet: bool, servers: Sequence[str] = ()
) -> int:
    """Build the image of the Docker sandbox; returns the exit code. The builder's words go to stderr."""
    from sandbox_chat.sandbox import docker_build
    from sandbox_chat.text import clean

    def show(line: str) -> None:
        if not quiet:
            sys.stderr.write(clean(line) + "\n")
            sys.stderr.flush()

    name = tag or docker_build.default_tag()
    begun = f"Building the image {name} with {settings.docker_command}. This takes some minutes."
    sys.stderr.write(clean(begun) + "\n")
    sys.stderr.flush()
    try:
        with _leaving_on_signals():
            built = docker_build.build(
                settings,
                base=base,
                wheels=Path(wheels) if wheels else None,
                tag=name,
                servers=servers,
                on_line=show,
            )
    except KeyboardInterrupt:
        sys.stderr.write(
            "The build was stopped. What it had done so far is kept and need not be done again.\n"
        )
        raise
    except docker_build.BuildFailed as failed:
        if quiet:
            sys.stderr.write(clean(failed.log) + "\n")
        sys.stderr.write(f"{settings.scrub(clean(str(failed)))}\n")
        return 1
    size = f"{built.size / 1e6:,.0f} MB" if built.size else "size not known"
    print(f"The image {built.tag} is ready ({size}, {built.seconds:.0f} s).")  # noqa: T201 - the result
    if built.tag != (settings.docker_image or docker_build.default_tag()):
        print(f"To use it, set SANDBOX_CHAT_DOCKER_IMAGE={built.tag}.")  # noqa: T201
    else:
        print("To use it, start with: sandbox-chat --sandbox docker")  # noqa: T201
    return 0


@contextlib.contextmanager
def _leaving_on_signals() -> Iterator[None]:
    """Let the signals that ask to end go the way of an error, so that the builder and its folder are seen to."""

    def leave(number: int, _frame: FrameType | None) -> None:
        sys.exit(128 + number)

    before = {}
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            before[number] = signal.signal(number, leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
