"""How a container is asked for, what goes into it first, and the words about its end. Nothing is started."""

from __future__ import annotations

import csv
import json
import os
import signal
from pathlib import Path

import pytest

from sandbox_chat.guest import boot
from sandbox_chat.sandbox import docker, docker_program
from sandbox_chat.sandbox.base import SandboxUnavailable
from sandbox_chat.settings import Secret, Settings


def settings(folder: Path, **values: object) -> Settings:
    return Settings(sandbox="docker", data_dir=folder, **values)  # type: ignore[arg-type]


def options(arguments: list[str]) -> dict[str, list[str]]:
    """The options of a command line before the image, each with its values."""
    found: dict[str, list[str]] = {}
    place = 1
    while place < len(arguments) and arguments[place].startswith("--"):
        name, equals, value = arguments[place].partition("=")
        alone = bool(equals) or name in ("--interactive", "--rm", "--read-only")
        found.setdefault(name, []).append(value if alone else arguments[place + 1])
        place += 1 if alone else 2
    found["image"] = arguments[place:]
    return found


def test_every_wall_is_asked_for(tmp_path: Path) -> None:
    found = options(
        docker.arguments(settings(tmp_path, sandbox_memory_mb=500, sandbox_processes=60), "n", "s")
    )
    assert "--read-only" in found
    assert "--rm" in found
    assert found["--network"] == ["none"]
    assert found["--cap-drop"] == ["ALL"]
    assert found["--security-opt"] == ["no-new-privileges"]
    assert found["--user"] == [f"{docker.USER}:{docker.USER}"]
    assert found["--memory"] == found["--memory-swap"] == ["500m"]
    assert found["--pids-limit"] == ["68"]
    assert found["--ipc"] == ["private"]
    assert found["--log-driver"] == ["none"]  # or each byte of output would lie on the daemon's disk
    assert found["--pull"] == ["never"]
    assert {value.split("=")[0] for value in found["--ulimit"]} == {"core", "nofile", "fsize"}
    assert all("nosuid" in value and "nodev" in value and "size=" in value for value in found["--tmpfs"])
    assert "--cpus" not in found
    assert not any(name in found for name in ("--volume", "--mount", "--privileged", "--device", "--pid"))
    assert found["--init"] == ["false"]  # the relay is the first process
    assert found["image"][0] == docker_program.default_image()


def test_nothing_of_this_program_is_in_the_environment_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key-of-a-user")
    monkeypatch.setenv("E2B_API_KEY", "another")
    monkeypatch.setenv("DOCKER_HOST", "unix:///x")
    line = " ".join(docker.arguments(settings(tmp_path, anthropic_api_key=Secret("key-of-a-user")), "n", "s"))
    assert "key-of-a-user" not in line
    assert "another" not in line
    outside = docker_program.environ()
    assert outside["DOCKER_HOST"] == "unix:///x"
    assert "ANTHROPIC_API_KEY" not in outside
    assert "E2B_API_KEY" not in outside
    assert b"key-of-a-user" not in docker.box(settings(tmp_path, anthropic_api_key=Secret("key-of-a-user")))


def test_marks_tell_whose_it_is(tmp_path: Path) -> None:
    found = options(docker.arguments(settings(tmp_path), "n", "session-1"))
    labels = dict(value.split("=", 1) for value in found["--label"])
    assert labels["app"] == "sandbox-chat"
    assert labels["session"] == "session-1"
    assert labels["pid"] == str(os.getpid())


@pytest.mark.parametrize(
    "name",
    [
        "host", "HOST", "container:other", "ns:/proc/1/ns/net", "--privileged", "name=host", "name=host,alias=x", "a b",
        "pasta", "slirp4netns:allow_host_loopback=true", "slirp4netns", "a,b", "../x",
    ],
)  # fmt: skip
def test_a_network_that_undoes_the_isolation_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SandboxUnavailable, match="SANDBOX_CHAT_DOCKER_NETWORK"):
        docker.arguments(settings(tmp_path, docker_network=name), "n", "s")


def test_a_named_network_is_used_and_told(tmp_path: Path) -> None:
    chosen = settings(tmp_path, docker_network="allowed", sandbox_cpus=1.5)
    found = options(docker.arguments(chosen, "n", "s"))
    assert (found["--network"], found["--cpus"]) == (["allowed"], ["1.5"])
    assert docker.info(chosen).capabilities.network
    assert not docker.info(settings(tmp_path)).capabilities.network


def test_other_images_get_a_user_that_they_have(tmp_path: Path) -> None:
    assert options(docker.arguments(settings(tmp_path, docker_image="python:3.13"), "n", "s"))["--user"] == [
        "65534:65534"
    ]
    assert (
        docker.user_id(settings(tmp_path, docker_image="registry.example/me/sandbox-chat:2"), None)
        == docker.USER
    )


