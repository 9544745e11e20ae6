"""How a guest's end is named."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator

import pytest

from sandbox_chat.sandbox.spawn import Started


@pytest.fixture
def ours() -> Iterator[socket.socket]:
    """This program's end of a socket whose other end is closed already."""
    mine, theirs = socket.socketpair()
    theirs.close()
    with mine:
        yield mine


def test_a_guest_that_takes_a_while_to_be_over_is_still_named(ours: socket.socket) -> None:
    """The kernel clears a full /tmp before the process can be waited for; its socket is closed long before."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 0.6; exit 4"]) as process:
        assert "exit code 4" in Started(process, ours, -1, -1).ended()


def test_one_that_lives_on_without_its_socket_is_not_waited_for_without_end(
    ours: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandbox_chat.sandbox.spawn.DYING_WAIT", 0.1)
    with subprocess.Popen(["/bin/sleep", "600"]) as process:
        started = Started(process, ours, -1, -1)
        assert started.ended() == ""
        started.kill()
        assert "killed" in started.ended()
