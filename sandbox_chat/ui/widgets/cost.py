"""The cost pane: this turn, the session, the budget, tokens, context, and each model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sandbox_chat.events import ModelUse, Usage
from sandbox_chat.plain import NOT_AVAILABLE, cost_text, whole_percent
from sandbox_chat.ui import formats
from sandbox_chat.ui.calls import Turn
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.header import Header
from sandbox_chat.words import tr, tr_count

LABEL = 11
BAR = 14
SPARKLINE = 48
"""Turns whose costs are drawn at most."""
TABLE = 72
"""Cells from which on the models stand in a table, one a row."""
NEAR, OVER = 0.8, 1.0
"""Shares of the budget at which its bar warns, and says that it is used up."""

Row = list[tuple[str, str]]


def _cost(usd: float | None, demo: bool) -> Row:
    if demo:
        return [(tr("cost.demo"), "")]
    if usd is None:
        return [(NOT_AVAILABLE, "bold"), (tr("cost.unknown"), "$muted")]
    return [(cost_text(usd), "bold")]


def _turn_cost(turn: Turn | None, state: ChatState) -> Row:
    if turn is None:
        return [(tr("cost.nothing"), "$muted")]
    return _cost(turn.cost_usd, state.demo)


def _label(word: str) -> tuple[str, str]:
    word = formats.fit(word, LABEL - 1)
    return word + " " * (LABEL - cell_len(word)), "$muted"


def _tokens(usage: Usage) -> Row:
    return [
        (formats.tokens(usage.input), ""),
        (f" {tr('cost.in')}  ", "$muted"),
        (formats.tokens(usage.output), ""),
        (f" {tr('cost.out')}", "$muted"),
    ]


def _cache(usage: Usage) -> Row:
    return [
        (formats.tokens(usage.cache_read), ""),
        (f" {tr('cost.read')}  ", "$muted"),
        (formats.tokens(usage.cache_creation), ""),
        (f" {tr('cost.written')}", "$muted"),
    ]


def cost_lines(state: ChatState, width: int, limit: float = 0.0) -> list[Content]:
    """Return the lines of the pane, none wider than ``width`` cells. ``limit`` is the budget in dollars, 0: none."""
    sums = _waiting_rows() if state.partial else _session_rows(state, width, limit)
    rows = [*_turn_rows(state), *sums]
    if not state.demo and state.models:
        rows += _table(state.models, width) if width >= TABLE else _list(state.models, width)
    return [_fitted(Content.assemble(*row), width) for row in rows]


def _turn_rows(state: ChatState) -> Iterator[Row]:
    turn = state.last_turn
    running = state.turn is not None
    yield [_label(tr("cost.last_turn" if running else "cost.this_turn")), *_turn_cost(turn, state)]
    if turn is not None and turn.used_tokens:
        yield [_label(""), *_tokens(turn.usage)]


def _waiting_rows() -> Iterator[Row]:
    """The sums are not known before the earlier turns are there."""
    yield [_label(tr("cost.session")), (tr("opening.sums"), "$muted")]


def _session_rows(state: ChatState, width: int, limit: float) -> Iterator[Row]:
    known, unknown = state.cost
    usage = state.usage
    ended = [t for t in state.turns if t.ended]
    if not ended:
        session: Row = [(tr("cost.nothing"), "$muted")]
    elif state.demo:
        session = [(tr("cost.demo"), "")]
    elif unknown and known == 0:
        session = _cost(None, False)
    else:
        session = _cost(known, False)
        if unknown:
            session.append((f" + {tr_count('cost.unknown_turns', unknown)}", "$muted"))
    yield [_label(tr("cost.session")), *session]
    if limit > 0 and not state.demo:
        yield [_label(tr("budget.row")), *_budget(known, limit, width)]
    yield [_label(tr("cost.tokens")), *_tokens(usage)]
    if usage.cache_read or usage.cache_creation:
        yield [_label(tr("cost.cache")), *_cache(usage)]
    count = str(len(ended))
    turns: Row = [_label(tr("cost.turns")), (count, "")]
    if len(ended) > 1 and not state.demo:
        room = min(SPARKLINE, width - LABEL - len(count) - 2)
        turns += [("  ", ""), *_sparkline([t.cost_usd for t in ended], room)]
    yield turns
    yield [_label(tr("cost.context")), *_context(state, width)]


def _sparkline(costs: list[float | None], room: int) -> Row:
    """Return the costs of the last turns as blocks; a sign of its own where one is not known."""
    if room <= 0 or not any(costs):
        return []
    costs = costs[-room:]
    signs = formats.sparkline([cost or 0.0 for cost in costs], room)
    return [
        (glyph("unknown"), "$muted") if cost is None else (sign, "$primary")
        for cost, sign in zip(costs, signs, strict=True)
    ]


def _budget(known: float, limit: float, width: int) -> Row:
    share = known / limit
    colour = "$error" if share >= OVER else "$warning" if share >= NEAR else "$primary"
    percent = " <1 %" if 0 < share < 0.01 else f" {whole_percent(share)} %"
    whole = tr("cost.of", limit=cost_text(limit))
    # In millionths of a dollar: a bar counts whole things.
    room = max(4, min(BAR, width - LABEL - cell_len(percent) - cell_len(whole)))
    full, empty = formats.bar(round(known * 1e6), max(1, round(limit * 1e6)), room)
    return [
        (full, colour),
        (empty, "$faint"),
        (percent, "" if share < NEAR else colour),
        (whole, "$muted"),
    ]


def _context(state: ChatState, width: int) -> Row:
    used, limit = state.context.used, state.context.max
    if limit <= 0:
        text = tr("cost.used", tokens=formats.tokens(used)) if used else tr("cost.context_unknown")
        return [(text, "" if used else "$muted")]
    colour = "$error" if used > 0.9 * limit else "$warning" if used > 0.7 * limit else "$primary"
    full, empty = formats.bar(used, limit, max(4, min(BAR, width - LABEL - 16)))
    return [
        (full, colour),
        (empty, "$faint"),
        (f" {formats.percent(used, limit) or '0 %'}", ""),
        (tr("cost.of", limit=formats.tokens(limit)), "$muted"),
    ]


# -- models ----------------------------------------------------------------------------------------------


def _model_cost(use: ModelUse) -> str:
    """Return the cost of a model; what is known of it and that there is more, where not all is."""
    if use.complete or use.cost_usd is None:
        return cost_text(use.cost_usd)
    return f"{cost_text(use.cost_usd)} + {NOT_AVAILABLE}"


def _list(models: tuple[ModelUse, ...], width: int) -> Iterator[Row]:
    """Yield each model as a few short rows."""
    for use in models:
        cost = _cost(None, False) if use.cost_usd is None else [(_model_cost(use), "bold")]
        room = width - 2 - sum(cell_len(text) for text, _ in cost)
        yield [(formats.fit(use.model, max(8, room)), "$muted"), ("  ", ""), *cost]
        yield [("  ", ""), *_tokens(use.usage)]
        if use.usage.cache_read or use.usage.cache_creation:
            yield [("  ", ""), *_cache(use.usage)]


def _table(models: tuple[ModelUse, ...], width: int) -> Iterator[Row]:
    """Yield the models as a table: what each cost, and its tokens."""
    heads = ["cost.cost", "cost.in", "cost.out", "cost.cache_read", "cost.cache_written"]
    cells = [[tr("cost.model"), *map(tr, heads)]]
    for use in models:
        usage = use.usage
        counts = (usage.input, usage.output, usage.cache_read, usage.cache_creation)
        cells.append([use.model, _model_cost(use), *map(formats.tokens, counts)])
    widths = [max(cell_len(row[column]) for row in cells) for column in range(1, 6)]
    room = max(8, width - sum(widths) - 2 * len(widths))
    first = min(room, max(cell_len(row[0]) for row in cells))
    yield [("", "")]
    for number, (name, *rest) in enumerate(cells):
        shown = formats.fit(name, first)
        row: Row = [(shown + " " * (first - cell_len(shown)), "$muted")]
        for column, (cell, wide) in enumerate(zip(rest, widths, strict=True)):
            style = "$muted" if number == 0 else "bold" if column == 0 else ""
            row.append(("  " + " " * (wide - cell_len(cell)) + cell, style))
        yield row


def _fitted(line: Content, width: int) -> Content:
    return line if line.cell_length <= width else line.truncate(width, ellipsis=True)


class CostPane(Vertical):
    """What the chat costs. ``limit`` tells the budget. ``update_state`` draws it again when a turn has ended."""

    DEFAULT_CSS = """
    CostPane { height: auto; max-height: 50%; padding: 0 1; background: $background; overflow-y: auto; scrollbar-size-vertical: 1; }
    CostPane Static { width: 1fr; height: auto; }
    """

    def __init__(
        self, state: ChatState, limit: Callable[[], float] = lambda: 0.0, *, id: str | None = None
    ) -> None:
        super().__init__(id=id)
        self.state = state
        self._limit = limit
        self._drawn: list[Content] | None = None

    def compose(self) -> ComposeResult:
        """Lay out title and body."""
        yield Header(tr("cost.title"))
        yield Static(id="cost-body")

    def on_resize(self) -> None:
        """Draw again: lines are cut to the width."""
        self.update_state()

    def update_state(self) -> None:
        """Draw the pane again if anything in it changed."""
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        lines = cost_lines(self.state, width, self._limit())
        if self._drawn is None or [x.plain for x in lines] != [x.plain for x in self._drawn]:
            self._drawn = lines
            self.query_one("#cost-body", Static).update(Content("\n").join(lines))
