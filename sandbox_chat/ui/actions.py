"""Every action of the chat's screen: its name, key, and words. Bindings, palette and help come from here."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Action:
    """An action. ``action`` is Textual's name of it, ``keys`` comma-separated, ``title`` its name for people."""

    action: str
    keys: str
    title: str
    help: str
    priority: bool = False


APP_ACTIONS: tuple[Action, ...] = (
    Action("app.help", "f1", "Show the keys", "Keys of where you are, and of everywhere"),
    Action("app.palette", "ctrl+p", "Find a command", "Every action by name", priority=True),
    Action("app.toggle_theme", "f9", "Switch dark and light", "Change the colours for this run"),
    Action("app.leave", "ctrl+q", "Quit", "Close the session, the sandbox and the program", priority=True),
)
"""Work on every screen."""

CHAT_ACTIONS: tuple[Action, ...] = (
    Action(
        "screen.escape",
        "escape",
        "Interrupt, or back to the prompt",
        "Stop the running turn; when idle, go to the end of the transcript and the prompt",
    ),
    Action(
        "screen.toggle_tools", "f2", "Show or hide the tools", "The pane of tool calls; when narrow, its tab"
    ),
    Action("screen.toggle_cost", "f3", "Show or hide the cost", "The pane of cost; when narrow, its tab"),
    Action("screen.maximise", "f4", "Maximise or restore", "Let the pane in use fill the screen"),
    Action("screen.change_model", "f5", "Change the model", "Use another model from the next turn on"),
    Action(
        "screen.next_pane", "f6", "Go to the next pane", "Prompt, transcript, tools, details", priority=True
    ),
    Action("screen.side(-4)", "f7", "Make the side narrower", "More room for the transcript", priority=True),
    Action("screen.side(4)", "f8", "Make the side wider", "More room for the tools", priority=True),
    Action(
        "screen.step_tool(-1)", "ctrl+up", "Choose the tool call before", "In the pane and the transcript"
    ),
    Action("screen.step_tool(1)", "ctrl+down", "Choose the next tool call", "In the pane and the transcript"),
    Action(
        "screen.open_picture", "ctrl+o", "Open the picture", "The chosen call's picture over the whole screen"
    ),
    Action(
        "screen.attach",
        "ctrl+l",
        "Attach a file",
        "Put a file of yours into the sandbox: /attach FILE in the composer",
        priority=True,
    ),
    Action("screen.end", "ctrl+end", "Go to the end", "To the newest line, and follow it", priority=True),
    Action(
        "screen.resume_waiting",
        "ctrl+g",
        "Send the waiting prompts",
        "Prompts that were held after an interruption or a failure",
    ),
    Action(
        "screen.take_back",
        "ctrl+t",
        "Take back a waiting prompt",
        "The newest waiting prompt goes back into the composer",
    ),
)
"""Work on the chat's screen."""

KEY_NAMES = {
    "enter": "⏎",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "space": "space",
    "tab": "tab",
    "delete": "Del",
    "backspace": "⌫",
    "question_mark": "?",
    "greater_than_sign": ">",
    "less_than_sign": "<",
}


def key_name(key: str) -> str:
    """Return how a key is written for people: ``ctrl+p`` is ``^P``, ``alt+enter`` is ``alt+⏎``."""
    *modifiers, last = key.split("+")
    name = KEY_NAMES.get(last, last.upper() if last[:1] == "f" and last[1:].isdigit() else last)
    if modifiers == ["ctrl"] and len(name) == 1 and name.isascii():
        return f"^{name.upper()}"
    return "+".join([*modifiers, name])


def key_names(keys: str) -> str:
    """Return the names of comma-separated keys."""
    return ", ".join(key_name(key.strip()) for key in keys.split(",") if key.strip())
