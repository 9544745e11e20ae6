"""What is asked for inside the sandbox is checked before anything is made; how its address is had."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sandbox_chat.mcp.base import McpError
from sandbox_chat.mcp.inside import MOST, NAME, check, inside_config
from sandbox_chat.sandbox.base import McpAddress, SandboxError
from sandbox_chat.settings import ConfigError, Secret, Settings, load
from sandbox_chat.values import Servers


def settings(folder: Path, servers: Any, **values: Any) -> Settings:
    return Settings(data_dir=folder, sandbox_mcp=Servers(servers), **values)


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        ({"": {}}, "cannot be the name of a server"),
        ({" ": {}}, "cannot be the name of a server"),
        ({"a\x1b[31m": {}}, "cannot be the name of a server"),
        ({"a\nb": {"runCmd": "x"}}, "cannot be the name of a server"),
        ({"x" * 129: {"runCmd": "x"}}, "cannot be the name of a server"),
        ({"nobody-knows": {}}, "there is no server 'nobody-knows' in the catalogue, which has "),
        ({"own": {"runCmd": ""}}, "needs a runCmd that is not empty"),
        ({"own": {"runCmd": "  "}}, "needs a runCmd that is not empty"),
        ({"own": {"runCmd": ["a"]}}, "needs a runCmd that is not empty"),
        ({"github/a": {"runCmd": "x"}}, "must be of the form github/<owner>/<repo>"),
        ({"github/a/b/c": {"runCmd": "x"}}, "must be of the form github/<owner>/<repo>"),
        ({"github/a/..": {"runCmd": "x"}}, "must be of the form github/<owner>/<repo>"),
        ({"github/a/b c": {"runCmd": "x"}}, "must be of the form github/<owner>/<repo>"),
        ({"github/a/": {"runCmd": "x"}}, "must be of the form github/<owner>/<repo>"),
        ({"github/a/b": {}}, "needs a runCmd that is not empty"),
        ({"github/a/b": {"runCmd": "x", "installCmd": 1}}, "installCmd of the server 'github/a/b' must be a string"),
        ({"own": {"runCmd": "x", "envs": []}}, "must be an object of variables and values"),
        ({"own": {"runCmd": "x", "envs": {"1A": "x"}}}, "'1A' in envs of the server 'own' is not the name"),
        ({"own": {"runCmd": "x", "envs": {"A B": "x"}}}, "is not the name of a variable"),
        ({"own": {"runCmd": "x", "envs": {"Ä": "x"}}}, "is not the name of a variable"),
        ({"own": {"runCmd": "x", "envs": {"A": 1}}}, "the value of A in envs of the server 'own' must be a string"),
        ({"time": {"envs": {"A": None}}}, "the value of A in envs of the server 'time' must be a string"),
        ({"own": {"runCmd": "a\0b"}}, "runCmd of the server 'own' must not hold control characters"),
        ({"own": {"runCmd": "a\x1b[2J"}}, "runCmd of the server 'own' must not hold control characters"),
        ({"own": {"runCmd": "a\ud800"}}, "runCmd of the server 'own' must not hold control characters"),
        ({"github/a/b": {"runCmd": "x", "installCmd": "y\0"}}, "installCmd of the server 'github/a/b' must not hold control"),
        ({"own": {"runCmd": "x", "envs": {"A": "b\0"}}}, "the value of A in envs of the server 'own' must not hold control"),
        ({"own": {"runCmd": "x", "envs": {"A": "b\x9b1m"}}}, "the value of A in envs of the server 'own' must not hold control"),
        ({"filesystem": {"paths": ["/tmp", "/a\0"]}}, "paths of the server 'filesystem' must not hold control characters"),
        ({"filesystem": {"paths": ["/tmp"], "a\x1bb": 1}}, "of the server 'filesystem' must not hold control characters"),
        ({"filesystem": {}}, "paths is required"),
        ({"filesystem": {"paths": "no list"}}, "must be of the type array"),
        ({f"s{number}": {"runCmd": "x"} for number in range(MOST + 1)}, "65 servers are asked for"),
    ],
)  # fmt: skip
def test_what_is_refused(servers: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        check(settings(tmp_path, servers))
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "servers",
    [
        {},
        {"time": {}, "fetch": {}},
        {"time": {"envs": {"TZ": "UTC"}}},
        {"filesystem": {"paths": ["/tmp"]}},
        {"own": {"runCmd": "my-server", "envs": {"_A1": ""}}},
        {"own": {"runCmd": "cd /srv\n\tmy-server", "envs": {"KEY": "-----BEGIN\nKEY\n"}}},
        {"github/a-b/c.d_e": {"runCmd": "x", "installCmd": "y"}},
        {f"s{number}": {"runCmd": "x"} for number in range(MOST)},
    ],
)
def test_what_is_taken(servers: Any, tmp_path: Path) -> None:
    for kind in ("local", "docker", "e2b"):
        check(settings(tmp_path, servers, sandbox=kind))


def test_a_cloud_and_an_image_of_ones_own_may_know_more(tmp_path: Path) -> None:
    check(settings(tmp_path, {"browserbase": {"key": "x"}}, sandbox="e2b"))
    check(settings(tmp_path, {"browserbase": {}}, sandbox="docker", docker_image="own:1"))
    with pytest.raises(ConfigError, match="no server 'browserbase'"):
        check(settings(tmp_path, {"browserbase": {}}, sandbox="docker"))


@pytest.mark.parametrize("kind", ["off", "unsafe-local"])
def test_there_must_be_a_sandbox(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"with --sandbox {kind} there is none"):
        check(settings(tmp_path, {"time": {}}, sandbox=kind))
    check(settings(tmp_path, {}, sandbox=kind))


@pytest.mark.parametrize(
    "raw", ['["time"]', '"time"', '{"time": []}', '{"time": 1}', '{"time": "x"}', "{", '{"time": {}'], ids=str
)
def test_the_setting_is_an_object_of_objects(raw: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="SANDBOX_CHAT_SANDBOX_MCP"):
        load(
            environ={"SANDBOX_CHAT_SANDBOX_MCP": raw, "SANDBOX_CHAT_DATA_DIR": str(tmp_path)}, folder=tmp_path
        )


class Worker:
    """A worker of which only the address is asked."""

    def __init__(self, *answers: McpAddress | SandboxError) -> None:
        self.answers = list(answers)

    def touch(self) -> None: ...

    async def mcp_endpoint(self) -> McpAddress:
        answer = self.answers.pop(0)
        if isinstance(answer, SandboxError):
            raise answer
        return answer


async def test_the_address_is_asked_for_each_time(tmp_path: Path) -> None:
    one = McpAddress(url="http://127.0.0.1:1/mcp", token=Secret("first"))
    two = McpAddress(
        url="http://127.0.0.1:2/mcp", token=Secret("other"), headers={"Host": Secret("50005-i.e2b.app")}
    )
    found = inside_config(settings(tmp_path, {"time": {}}), Worker(one, two))  # type: ignore[arg-type]
    assert (found.name, found.place, found.transport, found.secrets()) == (NAME, "sandbox", "http", [])
    assert found.resolve is not None
    first, second = await found.resolve(), await found.resolve()
    assert (first.url, second.url) == (one.url, two.url)
    assert {name: value.reveal() for name, value in first.headers.items()} == {
        "Authorization": "Bearer first"
    }
    assert second.headers["Host"].reveal() == "50005-i.e2b.app"
    assert second.headers["Authorization"].reveal() == "Bearer other"
    assert "first" not in repr(first)
    assert found.start_timeout is not None
    assert found.start_timeout > 60


async def test_a_failure_is_told_without_the_values_of_variables(tmp_path: Path) -> None:
    servers = {"own": {"runCmd": "x", "envs": {"KEY": "very-private", "SHORT": "ab"}}}
    failed = SandboxError("Failed to start MCP gateway: KEY=very-private ab")
    found = inside_config(settings(tmp_path, servers), Worker(failed))  # type: ignore[arg-type]
    assert found.resolve is not None
    with pytest.raises(McpError, match=r"^Failed to start MCP gateway: KEY=\[secret\] ab$"):
        await found.resolve()
