"""Markdown documents for the tests: like what models write, and awkward ones."""

from __future__ import annotations

import json
import random
from pathlib import Path

_DATA = Path(__file__).parent.parent / "data"

EXAMPLES: list[str] = json.loads((_DATA / "commonmark_examples.json").read_text())
"""Inputs of the CommonMark specification's examples."""

FIXTURES: list[str] = json.loads((_DATA / "markdown_it_examples.json").read_text())
"""Inputs of markdown-it-py's fixtures."""

ANSWER = """\
# Damped oscillation

I fitted the **envelope** of the curve with `scipy.optimize.curve_fit`; the half-life is about *2.08 s*.
The residuals look like noise, see [the docs](https://docs.scipy.org/doc/scipy/ "SciPy") and <https://example.org>.

## Steps

1. Load the data:
   ```python
   import numpy as np

   t = np.linspace(0, 10, 500)
   y = np.exp(-t / 3) * np.sin(4 * t)
   ```
2. Fit it.
   - start values matter
   - bounds help

     More about bounds in a second paragraph.
3. Report:

   | name | value | unit |
   |:-----|------:|:----:|
   | τ    | 3.00  | s    |
   | ω    | 4.00  | 1/s  |

> **Note** that the fit assumes
> a constant ω.
>
> - first reason
> - second reason

- [x] load
- [ ] publish
  - [ ] write it up

The energy is $E = mc^2$ and *not* 3 * 4.

| a | b |
|---|---|
| `x \\| y` | **bold** |
| only one

***

Setext
------

Last words[^1].

[^1]: A footnote
    with a second line.

    And a paragraph.
"""

_HAND_MADE = [
    ANSWER,
    ANSWER.replace("\n", "\r\n"),
    "你好，世界\n====\n\n- 一\n- 二\n  1. 三\n\n| 列 | 值 |\n|:-:|--:|\n| 甲 | 1 |\n",
    "👩‍👩‍👧‍👦 **family** ❤️ \u0301e\n\n> 🇩🇪\n> - ﷺ\n",
    "```python\n'''\nstill a string\n```\nafter\n~~~\n```\n~~~\n",
    "````md\n```py\nx\n```\n````\n",
    "- ```\n  a\n\n  b\n  ```\n- > q\n  lazy\n- # h\n- ***\n- | a | b |\n  |---|---|\n  | 1 | 2 |\n",
    "1) a\n2) b\n\n   c\n3. d\n\n\n4. e\n",
    "para\n| a | b |\n|---|---|\n| 1 | 2 |\ntext in the table\n\nafter\n",
    "| not | a table |\n| --- |\n\n| a |\n| - |\n",
    "a | b\n-|-\n1 | 2\n# h\n",
    "[1]: http://x.org 'one'\n[2]:\nhttp://y.org\n\"two\nlines\"\n[1] and [2]\n",
    "see [here][late]\n\n[late]: <http://z.org>\n",
    "> [q]: /url\n\n[q] > x\n",
    "<details>\n<summary>s</summary>\n\ntext\n\n</details>\n<!-- c\n\nd -->\n<b>x</b>\n",
    "<script>\nif (a < b) {}\n\n</script>\nx\n<unknown-tag>\ny\n",
    "    code\n\n\tcode\n   para\n      lazy\n",
    "-\n  a\n-\n\n  b\n-\tc\n- \td\n",
    "* a\n * b\n  * c\n   * d\n    * e\n+ f\n- g\n",
    "> > > a\n> b\n\n> c\n>\n> d\n>> e\n",
    "- [ ] a\n- [x] b\n- [X]c\n- [ ]\n  d\n1. [x] e\n",
    "[^a]: one\n[^b]: two\n    three\n\n    > q\n\ntext [^a]\n",
    "#not\n#\n# a #\n## b ##c\n####### no\n# #\n",
    "*\n*\n\n_ _ _\n- - -\n** *\n--\n",
    "a\\\nb  \nc\n   d\n",
    "&#27;[2J &#x202e; &copy;\n\x00nul\n",
    "- a\n\n\n\n- b\n      \n  c\n",
    "```\nopen fence\n",
    "~~~ lang `tick`\nx\n~~~~\n",
    "x\ry\r\nz\n\rw",
    "",
    "\n\n\n",
    "   ",
    "`",
]


def documents() -> list[str]:
    """Return more than 150 documents: hand made ones, the fixtures, and the specification's examples joined."""
    joined = ["\n".join(EXAMPLES[at : at + 20]) for at in range(0, len(EXAMPLES), 20)]
    return [*_HAND_MADE, *FIXTURES, *joined]


def chunkings(text: str, seed: int) -> list[list[str]]:
    """Return five ways to cut ``text``: whole, by character, by line, and two of random sizes."""
    ways = [[text], list(text), text.splitlines(keepends=True)]
    for most in (7, 60):
        rnd = random.Random(seed * 2 + most)
        pieces, at = [], 0
        while at < len(text):
            size = rnd.randrange(1, most)
            pieces.append(text[at : at + size])
            at += size
        ways.append(pieces)
    return ways
