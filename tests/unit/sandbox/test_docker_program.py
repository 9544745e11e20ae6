"""What the program that runs containers says, turned into advice; building; listing. A script stands in for it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.sandboxes import PATIENCE, until

from sandbox_chat import cli
from sandbox_chat.sandbox import docker_build, docker_list, docker_program
from sandbox_chat.sandbox.base import SandboxError, SandboxUnavailable
from sandbox_chat.sandbox.remote import marks
from sandbox_chat.settings import Settings


def stand_in(folder: Path, script: str) -> Settings:
    """Settings with a program of our own in Docker's place."""
    path = folder / "containers"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return Settings(docker_command=str(path), data_dir=folder / "data")


def test_a_program_that_is_held_is_out_of_reach_of_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not for it")
    settings = stand_in(tmp_path, 'echo "$PWD ${ANTHROPIC_API_KEY-none}"; read line; echo "$line" >&2')
    with docker_program.hold([settings.docker_command, "run"]) as process:
        assert os.getsid(process.pid) == process.pid
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        process.stdin.write(b"in\n")
        assert (process.stdout.read(), process.stderr.read()) == (b"/ none\n", b"in\n")
    with pytest.raises(FileNotFoundError):
        docker_program.hold([str(tmp_path / "none")])


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            "group 'docker'",
        ),
        ("Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?", "Start it"),
        (
            "Cannot connect to Podman. Please verify your connection: unable to connect to Podman socket",
            "Start it",
        ),
        ("docker: Error response from daemon: No such image: sandbox-chat:1", "sandbox-chat docker build"),
        ("Error: sandbox-chat:1: image not known", "sandbox-chat docker build"),
        ("docker: Error response from daemon: network nowhere not found.", "network create"),
        ('exec: "python3": executable file not found in $PATH: unknown.', "has no python3"),
        ("ModuleNotFoundError: No module named 'IPython'", "lacks a package"),
        (
            'Failed to initialize: unable to resolve docker endpoint: context "x": context not found',
            "DOCKER_CONTEXT",
        ),
        ("unable to resolve docker endpoint: invalid bind address format: foo://bar", "DOCKER_HOST"),
        ("this Python is too old: 3.9.2", "needs 3.11 or newer"),
        ("It did not answer within 30 s.", "SANDBOX_CHAT_START_TIMEOUT"),
        ("write /var/lib/docker/tmp: no space left on device", "system prune"),
        ("something that nobody has seen before", "something that nobody has seen before"),
    ],
)
def test_each_complaint_has_its_advice(said: str, advice: str) -> None:
    error = docker_program.explain(Settings(docker_network="nowhere"), said)
    assert advice in str(error)
    assert "--sandbox local" in str(error)


def test_a_named_image_is_pulled_not_built() -> None:
    error = docker_program.explain(Settings(docker_image="mine:1"), "Unable to find image 'mine:1' locally")
    assert "docker pull mine:1" in str(error)


def test_a_program_that_does_not_answer_is_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="did not answer within"):
        docker_program.call(stand_in(tmp_path, "exec sleep 60"), ["ps"], timeout=0.3)


def test_a_program_that_does_not_answer_leaves_nothing_behind(tmp_path: Path) -> None:
    chosen = stand_in(tmp_path, f"sh -c 'echo $$ > {tmp_path}/pid; exec sleep 600' &\nwait")
    with pytest.raises(SandboxError, match="did not answer within"):
        docker_program.call(chosen, ["ps"], timeout=2.0)
    number = int((tmp_path / "pid").read_text())
    assert until(lambda: not psutil.pid_exists(number) or psutil.Process(number).status() == "zombie")


@pytest.mark.parametrize(
    "name", ["--privileged", "Foo Bar", "a:b:c", "", "x\ny", "UPPER", "a" * 500, "-x", "a b"]
)
def test_what_is_no_name_of_an_image_is_refused(name: str) -> None:
    with pytest.raises(SandboxUnavailable, match="is not the name of an image"):
        docker_program.check_name(name, "--tag")


@pytest.mark.parametrize(
    "name",
    ["python:3.12-slim", "sandbox-chat:0.1.0", "ghcr.io/a/b_c:v1", "localhost:5000/x", "x@sha256:" + "a" * 64, "a" * 64, "sha256:" + "b" * 64],
)  # fmt: skip
def test_names_of_images_are_taken(name: str) -> None:
    assert docker_program.check_name(name, "--tag") == name
    assert docker_program.check_name(docker_program.default_image(), "")


