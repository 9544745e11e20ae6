"""The widget that shows one picture."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image
from textual.app import App, ComposeResult
from textual.geometry import Region

from sandbox_chat.ui.pictures import Painter, PictureView, TerminalInfo


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


@pytest.mark.parametrize("mode", ["half", "sixel", "kitty"])
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
        app.view.show(str(tmp_path / "none.png"), 100, 100)
        await until(pilot, lambda: "no longer there" in text(app.view))


async def test_pictures_off_and_no_painter(tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    Image.new("RGB", (20, 10), "red").save(path)
    app = PictureApp(None)
    async with app.run_test(size=(80, 24)) as pilot:
        app.view.show(str(path))
        await pilot.pause()
        assert text(app.view).strip() == ""
        app.view.set_painter(Painter("off"))
        await until(pilot, lambda: "switched off" in text(app.view))
