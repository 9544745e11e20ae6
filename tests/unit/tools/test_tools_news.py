"""Background output and other news: shown on its own call, told to the model once, bounded, clean."""

from __future__ import annotations

import asyncio
import threading

from support.toolbox import Tools

from sandbox_chat.sandbox.base import Execution
from sandbox_chat.tools.news import LATE_CALLS, LATE_LIMIT, STOPPED, TOLD_LIMIT, News


def from_a_thread(work: object) -> None:
    thread = threading.Thread(target=work)  # type: ignore[arg-type]  # any function
    thread.start()
    thread.join()


async def test_background_output_belongs_to_its_call_and_is_told_once(tools: Tools) -> None:  # case S5
    await tools.call("run_code", code="1")
    late = tools.sandbox.late[0]
    from_a_thread(lambda: late("stdout", "tick\x1b[2J\n"))
    second = await tools.call("run_code", code="2")
    assert tools.late == [("id-1", "stdout", "tick␛[2J\n")]
    assert tools.output == []
    assert "[note] Background output of an earlier call: tick␛[2J" in second.text
    third = await tools.call("run_code", code="3")
    assert "Background" not in third.text


async def test_background_output_is_shown_without_another_call(tools: Tools) -> None:
    await tools.call("run_code", code="1")
    from_a_thread(lambda: tools.sandbox.late[0]("stderr", "half a line"))
    for _ in range(100):
        if tools.late:
            break
        await asyncio.sleep(0.02)
    assert tools.late == [("id-1", "stderr", "half a line")]


async def test_a_flood_is_bounded_on_the_screen_and_for_the_model() -> None:
    shown: list[str] = []
    news = News(lambda _id, _stream, piece: shown.append(piece.text))
    late = news.late_sink("a")
    from_a_thread(lambda: [late("stdout", "x" * 999 + "\n") for _ in range(200)])
    [note] = news.take()
    assert len("".join(shown)) <= LATE_LIMIT + len(STOPPED)
    assert "".join(shown).endswith(STOPPED)
    assert len(note) <= TOLD_LIMIT + 200
    assert "cut" in note and "more characters" in note
    late("stdout", "more")
    assert news.take() == []
    assert "".join(shown).count(STOPPED) == 1


async def test_calls_that_are_remembered_are_bounded() -> None:
    news = News(lambda *_: None)
    for number in range(LATE_CALLS + 50):
        news.late_sink(str(number))("stdout", "x")
    assert len(news._calls) == LATE_CALLS
    assert len(news.take()[0]) < TOLD_LIMIT + 200


async def test_notes_of_the_back_end_reach_the_model_and_the_card(tools: Tools) -> None:
    tools.sandbox.next = [Execution(notes=("Too many processes: the limit of 256 was reached.", "a\x1b[2Jb"))]
    outcome = await tools.call("run_code", code="fork()")
    assert "\n[note] Too many processes: the limit of 256 was reached.\n[note] a␛[2Jb" in outcome.text
    assert outcome.display[0].text == outcome.text  # type: ignore[union-attr]  # it is text


async def test_many_long_notes_stay_within_the_limit(tools: Tools) -> None:
    tools.sandbox.next = [Execution(stdout="x" * 50_000, notes=("n" * 100_000,) * 100)]
    assert len((await tools.call("run_code", code="1")).text) <= tools.settings.text_limit
