"""The keeper's parts: programs of installed packages, and the end of every process below it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from sandbox_chat.gateway import relay
from sandbox_chat.gateway.channels import HEADER, WORD

PATIENCE = 60.0
ROOT = Path(relay.__file__).parents[2]
# Its gateway listens at a free port of this machine: here is no network of its own.
BOOT = (
    "import sys; from sandbox_chat.gateway import relay; relay.PORT = 0; relay.main(*[int(sys.argv[1])] * 2)"
)


class Keeper:
    """A keeper as a program of its own, and this end of its stream."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(PATIENCE)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                cwd=ROOT,
                env={"PATH": os.environ["PATH"], "HOME": str(folder), **environ},
            )

    def say(self, word: Any) -> None:
        data = word if isinstance(word, bytes) else json.dumps(word).encode()
        self.sock.sendall(HEADER.pack(WORD, 0, len(data)) + data)

    def answer(self) -> dict[str, Any]:
        _, _, length = HEADER.unpack(self.sock.recv(HEADER.size, socket.MSG_WAITALL))
        found = json.loads(self.sock.recv(length, socket.MSG_WAITALL))
        assert isinstance(found, dict)
        return found

    def below(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def close(self) -> None:
        self.sock.close()
        self.process.wait(PATIENCE)


@pytest.fixture(name="keeper")
def keeper_fixture(tmp_path: Path) -> Iterator[Keeper]:
    keeper = Keeper(tmp_path)
    try:
        yield keeper
    finally:
        keeper.close()


def start(config: Any, timeout: float = 30, **more: Any) -> dict[str, Any]:
    return {"op": "start", "id": 1, "config": config, "token": "t" * 20, "timeout": timeout, **more}


def test_it_ends_with_its_stream(keeper: Keeper) -> None:
    keeper.sock.close()
    assert keeper.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("word", [b"nonsense", b"[]", {"op": "other"}, {}])
def test_words_that_are_none(word: Any, keeper: Keeper) -> None:
    keeper.say(word)
    if isinstance(word, bytes):
        assert keeper.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"nobody-knows": {}}, "no server of this name is in the catalogue"),
        ({"own": {"runCmd": "echo said before >&2; exit 3"}}, "said before"),
        ([], "must be a JSON object"),
    ],
)
def test_a_start_that_fails_leaves_nothing(config: Any, said: str, keeper: Keeper) -> None:
    keeper.say(start(config))
    answer = keeper.answer()
    assert (answer["op"], answer["id"]) == ("failed", 1)
    assert said in answer["text"]
    assert not [each for each in keeper.below() if each.status() != psutil.STATUS_ZOMBIE]


def test_a_start_that_hangs_ends_with_the_stream(keeper: Keeper) -> None:
    keeper.say(start({"own": {"runCmd": "exec sleep 1000"}}))
    deadline = time.monotonic() + PATIENCE
    while not (found := [each for each in keeper.below() if "1000" in each.cmdline()]):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    everything = keeper.below()
    keeper.sock.close()
    assert keeper.process.wait(PATIENCE) == 0
    _, alive = psutil.wait_procs([*found, *everything], PATIENCE)
    assert not alive


def test_programs_of_packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    info = site / "own-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "own.py").write_text(
        "import sys\nclass A:\n    @staticmethod\n    def run(): print(sys.argv); return 3\n"
    )
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[console_scripts]\nown-server = own:A.run\n../evil = own:A.run\nbad = own\n"
    )
    monkeypatch.syspath_prepend(str(site))
    folder = relay.write_programs(tmp_path / "bin")
    assert not (tmp_path / "evil").exists()
    assert not (folder / "bad").exists()
    environ = {"PYTHONPATH": str(site), "PATH": f"{folder}:/usr/bin:/bin"}
    done = subprocess.run(["own-server", "a"], env=environ, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (3, "['own-server', 'a']\n")


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "NEEDED", ("json", "no_such_package_here"))
    assert relay._start(start({})) == {"op": "failed", "text": "", "missing": ["no_such_package_here"]}
