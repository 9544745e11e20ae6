"""How a session looks in a browser: one style sheet, for light and dark, and for paper."""

from __future__ import annotations

from typing import Any

LAYOUT = """\
:root { color-scheme: light dark; --ground: #fdfdfc; --raised: #f3f3f0; --text: #1d1f21; --muted: #62666b;
  --line: #d9d9d4; --accent: #2457a6; --ok: #1f7a45; --failed: #b3261e; --warning: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --ground: #16181a; --raised: #1f2225; --text: #e4e4e0; --muted: #9a9fa5;
  --line: #363a3f; --accent: #8ab4f8; --ok: #7bc796; --failed: #f2938c; --warning: #e0b060; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif; }
main { max-width: 54rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .75rem; }
h2 { font-size: .85rem; font-weight: 600; color: var(--muted); margin: 2.5rem 0 .5rem; padding-top: 1rem;
  border-top: 1px solid var(--line); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; margin: 0; color: var(--muted); }
dt, dd { margin: 0; min-width: 0; }
a { color: var(--accent); }
pre, code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Noto Sans Mono", monospace; font-size: .86em; }
pre { margin: .5rem 0; padding: .6rem .8rem; background: var(--raised); border-radius: 6px; overflow-x: auto;
  max-height: 36rem; line-height: 1.45; tab-size: 4; }
:not(pre) > code { background: var(--raised); border-radius: 4px; padding: .1em .3em; }
pre code { font-size: 1em; }
.prompt { border-left: 3px solid var(--accent); padding-left: .9rem; font-weight: 600; white-space: pre-wrap; }
.answer > :first-child { margin-top: .75rem; }
.answer blockquote { border-left: 3px solid var(--line); margin: .75rem 0; padding-left: .9rem; color: var(--muted); }
.answer img { max-width: 100%; }
.remark { color: var(--muted); }
.remark.warning, .warning { color: var(--warning); }
.remark.error, .error { color: var(--failed); }
details { margin: .75rem 0; }
summary { cursor: pointer; }
.thinking > summary { color: var(--muted); }
.thinking > div { white-space: pre-wrap; color: var(--muted); padding-left: 1rem; }
.call { border: 1px solid var(--line); border-radius: 8px; }
.call > summary { padding: .45rem .8rem; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.call > div { padding: 0 .8rem .6rem; }
.call h3 { font-size: .8rem; font-weight: 600; color: var(--muted); margin: .75rem 0 0; }
.how { color: var(--muted); }
.first { font: .82em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; color: var(--muted); }
.ok > summary > .how { color: var(--ok); }
.failed > summary > .how { color: var(--failed); }
.interrupted > summary > .how, .lost > summary > .how { color: var(--warning); }
figure { margin: .75rem 0; }
figure img { max-width: 100%; height: auto; background: #fff; border-radius: 6px; }
figcaption, .turn-end { color: var(--muted); font-size: .85rem; }
.scroll { overflow-x: auto; max-height: 36rem; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9em; }
th, td { border: 1px solid var(--line); padding: .2rem .6rem; text-align: left; }
th { background: var(--raised); }
.right { text-align: right; } .center { text-align: center; }
footer { margin-top: 3rem; border-top: 1px solid var(--line); color: var(--muted); font-size: .9rem; }
@media print { pre, .scroll { max-height: none; white-space: pre-wrap; } main { max-width: none; } }
"""


def style_sheet() -> str:
    """Return the whole style sheet: the layout, and the colours of code for both grounds."""
    from pygments.formatters import HtmlFormatter

    formatters: list[Any] = [HtmlFormatter(style=style) for style in ("default", "github-dark")]
    light, dark = (str(formatter.get_style_defs("pre")) for formatter in formatters)
    return f"{LAYOUT}{_tokens(light)}@media (prefers-color-scheme: dark) {{\n{_tokens(dark)}}}\n"


def _tokens(rules: str) -> str:
    """Keep the rules of tokens; the ground and the numbers of lines are ours."""
    kept = [line for line in rules.splitlines() if line.startswith("pre .") and "linenos" not in line]
    return "\n".join(line.split("/*")[0].rstrip() for line in kept) + "\n"
