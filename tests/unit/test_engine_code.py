"""What the settings ask for of code mode and personal data: checked with a sentence, and made only when it is wanted."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from support.mcp_host import hosted, way

from sandbox_chat.engine_code import (
    KEPT_AFTER,
    LEFT,
    SHORTEST,
    VAULT,
    KeptValues,
    check,
    make_bridge,
    make_privacy,
    skills_folder,
)
from sandbox_chat.events import (
    Event,
    ImageContent,
    NestedFinished,
    Notice,
    TextContent,
    ToolFinished,
    TurnFinished,
    TurnStarted,
)
from sandbox_chat.settings import ConfigError, Secret, Settings
from sandbox_chat.tools.context import take_default
from sandbox_chat.tools.privacy import Privacy

MAIL = "ann.lee@example.com"
PASSPHRASE = Secret("a long passphrase")


# -- checks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["on", "both"])
def test_code_mode_needs_a_sandbox(mode: str) -> None:
    check(Settings(code_mode=mode), [])
    with pytest.raises(
        ConfigError, match=r"^code_mode: .* --sandbox off .* Use another sandbox, or code_mode off\.$"
    ):
        check(Settings(code_mode=mode, sandbox="off"), [])
    check(Settings(code_mode="off", sandbox="off"), [])


def test_the_policy_is_checked() -> None:
    wrong, other = Settings(code_mode="on", code_mode_policy=("x",)), ("git=free",)
    with pytest.raises(ConfigError, match="must be of the form"):
        check(wrong, [])
    with pytest.raises(ConfigError, match="no MCP server 'git' is on in this session; there are time"):
        check(Settings(code_mode="on", code_mode_policy=other), ["time"])
    check(Settings(code_mode="on", code_mode_policy=other), ["time", "git"])
    check(dataclasses.replace(wrong, code_mode="off"), [])  # it is not used


def test_where_skills_are(tmp_path: Path) -> None:
    assert skills_folder(Settings(data_dir=tmp_path)) == tmp_path / "skills"
    assert skills_folder(Settings(data_dir=tmp_path, skills_dir=tmp_path / "mine")) == tmp_path / "mine"


# -- personal data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pii", "mode", "hides"),
    [
        ("auto", "off", False), ("auto", "on", True), ("auto", "both", True),
        ("on", "off", True), ("on", "on", True), ("off", "on", False), ("off", "off", False),
    ],
)  # fmt: skip
def test_whether_it_is_hidden(pii: str, mode: str, hides: bool) -> None:
    made = make_privacy(Settings(pii=pii, code_mode=mode))
    assert (made is not None) is hides
    if made is not None:
        assert MAIL not in made.text(MAIL)


def test_what_is_kept_needs_a_passphrase() -> None:
    for words in ("", "x" * (SHORTEST - 1)):
        with pytest.raises(ConfigError) as caught:
            make_privacy(Settings(pii="on", pii_keep=True, pii_passphrase=Secret(words)))
        said = str(caught.value)
        assert said.startswith(
            "pii_keep needs a passphrase of 12 signs or more: set SANDBOX_CHAT_PII_PASSPHRASE"
        )
        assert not words or words not in said
    assert make_privacy(Settings(pii="on", pii_keep=True, pii_passphrase=Secret("x" * SHORTEST))) is not None
    assert make_privacy(Settings(pii="on", pii_keep=False)) is not None
    assert make_privacy(Settings(pii="off", pii_keep=True)) is None  # it is not used


def test_local_tools_do_not_go_with_it() -> None:
    local = Settings(local_tools=("Read",))
    with pytest.raises(ConfigError, match="SANDBOX_CHAT_LOCAL_TOOLS empty"):
        make_privacy(dataclasses.replace(local, pii="on"))
    assert make_privacy(dataclasses.replace(local, pii="off")) is None


def kept(folder: Path, events: list[Event], **values: Any) -> tuple[KeptValues, Privacy]:
    """A new session with its vault, in the same folder as others."""
    settings = Settings(**{"pii": "on", "pii_keep": True, "pii_passphrase": PASSPHRASE, **values})
    privacy = make_privacy(settings)
    assert privacy is not None
    return KeptValues(settings, privacy, folder, events.append), privacy


async def test_a_later_run_knows_the_tokens(tmp_path: Path) -> None:
    events: list[Event] = []
    first, privacy = kept(tmp_path, events)
    await first.bring()  # there is nothing yet, which is no trouble
    token = privacy.vault.hide(MAIL)
    await first.keep_aside()
    data = (tmp_path / VAULT).read_bytes()
    assert MAIL.encode() not in data
    second, later = kept(tmp_path, events)
    assert later.vault.reveal(token) == token
    await second.bring()
    assert later.vault.reveal(token) == MAIL
    assert later.vault.hide(MAIL) == token
    second.keep()  # nothing is new
    assert (tmp_path / VAULT).read_bytes() == data
    assert events == []


async def test_one_that_cannot_be_opened_is_told_of_and_left(tmp_path: Path) -> None:
    events: list[Event] = []
    first, privacy = kept(tmp_path, events)
    privacy.vault.hide(MAIL)
    first.keep()
    data = (tmp_path / VAULT).read_bytes()
    second, later = kept(tmp_path, events, pii_passphrase=Secret("another passphrase"))
    await second.bring()
    (told,) = events
    assert isinstance(told, Notice)
    assert told.level == "warning"
    assert "the passphrase is another one" in told.text
    assert told.text.endswith(LEFT)
    later.vault.hide("bob@example.org")
    second.keep()
    assert (tmp_path / VAULT).read_bytes() == data
    assert len(events) == 1


def test_a_disk_that_fails_is_told_of(tmp_path: Path) -> None:
    events: list[Event] = []
    one, privacy = kept(tmp_path / "gone", events)
    privacy.vault.hide(MAIL)
    one.keep()
    (told,) = events
    assert isinstance(told, Notice)
    assert told.level == "warning"
    assert "could not be kept" in told.text
    assert MAIL not in told.text


async def test_without_the_setting_nothing_is_kept(tmp_path: Path) -> None:
    events: list[Event] = []
    one, privacy = kept(tmp_path, events, pii_keep=False)
    privacy.vault.hide(MAIL)
    for each in (one, KeptValues(Settings(pii_keep=True), None, tmp_path, events.append)):
        assert not each.wants(TurnStarted(turn_id="t", prompt="x"))
        await each.bring()
        each.keep()
        await each.keep_aside()
    assert list(tmp_path.iterdir()) == []
    assert events == []


def test_when_there_may_be_something_new(tmp_path: Path) -> None:
    one, _ = kept(tmp_path, [])
    assert one.wants(TurnStarted(turn_id="t", prompt="x"))
    assert one.wants(
        ToolFinished(tool_use_id="a", is_error=False, content=(TextContent("x"),), duration_ms=1)
    )
    assert not one.wants(Notice(level="info", text="x"))
    assert not one.wants(
        NestedFinished(tool_use_id="a", call_id="a.1", is_error=False, content=(), duration_ms=1)
    )
    assert TurnFinished in KEPT_AFTER


# -- the bridge --------------------------------------------------------------------------------------------


def bridge(settings: Settings, events: list[Event], **more: Any) -> Any:
    def save(data: bytes, mime: str, width: int, height: int) -> ImageContent:
        return ImageContent("/p", mime, width, height)

    values: dict[str, Any] = {"servers": None, "privacy": None, **more}
    return make_bridge(
        settings, emit=events.append, ask=take_default, save_picture=save, origin="session-1", **values
    )


def test_no_code_mode_no_bridge() -> None:
    assert bridge(Settings(), []) is None


@pytest.mark.parametrize("mode", ["on", "both"])
async def test_its_parts(mode: str, tmp_path: Path) -> None:
    events: list[Event] = []
    settings = Settings(code_mode=mode, data_dir=tmp_path)
    privacy = make_privacy(settings)
    made = bridge(settings, events, privacy=privacy)
    found = await made._shelf.answer(
        {"op": "draft", "name": "one", "code": "x = 1\n", "description": "One."}, "call-1"
    )
    assert found["ok"]
    assert (tmp_path / "skills" / ".drafts" / "one").is_dir()
    assert "session-1 call-1" in str(list(made._shelf._store.drafts()))
    assert [type(each) for each in events] == [Notice]
    assert privacy is not None
    assert made._private._vault is privacy.vault
    assert bridge(dataclasses.replace(settings, pii="off"), [])._private is None


def test_drafts_are_asked_about_where_the_face_answers(tmp_path: Path) -> None:
    settings = Settings(code_mode="on", data_dir=tmp_path, pii="off")
    assert bridge(settings, [], asks=True)._shelf._ask is take_default
    assert bridge(settings, [])._shelf._ask is None


async def test_the_servers_know_where_tokens_become_data(tmp_path: Path) -> None:
    async with hosted(tmp_path, way("good"), begin=False, code_mode="both") as host:
        assert host.servers.private is None
        made = bridge(host.settings, [], servers=host.servers)
        assert host.servers.private is None
        made = bridge(host.settings, [], servers=host.servers, privacy=make_privacy(host.settings))
        assert host.servers.private is made._private is not None


@pytest.mark.parametrize("values", [{"code_mode_policy": ("x",)}, {"pii_reveal": ("x",)}])
def test_wrong_words(values: dict[str, Any], tmp_path: Path) -> None:
    settings = Settings(code_mode="on", data_dir=tmp_path, **values)
    with pytest.raises(ConfigError, match=next(iter(values))):
        bridge(settings, [], privacy=make_privacy(settings))
