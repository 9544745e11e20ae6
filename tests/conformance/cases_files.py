"""Cases: files in the sandbox."""

from __future__ import annotations

import ast
import asyncio
import hashlib
import io
import random
import tempfile
from pathlib import Path

import pytest
from conformance.registry import Ground, case
from support.sandboxes import PATIENCE
from support.toolbox import Tools

from sandbox_chat.sandbox.base import SandboxFileError
from sandbox_chat.sandbox.worker import SandboxWorker
from sandbox_chat.skills import Given, Store

ROOT_INSIDE = "In the cloud code may run as root, which may read and write everything there."
MEGA = 1 << 20


@case("Files", fast=True)
async def written_and_read(ground: Ground) -> None:
    """A file that was written can be read by code and by the file call, byte for byte; folders on the way are made."""
    data = bytes(range(256)) * 2000
    assert await ground.worker.write_file("/tmp/deep/er/data.bin", data) == "/tmp/deep/er/data.bin"
    assert await ground.worker.read_file("/tmp/deep/er/data.bin", max_bytes=len(data)) == data
    code = "import hashlib; hashlib.sha256(open('/tmp/deep/er/data.bin', 'rb').read()).hexdigest()"
    assert await ground.result(code) == repr(hashlib.sha256(data).hexdigest())


@case("Files", fast=True)
async def relative_paths_are_under_tmp(ground: Ground) -> None:
    """Relative paths are under `/tmp`, where code runs."""
    assert await ground.worker.write_file("sub/rel.txt", b"abc") == "/tmp/sub/rel.txt"
    assert await ground.result("open('sub/rel.txt').read()") == "'abc'"
    assert await ground.worker.read_file("sub/rel.txt", max_bytes=10) == b"abc"


@case("Files")
async def files_are_replaced_whole(ground: Ground) -> None:
    """Writing replaces a file whole; an empty file is a file."""
    await ground.worker.write_file("again.txt", b"a long text")
    await ground.worker.write_file("again.txt", b"new")
    assert await ground.worker.read_file("again.txt", max_bytes=100) == b"new"
    await ground.worker.write_file("again.txt", b"")
    assert await ground.worker.read_file("again.txt", max_bytes=100) == b""
    assert await ground.result("import os; os.path.getsize('/tmp/again.txt')") == "0"


@case("Files")
async def odd_names(ground: Ground) -> None:
    """Names with spaces, quotes, unicode, a percent sign, a leading dash or dot work as any other."""
    names = [
        "with space.txt",
        "quo'te\".txt",
        "Größe 你好.txt",
        "100%25?#&+.txt",
        "-dash.txt",
        ".hidden",
        "a;b|c$d`e.txt",
    ]
    for name in names:
        path = f"/tmp/odd/{name}"
        assert await ground.worker.write_file(path, name.encode()) == path
        assert await ground.worker.read_file(path, max_bytes=1000) == name.encode(), name
    listed = await ground.worker.list_files("/tmp/odd", limit=100)
    assert sorted(entry.path for entry in listed) == sorted(f"/tmp/odd/{name}" for name in names)
    shown = await ground.result("import os; sorted(os.listdir('/tmp/odd'))")
    assert ast.literal_eval(shown) == sorted(names)


@case("Files")
async def folders_are_listed(ground: Ground) -> None:
    """A folder is listed by name, with what is a folder and the sizes of files."""
    await ground.run("import os; os.makedirs('/tmp/list/sub'); open('/tmp/list/a.txt', 'w').write('12345')")
    await ground.run("open('/tmp/list/b.bin', 'wb').write(b'x' * 70000)")
    listed = await ground.worker.list_files("/tmp/list", limit=100)
    found = [(entry.path, entry.is_dir, entry.size) for entry in listed]
    assert sorted(found) == [
        ("/tmp/list/a.txt", False, 5),
        ("/tmp/list/b.bin", False, 70000),
        ("/tmp/list/sub", True, 0),
    ]
    assert await ground.worker.list_files("list/sub", limit=10) == []


@case("Files")
async def long_lists_are_bounded(ground: Ground) -> None:
    """Of a folder of 3,000 files no more are listed than asked for, the first by name."""
    await ground.run(
        "import os; os.makedirs('/tmp/many')\nfor n in range(3000): open(f'/tmp/many/{n:04}', 'w').close()"
    )
    listed = await ground.worker.list_files("/tmp/many", limit=5)
    assert [entry.path[-4:] for entry in listed] == ["0000", "0001", "0002", "0003", "0004"]


