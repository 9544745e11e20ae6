"""The system prompt."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from sandbox_chat.sandbox.base import SandboxInfo
from sandbox_chat.settings import Settings

_INTRO = (
    "You are Sandbox Chat, an assistant in a terminal, good with data, code and mathematics. Answer in the user's language, "
    "briefly and in Markdown. Never state a computed number, or what code does, without having run it."
)
_PLACES = {
    "local": "an isolated Linux sandbox on the user's computer, without the user's files",
    "docker": "an isolated Linux container on the user's computer, without the user's files",
    "e2b": "an isolated Linux machine in a cloud, without the user's files",
    "unsafe-local": "a plain process on the user's computer, NOT isolated: never touch files outside /tmp",
}
_TOOLS = """\
Code runs in {place}. {network} It is made on first use; variables, imports and files persist from call to call and from turn to turn.
- One run_code call may take {seconds} s at most. Split longer work into several calls: variables persist.
- numpy, pandas and matplotlib are there. Put files and products under /tmp.
- Save charts with savefig("/tmp/name.png"), then look at them with read_image, and correct what looks wrong. \
Never plt.show() and forget. The user sees each picture in the chat, so do not describe it at length.
- When code fails, read the [traceback], mend the code and try again. After 3 failures in a row stop and say why.
- On [tool_error] the sandbox itself failed: do not try again, tell the user what the message says.
- Use download_file only when the user wants a file on their own computer."""
_NETWORK = "The internet is reachable from it."
_NO_NETWORK = "It has no network: nothing can be downloaded or installed."
_WORKSPACE = "- /workspace is a folder of the user's that code may read and write; change nothing there unless the user asks for it."
_OWN_WORKSPACE = "- /workspace is empty at the start of a session and gone at its end."
_KEPT_WORKSPACE = "- Files in /workspace are kept with the session, also when it is continued later."
_SKILLS = "- The files of the user's skills are in /skills/<name>/, read-only."
_CODE_MODE = """\
The user's MCP tools on their own computer are called by your code in run_code, not by you. Only what your code prints comes \
back to you: fetch, filter and join there, and print little. Find tools first, in code:
- list_mcp_tools(query=None, detail="names"|"summary"|"full") and get_mcp_tool_details(name) tell what there is; names are server__tool.
- call_mcp_tool(name, arguments) returns a Python value; or from tools.<server> import <tool>, called with keyword arguments. \
await call_mcp_tool.aio(...) works too; tools.parallel([(name, arguments), ...]) makes several calls at once.
- A failed call raises tools.ToolError with the server's words. The user may be asked about a call, and may refuse it: then stop trying.
- Skills are code that worked before: tools.list_skills(), from skills import <name>. When the user wants to keep code, \
save_skill(name, code, description) hands in a draft, which the user looks at first."""
_PRIVATE = (
    "Personal data comes to you as tokens such as <EMAIL:k3f7…>: use them as they are, in code and in answers; the same token "
    "always stands for the same value. Do not try to find out what they stand for."
)
_NEW_RUN = (
    "This conversation began in an earlier run of the program. The sandbox of that time is gone: variables and files "
    "from before its last continuation do not exist any more; make them again when they are needed."
)
_BACK = " Only the files in /workspace are there again."
_LOCAL = "{names} read the user's working folder, {folder}, and nothing else on their computer. Code in the sandbox does not see it."
_OFF = "There is no sandbox in this chat: you cannot run code or see files. If a task needs it, say so; the user can start with --sandbox local."


def system_prompt(
    settings: Settings,
    info: SandboxInfo | None = None,
    *,
    new_run: bool,
    private: bool = False,
    today: date,
    folder: Path | None = None,
) -> str:
    """Return the system prompt: where code runs, its limits, what to do with charts and failures.

    ``info`` is of the back end; without it nothing is promised of its network. ``today`` is the user's date. ``new_run``:
    the conversation goes on from an earlier run of the program, whose sandbox is gone. ``folder`` is what the local
    tools read, ``None`` without them. ``private``: personal data is hidden.
    """
    intro = f"{_INTRO} Today is {today:%A}, {today.isoformat()}."
    if folder is not None:
        intro += "\n\n" + _LOCAL.format(names=", ".join(settings.local_tools), folder=folder)
    place = _PLACES.get(settings.sandbox)
    if place is None:
        return f"{intro}\n\n{_OFF}"
    network = _NETWORK if info is not None and info.capabilities.network else _NO_NETWORK
    parts = [intro, _TOOLS.format(place=place, network=network, seconds=settings.run_timeout)]
    isolated = settings.sandbox in ("local", "docker", "e2b")
    if settings.sandbox_workspace is not None and settings.sandbox in ("local", "docker"):
        parts[-1] += "\n" + _WORKSPACE
    elif settings.keep_workspace and isolated:
        parts[-1] += "\n" + _KEPT_WORKSPACE
    elif settings.code_mode != "off" and isolated:
        parts[-1] += "\n" + _OWN_WORKSPACE
    if settings.code_mode != "off":
        parts.append(_CODE_MODE + ("\n" + _SKILLS if isolated else ""))
    if private:
        parts.append(_PRIVATE)
    if new_run:
        parts.append(_NEW_RUN + (_BACK if settings.keep_workspace and isolated else ""))
    return "\n\n".join(parts)
