"""Failed assertions of the cases are explained like those of tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite(
    "conformance.cases_code",
    "conformance.cases_files",
    "conformance.cases_pictures",
    "conformance.cases_stop",
)
