"""What the empty transcript says, and what says that there is more below."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from sandbox_chat.settings import Settings
from sandbox_chat.ui.formats import plural

DEMO_EXAMPLES = (
    "plot a damped sine and tell me its half-life",
    "sum 1 to 100 and check it with Gauss's formula",
    "make a data frame of ten cities and describe it",
    "help",
)
EXAMPLES = (
    "Plot a damped sine and tell me its half-life.",
    "Estimate pi by random points and draw the error.",
    "Chart the gaps between the primes below 1,000.",
)


def examples(settings: Settings) -> tuple[str, ...]:
    """Return prompts to begin with."""
    return DEMO_EXAMPLES if settings.demo else EXAMPLES


def hint(settings: Settings) -> Content:
    """Return the words of an empty transcript. A click on an example puts it into the composer."""
    if settings.demo:
        lines = [
            Content.styled("This is the demo.", "bold"),
            Content("Rules answer, no model does; the code that you see is really run, in a sandbox."),
        ]
    else:
        lines = [
            Content.styled("Ask for something that is worth computing.", "bold"),
            Content("Claude writes Python, runs it in a sandbox, and shows you what came of it."),
        ]
    lines += [Content(""), Content.styled("Try", "$muted")]
    for number, example in enumerate(examples(settings)):
        click = Style.from_meta({"@click": f"screen.take_example({number})"})
        lines.append(Content.assemble(("  › ", "$accent"), (example, click)))
    lines += [Content(""), Content.styled("F1 shows the keys, ^P finds every command.", "$muted")]
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
            self.update(Content(f"↓ {plural(lines, 'new line')} · ^End goes there"))

    async def on_click(self, event: events.Click) -> None:
        """Go to the end."""
        event.stop()
        await self.run_action("screen.end")
