"""The first screen when no model is configured: where should answers come from?"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Checkbox, Input, Static

from sandbox_chat.settings import ConfigError, Settings, fields
from sandbox_chat.text import clean, clean_line
from sandbox_chat.ui.actions import bindings_of, key_of
from sandbox_chat.ui.config_file import remember
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.ui.widgets.entry import Entry
from sandbox_chat.words import tr


@dataclass(frozen=True, slots=True)
class Field:
    """A value to be entered. ``name`` is the setting; an empty optional one is left as it is.

    Its label and what stands in the empty box are texts of ``words/welcome.py``.
    """

    name: str
    label: str
    hint: str = ""
    secret: bool = False
    optional: bool = False
    value: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """A source of answers; ``id`` names its texts."""

    id: str
    fields: tuple[Field, ...] = ()

    @property
    def title(self) -> str:
        """Its name for people."""
        return tr(f"welcome.{self.id}")

    @property
    def words(self) -> str:
        """A few words about it."""
        return tr(f"welcome.{self.id}_words")


CHOICES = (
    Choice("demo"),
    Choice(
        "key",
        (
            Field("anthropic_api_key", "welcome.label_key", "welcome.hint_key", secret=True),
            Field("model", "welcome.label_model", "welcome.hint_default", optional=True),
        ),
    ),
    Choice(
        "gateway",
        (
            Field("anthropic_base_url", "welcome.label_url", "welcome.hint_url"),
            Field("anthropic_auth_token", "welcome.label_token", secret=True, optional=True),
            Field("model", "welcome.label_model", "welcome.hint_default", optional=True),
        ),
    ),
    Choice(
        "local",
        (
            Field("anthropic_base_url", "welcome.label_url", value="http://127.0.0.1:11434"),
            Field("model", "welcome.label_model", "welcome.hint_local"),
        ),
    ),
)


def check(choice: Choice, values: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the values that hold, and a sentence for each that does not, both by setting name."""
    readers = {item.name: item.metadata["read"] for item in fields()}
    good: dict[str, str] = {}
    bad: dict[str, str] = {}
    for item in choice.fields:
        value = values.get(item.name, "").strip()
        if not value:
            if not item.optional:
                bad[item.name] = tr("welcome.needed", label=tr(item.label))
            continue
        if item.secret and (not value.isascii() or any(c.isspace() or not c.isprintable() for c in value)):
            bad[item.name] = tr("welcome.not_plain", label=tr(item.label))
            continue
        try:
            readers[item.name](value)
        except ValueError:
            wrong = "welcome.not_url" if item.name == "anthropic_base_url" else "welcome.not_plain"
            bad[item.name] = tr(wrong, label=tr(item.label))
            continue
        good[item.name] = value
    return good, bad


def apply(settings: Settings, choice: Choice, values: dict[str, str]) -> Settings:
    """Return ``settings`` with the values of a choice, which have been checked."""
    if choice.id == "demo":
        return dataclasses.replace(settings, demo=True)
    readers = {item.name: item.metadata["read"] for item in fields()}
    read = {name: readers[name](value) for name, value in values.items()}
    return dataclasses.replace(settings, demo=False, **read)


class Choices(Widget, can_focus=True):
    """The list of choices, one row each."""

    DEFAULT_CSS = """
    Choices { height: 4; width: 1fr; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("choices")]

    class Moved(Message):
        """Another choice is marked."""

    class Taken(Message):
        """The marked choice is taken."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.index = 0

    @property
    def choice(self) -> Choice:
        """The marked choice."""
        return CHOICES[self.index]

    def render(self) -> Content:
        """Draw the rows."""
        rows = []
        column = max(cell_len(choice.title) for choice in CHOICES) + 2
        for number, choice in enumerate(CHOICES):
            chosen = number == self.index
            mark = f"{glyph('chosen')} " if chosen else "  "
            rows.append(
                Content.assemble(
                    (f"{mark}{number + 1}  ", "$primary" if chosen else "$muted"),
                    (
                        choice.title + " " * (column - cell_len(choice.title)),
                        "bold $primary" if chosen else "",
                    ),
                    (choice.words, "$muted"),
                ).truncate(max(10, self.content_size.width), ellipsis=True)
            )
        return Content("\n").join(rows)

    def move(self, index: int) -> None:
        """Mark a choice."""
        if index != self.index:
            self.index = index
            self.refresh()
            self.post_message(self.Moved())

    def action_step(self, by: int) -> None:
        """Mark the next choice, or the one before."""
        self.move((self.index + by) % len(CHOICES))

    def action_take(self) -> None:
        """Take the marked choice."""
        self.post_message(self.Taken())

    def on_key(self, event: events.Key) -> None:
        """A digit marks a choice and takes it."""
        if event.character and event.character in "1234":
            event.stop()
            self.move(int(event.character) - 1)
            self.action_take()

    def on_click(self, event: events.Click) -> None:
        """A click marks a choice and takes it."""
        offset = event.get_content_offset(self)
        if offset is not None and 0 <= offset.y < len(CHOICES):
            event.stop()
            self.move(offset.y)
            self.action_take()


