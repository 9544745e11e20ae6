"""Names that the model knows: plain, short, unique, and the same each time."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox_chat.mcp.names import FULL_LIMIT, SERVER_LIMIT, full_name, server_names, tool_names

FIT = re.compile(r"[A-Za-z0-9_-]+")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["git", "time"], ["git", "time"]),
        (["my server", "a__b", "_x_", "é"], ["my_server", "a_b", "x", "server"]),
        (["sequential-thinking"], ["sequential-thinking"]),
    ],
)
def test_servers(names: list[str], expected: list[str]) -> None:
    assert server_names(names) == expected


def test_servers_whose_clean_names_collide() -> None:
    first, second, third = server_names(["a b", "a_b", "a/b"])
    assert second == "a_b"  # it is fit as it is
    assert len({first, second, third}) == 3
    assert server_names(["a b", "a_b"])[0] == first


def test_the_program_s_own_server_is_not_taken() -> None:
    [name] = server_names(["sandbox"])
    assert name != "sandbox" and name.startswith("sandbox_")


def test_tools() -> None:
    names = ["get-sum", "class", "two words", "two_words", "\x1b[31m", "", "x" * 100, "x" * 100 + "y"]
    found = tool_names("everything", names)
    assert list(found) == names
    assert found["get-sum"] == "get-sum" and found["two_words"] == "two_words"
    assert len(set(found.values())) == len(names)
    assert found["x" * 100][:20] == "x" * 20
    assert tool_names("everything", reversed(names))["two words"] == found["two words"]


def test_a_full_name_has_one_reading() -> None:
    servers = server_names(["a", "a__b", "a_"])
    full = {full_name(server, tool) for server in servers for tool in ("b__c", "_b", "c")}
    assert len(full) == 9


@given(st.lists(st.text(max_size=120), max_size=8), st.lists(st.text(max_size=120), max_size=12))
def test_whatever_the_names_are(servers: list[str], tools: list[str]) -> None:
    names = server_names(servers)
    assert len(set(names)) == len(servers)
    for server in names:
        assert FIT.fullmatch(server) and len(server) <= SERVER_LIMIT
        found = tool_names(server, tools)
        assert set(found) == set(tools) and len(set(found.values())) == len(set(tools))
        for tool in found.values():
            full = full_name(server, tool)
            assert FIT.fullmatch(full) and len(full) <= FULL_LIMIT