def test_a_missing_program_is_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="not installed"):
        docker_program.call(Settings(docker_command=str(tmp_path / "nothing")), ["ps"])


# -- list ----------------------------------------------------------------------------------------------


def listed(folder: Path, entries: object, ids: str = "a" * 64) -> Settings:
    (folder / "answer.json").write_text(entries if isinstance(entries, str) else json.dumps(entries))
    return stand_in(folder, f'[ "$1" = ps ] && echo {ids} || cat {folder}/answer.json')


def entry(labels: dict[str, str], **rest: object) -> dict[str, object]:
    return {"Id": "a" * 64, "Created": "2026-01-02T03:04:05.123456789Z", "Config": {"Labels": labels}, "State": {"Status": "running"}, **rest}  # fmt: skip


def test_ours_are_told_from_those_of_a_crashed_run(tmp_path: Path) -> None:
    mine = marks("s1", "")
    dead = {**mine, "pid": "999999999", "session": "s2"}
    elsewhere = {**dead, "host": "another"}
    found = docker_list.list_containers(
        listed(tmp_path, [entry(mine), entry(dead), entry(elsewhere), entry({"app": "other"}), 7, {"Id": 3}])
    )
    assert [(one.session, one.here, one.left) for one in found] == [
        ("s1", True, False),
        ("s2", True, True),
        ("s2", False, False),
    ]
    assert found[0].started is not None
    assert found[0].started.isoformat().startswith("2026-01-02T03:04:05.123456")


def test_a_list_of_nonsense_is_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxError, match="makes no sense"):
        docker_list.list_containers(listed(tmp_path, "not json"))


@pytest.mark.parametrize("said", ["5", "-x --all", "a\\000b", "garbage"])
def test_a_program_that_is_not_docker_is_said(tmp_path: Path, said: str) -> None:
    with pytest.raises(SandboxError, match="makes no sense"):
        docker_list.list_containers(stand_in(tmp_path, f"printf -- '{said}'"))
    with pytest.raises(SandboxError, match="makes no sense"):
        docker_list.list_containers(listed(tmp_path, "5"))


def test_a_daemon_that_ends_between_two_questions_is_said(tmp_path: Path) -> None:
    said = "Cannot connect to the Docker daemon. Is the docker daemon running?"
    chosen = stand_in(
        tmp_path, f'[ "$1" = ps ] && echo {"a" * 64} && exit 0; echo "[]"; echo "{said}" >&2; exit 1'
    )
    with pytest.raises(SandboxUnavailable, match="Start it"):
        docker_list.list_containers(chosen)


def test_why_one_could_not_be_ended_is_said(tmp_path: Path) -> None:
    rows = json.dumps([entry({"app": "sandbox-chat"})])
    (tmp_path / "rows").write_text(rows)
    script = f'case $1 in ps) echo {"a" * 64};; rm) echo "the disk is on fire" >&2; exit 1;; *) cat {tmp_path}/rows;; esac'
    with pytest.raises(SandboxError, match="the disk is on fire"):
        docker_list.kill(stand_in(tmp_path, script), ["a" * 64])


def test_only_ours_are_killed(tmp_path: Path) -> None:
    chosen = listed(tmp_path, [entry({"app": "other"})])
    assert docker_list.kill(chosen, ["a" * 12, ""]) == []


# -- build ---------------------------------------------------------------------------------------------


