"""Personal data in what tools give: none of it goes on, all else does as it was."""

from __future__ import annotations

import base64
import logging
import threading
from typing import Any

import pytest

from sandbox_chat.events import Content, FileContent, ImageContent, TableContent, TextContent
from sandbox_chat.settings import Settings
from sandbox_chat.tools import privacy as privacy_module
from sandbox_chat.tools.context import ImageBlock, TextBlock, ToolOutcome
from sandbox_chat.tools.privacy import QUICK, Privacy
from sandbox_chat.vault import Vault

MAIL = "ann.lee@example.com"
PICTURE = ImageContent("/p.png", "image/png", 1, 1)


@pytest.fixture
def p() -> Privacy:
    return Privacy(Vault(Settings()))


def token(p: Privacy) -> str:
    return p.vault.hide(MAIL)


def outcome(text: str, *display: Content, **more: Any) -> ToolOutcome:
    return ToolOutcome(model=(TextBlock(text),), display=display or (TextContent(text),), **more)


async def test_neither_the_model_nor_the_screen_gets_it(p: Privacy) -> None:
    found = await p.outcome(outcome(f"write to {MAIL}", is_error=True, interrupted=True))
    assert found == ToolOutcome(
        model=(TextBlock(f"write to {token(p)}"),),
        display=(TextContent(f"write to {token(p)}"),),
        is_error=True,
        interrupted=True,
    )


async def test_what_holds_none_is_as_it_was(p: Privacy) -> None:
    given = outcome("a\nb", TextContent("a\nb", (0, 2)), PICTURE, FileContent("/f", "text/plain", 3, "f"))
    found = await p.outcome(given)
    assert found == given
    assert isinstance(found.display[0], TextContent)
    assert found.display[0].titles == (0, 2)


async def test_pictures_are_as_they_were(p: Privacy) -> None:
    block = ImageBlock("AAEC", "image/png")
    given = ToolOutcome(model=(TextBlock(MAIL), block), display=(PICTURE,))
    found = await p.outcome(given)
    assert found.model == (TextBlock(token(p)), block)
    assert found.display == (PICTURE,)


async def test_tables(p: Privacy) -> None:
    table = TableContent(("name", MAIL), (("1", MAIL), ("2", "x")), 2, 2, True)
    found = await p.outcome(outcome("", table))
    assert found.display == (TableContent(("name", token(p)), (("1", token(p)), ("2", "x")), 2, 2, True),)


@pytest.mark.parametrize("size", [0, QUICK + 1])
async def test_much_of_it_is_looked_at_in_a_thread(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is little is done at once: the loop waits less for it than for a thread."""
    p = Privacy(Vault(Settings()))
    threads = set()
    guard = p.vault.guard

    def seen(text: str) -> Any:
        threads.add(threading.current_thread() is threading.main_thread())
        return guard(text)

    monkeypatch.setattr(p.vault, "guard", seen)
    found = await p.outcome(outcome(MAIL + " " * size))
    assert MAIL not in found.text
    assert threads == {size == 0}
    threads.clear()
    await p.outcome(outcome("", TableContent((), (), 0, 0)))
    assert threads == {False}  # a table may be large


@pytest.mark.parametrize(
    "written",
    [base64.b64encode(MAIL.encode()).decode(), MAIL.encode().hex(), MAIL[::-1]],
    ids=["base64", "hex", "reversed"],
)
async def test_another_way_to_write_it_is_found_and_logged(
    written: str, p: Privacy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    token(p)
    found = await p.outcome(outcome(f"it is {written} there"))
    assert written not in found.text
    assert "personal data was on its way to the model: EMAIL" in caplog.text
    assert MAIL not in caplog.text
    assert written not in caplog.text
    assert {record.name for record in caplog.records} == {privacy_module.__name__}


async def test_the_usual_way_is_not_logged(p: Privacy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    await p.outcome(outcome(MAIL))
    await p.outcome(outcome(MAIL))
    assert caplog.records == []


async def test_titles_move_with_what_is_before_them(p: Privacy) -> None:
    """They are the places at which parts begin: behind a token they are others."""
    text = f"[stdout]\n{MAIL} {MAIL}\n[stderr]\nx {MAIL}\n[result]\n1"
    titles = tuple(text.index(each) for each in ("[stdout]", "[stderr]", "[result]"))
    (found,) = (await p.outcome(outcome(text, TextContent(text, titles)))).display
    assert isinstance(found, TextContent)
    assert found.titles is not None
    assert MAIL not in found.text
    assert [found.text[at : at + 8] for at in found.titles] == ["[stdout]", "[stderr]", "[result]"]
    assert p.vault.reveal(found.text) == text


@pytest.mark.parametrize("titles", [None, (), (0,), (7,)])
async def test_titles_of_other_forms(titles: tuple[int, ...] | None, p: Privacy) -> None:
    text = f"before [title]\n{MAIL}"
    (found,) = (await p.outcome(outcome(text, TextContent(text, titles)))).display
    assert isinstance(found, TextContent)
    assert found.titles == titles
    assert found.text == f"before [title]\n{token(p)}"


def test_prompts(p: Privacy) -> None:
    assert p.prompt(f"Write to {MAIL}.") == f"Write to {token(p)}."
    written = MAIL.encode().hex()
    assert p.prompt(written) == written  # the user may write what they please


def test_live_output_in_pieces(p: Privacy) -> None:
    feed, close = p.stream()
    text = f"one {MAIL}\ntwo {MAIL} three"
    shown = [feed(text[at : at + 5]) for at in range(0, len(text), 5)]
    rest = close()
    assert MAIL not in "".join(shown) + rest
    assert "".join(shown) == f"one {token(p)}\n"  # a line is shown when it is whole
    assert rest == f"two {token(p)} three"
    other, _ = p.stream()
    assert other("x\n") == "x\n"  # each has its own
