"""What stands of output after what was written over was withdrawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.ansi import Piece
from sandbox_chat.kept import Kept


@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.text("xy\n", max_size=6), st.integers(0, 9)), max_size=20)
)
def test_each_stream_is_withdrawn_by_itself(pieces: list[tuple[str, str, int]]) -> None:
    kept, alone = Kept(), {"a": "", "b": ""}
    for stream, text, rewind in pieces:
        kept.add(stream, text, rewind)
        before = alone[stream]
        alone[stream] = before[: max(0, len(before) - rewind)] + text
    for stream, text in alone.items():
        assert "".join(piece.text for name, piece in kept.parts if name == stream) == text


def test_the_order_and_the_colours_stay() -> None:
    kept = Kept()
    kept.add("stdout", "one\ntw", styles=((0, 3, "red"), (4, 6, "bold")))
    kept.add("stderr", "oh\n")
    kept.add("stdout", "TWO\nthr", 2, ((0, 3, "green"),))
    assert kept.text == "one\noh\nTWO\nthr"
    assert kept.take_lines() == [
        Piece("one", 0, ((0, 3, "red"),)),
        Piece("oh"),
        Piece("TWO", 0, ((0, 3, "green"),)),
    ]
    assert kept.text == "thr"
    kept.add("stdout", "", 99)
    assert not kept
    kept.add("stdout", "rest")
    assert kept.take_lines(all_of_it=True) == [Piece("rest")]
    assert kept.take_lines(all_of_it=True) == []
