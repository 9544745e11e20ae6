"""``python -m sandbox_chat`` is the same program as ``sandbox-chat``."""

import sys

from sandbox_chat.cli import main

if __name__ == "__main__":
    sys.exit(main())
