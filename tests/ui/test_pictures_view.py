"""The widget that shows one picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from textual import events
from textual.app import App, ComposeResult
from textual.geometry import Region

from sandbox_chat import events as ev
from sandbox_chat.settings import Settings
from sandbox_chat.ui.images import Images
from sandbox_chat.ui.pictures import Painter, PicturePager, PictureView, TerminalInfo
from sandbox_chat.ui.screens.picture import PictureScreen
from sandbox_chat.ui.themes import themes


class PictureApp(App[None]):
    """One picture on the whole screen."""

    def __init__(self, painter: Painter | None) -> None:
        super().__init__()
        self.painter = painter

    def compose(self) -> ComposeResult:
        yield PictureView(self.painter)

    @property
    def view(self) -> PictureView:
        return self.query_one(PictureView)


async def until(pilot, condition) -> None:
    for _ in range(500):
        if condition():
            return
        await pilot.pause(0.02)
    raise AssertionError("it did not come about")


def text(view: PictureView) -> str:
    return "\n".join(view.render_line(y).text for y in range(view.size.height))


@pytest.mark.parametrize("mode", ["half", "symbols", "sharp", "ascii", "sixel", "iterm", "kitty"])
async def test_a_picture_fits_and_follows_the_size(tmp_path: Path, mode) -> None:
    path = tmp_path / "x.png"
    Image.new("RGB", (2000, 1000), "red").save(path)
    app = PictureApp(Painter(mode, TerminalInfo(is_tty=True, cell=(10, 20))))
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(path))
        await until(pilot, lambda: app.view._paint is not None)
        assert app.view._paint is not None
        assert app.view._paint.columns == 80
        assert {app.view.render_line(y).cell_length for y in range(24)} == {80}
        await pilot.resize_terminal(40, 24)
        await until(pilot, lambda: app.view._paint is not None and app.view._paint.columns == 40)
        app.view.show("")
        await pilot.pause()
        assert text(app.view).strip() == ""


async def test_sixels_reach_the_screen_also_beside_other_widgets(tmp_path: Path) -> None:
    """What the screen draws is the strips of ``render_lines``: they must still carry the picture."""
    path = tmp_path / "x.png"
    Image.new("RGB", (800, 400), "red").save(path)
    app = PictureApp(Painter("sixel", TerminalInfo(is_tty=True, cell=(10, 20))))
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(path))
        await until(pilot, lambda: app.view._paint is not None)
        assert app.view._paint is not None
        drawn = app.view.render_lines(app.view.size.region)
        graphics = [strip for strip in drawn if "\x1bP" in strip.render(app.console)]
        assert len(graphics) == len(app.view._paint.rows)
        cut = app.view.render_lines(Region(0, 0, 40, 24))
        assert not any("\x1bP" in strip.render(app.console) for strip in cut)


async def test_a_bad_file_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"nonsense")
    app = PictureApp(Painter("half"))
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(tmp_path / "x.png"))
        await until(pilot, lambda: "damaged" in text(app.view))
        await pilot.resize_terminal(22, 24)
        await until(pilot, lambda: "".join(text(app.view).split()) == app.view.message.replace(" ", ""))
        assert {app.view.render_line(y).cell_length for y in range(24)} == {22}
        await pilot.resize_terminal(80, 24)
        app.view.show(str(tmp_path / "none.png"))
        await until(pilot, lambda: "no longer there" in text(app.view))


async def test_pictures_off_and_no_painter(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    Image.new("RGB", (20, 10), "red").save(path)
    app = PictureApp(None)
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(path))
        await pilot.pause()
        assert text(app.view).strip() == ""
    app = PictureApp(Painter("off"))
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(path))
        await until(pilot, lambda: "switched off" in text(app.view))


def red_part(view: PictureView) -> float:
    """Return how much of what is drawn is red."""
    red = total = 0
    for y in range(view.size.height):
        for segment in view.render_line(y):
            if "▀" not in segment.text or segment.style is None or segment.style.color is None:
                continue
            colour = segment.style.color.get_truecolor()
            total += len(segment.text)
            red += len(segment.text) * (colour.red > 200 and colour.green < 60)
    return red / max(total, 1)


async def test_a_picture_is_enlarged_and_moved_over(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    image = Image.new("RGB", (800, 400), "white")
    image.paste("red", (0, 0, 200, 400))  # its left quarter
    image.save(path)
    app = PictureApp(Painter("half"))
    async with app.run_test(size=(80, 20)) as pilot:
        view = app.view
        view.show(str(path))
        await until(pilot, lambda: view.pixels == (800, 400) and abs(red_part(view) - 0.25) < 0.03)
        assert not view.pan(1, 0)  # all of it is seen
        view.zoom(2)
        assert view.factor == 2
        await until(pilot, lambda: red_part(view) == 0)  # the middle is white
        for _ in range(3):
            assert view.pan(-1, 0)
            await pilot.pause(0.1)
        await until(pilot, lambda: abs(red_part(view) - 0.5) < 0.06)
        view.pan(-1, 0)  # it does not go beyond the edge
        await pilot.pause(0.1)
        await until(pilot, lambda: abs(red_part(view) - 0.5) < 0.06)
        view.zoom(99)
        assert view.factor == 16
        await until(pilot, lambda: 0.4 < red_part(view) < 0.6)
        view.pan(-4, 0)
        await until(pilot, lambda: red_part(view) == 1)
        view.zoom(-99)
        await until(pilot, lambda: abs(red_part(view) - 0.25) < 0.03)


@pytest.mark.parametrize("mode", ["sixel", "kitty", "symbols"])
@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (2000, 1600)])
async def test_enlarging_odd_sizes(tmp_path: Path, mode, size: tuple[int, int]) -> None:
    path = tmp_path / "x.png"
    Image.new("RGB", size, "red").save(path)
    app = PictureApp(Painter(mode, TerminalInfo(is_tty=True, cell=(10, 20))))
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        view.show(str(path))
        await until(pilot, lambda: view._paint is not None)
        for step in (1, 3, 99):
            before = view._paint
            view.zoom(step)
            await until(pilot, lambda before=before: view._paint is not before)
            view.pan(1, 1)
            await pilot.pause(0.05)
            assert {view.render_line(y).cell_length for y in range(12)} == {40}
        assert not view.message


async def test_the_picture_before_stays_until_the_next_is_ready(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Image.new("RGB", (80, 40), "red" if name == "a" else "blue").save(tmp_path / f"{name}.png")
    app = PictureApp(Painter("half"))
    async with app.run_test(size=(40, 12)) as pilot:
        view = app.view
        view.show(str(tmp_path / "a.png"))
        await until(pilot, lambda: view._paint is not None)
        first = view._paint
        view.show(str(tmp_path / "b.png"))
        assert view._paint is first
        await until(pilot, lambda: view._paint not in (None, first))


class PagerApp(App[None]):
    """Several pictures, one at a time."""

    def get_theme_variable_defaults(self) -> dict[str, str]:
        return themes()[0].variables

    def __init__(self) -> None:
        super().__init__()
        self.large: list[str] = []

    def compose(self) -> ComposeResult:
        yield PicturePager(Painter("half"))

    def on_picture_pager_large(self, event: PicturePager.Large) -> None:
        self.large.append(event.path)


async def test_the_pictures_of_a_call_can_all_be_seen(tmp_path: Path) -> None:
    images = []
    for name in ("a.png", "b.png", f"{'0123abcd' * 8}.png"):
        Image.new("RGB", (80, 40), "red").save(tmp_path / name)
        images.append(ev.ImageContent(str(tmp_path / name), "image/png", 80, 40))
    app = PagerApp()
    async with app.run_test(size=(50, 12)) as pilot:
        pager = app.query_one(PicturePager)
        line = app.query_one("PagerLine")
        view = app.query_one(PictureView)

        def head() -> str:
            return line.render_line(0).text.strip()

        pager.show(images[:1])
        await pilot.pause()
        assert head().split() == ["a.png", "·", "80×40", "⏎", "zoom"]
        pager.show(images)
        await pilot.pause()
        assert head().startswith("1/3 ◂ ▸  a.png")  # what is looked at stays
        pager.focus()
        await pilot.press("n")
        assert (head()[:15], view.path) == ("2/3 ◂ ▸  b.png ", images[1].path)
        await pilot.press("n")
        assert head().startswith("3/3 ◂ ▸  80×40")  # a digest is no name
        await pilot.press("n", "p", "p")
        assert pager.number == 1
        await pilot.click("PagerLine", offset=(6, 0))
        assert pager.number == 2
        await pilot.click("PagerLine", offset=(4, 0))
        await pilot.press("enter")
        await pilot.click(PictureView)
        assert app.large == [images[1].path] * 2
        pager.show(())
        await pilot.pause()
        assert (head(), view.path) == ("", "")


class LargeApp(App[None]):
    """Opens pictures over the whole screen."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.images = Images(Settings(images="half", downloads_dir=folder / "saved", reduced_motion=True))


