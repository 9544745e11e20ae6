"""The command line: has the arguments read, chooses a face, starts it.

Each face is imported when it has been chosen. Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from sandbox_chat.arguments import PROGRAM, USAGE, parse, say

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from sandbox_chat.settings import Settings

OK, FAILED, INTERRUPTED, PIPE_CLOSED = 0, 1, 130, 141
OVERRIDES = ("demo", "model", "sandbox", "mcp", "sandbox_mcp", "code_mode", "images", "theme", "log")
"""Options that are settings."""

_OUTPUT_ERRORS = (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT)
"""What writing to stdout fails with, when the fault is not ours (a full disk behind ``> file``)."""


def main(argv: list[str] | None = None) -> int:
    """Run the program and return its exit code. Never ends in a traceback."""
    _mend_streams()
    settings: list[Settings] = []
    try:
        code = _run(parse(sys.argv[1:] if argv is None else argv), settings)
        sys.stdout.flush()
    except SystemExit as leave:  # --help, --version, wrong usage
        code = leave.code if isinstance(leave.code, int) else FAILED
    except KeyboardInterrupt:
        code = INTERRUPTED
    except BrokenPipeError:
        code = PIPE_CLOSED
    except Exception as error:
        code = _failed(error, settings[0] if settings else None)
    _say_reports()
    return _flush(code)


def _mend_streams() -> None:
    """Give a stream that the caller closed (``>&-``) to the null device, so that no file gets its number."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            try:
                os.fstat(fd)
            except OSError:
                os.set_inheritable(
                    os.open(os.devnull, os.O_RDWR), True
                )  # the lowest free number, which is fd
            setattr(sys, name, open(fd, "r" if fd == 0 else "w", closefd=False))  # noqa: SIM115 - a number