def test_a_build_gets_only_what_the_image_needs(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    (wheels / "one-1-py3-none-any.whl").write_text("wheel")
    (wheels / "secret.txt").write_text("not for the builder")
    script = f"""
if [ "$1" = build ]; then
    echo "$@" > {tmp_path}/arguments
    for last; do :; done
    (cd "$last" && find . -type f | sort) > {tmp_path}/files
    echo step one
else
    echo 12345
fi
"""
    lines: list[str] = []
    built = docker_build.build(
        stand_in(tmp_path, script), base="mine:3", wheels=wheels, tag="made:1", on_line=lines.append
    )
    assert (built.tag, built.size, lines) == ("made:1", 12345, ["step one"])
    asked = (tmp_path / "arguments").read_text()
    for part in ("--tag made:1", "--build-arg BASE=mine:3", "--network none"):
        assert part in asked
    assert (tmp_path / "files").read_text().split() == [
        "./Dockerfile",
        "./requirements.txt",
        "./wheels/README",
        "./wheels/one-1-py3-none-any.whl",
    ]


@pytest.mark.parametrize(
    ("log", "advice"),
    [
        ("ERROR: No matching distribution found for numpy>=2.0", "cannot be had"),
        ("pull access denied for nope, repository does not exist", "--base"),
        ("/usr/bin/python3: No module named pip", "no pip"),
        ("NewConnectionError: Temporary failure in name resolution", "--wheels"),
        ("no space left on device", "disk is full"),
        ("a fault of its own", "was not built"),
    ],
)
def test_a_failed_build_has_a_sentence_and_the_end_of_the_log(tmp_path: Path, log: str, advice: str) -> None:
    with pytest.raises(docker_build.BuildFailed, match=advice) as caught:
        docker_build.build(stand_in(tmp_path, f'echo "{log}"; exit 1'))
    assert log in caught.value.log


def test_a_folder_without_wheels_is_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="pip download"):
        docker_build.build(stand_in(tmp_path, "exit 1"), wheels=tmp_path)


def test_the_command_builds_and_says_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stand_in(tmp_path, '[ "$1" = build ] && echo "a step" || echo 480000000')
    monkeypatch.setenv("SANDBOX_CHAT_DOCKER_COMMAND", str(tmp_path / "containers"))
    monkeypatch.chdir(tmp_path)
    assert cli.main(["docker", "build"]) == 0
    shown = capsys.readouterr()
    assert "a step" in shown.err
    assert "480 MB" in shown.out
    assert "--sandbox docker" in shown.out
    (tmp_path / "containers").write_text("#!/bin/sh\necho 'the reason'; exit 1\n")
    assert cli.main(["docker", "build", "--quiet", "--tag", "x:1"]) == 1
    shown = capsys.readouterr()
    assert "the reason" in shown.err
    assert shown.out == ""


def test_a_wrong_word_is_said_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["docker", "biuld"]) == 2
    assert "did you mean 'build'?" in capsys.readouterr().err
    assert cli.main(["docker"]) == 2


def test_the_image_is_packed_with_the_program() -> None:
    folder = docker_build.source_folder()
    assert (folder / "Dockerfile").is_file()
    assert not os.access(folder / "wheels", os.F_OK)
    wanted = {
        line.split(">=")[0]
        for line in (folder / "requirements.txt").read_text().splitlines()
        if line[:1] != "#"
    }
    servers = {"mcp", "uvicorn", "starlette", "mcp-server-time", "mcp-server-fetch"}
    assert wanted == {"ipython", "matplotlib-inline", "numpy", "pandas", "matplotlib", *servers}


def test_a_build_that_is_asked_to_end_leaves_nothing_behind(tmp_path: Path) -> None:
    stand_in(tmp_path, f"echo $$ > {tmp_path}/pid; echo a step; exec sleep 600")
    room = tmp_path / "room"
    room.mkdir()
    with subprocess.Popen(
        [sys.executable, "-m", "sandbox_chat", "docker", "build"],
        env={
            **os.environ,
            "SANDBOX_CHAT_DOCKER_COMMAND": str(tmp_path / "containers"),
            "SANDBOX_CHAT_CONFIG_DIR": str(tmp_path),
            "TMPDIR": str(room),
        },
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stderr is not None
        while "a step" not in program.stderr.readline():
            assert program.poll() is None
        assert list(room.iterdir())
        program.send_signal(signal.SIGTERM)
        _, said = program.communicate(timeout=PATIENCE)
    assert program.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in said
    assert list(room.iterdir()) == []
    number = int((tmp_path / "pid").read_text())
    assert until(lambda: not psutil.pid_exists(number))


def test_a_build_without_room_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "x")

    monkeypatch.setattr(docker_build, "_fill", full)
    with pytest.raises(SandboxUnavailable, match=r"No space left on device \(x\).*TMPDIR"):
        docker_build.build(stand_in(tmp_path, "exit 1"))
