"""A damaged or torn record is exported as far as it can be read, and what was passed over is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from sandbox_chat.journal.export import export

KINDS = ("md", "html", "ipynb", "json")


@pytest.mark.parametrize("ending", KINDS)
def test_a_session_cut_anywhere_near_its_end(session: Path, ending: str) -> None:
    """Case T15: every 41st byte of the last 2 kB here; the journal's own tests try each."""
    whole = (session / "events.jsonl").read_bytes()
    for cut in range(len(whole) - 2000, len(whole), 211 if ending != "md" else 41):
        (session / "events.jsonl").write_bytes(whole[:cut])
        done = export(session, session.parent / f"a.{ending}", force=True)
        assert done.turns in (2, 3)
        torn = not whole[:cut].endswith(b"\n") and whole[cut : cut + 1] != b"\n"
        damaged = [line for line in done.left_out if "damaged" in line]
        assert damaged == (["1 damaged place in the record was passed over."] if torn else [])


@pytest.mark.parametrize("ending", KINDS)
def test_damage_in_the_middle_is_counted_and_said(session: Path, ending: str) -> None:
    path = session / "events.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[10] = b"\0" * 200 + b"\n"
    lines[30] = b'{"type":"text","seq":31,"at":"x"\n'
    path.write_bytes(b"".join(lines))
    to = session.parent / f"a.{ending}"
    done = export(session, to)
    said = "2 damaged places in the record were passed over."
    assert said in done.left_out
    assert said in to.read_text(encoding="utf-8")


@pytest.mark.parametrize("ending", KINDS)
def test_pictures_that_are_gone_are_said(session: Path, ending: str) -> None:
    shutil.rmtree(session / "pictures")
    to = session.parent / f"a.{ending}"
    done = export(session, to, beside=False)
    assert any("no longer in the session’s folder" in line for line in done.left_out)
    assert done.files == ()


def test_a_record_of_nothing_but_damage(session: Path) -> None:
    (session / "events.jsonl").write_bytes(b"\xff\n{}\n[]\n")
    for ending in KINDS:
        with pytest.raises(Exception, match="nothing to export"):
            export(session, session.parent / f"a.{ending}")


@pytest.mark.parametrize("ending", KINDS)
def test_a_picture_that_is_too_large_is_said(session: Path, ending: str) -> None:
    done = export(session, session.parent / f"a.{ending}", largest=10)
    assert any("too large and" in line for line in done.left_out)
