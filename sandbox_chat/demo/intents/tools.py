"""MCP tools that code calls: which there are, and what time it is elsewhere."""

from __future__ import annotations

import re

from sandbox_chat.demo.steps import Plan, fence, gave_up, one_line, run, say, table
from sandbox_chat.demo.talk import Talk

ZONES = {
    "tokyo|东京": "Asia/Tokyo",
    "beijing|shanghai|北京|上海": "Asia/Shanghai",
    "berlin|柏林": "Europe/Berlin",
    "london|伦敦": "Europe/London",
    "paris|巴黎": "Europe/Paris",
    "new york|纽约": "America/New_York",
    "san francisco|los angeles|旧金山|洛杉矶": "America/Los_Angeles",
    "sydney|悉尼": "Australia/Sydney",
    "mumbai|delhi|孟买|德里": "Asia/Kolkata",
    "nairobi|内罗毕": "Africa/Nairobi",
}
_LIST = """\
for tool in list_mcp_tools():
    print(tool["name"], "-", tool["about"])"""
_CLOCK = """\
import tools

clocks = [tool["name"] for tool in tools.search("current time") if "current_time" in tool["name"]]
if not clocks:
    raise LookupError("no MCP server that knows the time is on")
zones = {zones}
answers = tools.parallel([(clocks[0], {{"timezone": zone}}) for zone in zones])
for zone, answer in zip(zones, answers):
    print(f"{{zone}}: {{answer['datetime'][:16].replace('T', ' ')}}")"""
_CODE_MODE = "call_mcp_tool"


def listing(talk: Talk) -> Plan | None:
    """Which MCP tools there are."""
    if not talk.says(
        r"\b(which|what|list|show)\b.{0,20}\b(mcp )?tools\b.{0,30}$|有哪些.{0,6}工具|列出.{0,6}工具"
    ):
        return None
    return _listing(talk) if _has_code_mode(talk) else say(_how(talk))


def clock(talk: Talk) -> Plan | None:
    """What time it is in some cities."""
    if not talk.says(r"\bwhat('s| is)? (the )?time\b|\bwhat time\b|几点"):
        return None
    zones = [
        zone for cities, zone in ZONES.items() if re.search(rf"\b(?:{cities})\b|{cities}", talk.head, re.I)
    ]
    return _clock(talk, zones or ["UTC"]) if _has_code_mode(talk) else say(_how(talk))


def _has_code_mode(talk: Talk) -> bool:
    return _CODE_MODE in talk.request.system


def _how(talk: Talk) -> str:
    return talk.t(
        "My code can call MCP tools when this chat was started in code mode. Add a server, which asks you first, and start again:\n\n"
        "```sh\nsandbox-chat mcp add time\nsandbox-chat --demo --code-mode on\n```\n\n"
        "Then ask `what time is it in Tokyo and Berlin`.",
        "以代码模式启动后，我的代码可以调用 MCP 工具。先添加一个服务器（会先征求你的同意），再重新启动：\n\n"
        "```sh\nsandbox-chat mcp add time\nsandbox-chat --demo --code-mode on\n```\n\n"
        "然后输入“东京和柏林现在几点”。",
    )


def _listing(talk: Talk) -> Plan:
    outcome = yield from run(
        talk, _LIST, talk.t("My code asks which tools there are.", "由代码来查询有哪些工具。")
    )
    if not outcome.ok:
        return gave_up(talk, outcome)
    if not outcome.stdout.strip():
        return talk.t(
            "No MCP server is on in this chat. `sandbox-chat mcp list` shows those that can be added.",
            "本次会话没有开启 MCP 服务器。`sandbox-chat mcp list` 列出可以添加的服务器。",
        )
    return talk.t("These tools can be called by code:\n\n", "代码可以调用这些工具：\n\n") + fence(
        outcome.stdout
    )


def _clock(talk: Talk, zones: list[str]) -> Plan:
    outcome = yield from run(
        talk,
        _CLOCK.format(zones=repr(zones).replace("'", '"')),
        talk.t(
            "The code looks for a tool that knows the time, and asks it for each place at once.",
            "代码先查找能报时的工具，再同时询问各地时间。",
        ),
    )
    if outcome.error_name == "LookupError":
        return talk.t(
            "No MCP server that knows the time is on. `sandbox-chat mcp add time` adds one; then start again.",
            "没有开启能报时的 MCP 服务器。用 `sandbox-chat mcp add time` 添加后重新启动。",
        )
    if "Denied" in outcome.error_name:
        return talk.t(
            f"The call was not allowed (`{one_line(outcome.error)}`), so I stop here.",
            f"调用未获允许（`{one_line(outcome.error)}`），我就此停止。",
        )
    if not outcome.ok:
        return gave_up(talk, outcome)
    rows = [[talk.t("place", "地点"), talk.t("time", "时间")], *map(list, outcome.values().items())]
    return table(rows) + talk.t(
        "\n\nThe times went from the server to the code, and only what it printed came to me.",
        "\n\n时间由服务器直接返回给代码，我只看到代码打印的内容。",
    )
