"""What code may call without asking: only what the user has said so of, and wrong words are told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.bridge.policy import MODES, Policy
from sandbox_chat.mcp.base import ServerConfig, ToolDefinition
from sandbox_chat.settings import ConfigError, Settings


def policy(*words: str) -> Policy:
    return Policy(Settings(code_mode_policy=words))


def free(found: Policy, *, name: str = "git", server: str = "git", read_only: bool = False) -> bool:
    """Whether code may call a tool of the server that the user named ``name`` and the model knows as ``server``."""
    tool = ToolDefinition(
        server=server, name="log", original="log", description="", schema={}, read_only=read_only
    )
    return found.is_free(ServerConfig(name=name, command=("x",)), tool)


@pytest.mark.parametrize(
    ("words", "reads", "writes"),
    [
        ((), False, False),
        (("git=ask",), False, False),
        (("git=read-only",), True, False),
        (("git=free",), True, True),
        (("*=free",), True, True),
        (("*=read-only",), True, False),
        (("*=free", "git=ask"), False, False),
        (("git=ask", "*=free"), False, False),
        (("*=ask", "git=free"), True, True),
        (("other=free",), False, False),
        (("git=free", "git=ask"), False, False),  # what is said last holds
    ],
)
def test_modes(words: tuple[str, ...], reads: bool, writes: bool) -> None:
    found = policy(*words)
    assert free(found, read_only=True) is reads
    assert free(found, read_only=False) is writes


def test_a_server_by_its_own_name_and_by_the_one_that_the_model_knows() -> None:
    assert free(policy("my git=free"), name="my git", server="my_git")
    assert free(policy("my_git=free"), name="my git", server="my_git")
    assert not free(policy("my_git=free", "my git=ask"), name="my git", server="my_git")  # the own one first


def test_a_name_may_hold_the_sign() -> None:
    assert free(policy("a=b=free"), name="a=b", server="a_b")
    assert not free(policy("a=b=free"), name="a", server="a")


@pytest.mark.parametrize("word", ["git", "free", "=free", "git=", "git=yes", "git=FREE", "git:free", "="])
def test_words_that_are_none(word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        policy("time=ask", word)
    said = str(caught.value)
    assert said.startswith(f"code_mode_policy: {word!r} must be of the form server=")
    assert all(mode in said for mode in MODES)
    assert "git=read-only" in said


@given(st.text(max_size=20))
def test_any_other_word_is_refused(word: str) -> None:
    server, sign, mode = word.rpartition("=")
    if sign and server and mode in MODES:
        return
    with pytest.raises(ConfigError):
        policy(word)


def test_only_servers_that_are_on_are_named() -> None:
    found = policy("git=free", "*=ask")
    found.check(["time", "git"])
    with pytest.raises(ConfigError) as caught:
        found.check(["time", "fetch"])
    assert str(caught.value) == (
        "code_mode_policy: no MCP server 'git' is on in this session; there are time, fetch."
    )
    with pytest.raises(ConfigError, match="there are none"):
        found.check([])
    policy("*=free").check([])
    policy().check([])
