"""Recognises an answer in which the model says that it cannot run code. Pure; sound before complete."""

from __future__ import annotations

import re

_SAYS = re.compile(
    r"""
    \bI(?:\s+(?:do\s+not|don[’']t)(?:\s+(?:currently|actually))?\s+have|\s+have\s+no|[’']ve\s+no|\s+lack)
        (?:\s+(?:the\s+)?(?:access\s+to|ability\s+to\s+(?:use|access)))?\s+
        (?:a|an|any|the|such\s+a|access\s+to\s+(?:a|an|any|the))?\s*
        (?:(?:code[- ]execution|code[- ]running|python|sandbox|execution|run_code)\s+)*
        (?:tools?\b(?!\s*(?:called|named|for\s+that))|sandbox\b|code[- ]execution\b|code\s+interpreter\b)
    | \bI(?:\s+cannot|\s+can[’']t|\s+am\s+unable\s+to|[’']m\s+unable\s+to|\s+am\s+not\s+able\s+to|[’']m\s+not\s+able\s+to)
        (?:\s+(?:directly|actually))?\s+(?:run|execute)\s+(?:(?:any|the|this|python|your|arbitrary)\s+)*(?:code|python|scripts?)\b
    | \bI\s+(?:do\s+not|don[’']t)\s+(?:currently\s+)?have\s+(?:the\s+ability|a\s+way)\s+to\s+(?:run|execute)\s+(?:\w+\s+)?code\b
    | 我(?:目前|现在|这里)?(?:没有|无)
        (?:任何|可用的|可以使用的|(?:可以|能够?|用来|用于)?(?:运行|执行)\s?(?:Python\s?)?代码的|\s)*
        (?:(?:代码执行)?(?:工具|沙箱)(?:环境)?|代码执行(?:环境|能力|功能))(?=\s?(?:[。，,.；;！!、：:）)]|来|可|能|$))
    | 我(?:目前|现在)?(?:没有|无)(?:访问|使用)(?:任何)?(?:工具|沙箱|代码执行环境)的(?:权限|能力)
    | 我(?:目前|现在)?(?:无法|不能)(?:直接)?(?:运行|执行)\s?(?:任何|这段|这些|上面的|你的|您的)?\s?(?:Python\s?)?代码
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_WROTE = re.compile(r"mcp__sandbox__\w+|<function_calls>|<tool_call>|<\|tool_call", re.IGNORECASE)
_FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
LOOKED_AT = 50_000
"""Characters of an answer that are looked at, code and runs of white space not counted."""


def says_no_tool(text: str) -> bool:
    """True when an answer says plainly that no code can be run, or no tool is there. Code in it is not looked at."""
    lines = (" ".join(line.split()) for line in _FENCED.sub("", text).splitlines())
    said = "\n".join(line for line in lines if line)  # the expression takes long for runs of white space
    return _SAYS.search(said[:LOOKED_AT]) is not None


def wrote_a_call(text: str) -> bool:
    """True when an answer holds a tool call as text: the model called, and what lies between did not take it for a call."""
    return _WROTE.search(text) is not None


def notice(text: str, *, offered: bool, listed: bool) -> str:
    """Return the sentence for the user about an answer without any tool call; empty when there is nothing to say.

    ``offered``: the session has a sandbox. ``listed``: the agent's program asked for its tools.
    """
    if not offered:
        if not says_no_tool(text):
            return ""
        return "The sandbox is off, so the model has no tool to run code. Start with --sandbox local to give it one."
    if wrote_a_call(text):
        return (
            "The model wrote a tool call as plain text, so nothing was run. The gateway or the model's server does not turn "
            "it into a call: switch tool calling on there, or choose a model that it can do that with (CLAUDE_MODEL)."
        )
    if not says_no_tool(text):
        return ""
    if not listed:
        return (
            "The model says that it has no tool, and the agent's program never asked for the sandbox's tools. "
            "Start the program again; if it stays, run: sandbox-chat doctor"
        )
    return (
        "The model did not use the sandbox and says that it cannot, although its tools were offered. Often a gateway leaves "
        "the tools out, or the model cannot call any: check the gateway, or choose another model (CLAUDE_MODEL, F5)."
    )
