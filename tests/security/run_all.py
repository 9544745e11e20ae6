"""Runs the attempts in one real sandbox and prints what came of each as a JSON object: {name: text}.

Arguments: the kind of sandbox, the folder for data, the JSON context, and names of attempts (all when none).
A process of its own, so that it can be run as another user.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from attempts import ATTEMPTS

from sandbox_chat.sandbox.local import LocalSandbox, UnsafeLocal
from sandbox_chat.settings import Settings


def main(kind: str, folder: str, context: str, *names: str) -> None:
    settings = Settings(data_dir=Path(folder), start_timeout=120)
    make = UnsafeLocal if kind == "unsafe-local" else LocalSandbox
    results: dict[str, str] = {}
    sandbox = None
    for attempt in ATTEMPTS:
        if names and attempt.name not in names:
            continue
        if sandbox is None:
            sandbox = make(settings)
            sandbox.start()
        done = sandbox.run_code(attempt.code(json.loads(context)), timeout=60)
        results[attempt.name] = (
            f"{done.stopped.upper()} {done.error or ''} {done.stdout.strip()} {done.stderr[-500:]}".strip()
        )
        if done.stopped == "died":
            sandbox.close()
            sandbox.release()
            sandbox = None
    if sandbox is not None:
        sandbox.close()
        sandbox.release()
    print(json.dumps(results))


if __name__ == "__main__":
    main(*sys.argv[1:])
