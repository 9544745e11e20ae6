"""Fixtures: ``from support.e2b_server.fixtures import cloud_fixture`` in a test module (with ``# noqa: F401``)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .cloud import Cloud


@pytest.fixture(name="cloud")
def cloud_fixture(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """A cloud for one test. ``@pytest.mark.parametrize("cloud", [{"api": "v1"}], indirect=True)`` gives it options.

    Afterwards no sandbox may be left, unless the test set ``cloud.leftovers_expected``; and the server itself
    must not have failed.
    """
    options = getattr(request, "param", {})
    with Cloud(**options) as made:
        yield made
        left = [] if made.leftovers_expected else list(made.sandboxes)
        errors = made.errors
    assert not errors, "\n".join(errors)
    assert not left, f"{len(left)} sandboxes were not ended: {left}"