def _flush(code: int) -> int:
    """Write out what stdout still holds; a failure must not come when the interpreter ends."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()
        return code or PIPE_CLOSED
    except (OSError, ValueError) as error:
        _abandon_stdout()
        say(f"The output cannot be written ({getattr(error, 'strerror', None) or error}).")
        return code or FAILED
    return code


def _run(options: argparse.Namespace, loaded: list[Settings]) -> int:
    """Choose the face and start it. ``loaded`` receives the settings, for a crash report."""
    from sandbox_chat import settings as settings_module

    _keep_log_off_the_terminal()
    overrides = {name: getattr(options, name, None) for name in (*OVERRIDES, "plain")}
    if options.command == "doctor":
        from sandbox_chat import doctor
        from sandbox_chat.ui.face import faults

        return doctor.run(overrides, as_json=options.json, faults=faults)

    settings = settings_module.load(overrides)
    loaded.append(settings)
    if options.command is None and not settings.plain and (problem := _terminal_problem()):
        say(problem)
        return USAGE

    from sandbox_chat import logs

    logs.set_up(settings)
    if options.command == "sessions":
        return _sessions(options, settings.data_path)

    if options.command == "export":
        from pathlib import Path

        from sandbox_chat import export_face

        return export_face.run(
            settings,
            options.id,
            Path(options.to),
            include_failed=options.include_failed,
            scrub=options.scrub,
            force=options.force,
            beside=options.pictures_beside,
        )

    if options.command == "costs":
        from sandbox_chat import costs

        as_json = getattr(options, "json", False)
        return costs.run(settings, since=options.since, by=options.by, as_json=as_json)

    if options.command == "docker":
        from sandbox_chat import docker_face

        return docker_face.build(
            settings,
            base=options.base,
            wheels=options.wheels,
            tag=options.tag,
            quiet=options.quiet,
            servers=options.server,
        )

    if options.command == "mcp" and options.action == "serve":
        from sandbox_chat import serve_face

        return serve_face.run(settings, http=options.http, token_file=options.token_file)

    if options.command == "mcp":
        from sandbox_chat import mcp_face

        return mcp_face.run(settings, options)

    if options.command == "serve":
        from sandbox_chat.serve import face

        return face.run(
            settings,
            options.http,
            token_file=options.token_file,
            no_auth=options.no_auth,
            allow=options.allow,
            log_json=options.log_json,
        )

    if options.command == "skills":
        from sandbox_chat import skills_face

        return skills_face.run(settings, options)

    if options.command == "sandboxes":
        from sandbox_chat import sandboxes

        if options.action == "kill":
            return sandboxes.end(settings, options.ids, left=options.left, everything=options.all)
        return sandboxes.print_list(settings, as_json=getattr(options, "json", False))

    resume = _session_to_resume(getattr(options, "resume", None), settings.data_path / "sessions")
    if options.command == "run":
        from sandbox_chat import headless

        return headless.run(
            settings,
            options.prompt,
            resume=resume,
            fork=getattr(options, "fork", False),
            as_json=options.json,
            attach=options.attach,
            allow=options.allow,
        )

    if settings.plain:
        from sandbox_chat import linear

        return linear.run(settings, resume=resume, fork=getattr(options, "fork", False))

    from sandbox_chat import ui

    opening = {name: True for name in ("fork", "read_only") if getattr(options, name, False)}
    return ui.run(settings, resume=resume, opening=opening)


def _keep_log_off_the_terminal() -> None:
    """Let nobody print what is logged before the log is set up: it may hold content."""
    import logging

    if not logging.root.handlers:
        logging.root.addHandler(logging.NullHandler())


def _sessions(options: argparse.Namespace, data_path: Path) -> int:
    as_json = getattr(options, "json", False)
    if options.action == "show":
        from sandbox_chat import sessions

        return sessions.show(data_path / "sessions", options.id, as_json=as_json)
    from sandbox_chat import session_list

    if options.action == "delete":
        return session_list.delete(data_path, options.ids, yes=options.yes)
    if options.action == "rename":
        return session_list.rename(data_path, options.id, " ".join(options.title))
    return session_list.print_list(data_path, search=getattr(options, "search", None), as_json=as_json)


def _session_to_resume(wanted: str | None, root: Path) -> str | None:
    if wanted is None:
        return None
    from sandbox_chat.journal import resolve

    return resolve(root, wanted or None)


def _terminal_problem() -> str:
    """Return why the chat cannot be drawn here, empty if it can. Textual draws on stderr, so that counts too."""
    if os.environ.get("TEXTUAL_DRIVER"):
        return ""  # textual-serve: a web page is the terminal
    instead = f'Without one, use: {PROGRAM} run "your prompt", or {PROGRAM} --plain'
    for stream, name in ((sys.stdin, "input"), (sys.stdout, "output"), (sys.stderr, "error output")):
        if stream is None or stream.closed or not stream.isatty():
            return f"The chat needs a terminal, and the {name} is not one. {instead}"
    if os.environ.get("TERM") == "dumb":
        return f"The chat needs a terminal that can place text, and TERM is dumb. {instead}"
    return ""


def _failed(error: Exception, settings: Settings | None) -> int:
    """Print one sentence about ``error`` and return the exit code for it."""
    from sandbox_chat.settings import ConfigError
    from sandbox_chat.text import clean

    if isinstance(error, ConfigError):
        say(clean(str(error)))
        return USAGE
    if isinstance(error, OSError) and error.filename is None and error.errno in _OUTPUT_ERRORS:
        say(f"The output cannot be written ({error.strerror}).")
        _abandon_stdout()
        return FAILED
    from sandbox_chat.journal.errors import SessionError
    from sandbox_chat.sandbox.base import SandboxError

    if isinstance(error, SessionError | SandboxError):
        text = str(error) if settings is None else settings.scrub(str(error))
        say(clean(text))
        return USAGE
    from sandbox_chat import crash, logs

    _keep_log_off_the_terminal()
    logs.log.error("the program failed", exc_info=error)
    crash.report(error, settings, last=True)  # the same fault leaves one report
    _say_reports(crash.name_of(error))
    return FAILED


def _say_reports(fatal: str = "") -> None:
    """Say on stderr which crash reports this run has left. ``fatal``: the type of the fault that ended the program."""
    crash = sys.modules.get("sandbox_chat.crash")
    if crash is None:
        return
    for report in crash.take_written():
        what = "The program" if report.kind == fatal else "A part of the program"
        where = f"The report is in {report.path}." if report.path else "A report could not be written."
        say(f"{what} failed because of a fault of its own ({report.kind}). {where}")


def _abandon_stdout() -> None:
    """Let the rest of what stdout holds go nowhere, so that the end of the program does not fail on it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return


if __name__ == "__main__":
    sys.exit(main())
