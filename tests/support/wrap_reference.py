"""The first form of ``wrap``, piece by piece: what the quick ways must equal."""

from __future__ import annotations

import re

from rich.cells import cell_len

from sandbox_chat.ui.transcript.cells import MIN_WIDTH, split_cells, width_of

_CJK = "\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff01-\uff60\U00020000-\U0003ffff"
_CLOSING = "、。，．！？；：）」』】〉》〕…‥々ー,.!?;:)\\]"
_OPENING = "（「『【〈《〔"
_PIECES = re.compile(rf"\n| +|[{_OPENING}]{{0,8}}[{_CJK}][{_CLOSING}]{{0,8}}|[^ \n{_CJK}]+")
_CJK_START = re.compile(rf"[{_OPENING}]{{0,8}}[{_CJK}]")


class _Wrapper:
    def __init__(self, width: int) -> None:
        self.width = max(width, MIN_WIDTH)
        self.rows: list[str] = []
        self.row = ""
        self.used = 0
        self.spaces = ""
        self.word = ""
        self.word_width = 0

    def end_word(self) -> None:
        if not self.word:
            return
        if self.used + len(self.spaces) + self.word_width <= self.width:
            self.row += self.spaces + self.word
            self.used += len(self.spaces) + self.word_width
        elif self.word_width <= self.width:
            self.new_row()
            self.row = self.word
            self.used = self.word_width
        else:
            self.put_long_word()
        self.spaces = self.word = ""
        self.word_width = 0

    def new_row(self) -> None:
        if self.row:
            self.rows.append(self.row)
        self.row, self.used = "", 0

    def put_long_word(self) -> None:
        room = self.width - self.used - len(self.spaces)
        if self.row and room * 3 >= self.width:
            self.row += self.spaces
            self.used += len(self.spaces)
        else:
            self.new_row()
        text = self.word
        while text:
            head, tail = split_cells(text, self.width - self.used)
            if not head and not self.row:
                head, tail = "?", text[1:]
            self.row += head
            self.used += width_of(head)
            text = tail
            if text:
                self.new_row()

    def end_line(self) -> None:
        self.end_word()
        self.rows.append(self.row)
        self.row = self.spaces = ""
        self.used = 0


def wrap_text(text: str, width: int) -> list[str]:
    """Return the rows of ``text``."""
    state = _Wrapper(width)
    for piece in _PIECES.findall(text):
        if piece == "\n":
            state.end_line()
        elif piece[0] == " ":
            state.end_word()
            if state.row:
                state.spaces += piece
                if state.used + len(state.spaces) > state.width:
                    state.spaces = ""
                    state.new_row()
        else:
            cjk = _CJK_START.match(piece) is not None
            if cjk:
                state.end_word()
            state.word += piece
            state.word_width += cell_len(piece)
            if cjk:
                state.end_word()
    state.end_line()
    return state.rows