async def test_a_picture_over_the_whole_screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = []
    for name in ("a.png", "b.png"):
        Image.new("RGB", (80, 40), "red").save(tmp_path / name)
        paths.append(str(tmp_path / name))
    opened: list[str] = []
    monkeypatch.setattr(
        "sandbox_chat.ui.outside.open_path", lambda path: opened.append(str(path)) or "No [viewer]."
    )
    app = LargeApp(tmp_path)
    copied: list[str] = []
    monkeypatch.setattr(app, "copy_to_clipboard", copied.append)
    async with app.run_test(size=(150, 20), notifications=True) as pilot:
        app.images.open(app, paths[0], [*paths, *paths])
        await pilot.pause()
        screen = app.screen
        assert isinstance(screen, PictureScreen)

        def caption() -> str:
            return screen.query_one("Caption").render_line(0).text

        await until(pilot, lambda: "80×40" in caption())
        assert caption().startswith(f"{paths[0]} · 80×40 · 1/2") or "…" in caption()
        assert "a.png" in caption()
        await pilot.press("n")
        await until(pilot, lambda: "b.png · 80×40 · 2/2" in caption())
        await pilot.press("n", "left")
        await until(pilot, lambda: "b.png · 80×40 · 2/2" in caption())
        await pilot.press("plus")
        await until(pilot, lambda: "1.5×" in caption())
        await pilot.press("right", "down", "0")
        await until(pilot, lambda: "1.5×" not in caption())
        await pilot.press("s", "s")
        await until(pilot, lambda: (tmp_path / "saved" / "b-1.png").exists())
        assert (tmp_path / "saved" / "b.png").read_bytes() == (tmp_path / "b.png").read_bytes()
        await until(pilot, lambda: any("b-1.png" in note.message for note in app._notifications))
        await pilot.press("y", "o")
        await until(pilot, lambda: opened == [paths[1]])
        assert copied == [paths[1]]
        await until(pilot, lambda: any(note.message == "No [viewer]." for note in app._notifications))
        await pilot.press("escape")
        assert not isinstance(app.screen, PictureScreen)


async def test_the_font_is_measured_again_when_the_terminal_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = [(9, 17)]
    monkeypatch.setattr("sandbox_chat.ui.pictures.terminal.screen_cell", lambda: cell[0])
    images = Images(Settings(), TerminalInfo(is_tty=True, sixel=True, cell=(10, 18)))
    assert images.painter.cell == (10, 18)

    def resize(pixels: tuple[int, int] | None = None) -> tuple[int, int]:
        images.resized(events.Resize.from_dimensions((80, 24), pixels))
        return images.painter.cell

    assert resize() == (10, 18)  # what the terminal itself said holds while nothing changes
    cell[0] = (0, 0)
    assert resize() == (10, 18)
    cell[0] = (18, 34)
    assert resize() == (18, 34)
    assert resize((800, 480)) == (10, 20)
    page = Images(Settings(), TerminalInfo())
    assert page.painter.cell == (10, 20)
    page.resized(events.Resize.from_dimensions((80, 24), (8000, 2400)))
    assert page.painter.cell == (10, 20)
