"""The cost pane: this turn, the session, each model, tokens, context."""

from __future__ import annotations

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from sandbox_chat.events import Usage
from sandbox_chat.plain import NOT_AVAILABLE, cost_text
from sandbox_chat.ui import formats
from sandbox_chat.ui.calls import Turn
from sandbox_chat.ui.state import ChatState
from sandbox_chat.ui.widgets.header import Header
from sandbox_chat.words import tr, tr_count

LABEL = 11
BAR = 14


def _cost(usd: float | None, demo: bool) -> list[tuple[str, str]]:
    if demo:
        return [(tr("cost.demo"), "")]
    if usd is None:
        return [(NOT_AVAILABLE, "bold"), (tr("cost.unknown"), "$muted")]
    return [(cost_text(usd), "bold")]


def _turn_cost(turn: Turn | None, state: ChatState) -> list[tuple[str, str]]:
    if turn is None:
        return [(tr("cost.nothing"), "$muted")]
    if turn.cost_usd is None and not turn.used_tokens:
        return [(tr("cost.demo") if state.demo else cost_text(0.0), "")]
    return _cost(turn.cost_usd, state.demo)


def _label(word: str) -> tuple[str, str]:
    word = formats.fit(word, LABEL - 1)
    return word + " " * (LABEL - cell_len(word)), "$muted"


def _tokens(usage: Usage) -> list[tuple[str, str]]:
    return [
        (formats.tokens(usage.input), ""),
        (f" {tr('cost.in')}  ", "$muted"),
        (formats.tokens(usage.output), ""),
        (f" {tr('cost.out')}", "$muted"),
    ]


def _cache(usage: Usage) -> list[tuple[str, str]]:
    return [
        (formats.tokens(usage.cache_read), ""),
        (f" {tr('cost.read')}  ", "$muted"),
        (formats.tokens(usage.cache_creation), ""),
        (f" {tr('cost.written')}", "$muted"),
    ]


def cost_lines(state: ChatState, width: int) -> list[Content]:
    """Return the lines of the pane, none wider than ``width`` cells."""
    rows: list[list[tuple[str, str]]] = []
    turn = state.last_turn
    running = state.turn is not None
    rows.append(
        [_label(tr("cost.last_turn" if running else "cost.this_turn")), *_turn_cost(turn, state)],
    )
    if turn is not None and turn.used_tokens:
        rows.append([_label(""), *_tokens(turn.usage)])
    known, unknown = state.cost
    usage = state.usage
    ended = [t for t in state.turns if t.ended]
    if not ended:
        session: list[tuple[str, str]] = [(tr("cost.nothing"), "$muted")]
    elif state.demo:
        session = [(tr("cost.demo"), "")]
    elif unknown and known == 0:
        session = _cost(None, False)
    else:
        session = _cost(known, False)
        if unknown:
            session.append((f" + {tr_count('cost.unknown_turns', unknown)}", "$muted"))
    rows.append([_label(tr("cost.session")), *session])
    rows.append([_label(tr("cost.tokens")), *_tokens(usage)])
    if usage.cache_read or usage.cache_creation:
        rows.append([_label(tr("cost.cache")), *_cache(usage)])
    turns: list[tuple[str, str]] = [_label(tr("cost.turns")), (str(len(ended)), "")]
    costs = [t.cost_usd or 0.0 for t in ended]
    if len(ended) > 1 and any(costs):
        turns.append((f"  {formats.sparkline(costs, 16)}", "$primary"))
    rows.append(turns)
    rows.append([_label(tr("cost.context")), *_context(state, width)])
    if not state.demo:
        for model in state.models:
            name = formats.fit(model.model, max(8, width - 14))
            rows.append([(name, "$muted"), ("  ", ""), *_cost(model.cost_usd, False)])
            rows.append([("  ", ""), *_tokens(model.usage)])
    return [_fitted(Content.assemble(*row), width) for row in rows]


def _context(state: ChatState, width: int) -> list[tuple[str, str]]:
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


def _fitted(line: Content, width: int) -> Content:
    return line if line.cell_length <= width else line.truncate(width, ellipsis=True)


class CostPane(Vertical):
    """What the chat costs. ``update_state`` draws it again when a turn has ended."""

    DEFAULT_CSS = """
    CostPane { height: auto; max-height: 50%; padding: 0 1; background: $background; overflow-y: auto; scrollbar-size-vertical: 1; }
    CostPane Static { width: 1fr; height: auto; }
    """

    def __init__(self, state: ChatState, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = state
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
        lines = cost_lines(self.state, width)
        if self._drawn is None or [x.plain for x in lines] != [x.plain for x in self._drawn]:
            self._drawn = lines
            self.query_one("#cost-body", Static).update(Content("\n").join(lines))
