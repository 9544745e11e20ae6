"""Silence, sleep and repeated losses, by clocks that the tests hold."""

from __future__ import annotations

from sandbox_chat.agent.watch import LONG_STEP, SILENCE_MARGIN, Look, Losses, Watch, wall_clock
from sandbox_chat.settings import Settings

STEP = 0.25


class Desk:
    """A watch over two clocks."""

    def __init__(self, **settings: float) -> None:
        self.now = self.wall = 1000.0
        self.watch = Watch(Settings(**settings), clock=lambda: self.now, wall=lambda: self.wall)  # type: ignore[arg-type]

    def look(self, seconds: float = STEP, *, asleep: float = 0.0, waiting: bool = False) -> Look:
        self.now += seconds
        self.wall += seconds + asleep
        return self.watch.look(waiting=waiting)

    def run(self, seconds: float, *, waiting: bool = False) -> list[Look]:
        found = [self.look(waiting=waiting) for _ in range(int(seconds / STEP))]
        return [look for look in found if look != Look()]


def test_silence_is_told_once_and_then_ends_the_cli() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    assert desk.run(14.75) == []
    assert desk.look() == Look(quiet=True)
    assert desk.run(24.75) == []
    assert desk.look() == Look(dead=True)


def test_the_default_is_the_limit_of_a_request_and_a_minute() -> None:
    desk = Desk(silence_notice=0, request_timeout=100)
    assert desk.run(100 + SILENCE_MARGIN - STEP) == []
    assert desk.look().dead


def test_zero_switches_both_off() -> None:
    assert Desk(silence_notice=0, silence_timeout=0).run(5000) == []


def test_a_word_ends_the_silence() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    desk.run(10)
    assert not desk.watch.heard(), "nothing had been told"
    assert desk.run(14) == []
    assert desk.run(2) == [Look(quiet=True)]
    assert desk.watch.heard()
    assert desk.run(14) == []


def test_a_tool_of_ours_or_a_question_is_no_silence() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    assert desk.run(1000, waiting=True) == []
    assert desk.run(14) == []


def test_a_pause_that_was_announced_is_no_silence() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    desk.watch.heard()
    desk.watch.expect(300)
    assert desk.run(314) == []
    assert desk.run(2) == [Look(quiet=True)]


def test_sleep_is_said_once_and_is_no_silence() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    desk.run(10)
    assert desk.look(asleep=3600) == Look(slept=3600)
    assert desk.look(asleep=3600) == Look()
    assert desk.watch.silent < 12
    desk.watch.begin()
    assert desk.look(asleep=60) == Look(slept=60), "in another turn"


def test_a_short_difference_of_the_clocks_is_no_sleep() -> None:
    assert Desk().look(asleep=20) == Look()
    assert Desk().look(asleep=-500) == Look(), "the clock was set back"


def test_time_in_which_the_program_was_stopped_is_no_silence() -> None:
    desk = Desk(silence_notice=15, silence_timeout=40)
    assert desk.look(10_000) == Look()
    assert desk.watch.silent == LONG_STEP


def test_the_wall_clock_goes_on() -> None:
    assert wall_clock() <= wall_clock()


def test_losses_in_a_row_within_a_minute_are_too_many() -> None:
    now = 0.0
    losses = Losses(3, clock=lambda: now)
    for _ in range(2):
        losses.add("it was killed")
        now += 10
    assert not losses.too_many
    losses.add("it was killed again")
    assert (losses.too_many, losses.count, losses.reason) == (True, 3, "it was killed again")
    now += 45
    assert not losses.too_many, "the first one is more than a minute ago"


def test_a_turn_that_ends_breaks_the_row() -> None:
    losses = Losses(2, clock=lambda: 0.0)
    losses.add("a")
    losses.over()
    losses.add("b")
    assert not losses.too_many


def test_no_restart_at_all() -> None:
    assert Losses(0).too_many