def test_a_shared_folder_is_never_roots(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    data = tmp_path / "data"
    if os.geteuid() == 0:
        with pytest.raises(SandboxUnavailable, match="root"):
            docker.arguments(settings(data, sandbox_workspace=folder), "n", "s")
        os.chown(folder, 4321, 4321)
    found = options(docker.arguments(settings(data, sandbox_workspace=folder), "n", "s"))
    owner = folder.stat().st_uid
    assert found["--user"] == [f"{owner}:{owner}"]
    assert found["--mount"] == [f"type=bind,source={folder},target=/workspace"]
    with pytest.raises(SandboxUnavailable, match="cannot be shared"):
        docker.user_id(settings(data), Path("/"))


def test_a_shared_folder_may_have_any_name(tmp_path: Path) -> None:
    """What Docker and Podman read there are comma-separated values."""
    folder = tmp_path / 'a,readonly=false "b"'
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 4321, 4321)
    found = options(docker.arguments(settings(tmp_path / "data", sandbox_workspace=folder), "n", "s"))
    (row,) = csv.reader(found["--mount"])
    assert row == ["type=bind", f"source={folder}", "target=/workspace"]


def test_the_workspace_is_in_memory_and_bounded(tmp_path: Path) -> None:
    found = options(docker.arguments(settings(tmp_path, sandbox_disk_mb=77), "n", "s"))
    (row,) = [value for value in found["--tmpfs"] if value.startswith("/workspace:")]
    fields = row.partition(":")[2].split(",")
    assert {"nosuid", "nodev", "size=77m", f"nr_inodes={docker.INODES}"} <= set(fields)


def test_skills_are_mounted_to_be_read(tmp_path: Path) -> None:
    folder = tmp_path / "a,b"
    found = options(docker.arguments(settings(tmp_path), "n", "s", skills=folder))
    (row,) = csv.reader(found["--mount"])
    assert row == ["type=bind", f"source={folder}", "target=/skills", "readonly"]


def test_the_box_holds_the_whole_guest(tmp_path: Path) -> None:
    data = docker.box(settings(tmp_path, sandbox_cpu_seconds=77))
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    content = json.loads(data[4:])
    assert {"__init__", "boot", "relay", "main", "link", "shell"} <= set(content["files"])
    config = content["config"]
    assert config["cpu_seconds"] == 77
    assert config["guest"]["alone"] is True
    assert set(config["filters"]) == {"x86_64", "aarch64"}
    # By user id it would be one count for the containers of everybody.
    assert "NPROC" not in config["guest"]["limits"]
    finder = boot.Memory(content["files"])
    assert finder.get_source("sandbox_guest.relay") == content["files"]["relay"]
    assert finder.find_spec("sandbox_guest.nothing", None) is None
    assert finder.find_spec("json", None) is None
    for name, source in content["files"].items():
        compile(source, name, "exec")


def test_the_end_has_words(tmp_path: Path) -> None:
    chosen = settings(tmp_path, sandbox_memory_mb=300, sandbox_cpu_seconds=5)

    def words(guest: int | None, program: int, said: str = "", **struck: int) -> str:
        return docker.describe(chosen, guest, program, said, struck)

    assert "exit code 3" in words(3, 3)
    assert "SIGSEGV" in words(-signal.SIGSEGV, 139)
    assert "300 MB" in words(-signal.SIGKILL, 137, oom=1)
    assert "5 seconds of processor time" in words(-signal.SIGKILL, 137, cpu=1)
    assert "most likely it ran out of memory" in words(-signal.SIGKILL, 137)
    assert "killed from outside" in words(None, 137)
    assert "The docker program that held the sandbox was ended" in words(None, -9)
    assert "The daemon of docker ended" in words(None, 125, "error waiting for container: unexpected EOF")
    assert words(None, 125, "docker: Error response from daemon: nothing\n") == (
        "docker: Error response from daemon: nothing"
    )


def test_podman_is_known_by_its_name_and_as_docker(tmp_path: Path) -> None:
    for name, text, podman in (
        ("podman", "", True),
        ("docker", '#!/bin/sh\nexec /usr/bin/podman "$@"\n', True),
        ("docker-of-its-own", "\x7fELF podman", False),
    ):
        (tmp_path / name).write_text(text)
        assert docker_program.is_podman(str(tmp_path / name)) is podman
    found = options(docker.arguments(settings(tmp_path), "n", "s", podman=True))
    # What Podman does not understand, and what it would ask for without being told.
    assert not any("nr_inodes" in value or "uid=" in value for value in found["--tmpfs"])
    assert any(value.startswith("nproc=") for value in found["--ulimit"])
