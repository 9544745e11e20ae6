"""Personal data of a session: in the user's own prompts, and kept for a session that is resumed. With the real agent."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.engines import Running, engine
from support.mcp_host import config_file, way
from support.scripted import call, text, tool_results

from sandbox_chat.events import Notice, Steered, TurnStarted
from sandbox_chat.journal.keeping import delete
from sandbox_chat.settings import ConfigError, Secret

PASSPHRASE = Secret("correct horse battery")
VALUE = "ann@example.org"
TOKEN = re.compile(r"<EMAIL:[a-z2-7]{10}>")


def sent(running: Running) -> str:
    """All that went to the model."""
    return json.dumps([request.body for request in running.server.requests], ensure_ascii=False)


def recorded(folder: Path, session_id: str) -> str:
    return (folder / "data" / "sessions" / session_id / "events.jsonl").read_text("utf-8")


def vault_file(folder: Path, session_id: str) -> Path:
    return folder / "data" / "sessions" / session_id / "vault"


@pytest.mark.parametrize("hides", [True, False])
def test_own_prompts_go_out_as_the_user_wishes(tmp_path: Path, hides: bool) -> None:
    with engine(tmp_path, text("Fine."), sandbox="off", pii="on", pii_prompt=hides) as e:
        assert e.ask(f"write to {VALUE}").subtype == "success"
        assert (VALUE in sent(e)) is not hides
        assert (VALUE in recorded(tmp_path, e.engine.session_id)) is not hides
        (began,) = e.of(TurnStarted)
        assert (TOKEN.search(began.prompt) is not None) is hides
        if hides:
            values = e.engine.real_values()
            assert values is not None
            assert list(values.values()) == [VALUE]


def test_a_prompt_into_a_running_turn_too(tmp_path: Path) -> None:
    def steer(running: Running, event: object) -> None:
        if type(event).__name__ == "ToolStarted":
            running.engine.steer(f"and copy {VALUE}")

    with engine(
        tmp_path,
        call("run_code", code="import time; time.sleep(1.5)"),
        text("Fine."),
        pii="on",
        pii_prompt=True,
        on_event=steer,
    ) as e:
        assert e.ask("begin").subtype == "success"
        told = [event.prompt for event in (*e.of(Steered), *e.of(TurnStarted))]
        assert any(TOKEN.search(prompt) for prompt in told)
    assert VALUE not in sent(e)
    assert VALUE not in recorded(tmp_path, e.engine.session_id)


def test_nothing_is_kept_unless_the_user_asks(tmp_path: Path) -> None:
    with engine(tmp_path, text("Fine."), sandbox="off", pii="on", pii_prompt=True) as e:
        e.ask(f"write to {VALUE}")
    assert not vault_file(tmp_path, e.engine.session_id).exists()


def test_a_resumed_session_knows_its_tokens(tmp_path: Path) -> None:
    values = {
        "sandbox": "off",
        "pii": "on",
        "pii_prompt": True,
        "pii_keep": True,
        "pii_passphrase": PASSPHRASE,
    }
    with engine(tmp_path, text("Fine."), **values) as e:
        e.ask(f"write to {VALUE}")
        known = e.engine.real_values()
    assert known
    path = vault_file(tmp_path, e.engine.session_id)
    assert VALUE.encode() not in path.read_bytes()
    with engine(tmp_path, text("Again."), resume=e.engine.session_id, **values) as again:
        assert again.ask(f"once more to {VALUE}").subtype == "success"
        assert again.engine.real_values() == known
        assert VALUE not in sent(again)
    with engine(tmp_path, text("Branch."), resume=e.engine.session_id, fork=True, **values) as branch:
        assert branch.ask("hello").subtype == "success"
        assert branch.engine.real_values() == known
        assert branch.engine.session_id != e.engine.session_id
    delete(tmp_path / "data", e.engine.session_id)
    assert not path.exists()
    assert vault_file(tmp_path, branch.engine.session_id).exists()


def test_what_is_put_back_is_known_again_after_a_resume(tmp_path: Path) -> None:
    values = {
        "mcp_config": config_file(tmp_path, way("good")),
        "code_mode": "on",
        "code_mode_policy": ("*=free",),
        "pii_reveal": ("bad/echo/text",),
        "pii_keep": True,
        "pii_passphrase": PASSPHRASE,
    }
    with engine(
        tmp_path, call("run_code", code="print('ann' + '@example.org')"), text("Fine."), **values
    ) as e:
        e.ask("who")
        token = TOKEN.search(tool_results(e.server)[0].text)
        assert token is not None
    code = f"made = call_mcp_tool('bad__echo', {{'text': {token.group()!r} + ' and'}})\nprint(len(made['text']), made['text'])"
    with engine(
        tmp_path, call("run_code", code=code), text("Sent."), resume=e.engine.session_id, **values
    ) as again:
        again.ask("send it")
        said = tool_results(again.server)[-1].text
        assert f"{len(token.group()) + 4} {token.group()} and" in said, said  # what came back is hidden again
        assert VALUE not in sent(again)


def test_another_passphrase_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    values = {"sandbox": "off", "pii": "on", "pii_prompt": True, "pii_keep": True}
    with engine(tmp_path, text("Fine."), pii_passphrase=PASSPHRASE, **values) as e:
        e.ask(f"write to {VALUE}")
    path = vault_file(tmp_path, e.engine.session_id)
    before = path.read_bytes()
    with engine(
        tmp_path, text("Fine."), resume=e.engine.session_id, pii_passphrase=Secret("another one, as long"), **values
    ) as again:  # fmt: skip
        assert again.ask("to ben@example.org").subtype == "success"
        (told,) = [event.text for event in again.of(Notice) if "kept vault" in event.text]
        assert "passphrase is another one" in told
        assert "stay tokens" in told
    assert path.read_bytes() == before


@pytest.mark.parametrize("passphrase", ["", "short"])
def test_keeping_needs_a_passphrase(tmp_path: Path, passphrase: str) -> None:
    with (
        pytest.raises(ConfigError, match="SANDBOX_CHAT_PII_PASSPHRASE"),
        engine(tmp_path, sandbox="off", pii="on", pii_keep=True, pii_passphrase=Secret(passphrase)),
    ):
        pass
