"""The reason for an end is found among the lines around it."""

from __future__ import annotations

import pytest

from sandbox_chat.mcp.last_words import last_words

NO_PACKAGE = """\
npm error code E404
npm error 404 Not Found - GET https://packages.example/not-there
npm error 404
npm error 404  The requested resource 'not-there@*' could not be found or you do not have permission to access it.
npm error 404
npm error 404 Note that you can also install from a
npm error 404 tarball, folder, http url, or git url.
npm notice
npm notice New minor version of npm available! 11.19.1 -> 11.21.2
npm notice To update run: npm install -g npm@11.21.2
npm notice
npm error A complete log of this run can be found in: /home/u/.npm/_logs/debug-0.log
"""
NO_MODULE = """\
node:internal/modules/cjs/loader:1210
  throw err;
  ^

Error: Cannot find module '/home/u/server.js'
    at Module._resolveFilename (node:internal/modules/cjs/loader:1207:15)
    at Module._load (node:internal/modules/cjs/loader:1038:27)
    at Function.executeUserEntryPoint [as runMain] (node:internal/modules/run_main:164:12)
    at node:internal/main/run_main_module:28:49 {
  code: 'MODULE_NOT_FOUND',
  requireStack: []
}

Node.js v20.20.2
"""
NO_PYTHON_MODULE = """\
Traceback (most recent call last):
  File "/home/u/server.py", line 1, in <module>
    import nothing
ModuleNotFoundError: No module named 'nothing'
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            NO_PACKAGE,
            [
                "npm error 404 Not Found - GET https://packages.example/not-there",
                "npm error 404  The requested resource 'not-there@*' could not be found or you do not have permission to "
                "access it.",
            ],
        ),
        (NO_MODULE, ["Error: Cannot find module '/home/u/server.js'"]),
        (NO_PYTHON_MODULE, [line.strip() for line in NO_PYTHON_MODULE.splitlines()]),
        ("npm notice\nat dawn", ["npm notice", "at dawn"]),  # nothing else was said
        ("\n".join("abcdefgh"), list("cdefgh")),
        ("", []),
    ],
)
def test_the_reason_stays(text: str, words: list[str]) -> None:
    assert last_words(text) == words
