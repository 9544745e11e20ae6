"""A long past: all of it is there, however many events it has."""

from __future__ import annotations

from pathlib import Path

from support.screen import PlayedEngine, chat_app, settled

from sandbox_chat import events as ev
from sandbox_chat.ui.pump import BURST


async def test_a_past_of_more_events_than_one_burst_is_shown_whole(tmp_path: Path) -> None:
    turns = BURST  # three events each
    made: list[PlayedEngine] = []

    def set_up(engine: PlayedEngine) -> None:
        engine.past = [
            event
            for number in range(turns)
            for event in (
                ev.TurnStarted(turn_id=f"t{number}", prompt=f"prompt {number}"),
                ev.Text(text=f"answer {number}"),
                ev.TurnFinished(
                    turn_id=f"t{number}", subtype="success", is_error=False, interrupted=False, num_turns=1, duration_ms=9,
                    cost_usd=0.0, total_cost_usd=0.0, usage=ev.Usage(), context=ev.ContextUse(),
                ),
            )
        ]  # fmt: skip

    app = chat_app(tmp_path, made, resume="0123-session", set_up=set_up)
    async with app.run_test(size=(100, 30)) as pilot:
        await settled(
            pilot, lambda: len(app.chat.state.turns) == turns and app.chat.state.phase == "idle", 60
        )
        assert len(app.chat_screen.transcript.blocks) == 2 * turns
