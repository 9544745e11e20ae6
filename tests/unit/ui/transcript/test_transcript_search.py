"""Searching in the transcript's texts."""

from __future__ import annotations

import pytest

from sandbox_chat import events as ev
from sandbox_chat.ui.transcript import Feed
from sandbox_chat.ui.transcript.marks import Hit
from sandbox_chat.ui.transcript.search import MOST_HITS, nearest, pattern_of, search, snapshot


def play(*events: ev.Event) -> Feed:
    feed = Feed()
    for event in events:
        feed.apply(event)
    return feed


def found(feed: Feed, query: str) -> list[str]:
    hits, _ = search(snapshot(feed.blocks), query)
    return [feed.blocks[hit.block].plain(hit.part)[hit.start : hit.end] for hit in hits]


def test_small_letters_find_capitals_and_capitals_only_themselves() -> None:
    feed = play(ev.TurnStarted(turn_id="1", prompt="Word word WORD"))
    assert found(feed, "word") == ["Word", "word", "WORD"]
    assert found(feed, "Word") == ["Word"]
    assert found(feed, "w") == ["W", "w", "W"]


def test_signs_are_signs() -> None:
    assert pattern_of("a.*(b[").search("xa.*(b[y")
    feed = play(ev.TurnStarted(turn_id="1", prompt="f(x) = [1]"), ev.Text(text="see `a[0]` and *b*_c"))
    assert found(feed, "(x) = [") == ["(x) = ["]
    assert found(feed, "a[0]") == ["a[0]"]


def test_what_is_read_is_found_not_what_is_written() -> None:
    feed = play(ev.Text(text="some **bo**ld words and [a link](https://example.org/needle)\n\n- one\n- two"))
    assert found(feed, "bold words") == ["bold words"]
    assert found(feed, "needle") == []
    assert found(feed, "two") == ["two"]


@pytest.mark.parametrize(
    ("source", "query"),
    [
        ("a [link](http://x.y) here", "a link here"),
        ("see [ref][r] after\n\n[r]: /u", "ref after"),
        ("[*new* li](x(y)z)[ne](/q 'title')s", "lines"),
        ("fish &amp; chips", "fish & chips"),
        ("caf&eacute; &#x4f60;&#22909;", "café 你好"),
        ("a_b = `x_y[1]`", "x_y[1]"),
        ("**&&** ||", "&&"),
    ],
)
def test_marks_targets_and_entities_between_the_letters_hide_nothing(source: str, query: str) -> None:
    assert found(play(ev.Text(text=source)), query) == [query]


def test_hidden_blocks_are_not_searched_and_a_growing_one_is() -> None:
    feed = play(ev.TextDelta(text="first **half"))
    assert found(feed, "half") == ["half"]
    feed.blocks[0].hide()
    assert found(feed, "half") == []


def test_there_is_an_end_to_hits() -> None:
    feed = play(ev.TurnStarted(turn_id="1", prompt="a " * (MOST_HITS + 5)))
    hits, more = search(snapshot(feed.blocks), "a")
    assert len(hits) == MOST_HITS
    assert more


def test_a_search_that_is_not_wanted_any_more_stops() -> None:
    feed = play(*(ev.TurnStarted(turn_id=str(n), prompt="a") for n in range(10)))
    asked: list[int] = []

    def stopped() -> bool:
        asked.append(1)
        return len(asked) > 3

    hits, _ = search(snapshot(feed.blocks), "a", stopped)
    assert len(hits) == 3


def test_the_nearest_is_behind_or_else_the_last() -> None:
    hits = [Hit(1, 0, 4, 5), Hit(3, 2, 0, 1), Hit(3, 2, 9, 10)]
    assert nearest(hits, (0, 0, 0)) == 0
    assert nearest(hits, (3, 2, 1)) == 2
    assert nearest(hits, (9, 0, 0)) == 2
