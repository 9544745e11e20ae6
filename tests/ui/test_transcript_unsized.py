"""A transcript whose first size was never told shows what it is given all the same."""

from __future__ import annotations

from support.screen import settled
from textual import events
from textual.app import App, ComposeResult
from textual.message import Message

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript import TranscriptView


class Untold(TranscriptView):
    """Gets no ``Resize``, as when two layouts come one right after the other."""

    def post_message(self, message: Message) -> bool:
        return False if isinstance(message, events.Resize) else super().post_message(message)


class UntoldApp(App[None]):
    """Nothing but that."""

    def compose(self) -> ComposeResult:
        yield Untold()


async def test_it_is_laid_out_when_it_is_given_something() -> None:
    app = UntoldApp()
    async with app.run_test(size=(80, 20)) as pilot:
        view = app.query_one(Untold)
        assert not view._layout.width
        view.feed([ev.TurnStarted(turn_id="t", prompt="the prompt")])
        await settled(pilot, lambda: view.virtual_size.width == view.size.width > 0)
        await settled(pilot, lambda: any("the prompt" in view.render_line(y).text for y in range(20)))