async def _refused(ground: Ground, path: str, max_bytes: int = 1000) -> str:
    with pytest.raises(SandboxFileError) as caught:
        await ground.worker.read_file(path, max_bytes=max_bytes)
    text = str(caught.value)
    assert len(text) > 15, text
    assert "Traceback" not in text
    return text


@case("Files", fast=True)
async def missing_files(ground: Ground) -> None:
    """A missing file, and a missing folder, are refused with a sentence that names the path."""
    assert "/tmp/nothing.txt" in await _refused(ground, "nothing.txt")
    with pytest.raises(SandboxFileError, match="nowhere"):
        await ground.worker.list_files("/tmp/nowhere", limit=5)
    with pytest.raises(SandboxFileError):
        await ground.worker.download("/tmp/nothing.txt", io.BytesIO(), max_bytes=100)
    assert await ground.result("1 + 1") == "2"


@case("Files")
async def folders_are_no_files(ground: Ground) -> None:
    """A folder cannot be read or overwritten as a file, nor a file listed as a folder."""
    await ground.worker.write_file("kind/file.txt", b"abc")
    await _refused(ground, "/tmp/kind")
    with pytest.raises(SandboxFileError):
        await ground.worker.write_file("/tmp/kind", b"x")
    with pytest.raises(SandboxFileError):
        await ground.worker.list_files("/tmp/kind/file.txt", limit=5)
    with pytest.raises(SandboxFileError):
        await ground.worker.write_file("/tmp/kind/file.txt/below", b"x")


@case("Files", fast=True)
async def too_large_to_read(ground: Ground) -> None:
    """A file larger than asked for is refused with its size, and not read."""
    await ground.run("open('/tmp/large.bin', 'wb').write(b'x' * 5_000_000)")
    text = await _refused(ground, "/tmp/large.bin", 1_000_000)
    assert "5,000,000" in text
    target = io.BytesIO()
    with pytest.raises(SandboxFileError, match="5,000,000"):
        await ground.worker.download("/tmp/large.bin", target, max_bytes=1_000_000)
    assert target.getvalue() == b""


@case("Files")
async def special_files_are_refused(ground: Ground) -> None:
    """Devices, pipes and links in a circle are refused, at once."""
    await ground.run("import os; os.mkfifo('/tmp/pipe'); os.symlink('loop', '/tmp/loop')")
    for path in ("/dev/zero", "/tmp/pipe", "/tmp/loop"):
        await asyncio.wait_for(_refused(ground, path), 30)


@case("Files", not_there={"e2b": ROOT_INSIDE})
async def no_permission(ground: Ground) -> None:
    """What the sandbox's user may not read or write is refused with a sentence."""
    await _refused(ground, "/etc/shadow")
    for path in ("/etc/x", "/x", "/usr/x", "/proc/sys/kernel/hostname"):
        with pytest.raises(SandboxFileError):
            await ground.worker.write_file(path, b"x")


@case("Files")
async def bad_paths(ground: Ground) -> None:
    """Empty paths and paths with a NUL are refused with a sentence."""
    for path in ("", "a\0b"):
        await _refused(ground, path)
        with pytest.raises(SandboxFileError):
            await ground.worker.write_file(path, b"x")


@case("Files")
async def thirty_megabytes_up(ground: Ground) -> None:
    """30 MB are uploaded piece by piece, with progress up to the whole; they arrive byte for byte."""
    data = random.Random(3).randbytes(30 * MEGA)
    steps: list[tuple[int, int]] = []
    where = await ground.worker.upload(
        io.BytesIO(data), len(data), "up/big.bin", lambda done, total: steps.append((done, total))
    )
    assert where == "/tmp/up/big.bin"
    code = "import hashlib; hashlib.sha256(open('/tmp/up/big.bin', 'rb').read()).hexdigest()"
    assert await ground.result(code) == repr(hashlib.sha256(data).hexdigest())
    assert steps[-1] == (len(data), len(data))
    assert all(total == len(data) for _done, total in steps)
    assert [done for done, _total in steps] == sorted(done for done, _total in steps)
    assert len(steps) > 1


