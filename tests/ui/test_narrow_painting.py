"""The chat's screen renders only what is to be painted, and what it paints is what a whole painting shows."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections import Counter

import pytest
from support.screen import settled
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from sandbox_chat.ui.private import FrameClock, paint_narrowly

rendered: Counter[str] = Counter()


class Row(Widget):
    """A row whose text changes."""

    DEFAULT_CSS = "Row { height: 2; width: 1fr; } .over { layer: above; offset: 4 1; width: 9; height: 7; }"
    text = "one"

    def render(self) -> str:
        return f"{self.id} {self.text}"

    def render_lines(self, crop: Region) -> list[Strip]:
        rendered[str(self.id)] += 1
        return super().render_lines(crop)


class Narrow(Screen[None]):
    """Five rows, and something that lies over parts of them."""

    CSS = "Narrow { layers: base above; }"

    def __init__(self) -> None:
        super().__init__()
        paint_narrowly(self)

    def compose(self) -> ComposeResult:
        for number in range(5):
            yield Row(id=f"r{number}")
        yield Row(id="over", classes="over")


class RowsApp(App[None]):
    """That screen at its bottom."""

    def get_default_screen(self) -> Screen[None]:
        return Narrow()


class Told(Row):
    """A row that notes which sizes it is told."""

    def __init__(self) -> None:
        super().__init__(id="told")
        self.sizes: list[Size] = []

    def on_resize(self, event: events.Resize) -> None:
        self.sizes.append(event.size)


class ToldScreen(Narrow):
    """One such row, which is not shown at first."""

    def compose(self) -> ComposeResult:
        told = Told()
        told.display = False
        yield told


class ToldApp(App[None]):
    """That screen at its bottom."""

    def get_default_screen(self) -> Screen[None]:
        return ToldScreen()


async def test_a_widget_is_told_its_size_also_when_somebody_asks_where_it_is_before_it_is_laid_out() -> None:
    app = ToldApp()
    async with app.run_test(size=(30, 12)) as pilot:
        await pilot.pause()
        told, compositor = app.query_one(Told), app.screen._compositor
        assert told.sizes == []
        told.display = True
        compositor._full_map_invalidated = True  # as after a scroll
        assert told in compositor.full_map  # as the pointer or a click does
        await settled(pilot, lambda: told.sizes)
        assert told.sizes == [Size(30, 2)]


def written(app: App[None]) -> list[str]:
    """The rows as a whole painting makes them."""
    return ["".join(s.text for s in strip) for strip in app.screen._compositor.render_strips()]


async def test_what_lies_between_two_changed_rows_is_not_rendered() -> None:
    app = RowsApp()
    async with app.run_test(size=(30, 12)) as pilot:
        await pilot.pause()
        app.query_one("#over").display = False
        await pilot.pause()
        rendered.clear()
        for name in ("r0", "r4"):
            row = app.query_one(f"#{name}", Row)
            row.text = "two"
            row.refresh()
        await pilot.pause()
        assert {name for name in rendered if name.startswith("r")} == {"r0", "r4"}
        assert written(app)[0].startswith("r0 two")


async def test_painted_parts_add_up_to_the_whole() -> None:
    """A terminal that gets only the parts shows what a whole painting shows, with something lying over the rows."""
    app = RowsApp()
    chosen = random.Random(5)
    async with app.run_test(size=(30, 12)) as pilot:
        await pilot.pause()
        shown = [list(row) for row in written(app)]
        compositor = app.screen._compositor
        for number in range(60):
            names = chosen.sample(["r0", "r1", "r2", "r3", "r4", "over"], chosen.randint(1, 3))
            for name in names:
                row = app.query_one(f"#{name}", Row)
                row.text = f"text {number}"
                row.refresh()
            compositor.update_widgets({app.query_one(f"#{name}") for name in names})
            update = compositor.render_partial_update()
            assert update is not None
            for y, start, end in update.spans:
                for x, strip in update.chops[y].items():
                    if strip is not None and x < end and x + strip.cell_length > start:
                        shown[y][x : x + strip.cell_length] = strip.text
            assert ["".join(row) for row in shown] == written(app)


# --- when it paints -------------------------------------------------------------------------------------


class Timed(Narrow):
    """Notes when it was painted. Its frames are a fifth of a second apart."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = FrameClock(self, 0.2)
        self._Screen__update_timer = self.clock
        self.painted: list[float] = []

    def _on_timer_update(self) -> None:
        self.painted.append(time.monotonic())
        super()._on_timer_update()


class TimedApp(App[None]):
    """That screen at its bottom."""

    def get_default_screen(self) -> Screen[None]:
        return Timed()


async def test_a_change_is_painted_soon_and_never_twice_within_a_period() -> None:
    app = TimedApp()
    async with app.run_test(size=(30, 12)) as pilot:
        screen = app.screen
        assert isinstance(screen, Timed)
        await pilot.pause(0.5)
        screen.painted.clear()
        row = app.query_one("#r0", Row)
        begun = time.monotonic()
        while time.monotonic() - begun < 1.1:
            row.refresh()
            await asyncio.sleep(0.01)
        apart = [after - before for before, after in itertools.pairwise(screen.painted)]
        assert 2 <= len(screen.painted) <= 7
        assert min(apart) >= 0.199
        await pilot.pause(0.5)
        screen.painted.clear()
        begun = time.monotonic()
        row.refresh()
        while not screen.painted and time.monotonic() - begun < 5:
            await asyncio.sleep(0)
        assert screen.painted


async def test_it_paints_at_once_when_no_frame_came_lately() -> None:
    """Textual's own timer lets up to two periods pass: here that would be twenty seconds."""
    app = TimedApp()
    async with app.run_test(size=(30, 12)) as pilot:
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, Timed)
        screen.clock._interval, screen.clock._painted = 10.0, asyncio.get_running_loop().time() - 11
        screen.painted.clear()
        app.query_one("#r0", Row).refresh()
        for _ in range(300):
            await asyncio.sleep(0.01)
            if screen.painted:
                break
        assert screen.painted


async def test_nothing_is_painted_after_pause_or_when_the_screen_is_gone() -> None:
    app = TimedApp()
    async with app.run_test(size=(30, 12)) as pilot:
        await pilot.pause(0.5)
        screen = app.screen
        assert isinstance(screen, Timed)
        screen.painted.clear()
        screen.clock.resume()
        screen.clock.stop()
        await asyncio.sleep(0.4)
        assert screen.painted == []
        screen.clock.resume()
    await asyncio.sleep(0.4)
    assert screen.painted == []


async def test_a_failure_of_a_frame_ends_the_program_and_is_not_swallowed() -> None:
    class Broken(Timed):
        def _on_timer_update(self) -> None:
            raise ZeroDivisionError("in a frame")

    app = TimedApp()
    with pytest.raises(ZeroDivisionError):
        async with app.run_test(size=(30, 12)) as pilot:
            await app.push_screen(Broken())
            await pilot.pause(0.5)
