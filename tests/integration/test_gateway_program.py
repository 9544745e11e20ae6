"""The program ``mcp-gateway`` from outside: what starts it, what refuses to start, and that nothing is left."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import psutil
import pytest
from support.gateways import MARK, TOKEN, Gateway, a_gateway, quick

from sandbox_chat import gateway as package
from sandbox_chat.gateway import launch


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A gateway that is not started."""
    with a_gateway(tmp_path) as gateway:
        yield gateway


def nothing_is_left(gateway: Gateway) -> None:
    """No process, no token, no port."""
    assert gateway.gone(), gateway.processes()
    assert not gateway.token_file.exists()
    with pytest.raises(httpx2.TransportError):
        httpx2.get(f"http://127.0.0.1:{gateway.port}/health")


def test_ready_means_ready_and_the_end_is_an_end(gateway: Gateway) -> None:
    gateway.started({"one": {"runCmd": quick("--child")}, "two": {"runCmd": quick("--stay")}})
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).json() == {
        "status": "ok",
        "servers": 2,
        "tools": 26,
    }
    assert gateway.token_file.read_text() == TOKEN
    assert stat.S_IMODE(gateway.token_file.stat().st_mode) == 0o600
    assert stat.S_IMODE(gateway.token_file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(gateway.log_file.stat().st_mode) == 0o600
    assert psutil.Process(gateway.pid).ppid() != os.getpid()
    assert os.getsid(gateway.pid) == gateway.pid
    psutil.Process(gateway.pid).terminate()
    nothing_is_left(gateway)


@pytest.mark.parametrize("victim", ["keeper", "server"])
def test_killed_it_leaves_nothing(gateway: Gateway, victim: str) -> None:
    gateway.started({"one": {"runCmd": quick("--child")}, "two": {"runCmd": quick()}})
    keeper = psutil.Process(gateway.pid)
    (keeper if victim == "keeper" else keeper.children()[0]).kill()
    nothing_is_left(gateway)


def test_a_second_start_is_refused_and_harms_nothing(gateway: Gateway) -> None:
    gateway.started({"one": {"runCmd": quick()}})
    others = {"GATEWAY_ACCESS_TOKEN": "another-token"}
    pid = gateway.pid
    same = gateway.start({"one": {"runCmd": quick()}}, environment=others)
    assert same.returncode == 1
    assert "runs already" in same.stderr
    elsewhere = gateway.start(
        {"one": {"runCmd": quick()}}, "--token-file", str(gateway.folder / "x"), environment=others
    )
    assert elsewhere.returncode == 1
    assert f"Port {gateway.port} cannot be used" in elsewhere.stderr
    gateway.pid = pid
    assert gateway.token_file.read_text() == TOKEN
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).status_code == 200
    psutil.Process(pid).terminate()
    nothing_is_left(gateway)
    gateway.started({"one": {"runCmd": quick()}})


def test_a_server_that_cannot_start_ends_all(gateway: Gateway) -> None:
    counted = gateway.folder / "count"
    done = gateway.start(
        {
            "bad": {"runCmd": "sleep 0.5; " + quick("--exit", "3")},
            "good": {"runCmd": quick("--child", "--count", str(counted))},
        }
    )
    assert done.returncode == 1
    assert "The server bad did not start: it ended (exit code 3)." in done.stderr
    assert "[bad] this server cannot run here" in done.stderr
    assert counted.exists()
    nothing_is_left(gateway)


def test_why_a_server_did_not_start_is_said_without_secrets(gateway: Gateway) -> None:
    done = gateway.start({"bad": {"runCmd": quick("--refuse"), "envs": {"AKEY": "value-of-a-key"}}})
    assert done.returncode == 1
    assert "The server bad did not start: it refused to start: refused AKEY=***" in done.stderr
    assert "\x1b" not in done.stderr
    assert "value-of-a-key" not in done.stderr + gateway.log
    nothing_is_left(gateway)
    done = gateway.start({"bad": {"runCmd": quick("--exit", "0")}})
    assert "it ended (exit code 0)" in done.stderr
    nothing_is_left(gateway)


