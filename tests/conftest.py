"""What all tests share."""

from __future__ import annotations

import signal

import hypothesis
import pytest

from sandbox_chat import crash, words


def pytest_configure() -> None:
    """Give the programs that tests start the usual signals, and let no example fail for its time.

    A shell's background job or ``nohup`` starts its children with signals ignored, which children of theirs inherit;
    the program rightly goes on ignoring them, and a test that sends one would wait in vain.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    hypothesis.settings.register_profile("no deadline", deadline=None)  # machines here are busy at times
    hypothesis.settings.load_profile("no deadline")


@pytest.fixture(autouse=True)
def nothing_of_others() -> None:
    """A report that an earlier test left, on purpose or late, is not told in this one, nor is its language spoken."""
    crash.take_written()
    words.use("en")