class Tick(Checkbox):
    """A checkbox whose sign, and not only its colour, says whether it is ticked."""

    BUTTON_INNER = " "

    def on_mount(self) -> None:
        """Take the sides in the signs that are in use."""
        self.BUTTON_LEFT, self.BUTTON_RIGHT = glyph("box-left"), glyph("box-right")

    def watch_value(self) -> None:
        """Show the sign of the value."""
        self.BUTTON_INNER = glyph("tick") if self.value else " "
        super().watch_value()
        self.refresh()


class WelcomeScreen(Screen[None]):
    """Asks where answers come from and hands the settings to ``begin``.

    ``begin`` raises an error with a sentence when the chat cannot be opened with them; the sentence is
    shown and the screen stays. ``config`` is the file that ticking *remember* writes to.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings_of("welcome")]

    def __init__(self, settings: Settings, begin: Callable[[Settings], None], config: Path) -> None:
        super().__init__()
        self.settings = settings
        self._begin = begin
        self._config = config
        self._busy = False

    def compose(self) -> ComposeResult:
        """Lay out choices and fields."""
        with VerticalScroll(id="welcome-box", can_focus=False):
            yield Static(Content.styled("Sandbox Chat", "bold $primary"))
            yield Static(
                Content(tr("welcome.about")),
                classes="gap",
            )
            yield Static(Content.styled(tr("welcome.question"), "bold"))
            yield Choices(id="choices")
            yield Static("", id="welcome-error")
            for choice in CHOICES[1:]:
                with Vertical(id=f"fields-{choice.id}", classes="fields"):
                    for item in choice.fields:
                        with Horizontal(classes="field"):
                            yield Static(Content(tr(item.label)), classes="label")
                            yield Entry(
                                value=item.value,
                                placeholder=tr(item.hint) if item.hint else "",
                                password=item.secret,
                                compact=True,
                                id=f"{choice.id}-{item.name}",
                            )
                    yield Tick(
                        Content(tr("welcome.remember", file=clean_line(str(self._config), 500))),
                        id=f"remember-{choice.id}",
                        compact=True,
                    )
            yield Static(
                Content.styled(tr("welcome.keys", quit=key_of("app.leave")), "$muted"),
                classes="gap-top",
            )

    def on_mount(self) -> None:
        """Show the fields of the first choice: none."""
        self._show_fields()
        for box in self.query(Input):
            box.cursor_blink = False  # as in the composer: nothing moves that is not alive
        self.query_one(Choices).focus()

    def _show_fields(self) -> None:
        choice = self.query_one(Choices).choice
        for box in self.query(".fields"):
            box.display = box.id == f"fields-{choice.id}"
        self._say("")

    def _say(self, text: str) -> None:
        error = self.query_one("#welcome-error", Static)
        error.update(Content.styled(clean(text), "$error"))
        error.display = bool(text)

    def on_choices_moved(self) -> None:
        """Show the fields of the choice."""
        self._show_fields()

    def on_choices_taken(self) -> None:
        """Start, or go to the first field."""
        choice = self.query_one(Choices).choice
        if choice.fields:
            inputs = list(self.query_one(f"#fields-{choice.id}").query(Input))
            (next((box for box in inputs if not box.value), inputs[0])).focus()
        else:
            self._start()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in a field starts."""
        event.stop()
        self._start()

    def action_back(self) -> None:
        """Return to the choices."""
        self.query_one(Choices).focus()

    def _start(self) -> None:
        if not self._busy:
            self._busy = True
            self.run_worker(self._try(), exclusive=True)

    async def _try(self) -> None:
        try:
            choice = self.query_one(Choices).choice
            values = {
                item.name: self.query_one(f"#{choice.id}-{item.name}", Input).value for item in choice.fields
            }
            good, bad = check(choice, values)
            if bad:
                name, sentence = next(iter(bad.items()))
                self._say(sentence)
                self.query_one(f"#{choice.id}-{name}", Input).focus()
                return
            ticked = bool(choice.fields) and self.query_one(f"#remember-{choice.id}", Checkbox).value
            if ticked:
                await asyncio.to_thread(remember, self._config, good)
            self._begin(apply(self.settings, choice, good))
        except ConfigError as error:
            self._say(str(error))
        finally:
            self._busy = False
