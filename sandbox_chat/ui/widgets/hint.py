"""What the empty transcript says, and what says that there is more below."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from sandbox_chat.settings import Settings
from sandbox_chat.ui.actions import key_of
from sandbox_chat.ui.glyphs import glyph
from sandbox_chat.words import tr, tr_count

DEMO_EXAMPLES = (
    "plot a damped sine and tell me its half-life",
    "sum 1 to 100 and check it with Gauss's formula",
    "make a data frame of ten cities and describe it",
    "help",
)
"""In the demo's only language: its rules read English."""


def examples(settings: Settings) -> tuple[str, ...]:
    """Return prompts to begin with."""
    if settings.demo:
        return DEMO_EXAMPLES
    return tr("hint.example_sine"), tr("hint.example_pi"), tr("hint.example_primes")


def hint(settings: Settings) -> Content:
    """Return the words of an empty transcript. A click on an example puts it into the composer."""
    kind = "demo" if settings.demo else "model"
    lines = [Content.styled(tr(f"hint.{kind}_title"), "bold"), Content(tr(f"hint.{kind}_words"))]
    lines += [Content(""), Content.styled(tr("hint.try"), "$muted")]
    for number, example in enumerate(examples(settings)):
        click = Style.from_meta({"@click": f"screen.take_example({number})"})
        lines.append(Content.assemble((f"  {glyph('example')} ", "$accent"), (example, click)))
    keys = tr("hint.keys", help=key_of("app.help"), commands=key_of("app.palette"))
    lines += [Content(""), Content.styled(keys, "$muted")]
    return Content("\n").join(lines)


class Hint(Static):
    """Fills the place of an empty transcript."""

    DEFAULT_CSS = """
    Hint {
        width: 1fr; height: 1fr; padding: 1 2; content-align: left middle; color: $foreground;
        link-color: $foreground; link-style: none; link-color-hover: $primary; link-background-hover: $background;
    }
    """

    def __init__(self, settings: Settings, *, id: str | None = None) -> None:
        super().__init__(hint(settings), id=id)
        self.settings = settings

    def show(self, settings: Settings) -> None:
        """Show the words for other settings."""
        self.settings = settings
        self.update(hint(settings))


class Unseen(Static):
    """A row over the transcript's end that tells of new lines below; a click goes there."""

    DEFAULT_CSS = """
    Unseen {
        dock: bottom; height: 1; width: 1fr; display: none; text-align: center;
        background: $panel; color: $accent;
    }
    """

    def show(self, lines: int) -> None:
        """Show that there are ``lines`` new ones below; none hides the row."""
        self.display = lines > 0
        if lines > 0:
            self.update(Content(tr_count("hint.unseen", lines, key=key_of("chat.end"))))

    async def on_click(self, event: events.Click) -> None:
        """Go to the end."""
        event.stop()
        await self.run_action("screen.end")
