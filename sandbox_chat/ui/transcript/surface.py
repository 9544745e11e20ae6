"""Drawing of the transcript: rows of blocks on the screen, and nothing that is not seen."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual import events
from textual.geometry import Region, Size
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from sandbox_chat.ui.private import send
from sandbox_chat.ui.strips import ready_lines

from .blocks import Block
from .feed import Feed
from .framing import EDGE, GUTTER, Framing, thumb
from .gallery import Gallery
from .layout import Layout
from .marks import Marks
from .palette import Kind, Palette
from .scene import Scene
from .storage import Storage

if TYPE_CHECKING:
    from sandbox_chat.events import Event
    from sandbox_chat.ui.pictures import Painter

FLUSH = 0.04
"""Shortest time in seconds between two drawings while events stream: twenty-five a second look fluent."""
FLUSH_SHARE = 4
"""A drawing may take one part in so many of the time: what is costly is drawn less often, keys stay quick."""
FLUSH_MOST = 0.5
SPINNER_SECONDS = 0.1
LEXERS_AFTER = 0.5
"""Seconds after mounting when the lexers are loaded: the first frame is to come before them."""
CALM = 0.15
"""Seconds without movement after which costly pictures are drawn in full."""
GUESS_AFTER = 0.5
"""Seconds after a new width when heights far away are guessed anew: another width may follow at once."""
ROWS_KEPT = 4000
"""Rows that stay drawn; blocks seen longest ago are drawn again when they are scrolled to."""
MEMORY = 16
"""Megabytes of text that stay in memory."""
NEAR = 40
"""Blocks before and after those in sight whose texts stay in memory, or are read back early."""
SLICE = 0.02
"""Seconds between two slices of work that can wait."""


class TranscriptSurface(ScrollView):
    """Draws the blocks and keeps the place. ``TranscriptView`` adds keys and the mouse."""

    DEFAULT_CSS = """
    TranscriptSurface { width: 1fr; height: 1fr; overflow: hidden hidden; scrollbar-size: 0 0; }
    """
    ALLOW_SELECT = False

    virtual_size: Reactive[Size] = Reactive(Size(0, 0), layout=False)
    following: reactive[bool] = reactive(True, repaint=False)
    """True while the view stays at the end."""
    unseen_lines: reactive[int] = reactive(0, repaint=False)
    """Rows that came below the view since the user scrolled up."""

    def __init__(
        self,
        *,
        motion: bool = True,
        beat: bool = True,
        memory: int = MEMORY,
        name: str | None = None,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        """``motion`` false: no spinners. ``beat`` false: no timer for what is alive, others call ``spin``.

        ``memory`` are megabytes of text that stay in memory; the rest waits on disk until it is scrolled to.
        """
        super().__init__(name=name, id=id, classes=classes)
        self.scene = Scene(motion=motion)
        self.transcript = Feed(self.scene)
        self._layout = Layout(self.transcript.blocks)
        self._beat = beat
        self._painter: Painter | None = None
        self._gallery: Gallery | None = None
        self._selected = -1
        self._storage = Storage(
            self.scene.spill, memory * 1_000_000, later=self.call_later, arrived=self._texts_came
        )
        self.scene.want = self._storage.want
        self._marks = Marks()
        self._lines: list[Strip] = []
        self._framing = Framing(self.scene)
        self._flush_timer: Timer | None = None
        self._spinner: Timer | None = None
        self._calm_timer: Timer | None = None
        self._guess_timer: Timer | None = None
        self._pending_timer: Timer | None = None
        self._last_flush = 0.0
        self._interval = FLUSH
        self._palette_key: tuple[object, ...] = ()
        self._bar_held = False

    # -- what others call ------------------------------------------------------------------------------

    @property
    def blocks(self) -> Sequence[Block]:
        """All pieces of the transcript, withdrawn ones too."""
        return self.transcript.blocks

    def feed(self, events: Sequence[Event], *, paced: bool = False) -> None:
        """Take events and draw soon: at once, or a moment after the last time.

        ``paced``: the caller gathers events itself, so that they are drawn at once unless drawing is slow.
        """
        for event in events:
            self.transcript.apply(event)
        if not self.transcript.changed:
            return
        if paced and self._interval <= FLUSH:
            self._flush()
        else:
            self._schedule()

    def end(self) -> None:
        """Go to the end and follow."""
        self._layout.go_end()
        self._moved()

    def set_images(self, painter: Painter) -> None:
        """Draw pictures with ``painter``; without one only their captions are shown."""
        self._painter = painter
        if self.is_mounted:
            self._hang_pictures()
            self._relayout()

    @property
    def selected(self) -> Block | None:
        """The item that the cursor is on."""
        blocks = self.transcript.blocks
        return blocks[self._selected] if 0 <= self._selected < len(blocks) else None

    # -- life ------------------------------------------------------------------------------------------

    def on_mount(self) -> None:
        """Take the theme's colours and begin."""
        self._take_colours()
        self._hang_pictures()
        if self._beat:
            self._spinner = self.set_interval(SPINNER_SECONDS, self.spin, pause=True)
        self.set_timer(LEXERS_AFTER, self._warm_lexers)
        self._relayout()

    def _warm_lexers(self) -> None:
        """Load what draws Markdown and highlights code, off the loop and after the first frame."""
        from sandbox_chat.ui.markdown.warm import warm

        threading.Thread(target=warm, name="lexers", daemon=True).start()

    def on_unmount(self) -> None:
        """Free the pictures."""
        if self._gallery is not None:
            self._gallery.close()
            self._gallery = None
            self.scene.pictures = None
        self.scene.spill.close()

    def on_resize(self, event: events.Resize) -> None:
        """Lay out for the new size."""
        del event
        self._relayout()

    def notify_style_update(self) -> None:
        """The theme or the style may have changed."""
        super().notify_style_update()
        if self.is_mounted and self._take_colours():
            self._hang_pictures()
            self._relayout()

    def _take_colours(self) -> bool:
        variables = self.app.theme_variables
        background = self.background_colors[1]
        dark = self.app.current_theme.dark
        names = ("foreground", "primary", "accent", "success", "warning", "error")
        kind: Kind = "none" if self.app.no_color else "ansi" if self.app.native_ansi_color else "rgb"
        key = (background, dark, kind, *(variables.get(name) for name in names))
        if key == self._palette_key:
            return False
        self._palette_key = key
        self.scene.palette = Palette(variables, background=background.hex6, dark=dark, kind=kind)
        self._framing.clear()
        return True

    def _hang_pictures(self) -> None:
        if self._gallery is not None:
            self._gallery.close()
        self._gallery = None
        self.scene.pictures = None
        if self._painter is None or self._painter.mode == "off":
            return
        self._gallery = Gallery(
            self._painter,
            ground=self.scene.palette.base,
            send=lambda data: send(self.app, data),
            ready=self._picture_ready,
        )
        self.scene.pictures = self._gallery

    # -- drawing ---------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self.is_mounted or self._flush_timer is not None:
            return
        wait = self._last_flush + self._interval - time.monotonic()
        if wait <= 0:
            self._flush()
        else:
            self._flush_timer = self.set_timer(wait, self._flush)

    def _flush(self) -> None:
        """Lay out what changed and repaint the rows that differ."""
        if self._flush_timer is not None:
            self._flush_timer.stop()
            self._flush_timer = None
        if not self.is_mounted:
            return
        if not self._layout.width:
            self._relayout()
            return
        changed = self.transcript.take_changed()
        if not changed:
            return
        begun = time.monotonic()
        self._layout.changed(changed)
        self._moved()
        self._storage.note(self.transcript.blocks, changed, self._near)
        self._last_flush = time.monotonic()
        cost = self._last_flush - begun
        self._interval = min(max(FLUSH, cost * FLUSH_SHARE), FLUSH_MOST)

    def _catch_up(self) -> None:
        """Draw what is not drawn yet before the view leaves the end: it is nothing new to who scrolls away."""
        if self._layout.following:
            self._flush()

    @property
    def drawn(self) -> bool:
        """True when all that was fed is laid out in the present size."""
        return not self.transcript.changed and self._layout.width > 0

    def _near(self, index: int) -> bool:
        """Return whether a block is in sight, or may soon be."""
        first = self._layout.anchor[0]
        return first - NEAR <= index <= first + self.size.height + NEAR

    def _read_early(self) -> None:
        """Read back what may soon be in sight."""
        blocks, first = self.transcript.blocks, self._layout.anchor[0]
        for block in blocks[max(0, first - NEAR // 2) : first + NEAR]:
            if block.away:
                self._storage.want(block)

    def _texts_came(self, blocks: Sequence[Block]) -> None:
        """Texts are back from disk."""
        if not self.is_mounted or not self._layout.width:
            return
        indices = [self.transcript.index(block) for block in blocks]
        self._storage.keeper.note(self.transcript.blocks, indices)
        self._layout.changed(indices, counted=False)
        self._moved()

    def _relayout(self) -> None:
        width, height = self.size
        if not self.is_mounted or width <= GUTTER + EDGE or height <= 0:
            return
        changed = self.transcript.take_changed()
        self._framing.clear()
        self._marks.link = None
        self._layout.resize(width - GUTTER - EDGE, height)
        self._layout.changed(changed)
        self._storage.note(self.transcript.blocks, changed, self._near)
        self._paint()
        self.refresh()
        if self._guess_timer is None:
            self._guess_timer = self.set_timer(GUESS_AFTER, self._guess)

    def _guess(self) -> None:
        """Guess the heights of what is far away anew, a slice at a time: only the bar depends on them."""
        more = self._layout.guess()
        self._guess_timer = self.set_timer(SLICE, self._guess) if more else None
        if not more:
            self._paint()

    def _moved(self) -> None:
        """The place or the rows changed: repaint; pictures stay simple until it is calm."""
        top = self._layout.top
        if self._gallery is not None and self._gallery.heavy and top != round(self.scroll_y):
            self._gallery.moving = True
            if self._calm_timer is not None:
                self._calm_timer.stop()
            self._calm_timer = self.set_timer(CALM, self._calm)
        self._paint()

    def _calm(self) -> None:
        self._calm_timer = None
        if self._gallery is not None:
            self._gallery.moving = False
        self._paint()

    def _picture_ready(self, path: str) -> None:
        self.transcript.picture_changed(path)
        self._flush()

    def _paint(self) -> None:
        """Make the rows of the screen, tell Textual which of them differ, and keep its numbers right."""
        layout = self._layout
        size = self.size
        old = self._lines
        lines: list[Strip] = []
        bar = thumb(size.height, layout.total, layout.top, layout.max_top)
        framed, width = self._framing.framed, layout.width
        live = chosen = False
        marks = self._marks.any
        seen = -1
        for index, row, strip in layout.visible():
            if index != seen:
                seen, block = index, layout.blocks[index]
                live = live or block.live
                chosen = index == self._selected
            mark = 1 if chosen and (row or block.first) else 0
            if marks:
                layers = self._marks.layers(self.scene.palette, index, block, width, row)
                strip = self._framing.overlaid(strip, layers)  # noqa: PLW2901
            lines.append(framed(strip, width, mark, bar, len(lines)))
        blank = self.scene.palette.blank(width)
        while len(lines) < size.height:
            lines.append(framed(blank, width, 0, bar, len(lines)))
        self._lines = lines
        if len(old) != len(lines):
            self.refresh()
        else:
            self._refresh_rows([y for y, line in enumerate(lines) if line is not old[y]])
        self.set_reactive(TranscriptSurface.virtual_size, Size(size.width, max(layout.total, 1)))
        self.set_reactive(TranscriptSurface.scroll_y, float(layout.top))
        self.set_reactive(TranscriptSurface.scroll_target_y, float(layout.top))
        self.following = layout.following
        self.unseen_lines = layout.unseen
        if self._spinner is not None:
            if live:
                self._spinner.resume()
            else:
                self._spinner.pause()
        if self._pending_timer is None and any(block.pending for block in self._in_sight()):
            self._pending_timer = self.set_timer(SPINNER_SECONDS, self._draw_pending)
        layout.trim(ROWS_KEPT)
        self._read_early()

    def _in_sight(self) -> Sequence[Block]:
        """Return the blocks that are seen."""
        layout = self._layout
        last = layout.find(min(self.size.height, layout.total - layout.top) - 1)
        return layout.blocks[layout.anchor[0] : last[0] + 1] if last is not None else ()

    def _draw_pending(self) -> None:
        """Draw again what was not ready."""
        self._pending_timer = None
        pending = [self.transcript.index(block) for block in self._in_sight() if block.pending]
        self._layout.changed(pending, counted=False)
        self._paint()

    def _refresh_rows(self, rows: list[int]) -> None:
        if not rows:
            return
        width = self.size.width
        regions: list[Region] = []
        start = last = rows[0]
        for y in rows[1:]:
            if y != last + 1:
                regions.append(Region(0, start, width, last - start + 1))
                start = y
            last = y
        regions.append(Region(0, start, width, last - start + 1))
        gutter = self.styles.gutter
        if gutter.top or gutter.left:
            regions = [region.translate((gutter.left, gutter.top)) for region in regions]
        self.refresh(*regions)

    def render_lines(self, crop: Region) -> list[Strip]:
        """Return the rows of ``crop``, ready as they are unless the widget is tinted or framed."""
        lines = ready_lines(self, crop, self.scene.palette.background)
        return super().render_lines(crop) if lines is None else lines

    def render_line(self, y: int) -> Strip:
        """Return one row of the screen."""
        width = self.size.width
        if 0 <= y < len(self._lines):
            line = self._lines[y]
            return (
                line if line.cell_length == width else line.adjust_cell_length(width, self.scene.palette.base)
            )
        return Strip.blank(width, self.scene.palette.base)

    def spin(self) -> None:
        """Draw what is alive again."""
        self.scene.tick += 1
        changed = [self.transcript.index(block) for block in self._in_sight() if block.live]
        if changed:
            self._layout.changed(changed, counted=False)
            self._paint()
        elif self._spinner is not None:
            self._spinner.pause()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Something else (Textual's own scrolling) moved the view."""
        del old_value
        if self._layout.height != self.size.height:
            return  # Textual keeps it within a new height; ``on_resize`` finds the place, and goes on following
        if round(new_value) != self._layout.top:
            self._layout.go(round(new_value))
            self._moved()

    def _select(self, index: int) -> None:
        if index != self._selected:
            self._selected = index
            self._paint()
