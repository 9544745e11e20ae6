"""SANDBOXES.md says what is so: its tables are those that the suite and the tools make."""

from __future__ import annotations

import re

import pytest
from conformance import behaviour, report
from conformance.cases import BACK_ENDS, CASES
from conformance.document import DOCUMENT, between, limits_table

REMAKE = "run: python tests/conformance/{}.py --write"


def document() -> str:
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_limits_are_those_of_the_settings() -> None:
    assert between(document(), "limits") == limits_table(), REMAKE.format("behaviour")


def test_the_table_has_every_case() -> None:
    """Only what came of the cells may differ from a run."""

    def blank(row: str) -> str:
        text, *cells = row.strip().strip("|").rsplit("|", len(BACK_ENDS))
        return "|".join(
            [text.strip(), *(re.sub(r"^(✓|not run|\*\*failed\*\*)", "", c.strip()) for c in cells)]
        )

    table = between(document(), report.NAME).splitlines()
    signs = {
        (name, case.name): "n/a" if name in case.not_there else "✓" for name in BACK_ENDS for case in CASES
    }
    wanted = [blank(row) for row in report.rows(signs)]
    assert [blank(row) for row in table[: len(wanted)]] == wanted, REMAKE.format("report")
    for number, text in enumerate(report.notes(), 1):
        assert f"({number}) {text}" in table, REMAKE.format("report")
    assert "**failed**" not in "\n".join(table[: len(wanted)])


@pytest.mark.slow
async def test_what_the_model_is_told_of_troubles() -> None:
    made = (await behaviour.table()).splitlines()
    written = between(document(), behaviour.NAME).splitlines()
    assert made[:2] == written[:2]
    assert len(made) == len(written), REMAKE.format("behaviour")
    for row, new, old in zip(behaviour.ROWS, made[2:], written[2:], strict=True):
        if row.varies:
            assert row.varies in new
            assert row.varies in old
        else:
            assert new == old, REMAKE.format("behaviour")
