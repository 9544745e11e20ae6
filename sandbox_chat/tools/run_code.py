"""The tool run_code: its answer in fixed sections, bounded, and the pictures, tables and pages that the code made."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from typing import Any

from sandbox_chat.ansi import Piece
from sandbox_chat.events import Content, FileContent
from sandbox_chat.plain import told_apart
from sandbox_chat.sandbox.base import Execution
from sandbox_chat.text import bound, bound_tail, clean, from_output
from sandbox_chat.tools.context import ImageBlock, TextBlock, ToolContext, ToolOutcome
from sandbox_chat.tools.images import ImageError, for_model, probe
from sandbox_chat.tools.keeper import HIDDEN_LIMIT, HiddenOutput, Kept, OutputKeeper
from sandbox_chat.tools.live import LiveOutput
from sandbox_chat.tools.rich import rich_contents

TRACEBACK_LIMIT = 6000
"""Characters of a traceback: its end names the error; more of it is library code."""
NOTES_LIMIT = 24
"""Notes about pictures at most: one for each that the model gets, and a few about what went wrong."""
NOTE_LIMIT = 600
"""Characters of one note of the back end."""
NOTES_SHARE = 3
"""All notes together may take so large a part of an answer: one third."""
CUT_NOTE = "The output was longer than what one call can give you. Write long output to a file under /tmp and read the part that you need."
WHOLE_OUTPUT = "whole output"
"""Title of the file that holds the output of a run whose answer was cut."""
SHOWN_LIMIT = 2_000_000
"""Characters of output and displays that are looked at."""
_NOTE = re.compile(r"(?<=\n)\[note\] ")
MARKER_ROOM = 100
"""Characters that a section's title and the line about what was cut may take."""