@case("Files")
async def thirty_megabytes_down(ground: Ground) -> None:
    """30 MB are downloaded piece by piece, with progress up to the whole; they arrive byte for byte."""
    await ground.run("import random; open('/tmp/down.bin', 'wb').write(random.Random(4).randbytes(30 << 20))")
    steps: list[tuple[int, int]] = []
    target = io.BytesIO()
    size = await ground.worker.download(
        "/tmp/down.bin",
        target,
        max_bytes=40 * MEGA,
        on_progress=lambda done, total: steps.append((done, total)),
    )
    assert size == 30 * MEGA
    assert target.getvalue() == random.Random(4).randbytes(30 * MEGA)
    assert steps[-1] == (size, size)
    assert len(steps) > 1


@case("Files")
async def a_stopped_transfer(ground: Ground) -> None:
    """A transfer that is cancelled ends soon, and the sandbox goes on with its variables."""
    await ground.run("kept = 2")
    seen = asyncio.Event()
    loop = asyncio.get_running_loop()
    size = 900 * MEGA

    class Endless(io.RawIOBase):
        def read(self, n: int = -1, /) -> bytes:
            return b"x" * min(n if n > 0 else MEGA, MEGA)

    source = Endless()
    task = asyncio.create_task(
        ground.worker.upload(source, size, "much.bin", lambda _d, _t: loop.call_soon_threadsafe(seen.set))  # type: ignore[arg-type]
    )
    await asyncio.wait_for(seen.wait(), 60)
    task.cancel()
    with pytest.raises((asyncio.CancelledError, SandboxFileError)):
        await asyncio.wait_for(task, 30)
    done = await ground.run("import os\nif os.path.exists('/tmp/much.bin'): os.remove('/tmp/much.bin')\nkept")
    assert (done.result_text, done.fresh) == ("2", False), done


@case("Files", fast=True)
async def a_binary_file_as_text_s12(ground: Ground) -> None:
    """A binary file that is read as text is refused by the tool, with its type and size and what to use instead. (S12)"""
    await ground.run(
        "import struct, zlib\nopen('/tmp/p.png', 'wb').write(b'\\x89PNG\\r\\n\\x1a\\n' + bytes(range(256)) * 8)\n"
        "open('/tmp/b.bin', 'wb').write(bytes(range(256)) * 16)"
    )
    tools = Tools(ground.settings, ground.folder, sandbox=ground.worker)
    told = await tools.call("read_file", path="/tmp/p.png")
    assert told.is_error
    for word in ("image/png", "2,056", "read_image", "download_file"):
        assert word in told.text, told.text
    told = await tools.call("read_file", path="/tmp/b.bin")
    assert told.is_error
    assert "4,096" in told.text
    assert "download_file" in told.text


@case("Files")
async def the_tools_work(ground: Ground) -> None:
    """The tools of the model work the same: sections of `run_code`, files written, read and listed, a picture seen."""
    tools = Tools(ground.settings, ground.folder, sandbox=ground.worker)
    ran = await tools.call("run_code", code="print('out')\n1 + 1")
    assert "[success] True" in ran.text
    assert "[stdout]\nout" in ran.text
    assert "2" in ran.text.split("[result]")[1]
    ran = await tools.call("run_code", code="1 / 0")
    assert ran.is_error
    assert "[error] ZeroDivisionError: division by zero" in ran.text.replace("[error]\n", "[error] ")
    assert "[traceback]" in ran.text
    assert not (await tools.call("write_file", path="t/x.txt", content="Größe")).is_error
    assert (await tools.call("read_file", path="/tmp/t/x.txt")).text.rstrip() == "Größe"
    assert "x.txt" in (await tools.call("list_files", path="/tmp/t")).text
    await ground.run("from PIL import Image; Image.new('RGB', (40, 30), 'red').save('/tmp/t/red.png')")
    seen = await tools.call("read_image", path="/tmp/t/red.png")
    assert not seen.is_error
    assert len(seen.model) == 2


