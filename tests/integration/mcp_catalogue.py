"""The check of the catalogue of MCP servers as a program.

``python tests/integration/mcp_catalogue.py [--only NAMES] [--write]`` prints a table; with ``--write`` what was found goes into
``sandbox_chat/mcp/catalog.json``. Its end is 1 when a server is not as it should be.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import catalogue_check

from sandbox_chat.mcp import catalog


def say(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> int:
    """Check the servers that are asked for, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, with commas between")
    parser.add_argument("--write", action="store_true", help="put what was found into the catalogue")
    options = parser.parse_args()
    names = [name for name in options.only.split(",") if name] or list(catalog.load())
    say("| server | started here | one real call made | |\n|---|---|---|---|")
    findings = catalogue_check.run(names, catalogue_check.cache(), say)
    if options.write:
        catalogue_check.write([finding for finding in findings if not finding.trouble])
    return 1 if any(finding.trouble for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