async def run_code(context: ToolContext, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Run code and return its outcome. Failures of the code are in it; ``SandboxError`` passes through."""
    settings = context.settings
    timeout = int(arguments.get("timeout", settings.run_timeout))
    live = LiveOutput(
        asyncio.get_running_loop(),
        lambda stream, piece: context.output(call_id, stream, piece, False),
        limit=settings.output_limit,
        private=context.private,
    )
    keeper = _keeper(context, call_id)
    hidden = HiddenOutput(keeper, context.private) if keeper and context.private else None
    raw = hidden.take if hidden is not None else keeper.take if keeper is not None else None
    kept: Kept | None = None
    code_mode = context.code_mode
    try:
        async with code_mode.run(call_id) if code_mode is not None else contextlib.nullcontext() as bridge:
            execution = await context.worker.run_code(
                arguments["code"],
                timeout=float(timeout),
                on_output=live.feed,
                on_late=context.news.late_sink(call_id),
                on_raw=raw,
                bridge=bridge,
            )
    except asyncio.CancelledError:
        live.close()
        if hidden is not None:
            hidden.close()
        if words := _kept_words(keeper):  # a call that is stopped has no answer to say it in
            context.output(call_id, "stdout", Piece(f"\n[{words}]\n"), False)
        raise
    finally:
        live.close()
        if hidden is not None:
            hidden.close()
        kept = keeper.close() if keeper is not None else None
    if execution.fresh:
        await context.before()  # what the user had put into the lost sandbox is put back at once
    pictures, blocks, notes = await _pictures(context, execution)
    notes += context.news.take()
    where = _kept_words(keeper)
    if where:
        notes.append(CUT_NOTE)
    text, titles = answer(execution, timeout=timeout, limit=settings.text_limit, notes=notes)
    if code_mode is not None:
        text = code_mode.without_token(text)
    if kept is not None:
        pictures.append(FileContent(str(kept.path), "text/plain", kept.size, WHOLE_OUTPUT))
    rich, said = await rich_contents(execution.outputs, settings, context.save_file, context.scripts)
    shown = text
    for note in [*([where] if where else []), *said]:
        titles.append(len(shown) + 1)
        shown += f"\n[note] {note}"
    return ToolOutcome(
        (TextBlock(text), *blocks),
        (told_apart(shown, titles), *pictures, *rich),
        is_error=not execution.ok,
        interrupted=execution.stopped == "interrupted",
    )


def _keeper(context: ToolContext, call_id: str) -> OutputKeeper | None:
    settings = context.settings
    if context.output_dir is None or not settings.output_keep_mb:
        return None
    limit = settings.output_keep_mb * 1_000_000
    if context.private is not None:
        limit = min(limit, HIDDEN_LIMIT)
    return OutputKeeper(context.output_dir, call_id, spare=settings.text_limit, limit=limit)


def _kept_words(keeper: OutputKeeper | None) -> str:
    """Say where the whole output lies, or why it does not: to the user only, whose computer it is. Empty when it was short."""
    kept = keeper.close() if keeper is not None else None
    if kept is not None:
        where = f"{clean(str(kept.path))} on this computer"
        if kept.size < kept.total:
            return (
                f"The first {kept.size:,} of {kept.total:,} bytes of the output are in {where} "
                "(SANDBOX_CHAT_OUTPUT_KEEP_MB)."
            )
        return f"The whole output ({kept.total:,} bytes) is in {where}."
    if keeper is not None and keeper.problem:
        return (
            f"The whole output could not be kept on this computer ({clean(keeper.problem)}). "
            "Make room or mend the permissions of the data folder, and run it again."
        )
    return ""


def sections(execution: Execution, *, timeout: int, limit: int, notes: list[str] | None = None) -> str:
    """Return the text of ``answer``."""
    return answer(execution, timeout=timeout, limit=limit, notes=notes)[0]


def answer(
    execution: Execution, *, timeout: int, limit: int, notes: list[str] | None = None
) -> tuple[str, list[int]]:
    """Return the answer's text: ``[success]`` and then each section that is not empty, at most ``limit`` characters.

    When all do not fit, short sections stay whole and the long ones share what is left. With it come the places at
    which the sections begin: output may hold lines that look like their titles.
    """
    parts = {name: text for name, text in _parts(execution, timeout) if text.strip()}
    parts["traceback"] = bound_tail(parts.get("traceback", ""), TRACEBACK_LIMIT)
    if not parts["traceback"]:
        del parts["traceback"]
    tail = "".join(f"\n[note] {note}" for note in _notes(execution, notes or []))
    tail = bound(tail, limit // NOTES_SHARE)
    head = f"[success] {execution.ok}"
    room = max(limit - len(head) - len(tail) - MARKER_ROOM * len(parts), 0)
    shares = _share({name: len(text) for name, text in parts.items()}, room)
    whole, titles = head, [0]
    for name, text in parts.items():
        cut = bound_tail if name == "traceback" else bound
        titles.append(len(whole) + 1)
        whole += f"\n[{name}]\n{cut(text, shares[name])}"
    titles += [len(whole) + match.start() for match in _NOTE.finditer(tail)]
    return whole + tail, titles


def _parts(execution: Execution, timeout: int) -> Iterator[tuple[str, str]]:
    shown = [
        str(output.data["text/plain"])
        for output in execution.outputs
        if not output.is_result and "text/plain" in output.data and not _picture(output.data)
    ]
    stdout = execution.stdout
    if shown:
        stdout = "\n".join([stdout.removesuffix("\n"), *shown] if stdout else shown)
        stdout = bound(stdout, SHOWN_LIMIT)  # cleaning all that a run may display would take seconds
    yield "stdout", from_output(stdout).rstrip("\n")
    yield "stderr", from_output(execution.stderr).rstrip("\n")
    yield "result", from_output(bound(execution.result_text, SHOWN_LIMIT)).rstrip("\n")
    yield "error", _error(execution, timeout)
    if execution.error is not None:
        yield "traceback", from_output(execution.error.traceback).rstrip("\n")


def _error(execution: Execution, timeout: int) -> str:
    words = []
    if execution.stopped == "timeout":
        words.append(
            f"The code was stopped after {timeout} s, the time limit of this call. The variables are kept. "
            "Split the work into several calls, or make it quicker."
        )
    elif execution.stopped == "interrupted":
        words.append("The code was stopped by the user. The variables are kept.")
    elif execution.stopped == "died":
        words.append(
            "The Python shell ended while the code ran. All variables and imports are lost; "
            "the next call starts a new shell. Files in /tmp may be lost as well."
        )
    error = execution.error
    # A stopped run often carries the KeyboardInterrupt that stopped it: that says nothing new.
    if error is not None and not (execution.stopped and error.name == "KeyboardInterrupt"):
        words.append(from_output(f"{error.name}: {error.value}" if error.value else error.name))
    return "\n".join(words)


def _notes(execution: Execution, more: list[str]) -> list[str]:
    said = [clean(bound(note, NOTE_LIMIT)) for note in execution.notes[:NOTES_LIMIT]]
    if execution.fresh:
        said.insert(0, "This call ran in a new shell: the variables and imports of earlier calls are gone.")
    return [*said, *more]


def _share(needs: dict[str, int], room: int) -> dict[str, int]:
    """Divide ``room`` so that small needs are met and the large ones get equal shares."""
    shares: dict[str, int] = {}
    for left, (name, need) in enumerate(sorted(needs.items(), key=lambda item: item[1])):
        share = min(need, room // (len(needs) - left))
        shares[name] = max(share, 1)
        room -= share
    return shares


def _picture(data: dict[str, str | bytes]) -> bytes:
    """Return the bytes of the picture among the forms of one output, if there is one."""
    for mime in ("image/png", "image/jpeg"):
        value = data.get(mime)
        if isinstance(value, bytes):
            return value
    return b""


async def _pictures(
    context: ToolContext, execution: Execution
) -> tuple[list[Content], list[ImageBlock], list[str]]:
    """Save all pictures of a run for the screen; return those for the model too, and notes about them."""
    settings = context.settings
    saved: list[Content] = []
    blocks: list[ImageBlock] = []
    notes: list[str] = []
    only_shown = 0
    found = [data for output in execution.outputs if (data := _picture(output.data))]
    for number, data in enumerate(found, 1):
        try:
            info = probe(data)
            saved.append(context.save_picture(data, info.mime))
            if len(blocks) >= settings.images_per_call:
                only_shown += 1
                continue
            blocks.append(
                await asyncio.to_thread(
                    for_model,
                    data,
                    side=settings.image_side,
                    max_bytes=settings.image_limit,
                    max_pixels=settings.image_pixels,
                )
            )
            notes.append(f"Picture {number} ({info.width}×{info.height}) is shown to the user and to you.")
        except ImageError as error:
            notes.append(f"Picture {number} could not be used: {error}")
    if only_shown:
        notes.append(
            f"{only_shown} more of {len(found)} pictures are shown to the user but not to you: "
            f"one call gives you at most {settings.images_per_call}."
        )
    return saved, blocks, notes[-NOTES_LIMIT:]
