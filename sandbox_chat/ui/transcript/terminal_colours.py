"""The transcript's styles in the terminal's own sixteen colours, or in none: then weight and lines tell things apart."""

from __future__ import annotations

from rich.style import Style

# Name of the style: with the terminal's colours, without any. Its ground may be dark or light, so text is never
# white or black, and of the bright ones only blue is used, which can be read on both, and grey only for what may be overlooked.
_STYLES: dict[str, tuple[str, str]] = {
    "muted": ("", ""),
    "faint": ("bright_black", "dim"),
    "prompt": ("bold", "bold"),
    "prompt-mark": ("bold bright_blue", "bold"),
    "heading-1": ("bold bright_blue underline", "bold underline"),
    "heading-2": ("bold bright_blue", "bold underline"),
    "heading-3": ("bold", "bold"),
    "strong": ("bold", "bold"),
    "emphasis": ("italic", "italic"),
    "strike": ("strike", "strike"),
    "code": ("magenta", "bold"),
    "link": ("bright_blue underline", "underline"),
    "quote": ("", ""),
    "footnote": ("bright_blue", ""),
    "quote-bar": ("bright_black", "dim"),
    "bullet": ("bright_blue", ""),
    "rule": ("bright_black", "dim"),
    "html": ("", ""),
    "table-head": ("bold", "bold underline"),
    "block": ("", ""),
    "thinking": ("italic", "italic"),
    "success": ("green", ""),
    "warning": ("magenta", "bold"),
    "error": ("red", "bold"),
    "running": ("bright_blue", "bold"),
    "waiting": ("", ""),
    "tool": ("bold", "bold"),
    "selected": ("bold bright_blue", "bold"),
    "bar": ("bright_black", "dim"),
    "thumb": ("bright_blue", "bold"),
    "code-mark": ("reverse", "reverse"),
    "find": ("reverse", "reverse"),
    "find-now": ("bold reverse underline", "bold reverse underline"),
    "select": ("reverse", "reverse"),
    "tok-keyword": ("bold magenta", "bold"),
    "tok-string": ("green", ""),
    "tok-number": ("cyan", ""),
    "tok-comment": ("italic", "italic"),
    "tok-function": ("bright_blue", ""),
    "tok-class": ("bold bright_blue", "bold"),
    "tok-builtin": ("cyan", ""),
    "tok-constant": ("cyan", ""),
    "tok-operator": ("", ""),
    "tok-decorator": ("magenta", ""),
    "tok-inserted": ("green", ""),
    "tok-deleted": ("red", "strike"),
    "tok-error": ("bold red", "bold underline"),
}


def terminal_styles(*, coloured: bool) -> dict[str, Style]:
    """Return the styles by name, in the terminal's colours or without any."""
    return {name: Style.parse(pair[0 if coloured else 1]) for name, pair in _STYLES.items()}
