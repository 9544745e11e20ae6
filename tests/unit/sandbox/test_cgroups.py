"""Finding a place for control groups, their limits, and that none is left. Real ones where this user may make them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sandboxes import until

from sandbox_chat.sandbox import cgroups

MB = 1 << 20
V1_MOUNTS = """\
30 25 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/memory rw,nosuid shared:10 - cgroup cgroup rw,memory
32 30 0:28 / /sys/fs/cgroup/pids rw,nosuid shared:11 - cgroup cgroup rw,pids
33 30 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:12 - cgroup cgroup rw,cpu,cpuacct
34 30 0:30 / /sys/fs/cgroup/unified rw,nosuid shared:13 - cgroup2 cgroup2 rw
"""
V1_OWN = "4:memory:/mine\n3:cpu,cpuacct:/\n2:pids:/mine/pids\n0::/\n"
V2_MOUNTS = "30 25 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V2_OWN = "0::/user.slice/user-1000.slice/app.slice/terminal.scope\n"


def machine(root: Path, mounts: str, own: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    (root / "proc/self/cgroup").write_text(own)
    return root / "sys/fs/cgroup"


def folder(path: Path, handed_down: str | None = None, *, mode: int = 0o755) -> Path:
    path.mkdir(parents=True)
    (path / "cgroup.procs").write_text("")
    if handed_down is not None:
        (path / "cgroup.subtree_control").write_text(handed_down + "\n")
    path.chmod(mode)
    return path


def test_version_1_below_the_own_groups(tmp_path: Path) -> None:
    base = machine(tmp_path, V1_MOUNTS, V1_OWN)
    memory, cpu = folder(base / "memory/mine"), folder(base / "cpu,cpuacct")
    place = cgroups.find(tmp_path)
    assert place == cgroups.Place(1, {"memory": memory, "cpu": cpu})  # the group for pids is not there
    assert place is not None
    assert place.controllers == ("cpu", "memory")


def test_version_2_below_the_nearest_group_that_hands_memory_down(tmp_path: Path) -> None:
    base = machine(tmp_path, V2_MOUNTS, V2_OWN)
    folder(base, "cpu memory pids")
    folder(base / "user.slice", "cpu memory pids")
    folder(base / "user.slice/user-1000.slice", "memory pids")
    app = folder(base / "user.slice/user-1000.slice/app.slice", "memory pids")
    folder(base / "user.slice/user-1000.slice/app.slice/terminal.scope", "")
    assert cgroups.find(tmp_path) == cgroups.Place(2, {"memory": app, "pids": app})


@pytest.mark.parametrize(
    ("mounts", "own"),
    [("", ""), (V1_MOUNTS, V1_OWN), (V2_MOUNTS, V2_OWN), (V2_MOUNTS, "0::/../outside\n"), ("nonsense", "nonsense"),
     (V2_MOUNTS.replace(" / /sys", " /inner /sys"), V2_OWN)],
)  # fmt: skip
def test_no_place(tmp_path: Path, mounts: str, own: str) -> None:
    machine(tmp_path, mounts, own)
    assert cgroups.find(tmp_path) is None


def test_a_group_that_is_mounted_in_part(tmp_path: Path) -> None:
    base = machine(tmp_path, V2_MOUNTS.replace(" / /sys", " /box /sys"), "0::/box/inner\n")
    folder(base, "memory")
    assert cgroups.find(tmp_path) == cgroups.Place(2, {"memory": base})


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; as an ordinary user this shows")
def test_a_group_of_somebody_else_is_no_place(tmp_path: Path) -> None:
    base = machine(tmp_path, V2_MOUNTS, "0::/\n")
    folder(base, "memory", mode=0o555)
    assert cgroups.find(tmp_path) is None


def test_limits_of_version_2(tmp_path: Path) -> None:
    place = cgroups.Place(2, {"memory": tmp_path, "pids": tmp_path, "cpu": tmp_path})
    group = cgroups.create(place, memory=300 * MB, processes=50, cpus=1.5)
    assert group is not None
    [made] = list(tmp_path.iterdir())
    values = {path.name: path.read_text() for path in made.iterdir()}
    assert values == {
        "memory.max": str(300 * MB),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": "150000 100000",
        "pids.max": "66",
    }
    (made / "memory.events").write_text("low 0\nmax 7\noom 1\noom_kill 3\n")
    (made / "pids.events").write_text("max 5\n")
    (made / "cgroup.procs").write_text("0\n1\n4711\n")
    assert (group.memory_kills(), group.refused_processes(), group.pids()) == (3, 5, {4711})
    (made / "cgroup.procs").write_text("")
    for path in made.iterdir():  # a real group's files vanish with it
        path.unlink()
    group.close()
    group.close()
    assert not list(tmp_path.iterdir())


def test_a_group_that_is_refused(tmp_path: Path) -> None:
    assert (
        cgroups.create(cgroups.Place(2, {"memory": tmp_path / "no"}), memory=MB, processes=0, cpus=0) is None
    )


def test_what_a_crash_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass"])
    ended.wait()
    mine = cgroups._owner(os.getpid())
    space, _, started = mine.split("-")
    kept = [f"{mine}-1", f"1-{ended.pid}-5-1", "of-somebody-else", "1"]
    gone = [f"{space}-{ended.pid}-5-1", f"{space}-{os.getpid()}-{int(started) + 1}-1"]
    for name in kept + gone:
        (tmp_path / (cgroups.PREFIX + name)).mkdir()
    (tmp_path / "another").mkdir()
    cgroups.clear(cgroups.Place(1, {"memory": tmp_path, "pids": tmp_path}))
    left = {path.name.removeprefix(cgroups.PREFIX) for path in tmp_path.iterdir()}
    assert left == {*kept, "another"}


def test_the_guard_removes_the_groups_when_the_program_is_gone(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two two"]
    for path in folders:
        path.mkdir()
    guard = cgroups._start_guard(folders)
    assert guard is not None
    assert guard.stdin is not None
    assert int(Path(f"/proc/{guard.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") < 10 * MB
    assert guard.poll() is None
    guard.stdin.close()
    assert guard.wait(timeout=60) == 0
    assert not any(path.exists() for path in folders)


@pytest.fixture
def group() -> Iterator[cgroups.Group]:
    place = cgroups.find()
    if place is None:
        pytest.skip("this user may make no control groups on this machine")
    made = cgroups.create(place, memory=64 * MB, processes=20, cpus=0.5)
    assert made is not None
    yield made
    made.close()
    assert not any(path.exists() for path in made._unique())


def inside(group: cgroups.Group, code: str) -> subprocess.Popen[str]:
    """A Python program that begins when it is in the group."""
    process = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.readline()\n" + code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert group.add([process.pid])
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process


def test_a_real_group_limits_memory(group: cgroups.Group) -> None:
    process = inside(group, f"x = bytearray(b'x' * {200 * MB})\nimport time; time.sleep(600)")
    assert process.pid in group.pids()
    process.communicate(timeout=60)
    assert process.returncode == -9
    assert group.memory_kills() >= 1


def test_a_real_group_limits_processes(group: cgroups.Group) -> None:
    if "pids" not in group.place.parents:
        pytest.skip("there is no controller for processes here")
    code = "import os, time\nn = 0\ntry:\n  while n < 200:\n    if os.fork() == 0: time.sleep(600)\n    n += 1\nexcept OSError: print(n)"
    process = inside(group, code)
    assert process.stdout is not None
    assert int(process.stdout.readline()) == 35
    assert group.refused_processes() >= 1
    group.close()
    process.communicate(timeout=60)


def test_a_real_group_limits_processors(group: cgroups.Group) -> None:
    if "cpu" not in group.place.parents:
        pytest.skip("there is no controller for processors here")
    code = "import time\nt = time.monotonic(); c = time.process_time()\nwhile time.monotonic() < t + 2: pass\nprint((time.process_time() - c) / (time.monotonic() - t))"
    out, _ = inside(group, code).communicate(timeout=60)
    assert float(out) < 0.8


def test_a_real_group_goes_with_what_is_in_it(group: cgroups.Group) -> None:
    process = inside(group, "import time; time.sleep(600)")
    assert group.add([1 << 30])  # what is gone need not be put in
    group.close()
    assert process.wait(timeout=60) == -9
    process.communicate()
    assert group.pids() == set()


PROGRAM = f"""
import subprocess, sys, time
from sandbox_chat.sandbox import cgroups
group = cgroups.create(cgroups.find(), memory={64 * MB}, processes=20, cpus=0)
child = subprocess.Popen(["sleep", "600"])
group.add([child.pid])
print(child.pid, *group._unique(), flush=True)
time.sleep(600)
"""


def test_no_group_outlives_a_killed_program(group: cgroups.Group) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    child, *folders = program.stdout.readline().split()
    program.kill()
    program.wait()
    program.stdout.close()
    started = time.monotonic()
    assert until(lambda: not any(Path(path).exists() for path in folders))
    assert time.monotonic() - started < 10
    assert until(
        lambda: not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text()
    )