def test_of_two_starts_at_the_same_time_one_wins(gateway: Gateway) -> None:
    command = gateway.arguments({"one": {"runCmd": quick()}})
    starts = [
        subprocess.Popen(
            command,
            env={**gateway.environment, "GATEWAY_ACCESS_TOKEN": f"token-{number}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    said = [start.communicate(timeout=60) for start in starts]
    codes = [start.returncode for start in starts]
    assert sorted(codes) == [0, 1, 1], said
    assert gateway.token_file.read_text() == f"token-{codes.index(0)}"
    gateway.pid = int(said[codes.index(0)][0].rpartition("process ")[2].rstrip(").\n"))


def test_a_hung_server_and_a_hung_installer_end_with_the_time(gateway: Gateway) -> None:
    source = gateway.folder / "github" / "own" / "thing"
    repository(source)
    done = gateway.start(
        {
            "hangs": {"runCmd": quick("--hang", "--stay")},
            "good": {"runCmd": quick()},
            "github/own/thing": {"installCmd": "setsid sleep 500 & sleep 600", "runCmd": "true"},
        },
        *("--startup-timeout", "4", "--github", str(source.parents[1])),
    )
    assert done.returncode == 1
    assert "Not ready within 4 s: github/own/thing, hangs." in done.stderr
    nothing_is_left(gateway)


def test_the_log_tail_is_bounded_and_of_this_start(gateway: Gateway) -> None:
    gateway.log_file.write_text("[old] of an earlier start\n")
    noise = f"{sys.executable} -c 'import sys; [print(n, \"x\" * 50, file=sys.stderr) for n in range(9999)]; sys.exit(1)'"
    done = gateway.start({"noisy": {"runCmd": noise}})
    assert done.returncode == 1
    assert "of an earlier start" not in done.stderr
    assert "[noisy] 9998 xxx" in done.stderr
    assert len(done.stderr) < 5000


def test_a_starter_that_is_killed_takes_all_with_it(gateway: Gateway) -> None:
    counted = gateway.folder / "count"
    config = {"slow": {"runCmd": quick("--hang")}, "good": {"runCmd": quick("--count", str(counted))}}
    starter = subprocess.Popen(gateway.arguments(config), env=gateway.environment)
    deadline = time.monotonic() + 30
    while not counted.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    starter.kill()
    starter.wait()
    nothing_is_left(gateway)


def test_a_tied_gateway_ends_with_the_process_that_started_it(gateway: Gateway) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from sandbox_chat.gateway import launch\n"
        f"running = launch.start({{'a': {{'runCmd': {quick()!r}}}}}, 'token-x', port={gateway.port}, host='127.0.0.1', "
        f"token_file=Path({str(gateway.token_file)!r}), log_file=Path({str(gateway.log_file)!r}), catalog=None, tied=True)\n"
        "print(running.tools[0], flush=True); time.sleep(600)\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code], env=gateway.environment, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    with starter.stdout:
        assert starter.stdout.readline() == "echo\n"
        starter.kill()
        starter.wait()
    nothing_is_left(gateway)


def test_run_and_stop_as_a_library(gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, gateway.mark)
    running = launch.start(
        {"a": {"runCmd": quick()}, "b": {"runCmd": quick("--prefix", "b.")}},
        "token-x",
        port=0,
        host="127.0.0.1",
        token_file=None,
        log_file=gateway.log_file,
        catalog=None,
        clones=gateway.folder,
    )
    assert running.servers == ("a", "b")
    assert {"echo", "b.echo"} <= set(running.tools)
    assert "token-x" not in repr(running)
    assert httpx2.get(f"http://127.0.0.1:{running.port}/health").json()["servers"] == 2
    running.stop()
    running.stop()
    mine = psutil.Process()
    assert all(process.pid == mine.pid for process in gateway.processes())


def repository(folder: Path) -> None:
    """A Git repository that holds the small server."""
    folder.mkdir(parents=True)
    shutil.copy(Path(__file__).parents[1] / "support" / "gateway_server.py", folder / "server.py")
    git = ("git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run([*git, *command], check=True, capture_output=True)


async def test_a_repository_is_cloned_installed_and_started_in_its_clone(gateway: Gateway) -> None:
    source = gateway.folder / "github" / "own" / "thing.py"
    repository(source)
    config = {
        "github/own/thing.py": {
            "installCmd": "echo installed >> installed.txt; echo $KEY",
            "runCmd": f"exec {shlex.quote(sys.executable)} server.py",
            "envs": {"KEY": "value-of-key"},
        }
    }
    for times in (1, 2):
        gateway.started(config, "--github", str(source.parents[1]))
        async with gateway.client() as client:
            seen = json.loads(await gateway.text(client, "environment"))
        clone = gateway.folder / "clones" / "own" / "thing.py"
        assert seen["folder"] == str(clone)
        assert seen["environment"]["KEY"] == "value-of-key"
        assert (clone / "installed.txt").read_text() == "installed\n" * times
        psutil.Process(gateway.pid).terminate()
        nothing_is_left(gateway)
    assert [each.name for each in clone.parent.iterdir()] == ["thing.py"]
    assert "value-of-key" not in gateway.log


async def test_a_repository_whose_name_looks_like_an_unfinished_one(gateway: Gateway) -> None:
    github = gateway.folder / "github"
    command = {"runCmd": f"exec {shlex.quote(sys.executable)} server.py"}
    for name in ("thing.partial", "thing"):
        repository(github / "own" / name)
    gateway.started({"github/own/thing.partial": command}, "--github", str(github))
    psutil.Process(gateway.pid).terminate()
    nothing_is_left(gateway)
    kept = gateway.folder / "clones" / "own" / "thing.partial" / "kept"
    kept.write_text("")
    gateway.started({"github/own/thing": command}, "--github", str(github))
    assert kept.exists()


def test_a_repository_that_is_not_there(gateway: Gateway) -> None:
    done = gateway.start({"github/no/where": {"runCmd": "true"}}, "--github", str(gateway.folder))
    assert done.returncode == 1
    assert "could not be cloned" in done.stderr
    done = gateway.start({"github/no/where": {"runCmd": "true"}}, "--github", str(gateway.folder))
    assert done.returncode == 1
    nothing_is_left(gateway)


BAD = {
    "no JSON": "{",
    "no object": "[]",
    "a text": '"time"',
    "a name twice": '{"a": {"runCmd": "true"}, "a": {"runCmd": "true"}}',
    "an entry that is no object": {"a": "runCmd"},
    "an unknown name": {"nowhere": {}},
    "an empty name": {"": {"runCmd": "true"}},
    "a long name": {"a" * 129: {"runCmd": "true"}},
    "a control character": {"a\n": {"runCmd": "true"}},
    "too many": {f"s{number}": {"runCmd": "true"} for number in range(65)},
    "github without a repository": {"github/owner": {"runCmd": "true"}},
    "github with too many parts": {"github/a/b/c": {"runCmd": "true"}},
    "github and a way out": {"github/../x": {"runCmd": "true"}},
    "github with odd characters": {"github/a/b;c": {"runCmd": "true"}},
    "github without runCmd": {"github/a/b": {}},
    "github with an empty runCmd": {"github/a/b": {"runCmd": " "}},
    "github with an installCmd that is no text": {"github/a/b": {"runCmd": "true", "installCmd": ["x"]}},
    "a runCmd that is no text": {"a": {"runCmd": ["true"]}},
    "envs that are no object": {"a": {"runCmd": "true", "envs": ["A=1"]}},
    "a variable with a bad name": {"a": {"runCmd": "true", "envs": {"1A": "x"}}},
    "a variable that is no text": {"a": {"runCmd": "true", "envs": {"A": 1}}},
    "a required property": {"filesystem": {}},
    "a property of another type": {"filesystem": {"paths": "/tmp"}},
    "an array of objects": {"filesystem": {"paths": [{}]}},
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_configuration_is_refused_before_anything_is_started(gateway: Gateway, case: str) -> None:
    bad = BAD[case]
    counted = gateway.folder / "count"
    if isinstance(bad, dict) and len(bad) < 60:
        bad = {"0": {"runCmd": quick("--count", str(counted))}, **bad}
    done = gateway.start(bad)
    assert done.returncode == 2, done
    assert done.stderr.startswith("mcp-gateway: ")
    assert "Traceback" not in done.stderr
    assert not done.stdout
    assert not counted.exists()
    assert not gateway.token_file.exists()
    assert not gateway.log_file.exists()
    assert not gateway.processes()


@pytest.mark.parametrize("token", ["", " ", "two words", "ü", "line\nbreak"])
def test_a_token_that_cannot_be_one_is_refused(gateway: Gateway, token: str) -> None:
    done = gateway.start({"a": {"runCmd": quick()}}, environment={"GATEWAY_ACCESS_TOKEN": token})
    assert done.returncode == 1
    assert "token" in done.stderr
    assert not gateway.processes()


@pytest.mark.parametrize(
    "options",
    [
        ["--port", "70000"],
        ["--startup-timeout", "0"],
        ["--startup-timeout", "never"],
        ["--config-file", "/no/such/file"],
        ["--unknown"],
        ["list"],
    ],
)
def test_bad_options(gateway: Gateway, options: list[str]) -> None:
    done = gateway.start({"a": {"runCmd": quick()}}, *options)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_places_that_cannot_be_written(gateway: Gateway) -> None:
    (gateway.folder / "file").write_text("")
    for option in ("--token-file", "--log-file"):
        done = gateway.start({"a": {"runCmd": quick()}}, option, str(gateway.folder / "file" / "x"))
        assert done.returncode == 1
        assert option in done.stderr
        assert "Traceback" not in done.stderr
    taken = gateway.folder / "taken"
    taken.mkdir()
    done = gateway.start({"a": {"runCmd": quick()}}, "--token-file", str(taken))
    assert done.returncode == 1
    assert "token file" in done.stderr
    assert gateway.gone()


def test_what_is_no_plain_file_is_not_replaced(gateway: Gateway) -> None:
    """Such as /dev/null, which root could remove."""
    pipe = gateway.folder / "pipe"
    os.mkfifo(pipe)
    target = gateway.folder / "target"
    target.write_text("mine")
    link = gateway.folder / "link"
    link.symlink_to(target)
    for place in (pipe, link):
        done = gateway.start({"a": {"runCmd": quick()}}, "--token-file", str(place))
        assert (done.returncode, done.stdout) == (1, "")
        assert "is not a plain file" in done.stderr and "Traceback" not in done.stderr
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    assert link.is_symlink() and target.read_text() == "mine"
    done = gateway.start({"a": {"runCmd": quick()}}, "--log-file", str(pipe))  # nobody reads it
    assert done.returncode == 1
    assert "--log-file" in done.stderr and "Traceback" not in done.stderr
    assert gateway.gone()


def test_interrupted_at_the_start_it_says_so(gateway: Gateway) -> None:
    counted = gateway.folder / "count"
    config = {"slow": {"runCmd": quick("--hang")}, "good": {"runCmd": quick("--count", str(counted))}}
    starter = subprocess.Popen(
        gateway.arguments(config), env=gateway.environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 30
    while not counted.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    starter.send_signal(signal.SIGINT)
    _, said = starter.communicate(timeout=60)
    assert (starter.returncode, said) == (130, "mcp-gateway: interrupted; nothing is left running.\n")
    nothing_is_left(gateway)


def test_a_link_in_the_place_of_the_log_is_not_followed(gateway: Gateway) -> None:
    target = gateway.folder / "target"
    target.write_text("mine")
    gateway.log_file.symlink_to(target)
    assert gateway.start({"a": {"runCmd": quick()}}).returncode == 1
    assert target.read_text() == "mine"


def test_configuration_over_standard_input_and_a_catalogue_of_ones_own(gateway: Gateway) -> None:
    own = {
        "mine": {
            "command": [*shlex.split(quick().removeprefix("exec "))],
            "arguments": ["--prefix", "{{prefix}}"],
        }
    }
    own["mine"]["properties"] = {"prefix": {"type": "string", "default": "own."}}  # type: ignore[assignment]
    (gateway.folder / "catalog.json").write_text(json.dumps({"format": 1, "servers": own}))
    done = gateway.start(
        "", "--config-file", "-", text='{"mine": null, "other": {"runCmd": "' + quick() + '", "odd": 1}}'
    )
    assert done.returncode == 0, done
    assert "2 servers, 26 tools" in done.stdout
    assert "[gateway] other: there is no property 'odd'; it is ignored." in gateway.log
    assert TOKEN not in done.stdout + done.stderr + gateway.log


def test_version_catalogue_and_help(gateway: Gateway) -> None:
    for word, expected in (
        ("version", package.VERSION),
        ("catalog", "duckduckgo"),
        ("--help", "one trust domain"),
    ):
        done = subprocess.run(
            [*gateway.program, word], env=gateway.environment, capture_output=True, text=True, check=True
        )
        assert expected in done.stdout
    assert (
        "paths: array, required"
        in subprocess.run(
            [*gateway.program, "catalog"], env=gateway.environment, capture_output=True, text=True, check=True
        ).stdout
    )


def test_it_runs_where_only_its_folder_is(gateway: Gateway) -> None:
    source = Path(package.__file__).parent
    shutil.copytree(source, gateway.folder / "gateway", ignore=shutil.ignore_patterns("__pycache__"))
    gateway.program = (sys.executable, "-c", RUN_COPY.format(folder=str(gateway.folder)))
    gateway.started({"a": {"runCmd": quick()}})
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).json()["tools"] == 13


RUN_COPY = "import sys; sys.path.insert(0, {folder!r}); from gateway.cli import main; sys.exit(main())"


def test_a_full_disk_stops_nothing(gateway: Gateway) -> None:
    with contextlib.suppress(OSError):
        gateway.log_file.unlink()
    done = gateway.start({"a": {"runCmd": quick()}}, "--log-file", "/dev/full")
    assert done.returncode == 0, done.stderr
    assert httpx2.get(gateway.url.replace("/mcp", "/health")).status_code == 200


def test_a_signal_for_the_group_of_the_terminal_does_not_reach_it(gateway: Gateway) -> None:
    gateway.started({"a": {"runCmd": quick()}})
    for process in gateway.processes():
        assert os.getpgid(process.pid) != os.getpgid(0)
    os.kill(gateway.pid, signal.SIGHUP)
    nothing_is_left(gateway)