@case("Files", own=True)
async def workspace_is_new_in_each_sandbox(ground: Ground) -> None:
    """`/workspace` is empty at first, can be written, lives as long as the sandbox, and is gone with it."""
    empty = "import os\nsorted(os.listdir('/workspace'))"
    with ground.another() as first:
        assert (await first.run_code(empty, timeout=PATIENCE)).result_text == "[]"
        done = await first.run_code("open('/workspace/a.txt', 'w').write('x' * 10)", timeout=PATIENCE)
        assert done.result_text == "10", done
        code = "import os\nos.chdir('/workspace')\n(open('a.txt').read(), os.getcwd())"
        done = await first.run_code(code, timeout=PATIENCE)
        assert done.result_text == repr(("x" * 10, "/workspace"))
        assert await first.read_file("/workspace/a.txt", max_bytes=100) == b"x" * 10
        assert await first.write_file("/workspace/b/c.txt", b"by the tool") == "/workspace/b/c.txt"
        done = await first.run_code("open('/workspace/b/c.txt').read()", timeout=PATIENCE)
        assert done.result_text == repr("by the tool")
        with ground.another() as second:
            assert (await second.run_code(empty, timeout=PATIENCE)).result_text == "[]"
    with ground.another() as third:
        assert (await third.run_code(empty, timeout=PATIENCE)).result_text == "[]"
        await third.run_code("open('/workspace/a.txt', 'w').close()", timeout=PATIENCE)
        third.restart()
        done = await third.run_code(empty, timeout=PATIENCE)
        assert (done.result_text, done.fresh) == ("[]", True)
    assert await ground.result(empty) == "[]"
    tools = Tools(ground.settings, ground.folder, sandbox=ground.worker)
    await tools.call("write_file", path="/workspace/kept.txt", content="x" * 10)
    assert (await tools.call("read_file", path="/workspace/kept.txt")).text.strip() == "x" * 10
    mode = "0o1000" if ground.name == "e2b" else "0o0"  # any user of the machine may write there
    assert await ground.result("import os\noct(os.stat('/workspace').st_mode & 0o7000)") == repr(mode)
    ground.worker.restart()
    done = await ground.run(empty)
    assert (done.result_text, done.fresh) == ("[]", True), done


CLOUD_SKILLS = "In the cloud code may run as root and then change the copy that is there; the user's own skills it never sees."
WRITES = """
import os
worked = []
for act in (
    lambda: open("/skills/double/double.py", "a").write("x"),
    lambda: open("/skills/double/new.py", "w").write("x"),
    lambda: os.mkdir("/skills/more"),
    lambda: os.remove("/skills/double/double.py"),
    lambda: os.chmod("/skills/double/double.py", 0o777),
    lambda: os.rename("/skills/double", "/skills/other"),
    lambda: os.rename("/skills", "/tmp/skills"),
):
    try:
        act()
        worked.append(act.__code__.co_consts)
    except OSError:
        pass
worked
"""
THERE = """
import os
sorted(os.path.join(top, name) for top, _, names in os.walk("/skills") for name in names)
"""


@case("Files", differs={"e2b": CLOUD_SKILLS})
async def skills_are_there_to_read(ground: Ground) -> None:
    """In code mode `/skills` holds the skills as they were promoted, to be read only; from the next run on what changed."""
    with tempfile.TemporaryDirectory(prefix="sandbox-chat-test-") as folder:
        store = Store(Path(folder, "skills"))

        async def there(worker: SandboxWorker) -> str:
            done = await worker.run_code(THERE, timeout=PATIENCE)
            assert done.ok, done
            assert not done.notes, done.notes
            return done.result_text

        def promote(name: str, code: str) -> None:
            store.promote(name, expected=store.save_draft(name, code, "Does it.", origin="").digest)

        promote("double", "def double(x):\n    return 2 * x\n")
        promote("bent", "GOOD = 1\n")
        (store.folder / "bent" / "bent.py").write_text("BAD = 1\n")
        store.save_draft("mere_draft", "BAD = 2\n", "A draft.", origin="")
        both = "['/skills/double/SKILL.md', '/skills/double/double.py']"
        with ground.another(skills=Given(store), code_mode="on") as worker:
            assert await there(worker) == both
            done = await worker.run_code("open('/skills/double/double.py').read()", timeout=PATIENCE)
            assert done.result_text == repr("def double(x):\n    return 2 * x\n")
            if ground.name != "e2b":
                done = await worker.run_code(WRITES, timeout=PATIENCE)
                assert done.result_text == "[]", done
                assert await there(worker) == both
            promote("triple", "def triple(x):\n    return 3 * x\n")
            assert "/skills/triple/triple.py" in await there(worker)
            store.remove("double")
            store.remove("triple")
            assert await there(worker) == "[]"
    with ground.another(skills=Given(store)) as worker:
        done = await worker.run_code("import os\nos.path.exists('/skills')", timeout=PATIENCE)
        assert done.result_text == "False"
