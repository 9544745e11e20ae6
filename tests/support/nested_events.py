"""The events of a run whose code called tools of other servers."""

from __future__ import annotations

from support.screen import tool_finished, tool_started

from sandbox_chat import events as ev

CODE = "rows = call_mcp_tool('db__rows', {'table': 'orders'})\nprint(len(rows))"


def nested(number: int, *, ends: bool = True, error: bool = False, text: str = "[1, 2, 3]") -> list[ev.Event]:
    """A call of the code, and its end."""
    call_id = f"u1.{number}"
    made: list[ev.Event] = [
        ev.NestedStarted(
            tool_use_id="u1", call_id=call_id, name="mcp__db__rows", input={"table": "orders", "page": number}
        )
    ]
    if ends:
        made.append(
            ev.NestedFinished(
                tool_use_id="u1", call_id=call_id, is_error=error, content=(ev.TextContent(text, ()),), duration_ms=10 * number
            )
        )  # fmt: skip
    return made


def run_of(*calls: list[ev.Event], finished: bool = True) -> list[ev.Event]:
    """A run of code with its calls."""
    made: list[ev.Event] = [tool_started("u1", "mcp__sandbox__run_code", code=CODE)]
    made += [event for call in calls for event in call]
    if finished:
        made.append(tool_finished("u1", ev.TextContent("[success] True\n[stdout]\n3")))
    return made
