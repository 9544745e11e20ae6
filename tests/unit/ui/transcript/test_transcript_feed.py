"""Events → blocks."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from sandbox_chat import events as ev
from sandbox_chat.plain import sections
from sandbox_chat.ui.transcript import Feed, Scene
from sandbox_chat.ui.transcript.card import ToolCard
from sandbox_chat.ui.transcript.picture_block import PictureBlock
from sandbox_chat.words import use

NAME = "mcp__sandbox__run_code"


def finished(**changes: object) -> ev.TurnFinished:
    values: dict = {
        "turn_id": "1", "subtype": "success", "is_error": False, "interrupted": False, "num_turns": 1,
        "duration_ms": 5, "cost_usd": None, "total_cost_usd": None,
    }  # fmt: skip
    return ev.TurnFinished(**(values | changes))


def play(*events: ev.Event, scene: Scene | None = None) -> Feed:
    feed = Feed(scene)
    for event in events:
        feed.apply(event)
    return feed


def lines(feed: Feed, width: int = 60) -> list[str]:
    return [row.text.rstrip() for block in feed.blocks for row in block.rows(width)]


def test_a_turn() -> None:
    feed = play(
        ev.TurnStarted(turn_id="1", prompt="plot it"),
        ev.ThinkingDelta(text="I think\nhard"),
        ev.TextDelta(text="Here "),
        ev.TextDelta(text="it **is**."),
        ev.Text(text="Here it **is**."),
        finished(),
    )
    assert [block.kind for block in feed.blocks] == ["prompt", "thinking", "answer"]
    assert lines(feed) == ["› plot it", "", "▸ thought  I think hard", "", "Here it is."]


def test_a_whole_text_replaces_the_pieces() -> None:
    feed = play(ev.TextDelta(text="wrong"), ev.Text(text="right"), ev.Text(text="second"))
    assert lines(feed) == ["right", "", "second"]


def test_a_retry_withdraws_the_open_text_and_the_open_call() -> None:
    feed = play(
        ev.TextDelta(text="half of it"),
        ev.ToolInputDelta(tool_use_id="a", name=NAME, text='{"code": "x'),
        ev.Retry(reason="The stream broke", attempt=1, delay_ms=1000),
        ev.Retry(reason="The stream broke", attempt=2, delay_ms=2000),
        ev.TextDelta(text="all"),
        ev.ToolInputDelta(tool_use_id="a", name=NAME, text=""),
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "y"}),
    )
    shown = "\n".join(lines(feed))
    assert "half" not in shown
    assert shown.count("Trying again") == 1
    assert "attempt 2" in shown
    assert shown.count("run_code") == 1
    feed.apply(ev.ToolFinished(tool_use_id="a", is_error=False, content=(), duration_ms=1))
    assert feed.cards["a"].status == "ok"


def test_code_grows_while_the_model_writes_it() -> None:
    feed = Feed()
    feed.apply(ev.ToolInputDelta(tool_use_id="a", name=NAME, text=""))
    assert lines(feed) == ["· run_code  writing ▸"]
    whole = json.dumps({"code": "import os\nprint('é\\n')\n" + "x = 1\n" * 20})
    for at in range(0, len(whole), 7):
        feed.apply(ev.ToolInputDelta(tool_use_id="a", name=NAME, text=whole[at : at + 7]))
        assert len(lines(feed)) <= 8
    assert "x = 1" in "\n".join(lines(feed))


def test_a_card_that_ends_well() -> None:
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "# sum\nprint(5050)"}),
        ev.ToolOutput(tool_use_id="a", stream="stdout", text="5050\n"),
        ev.ToolFinished(
            tool_use_id="a",
            is_error=False,
            content=(ev.TextContent("[success] True\n[stdout]\n5050"),),
            duration_ms=420,
        ),
    )
    assert lines(feed) == ["✓ run_code  0.42 s ▸", "  # sum …" + " " * 44 + "2 lines"]
    feed.blocks[0].expand()
    shown = lines(feed)
    assert shown[0].endswith("▾")
    assert "   print(5050)" in shown
    assert shown[-2:] == ["  output", "  │ 5050"]
    feed.blocks[0].collapse()
    assert len(lines(feed)) == 2


def test_a_failed_card_says_why_without_opening() -> None:
    text = "[success] False\n[error]\nNameError: x\n[traceback]\nTraceback\n  line 1\nNameError: name 'x' is not defined"
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}),
        ev.ToolFinished(tool_use_id="a", is_error=True, content=(ev.TextContent(text),), duration_ms=3),
    )
    assert lines(feed)[0].startswith("✗ run_code")
    assert lines(feed)[-1] == "  NameError: name 'x' is not defined"


def test_a_folded_card_names_the_limits_that_struck() -> None:
    note = "A file grew up to the limit of 20 MB for one file (SANDBOX_CHAT_SANDBOX_FILE_MB)."
    text = f"[success] False\n[error]\nOSError: too large\n[note] Picture 1 is shown.\n[note] {note}"
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}),
        ev.ToolFinished(tool_use_id="a", is_error=True, content=(ev.TextContent(text),), duration_ms=3),
    )
    said = " ".join(line.strip() for line in lines(feed))
    assert said.endswith(f"OSError: too large {note}")
    feed.blocks[0].expand()
    assert " ".join(line.strip() for line in lines(feed)).count("SANDBOX_CHAT_SANDBOX_FILE_MB") == 1


def test_live_output_of_a_running_card() -> None:
    now = datetime(2025, 1, 1, tzinfo=UTC)
    scene = Scene(motion=False, now=lambda: now + timedelta(seconds=3.2))
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}, at=now),
        *(ev.ToolOutput(tool_use_id="a", stream="stdout", text=f"{n}\n") for n in range(50_000)),
        scene=scene,
    )
    assert lines(feed) == ["◌ run_code  3.2 s ▸", "  x", "  │ 49997", "  │ 49998", "  │ 49999"]


def test_interrupted_and_unfinished_calls() -> None:
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}),
        ev.ToolFinished(tool_use_id="a", is_error=True, content=(), duration_ms=900, interrupted=True),
        ev.ToolStarted(tool_use_id="b", name=NAME, input={"code": "y"}),
        ev.TextDelta(text="partial"),
        finished(interrupted=True),
    )
    shown = lines(feed)
    assert shown[0] == "⊘ run_code  0.90 s  interrupted ▸"
    assert any(line.startswith("⊘ run_code  interrupted") for line in shown)
    assert "partial" in shown
    assert shown[-1] == "! Interrupted."


def test_a_picture_without_a_name_is_numbered() -> None:
    """The journal names files by their digest, which would fill the caption with noise."""
    images = tuple(ev.ImageContent(f"/x/{digit * 64}.png", "image/png", 120, 80) for digit in "ab")
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "plt.show()"}),
        ev.ToolFinished(tool_use_id="a", is_error=False, content=images, duration_ms=3),
    )
    names = [block.name for block in feed.blocks if isinstance(block, PictureBlock)]
    assert names == ["picture 1", "picture 2"]


def test_pictures_stand_below_their_card() -> None:
    image = ev.ImageContent("/tmp/sine.png", "image/png", 1200, 800)
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}),
        ev.ToolFinished(tool_use_id="a", is_error=False, content=(image,), duration_ms=3),
    )
    assert feed.blocks[1].tool_use_id == "a"
    assert lines(feed)[-1] == "[picture: sine.png, 1200×800, /tmp/sine.png]"
    action = feed.blocks[1].action(0)
    assert action is not None
    assert (action.kind, action.path) == ("picture", "/tmp/sine.png")


@pytest.mark.parametrize(
    ("event", "end"),
    [
        (
            finished(is_error=True, error="The token was refused. Check ANTHROPIC_AUTH_TOKEN."),
            "✗ The token was refused.",
        ),
        (finished(subtype="error_max_turns", is_error=True), "! Stopped after 1 steps"),
        (finished(), ""),
    ],
)
def test_the_end_of_a_turn(event: ev.TurnFinished, end: str) -> None:
    shown = lines(play(event), 100)
    assert (shown[-1] if shown else "").startswith(end)
    assert bool(shown) == bool(end)


def test_two_tools_at_once_each_on_its_own_card() -> None:
    feed = play(
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "slow"}),
        ev.ToolStarted(tool_use_id="b", name=NAME, input={"code": "quick"}),
        ev.ToolFinished(tool_use_id="b", is_error=False, content=(), duration_ms=1),
    )
    assert [card.status for card in feed.cards.values()] == ["running", "ok"]


def test_results_without_a_call_and_unknown_events_are_ignored() -> None:
    feed = play(
        ev.ToolFinished(tool_use_id="z", is_error=False, content=(), duration_ms=1),
        ev.ToolOutput(tool_use_id="z", stream="stdout", text="x"),
        ev.Status(component="agent", state="ready"),
        ev.SessionFinished(),
    )
    assert feed.blocks == []


def test_changed_blocks_are_told_once() -> None:
    feed = play(ev.TurnStarted(turn_id="1", prompt="a"), ev.TextDelta(text="x"))
    assert feed.take_changed() == {0, 1}
    feed.apply(ev.TextDelta(text="y"))
    assert feed.take_changed() == {1}
    assert feed.take_changed() == set()


@pytest.mark.parametrize("hostile", ["[/", "[bold]x", "-x-][/dim]", "[@click=app.quit]x[/]"])
def test_hostile_text_everywhere_is_shown_to_the_letter(hostile: str) -> None:
    feed = play(
        ev.TurnStarted(turn_id="1", prompt=hostile),
        ev.ThinkingDelta(text=hostile),
        ev.ToolStarted(tool_use_id="a", name=hostile, input={"code": hostile, "path": hostile}),
        ev.ToolFinished(tool_use_id="a", is_error=True, content=(ev.TextContent(hostile),), duration_ms=3),
        ev.Notice(level="warning", text=hostile),
    )
    for block in feed.blocks:
        assert hostile in "\n".join(row.text for row in block.rows(80)), block.kind
        for row in block.rows(80):
            assert all(not segment.style.meta for segment in row if segment.style)


def test_escapes_hidden_in_json_do_not_reach_the_screen() -> None:
    draft = '{"code": "print(\\"\\u001b[2J\\u202e\\ud83d'
    feed = play(ev.ToolInputDelta(tool_use_id="a", name=NAME, text=draft))
    shown = "\n".join(lines(feed))
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    shown.encode()
    card = play(ev.ToolStarted(tool_use_id="a", name="\x1b]0;x\x07", input={"path": "\x1b[2J\x9b"})).blocks[0]
    assert not {"\x1b", "\x9b", "\x07"} & set("".join(row.text for row in card.rows(60)))


def test_sections() -> None:
    assert sections(ev.TextContent("free text")) == [("", "free text")]
    assert sections(ev.TextContent("[success] True\n[stdout]\na\n\n[b]\n[result]\n5")) == [
        ("success", "True"), ("stdout", "a\n\n[b]"), ("result", "5"),
    ]  # fmt: skip


def test_estimates_need_no_drawing_and_are_not_absurd() -> None:
    feed = play(
        ev.TurnStarted(turn_id="1", prompt="word " * 100),
        ev.Text(text="- item\n" * 50),
        ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x\ny"}),
    )
    for block in feed.blocks:
        guess = block.estimate(60)
        assert 0.4 * guess <= block.height(60) <= 2.5 * guess


def test_rows_are_kept_until_something_changes() -> None:
    feed = play(ev.Text(text="some text"), ev.ToolStarted(tool_use_id="a", name=NAME, input={"code": "x"}))
    answer, card = feed.blocks
    assert answer.rows(60)[0] is answer.rows(60)[0]
    assert answer.rows(60)[0] is not answer.rows(50)[0]
    assert isinstance(card, ToolCard)
    before = card.rows(60)
    feed.scene.tick += 1
    assert card.rows(60) is not before


def test_thinking_is_named_in_the_language_that_is_set() -> None:
    feed = Feed(Scene(motion=False))
    feed.apply(ev.ThinkingDelta(text="先想一想，再画图"))
    use("zh")
    try:
        assert lines(feed) == ["▸ 正在思考  先想一想，再画图"]
        assert all(strip.cell_length == 20 for block in feed.blocks for strip in block.rows(20))
        feed.apply(ev.Text(text="x"))
        feed.blocks[0].touch()
        assert lines(feed)[0] == "▸ 思考  先想一想，再画图"
    finally:
        use("en")
