"""The fixture with a Docker daemon, for the test files that import it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.docker_daemon import Daemon, NotHere, daemon


@pytest.fixture(scope="module")
def docker() -> Iterator[Daemon]:
    """A daemon with the image, which this process uses too; where none can be had the tests are not run."""
    patch = pytest.MonkeyPatch()
    try:
        with daemon() as found:
            patch.setenv("DOCKER_HOST", found.host)
            before = found.left()
            yield found
            left = found.left() - before
            assert not left or not found.wait_gone(left), f"containers were left: {left}"
    except NotHere as reason:
        pytest.skip(f"not run: {reason}")
    finally:
        patch.undo()
