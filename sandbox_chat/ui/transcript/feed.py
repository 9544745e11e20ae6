"""Events → blocks. Pure: no terminal, no time of its own. The same for a live and a replayed session."""

from __future__ import annotations

from sandbox_chat import events as ev
from sandbox_chat import failures, questions
from sandbox_chat.plain import attached_text, progress_text
from sandbox_chat.text import clean_line
from sandbox_chat.ui.pictures.alternative import image_name
from sandbox_chat.words import tr

from .answer import AnswerBlock
from .blocks import Block, NoticeBlock, PromptBlock, ThinkingBlock
from .card import Status, ToolCard
from .picture_block import PictureBlock
from .scene import Scene


class Feed:
    """Builds the list of blocks. ``blocks`` only grows; a withdrawn block is hidden, not removed.

    ``changed`` holds the indices of blocks that changed since it was last taken.
    """

    def __init__(self, scene: Scene | None = None, *, prefix: str = "") -> None:
        """``prefix`` begins the ids of the blocks, so that those of two feeds can be put together."""
        self.scene = scene or Scene()
        self.blocks: list[Block] = []
        self.changed: set[int] = set()
        self.cards: dict[str, ToolCard] = {}
        self._open: dict[str, ToolCard] = {}  # those of them that may not have ended
        self._index: dict[str, int] = {}
        self._answer: AnswerBlock | None = None
        self._thinking: ThinkingBlock | None = None
        self._retry: NoticeBlock | None = None
        self._in_turn = False
        self._questions: dict[str, ev.ApprovalRequested] = {}
        self._prefix = prefix
        self._count = 0
        self._pictures = 0
        self._numbered: list[tuple[PictureBlock, int]] = []  # pictures whose name is their number
        self._place: NoticeBlock | None = None  # stands where older blocks will be
        self.strays: list[ev.Event] = []
        """While older events are awaited: those of calls and questions that began in them."""
        self._by_path: dict[str, list[PictureBlock]] = {}

    def take_changed(self) -> set[int]:
        """Return the changed indices and forget them."""
        changed, self.changed = self.changed, set()
        return changed

    def index(self, block: Block) -> int:
        """Return the place of a block."""
        return self._index[block.id]

    def apply(self, event: ev.Event) -> None:
        """Take one event. Unknown ones and those that show nothing here are ignored."""
        match event:
            case ev.TextDelta():
                self._text_delta(event.text)
            case ev.ThinkingDelta():
                self._thinking_delta(event.text)
            case ev.Text():
                self._text(event.text)
            case ev.ToolInputDelta():
                self._tool_input(event)
            case ev.ToolStarted():
                self._tool_started(event)
            case ev.ToolOutput():
                card = self._card_of(event, event.tool_use_id)
                if card is not None:
                    card.output(
                        event.stream, event.text, late=event.late, rewind=event.rewind, styles=event.styles
                    )
                    self._mark(card)
            case ev.NestedStarted() | ev.NestedFinished():
                card = self._card_of(event, event.tool_use_id)
                if card is not None:
                    card.call(event)
                    self._mark(card)
            case ev.Progress():
                card = self.cards.get(event.subject)
                if card is not None:
                    card.progress("" if event.over else progress_text(event))
                    self._mark(card)
            case ev.ApprovalRequested():
                self._asked(event)
            case ev.ApprovalAnswered():
                self._answered(event)
            case ev.Attached():
                level: ev.NoticeLevel = "error" if event.error else "info"
                self._add(NoticeBlock(self.scene, self._new_id("attached"), level, attached_text(event)))
            case ev.ToolFinished():
                self._tool_finished(event)
            case ev.TurnStarted():
                self._close_open()
                self._in_turn = True
                self._add(PromptBlock(self.scene, self._new_id("prompt"), event.prompt))
            case ev.Steered():
                self._add(PromptBlock(self.scene, self._new_id("prompt"), event.prompt))
            case ev.Cleared():
                self._add(NoticeBlock(self.scene, self._new_id("cleared"), "info", tr("notices.cleared")))
            case ev.Compacted():
                self._compacted(event)
            case ev.TurnFinished():
                self._turn_finished(event)
            case ev.Retry():
                self._retried(event)
            case ev.Notice():
                self._add(NoticeBlock(self.scene, self._new_id("notice"), event.level, failures.shown(event)))
            case ev.SessionStarted() | ev.SessionFinished():
                self._settle()
            case _:
                pass

    # -- the list --------------------------------------------------------------------------------------

    def _new_id(self, kind: str) -> str:
        self._count += 1
        return f"{self._prefix}{kind}-{self._count}"

    def _add(self, block: Block) -> None:
        block.first = not self.blocks
        self._index[block.id] = len(self.blocks)
        self.changed.add(len(self.blocks))
        self.blocks.append(block)

    def _mark(self, block: Block) -> None:
        self.changed.add(self._index[block.id])

    # -- what is older ------------------------------------------------------------------------------------

    def await_older(self, words: str) -> None:
        """Events before the first one come later (see ``prepend``); until then ``words`` stand in their place."""
        if self._place is None and not self.blocks:
            self._place = NoticeBlock(self.scene, self._new_id("older"), "info", words)
            self._add(self._place)

    def older_lost(self, words: str) -> None:
        """What is older does not come: ``words`` say why."""
        if self._place is not None:
            self._place.replace(words)
            self._mark(self._place)
            self._place = None
            self.strays = []

    def end_older(self) -> None:
        """The last of the events that are older was taken: nothing of them is open."""
        self._close_open()
        self._stop_cards()
        self.changed.clear()

    def prepend(self, older: Feed) -> int:
        """Put the blocks of ``older`` before all others; return how many they are. It is not to be used again."""
        count = len(older.blocks)
        self.blocks[:0] = older.blocks
        for block_id, place in self._index.items():
            older._index[block_id] = place + count
        self._index = older._index
        older.cards.update(self.cards)
        self.cards = older.cards
        for path, pictures in self._by_path.items():
            older._by_path.setdefault(path, []).extend(pictures)
        self._by_path = older._by_path
        self.changed = {place + count for place in self.changed}
        for picture, number in self._numbered:
            picture.name = _numbered(number + older._pictures)
            picture.touch()
            self._mark(picture)
        self._numbered = [*older._numbered, *((p, n + older._pictures) for p, n in self._numbered)]
        self._pictures += older._pictures
        if self._place is not None:
            self._place.hide()
            self._mark(self._place)
            self._place = None
        self.strays = []
        return count

    # -- text ------------------------------------------------------------------------------------------

    def _text_delta(self, text: str) -> None:
        self._end_thinking()
        self._retry = None
        if self._answer is None:
            if not text.strip():
                return  # nothing to show yet; the whole block comes with ``text``
            self._answer = AnswerBlock(self.scene, self._new_id("answer"))
            self._add(self._answer)
        self._answer.append(text)
        self._mark(self._answer)

    def _text(self, text: str) -> None:
        self._end_thinking()
        self._retry = None
        if self._answer is not None:
            self._answer.finish(text)
            self._mark(self._answer)
            self._answer = None
        elif text.strip():
            self._add(AnswerBlock(self.scene, self._new_id("answer"), text, finished=True))

    def _thinking_delta(self, text: str) -> None:
        if self._thinking is None:
            if not text.strip():
                return
            self._thinking = ThinkingBlock(self.scene, self._new_id("thinking"))
            self._add(self._thinking)
        self._thinking.append(text)
        self._mark(self._thinking)

    def _end_thinking(self) -> None:
        if self._thinking is not None:
            self._thinking.finish()
            self._mark(self._thinking)
            self._thinking = None

    def _end_answer(self) -> None:
        if self._answer is not None:
            self._answer.finish()
            self._mark(self._answer)
            self._answer = None

    def _close_open(self) -> None:
        self._end_thinking()
        self._end_answer()
        self._retry = None

    # -- tools -----------------------------------------------------------------------------------------

    def _card(self, tool_use_id: str, name: str) -> ToolCard:
        card = self.cards.get(tool_use_id)
        if card is None:
            card = self.cards[tool_use_id] = self._open[tool_use_id] = ToolCard(
                self.scene, tool_use_id, clean_line(name)
            )
            self._add(card)
        return card

    def _tool_input(self, event: ev.ToolInputDelta) -> None:
        self._end_thinking()
        self._retry = None
        card = self._card(event.tool_use_id, event.name)
        if card.status == "writing":
            card.write(event.text)
            self._mark(card)

    def _tool_started(self, event: ev.ToolStarted) -> None:
        self._close_open()
        card = self._card(event.tool_use_id, event.name)
        card.start(event.input, event.at)
        self._mark(card)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        card = self._card_of(event, event.tool_use_id)
        if card is None:
            return  # a result whose call was never seen: nothing to attach it to
        status: Status = "interrupted" if event.interrupted else "failed" if event.is_error else "ok"
        card.finish(status, event.content, event.duration_ms)
        self._mark(card)
        given = str(card.input.get("path", "")) if "code" not in card.input else ""
        for part in event.content:
            if isinstance(part, ev.ImageContent):
                self._pictures += 1
                name = clean_line(given) or clean_line(image_name(part.path))
                picture = PictureBlock(
                    self.scene, self._new_id("picture"), part, name or _numbered(self._pictures)
                )
                if not name:
                    self._numbered.append((picture, self._pictures))
                picture.tool_use_id = event.tool_use_id
                self._by_path.setdefault(part.path, []).append(picture)
                self._add(picture)

    def _asked(self, event: ev.ApprovalRequested) -> None:
        asked = self._questions[event.approval_id] = questions.shown(event)
        card = self.cards.get(event.tool_use_id)
        if card is not None:
            card.ask(event.approval_id, asked.question)
            self._mark(card)

    def _answered(self, event: ev.ApprovalAnswered) -> None:
        asked = self._questions.pop(event.approval_id, None)
        if asked is None:
            self._stray(event)
            return
        words = questions.answered(asked, event)
        card = self.cards.get(asked.tool_use_id)
        if card is not None:
            card.answer(event.approval_id, words)
            self._mark(card)
        else:
            text = tr("notices.answered", question=asked.question, answer=words)
            self._add(NoticeBlock(self.scene, self._new_id("asked"), "info", text))

    def picture_changed(self, path: str) -> None:
        """The picture at ``path`` can be drawn now, or never will: its blocks may have another height."""
        for block in self._by_path.get(path, ()):
            self._mark(block)

    def _card_of(self, event: ev.Event, tool_use_id: str) -> ToolCard | None:
        """Return the card of a call; an event of one that is not there may belong to what is older."""
        card = self.cards.get(tool_use_id)
        if card is None:
            self._stray(event)
        return card

    def _stray(self, event: ev.Event) -> None:
        if self._place is not None:
            self.strays.append(event)

    def _stop_cards(self) -> None:
        for card in self._open.values():
            if card.status in ("writing", "running"):
                card.stop()
                self._mark(card)
        self._open.clear()

    # -- turns -----------------------------------------------------------------------------------------

    def _retried(self, event: ev.Retry) -> None:
        for block in (self._answer, self._thinking):
            if block is not None:
                block.hide()
                self._mark(block)
        self._answer = self._thinking = None
        for tool_use_id, card in list(self._open.items()):
            if card.status == "writing":
                card.hide()
                self._mark(card)
                del self.cards[tool_use_id], self._open[tool_use_id]
                # The id may come again: the hidden block must not stand in its way.
                card.id = self._rename(card.id)
        reason = failures.shown(event).rstrip(".")
        reason = f"{reason[:1].upper()}{reason[1:]}"
        seconds = f"{event.delay_ms / 1000:.0f}"
        key = "notices.again_in" if event.delay_ms >= 1000 else "notices.again"
        text = tr(key, reason=reason, seconds=seconds, attempt=event.attempt)
        if self._retry is not None:
            self._retry.replace(text)
            self._mark(self._retry)
        else:
            self._retry = NoticeBlock(self.scene, self._new_id("retry"), "warning", text)
            self._add(self._retry)

    def _rename(self, block_id: str) -> str:
        name = self._new_id(block_id)
        self._index[name] = self._index.pop(block_id)
        return name

    def _compacted(self, event: ev.Compacted) -> None:
        tokens = ""
        if event.before and event.after:
            tokens = tr("notices.compacted_tokens", before=f"{event.before:,}", after=f"{event.after:,}")
        key = "notices.compacted_by_itself" if event.automatic else "notices.compacted"
        self._add(NoticeBlock(self.scene, self._new_id("compacted"), "info", tr(key, tokens=tokens)))

    def _settle(self) -> None:
        """End what an earlier run of the program left open: it was killed, nothing of it goes on."""
        self._questions.clear()
        self._close_open()
        self._stop_cards()
        if self._in_turn:
            self._in_turn = False
            self._add(NoticeBlock(self.scene, self._new_id("end"), "warning", tr("notices.cut_off")))

    @property
    def _in_part(self) -> bool:
        """True when something of an answer stands after the last prompt."""
        for block in reversed(self.blocks):
            if isinstance(block, PromptBlock):
                break
            if block.visible and isinstance(block, AnswerBlock | ToolCard):
                return True
        return False

    def _turn_finished(self, event: ev.TurnFinished) -> None:
        self._close_open()
        self._stop_cards()
        self._in_turn = False
        if event.interrupted:
            self._add(NoticeBlock(self.scene, self._new_id("end"), "warning", tr("notices.interrupted")))
        elif event.subtype == "error_max_turns":
            text = failures.shown(event) or tr("notices.stopped", steps=event.num_turns)
            self._add(NoticeBlock(self.scene, self._new_id("end"), "warning", text))
        elif event.is_error:
            text = failures.shown(event) or tr("notices.failed", kind=event.subtype)
            if self._in_part:
                text = f"{text}\n{tr('failures.in_part')}"
            self._add(NoticeBlock(self.scene, self._new_id("end"), "error", text))


def _numbered(number: int) -> str:
    """Return what a picture without a name of its own is called: a digest says nothing to anybody."""
    return f"picture {number}"
