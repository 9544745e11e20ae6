"""Pictures in the transcript of a running app: drawn, cut, scrolled, resized, freed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from PIL import Image
from support.screen import settled
from support.view_app import ViewApp
from textual.screen import ModalScreen

from sandbox_chat import events as ev
from sandbox_chat.ui.pictures import Painter, TerminalInfo
from sandbox_chat.ui.themes import themes
from sandbox_chat.ui.transcript import TranscriptView
from sandbox_chat.ui.transcript.gallery import KEPT
from sandbox_chat.ui.transcript.picture_block import PictureBlock

TERMINAL = TerminalInfo(is_tty=True, cell=(10, 20))


class CountingPainter(Painter):
    """Counts what is drawn, by path and size."""

    def __init__(self, mode, **options) -> None:
        super().__init__(mode, TERMINAL, **options)
        self.made: list[tuple[str, int, int]] = []

    def _paint(self, path, columns, rows, ground, window):
        self.made.append((path, columns, rows))
        return super()._paint(path, columns, rows, ground, window)


def chart(folder: Path, name: str = "chart.png", size: tuple[int, int] = (400, 200)) -> ev.ImageContent:
    """A picture whose rows differ: a ramp from black to red."""
    ramp = Image.linear_gradient("L").resize(size)
    Image.merge("RGB", (ramp, Image.new("L", size), Image.new("L", size))).save(folder / name)
    return ev.ImageContent(str(folder / name), "image/png", *size)


def call(*images: ev.ImageContent, number: str = "a") -> list[ev.Event]:
    return [
        ev.ToolStarted(tool_use_id=number, name="mcp__sandbox__run_code", input={"code": "x"}),
        ev.ToolFinished(tool_use_id=number, is_error=False, content=images, duration_ms=5),
    ]


def lines(view: TranscriptView) -> list[str]:
    return [view.render_line(y).text[2:-2].rstrip() for y in range(view.size.height)]


def row_of(view: TranscriptView, words: str) -> int:
    return next(y for y, line in enumerate(lines(view)) if words in line)


def drawn(view: TranscriptView, y: int) -> str:
    return view.render_line(y).render(view.app.console)


async def calm(pilot, view: TranscriptView) -> None:
    """Wait until everything in sight is drawn."""
    await settled(pilot, lambda: not any("preparing" in line for line in lines(view)))
    await settled(pilot, lambda: view._gallery is None or not view._gallery.moving)


@pytest.mark.parametrize("mode", ["half", "symbols", "sharp", "ascii", "sixel", "iterm", "kitty"])
async def test_a_picture_comes_below_its_card(tmp_path: Path, mode) -> None:
    image = chart(tmp_path)
    app = ViewApp()
    async with app.run_test(size=(60, 30)) as pilot:
        view = app.view
        view.set_images(Painter(mode, TERMINAL, max_rows=8))
        view.feed([*call(image), ev.Text(text="after")])
        await pilot.pause()
        assert lines(view)[11] == "chart.png · 400×200 · ⏎ zoom  o open  s save"  # before it is ready
        await calm(pilot, view)
        assert row_of(view, "chart.png · ") == 11
        assert row_of(view, "after") == 13
        assert {view.render_line(y).cell_length for y in range(30)} == {60}
        assert drawn(view, 4) != drawn(view, 9)
        await pilot.click(TranscriptView, offset=(5, 11))
        await pilot.pause()
        assert app.messages[-1] == ("picture", image.path)


async def test_without_pictures_words_say_what_and_where(tmp_path: Path) -> None:
    image = chart(tmp_path)
    app = ViewApp()
    async with app.run_test(size=(200, 30)) as pilot:
        app.view.set_images(Painter("off"))
        app.view.feed(call(image))
        await pilot.pause()
        assert lines(app.view)[3] == f"[picture: chart.png, 400×200, {image.path}]"


@pytest.mark.parametrize("data", [b"", b"not a picture", b"\x89PNG\r\n\x1a\n" + b"\0" * 40])
async def test_a_bad_picture_is_a_sentence_and_takes_no_more_room(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "bad.png").write_bytes(data)
    app = ViewApp()
    async with app.run_test(size=(100, 30)) as pilot:
        view = app.view
        view.set_images(Painter("half", TERMINAL))
        view.feed(
            [*call(ev.ImageContent(str(tmp_path / "bad.png"), "image/png", 400, 400)), ev.Text(text="after")]
        )
        await settled(pilot, lambda: any("bad.png · 400×400: " in line for line in lines(view)))
        await settled(pilot, lambda: row_of(view, "after") == 5)
        assert view.virtual_size.height == 6


async def test_a_picture_survives_a_theme_change_and_a_dialog(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 30)) as pilot:
        view = app.view
        view.set_images(Painter("sixel", TERMINAL, max_rows=8))
        view.feed(call(chart(tmp_path)))
        await settled(pilot, lambda: "\x1bP" in drawn(view, 5))
        await app.push_screen(ModalScreen())
        await pilot.pause()
        await app.pop_screen()
        app.theme = themes()[1].name
        await settled(pilot, lambda: "\x1bP" in drawn(view, 5))


@pytest.mark.parametrize("mode", ["half", "symbols", "ascii", "kitty"])
async def test_a_picture_is_cut_at_both_edges_of_the_view(tmp_path: Path, mode) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 12)) as pilot:
        view = app.view
        painter = CountingPainter(mode, max_rows=10)
        view.set_images(painter)
        view.feed([*call(chart(tmp_path, size=(400, 400))), *(ev.Text(text=f"line {n}") for n in range(12))])
        await pilot.pause()
        view.action_scroll_start()
        await calm(pilot, view)
        whole = [drawn(view, y) for y in range(2, 12)]
        for step in range(1, 13):
            view.action_scroll_rows(1)
            await pilot.pause()
            top = max(0, step - 2)
            first = max(0, 2 - step)
            assert [drawn(view, y)[:200] for y in range(first, first + 10 - top)] == [
                row[:200] for row in whole[top:]
            ]
        for _ in range(12):
            view.action_scroll_rows(-1)
            await pilot.pause()
        assert [drawn(view, y) for y in range(2, 12)] == whole
        assert len(painter.made) == 1  # drawn once, however it is moved


async def test_sixels_are_simple_while_the_view_moves(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        painter = CountingPainter("sixel", max_rows=8)
        view.set_images(painter)
        view.feed([*call(chart(tmp_path)), *(ev.Text(text=f"line {n}") for n in range(20))])
        await pilot.pause()
        view.action_scroll_start()
        await settled(pilot, lambda: "\x1bP" in drawn(view, 5))
        view.action_scroll_rows(1)
        assert "\x1bP" not in drawn(view, 4)
        assert "▀" in drawn(view, 4)
        await settled(pilot, lambda: "\x1bP" in drawn(view, 4))
        assert len(painter.made) == 1


async def test_two_pictures_of_one_file_are_drawn_once(tmp_path: Path) -> None:
    image = chart(tmp_path)
    app = ViewApp()
    async with app.run_test(size=(60, 40)) as pilot:
        painter = CountingPainter("kitty", max_rows=8)
        app.view.set_images(painter)
        app.view.feed([*call(image, image, number="a"), *call(image, number="b")])
        await pilot.pause()
        await calm(pilot, app.view)
        assert len(painter.made) == 1
        assert len([line for line in lines(app.view) if "chart.png" in line]) == 3


async def test_far_pictures_are_freed_and_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr("sandbox_chat.ui.transcript.surface.send", lambda app, data: sent.append(data))

    def alive() -> int:
        text = "".join(sent)
        return len(re.findall(r"a=T,U=1", text)) - len(re.findall(r"a=d,d=I", text))

    images = [chart(tmp_path, f"{number}.png", (200, 100)) for number in range(40)]
    app = ViewApp()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        painter = CountingPainter("kitty", max_rows=5)
        view.set_images(painter)
        view.feed([event for number, image in enumerate(images) for event in call(image, number=str(number))])
        await pilot.pause()
        view.action_scroll_start()
        await calm(pilot, view)
        while not view.following:
            view.action_scroll_pages(1)
            await pilot.pause()
            await calm(pilot, view)
            assert alive() <= KEPT
        assert alive() == KEPT
        assert len({path for path, _, _ in painter.made}) == 40
        made = len(painter.made)
        view.action_scroll_start()
        await pilot.pause()
        await calm(pilot, view)
        assert made < len(painter.made) <= made + 4
    assert alive() == 0


async def test_more_small_pictures_in_sight_than_are_kept(tmp_path: Path) -> None:
    images = [chart(tmp_path, f"{number}.png", (10, 20)) for number in range(40)]
    app = ViewApp()
    async with app.run_test(size=(60, 130)) as pilot:
        view = app.view
        painter = CountingPainter("kitty")
        view.set_images(painter)
        view.feed(call(*images))
        await pilot.pause()
        await calm(pilot, view)
        await pilot.pause(0.2)
        assert len(painter.made) == 40  # none is made again and again, because another one took its place


async def test_passing_by_makes_little(tmp_path: Path) -> None:
    """Of the pictures that were passed few are made: only what is in sight."""
    images = [chart(tmp_path, f"{number}.png") for number in range(60)]
    app = ViewApp()
    async with app.run_test(size=(60, 20)) as pilot:
        view = app.view
        painter = CountingPainter("half", max_rows=8)
        view.set_images(painter)
        view.feed([event for number, image in enumerate(images) for event in call(image, number=str(number))])
        await pilot.pause()
        await calm(pilot, view)
        for _ in range(400):
            view.action_scroll_rows(-2)
        await calm(pilot, view)
        assert any(path.endswith("/0.png") for path, _, _ in painter.made)
        await pilot.pause(0.5)
        assert len(painter.made) < 15


async def test_a_resize_draws_once_at_the_new_size(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 30)) as pilot:
        view = app.view
        painter = CountingPainter("half")
        view.set_images(painter)
        image = chart(tmp_path, size=(1200, 400))
        view.feed(call(image))
        await pilot.pause()
        await calm(pilot, view)
        await pilot.resize_terminal(50, 30)
        await pilot.pause()
        await calm(pilot, view)
        assert [columns for _, columns, _ in painter.made] == [76, 46]
        for _ in range(3):
            await pilot.resize_terminal(80, 30)
            await pilot.pause()
            await calm(pilot, view)
            await pilot.resize_terminal(50, 30)
            await pilot.pause()
            await calm(pilot, view)
        assert len(painter.made) == 2


async def test_a_font_of_another_size(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 40)) as pilot:
        view = app.view
        painter = CountingPainter("sixel", max_rows=12)
        view.set_images(painter)
        view.feed(call(chart(tmp_path)))
        await settled(pilot, lambda: '"1;1;400;20' in drawn(view, 5))
        painter.cell = (20, 40)
        await pilot.resize_terminal(40, 20)
        await settled(pilot, lambda: '"1;1;400;40' in drawn(view, 3))


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8, 20])
async def test_narrow_views(tmp_path: Path, width: int) -> None:
    app = ViewApp()
    async with app.run_test(size=(width, 20)) as pilot:
        app.view.set_images(Painter("symbols", TERMINAL))
        app.view.feed(call(chart(tmp_path), chart(tmp_path, "二番目の絵.png")))
        await pilot.pause(0.3)
        assert {app.view.render_line(y).cell_length for y in range(20)} == {width}


async def test_names_are_shown_to_the_letter(tmp_path: Path) -> None:
    app = ViewApp()
    async with app.run_test(size=(80, 30)) as pilot:
        view = app.view
        view.set_images(Painter("half", TERMINAL, max_rows=4))
        image = chart(tmp_path)
        view.feed(
            [
                ev.ToolStarted(tool_use_id="a", name="read_image", input={"path": "[bold]x\x1b[2J[/]"}),
                ev.ToolFinished(tool_use_id="a", is_error=False, content=(image,), duration_ms=5),
            ]
        )
        await pilot.pause()
        await calm(pilot, view)
        assert any(line.startswith("[bold]x␛[2J[/] · 400×200") for line in lines(view))
        assert not any("\x1b[2J" in drawn(view, y) for y in range(30))


async def test_the_caption_gives_way_from_its_end(tmp_path: Path) -> None:
    image = chart(tmp_path)
    app = ViewApp()
    async with app.run_test(size=(80, 30)) as pilot:
        app.view.set_images(Painter("half", TERMINAL, max_rows=4))
        app.view.feed(call(image))
        await pilot.pause()
        block = app.view.blocks[1]
        assert isinstance(block, PictureBlock)

        def caption(width: int) -> str:
            return block.rows(width)[-1].text.rstrip()

        assert caption(60) == "chart.png · 400×200 · ⏎ zoom  o open  s save"
        assert caption(40) == "chart.png · 400×200 · ⏎ zoom  o open"
        assert caption(30) == "chart.png · 400×200 · ⏎ zoom"
        assert caption(20) == "chart.png · 400×200"
        assert caption(12) == "chart.png"
        assert caption(6) == "chart…"
        source = block.row_source(60, block.height(60) - 1)
        assert source is not None
        run = source[1][0]
        assert block.plain(source[0])[run.at : run.at + len(run.text)] == run.text
        assert block.row_source(60, 2) is None
        assert block.commands == ("copy", "open", "save")
        assert (block.path, block.text) == (image.path, image.path)
