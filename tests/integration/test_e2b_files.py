"""Files of a cloud sandbox, by the real client against the cloud on loopback."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator

import pytest
from support.cloud_worker import a_cloud_worker, run
from support.e2b_server import Cloud

from sandbox_chat.sandbox.base import SandboxFileError
from sandbox_chat.sandbox.worker import SandboxWorker


@pytest.fixture(scope="module")
def worker() -> Iterator[SandboxWorker]:
    with Cloud() as cloud:
        with a_cloud_worker(cloud) as made:
            yield made
        assert not cloud.sandboxes
        assert not cloud.errors


async def test_write_read_list(worker: SandboxWorker) -> None:
    assert await worker.write_file("sub/über file.txt", b"\x00\xff text") == "/tmp/sub/über file.txt"
    assert await worker.read_file("/tmp/sub/über file.txt", max_bytes=100) == b"\x00\xff text"
    assert (
        await run(worker, "open('/tmp/sub/über file.txt', 'rb').read()")
    ).result_text == "b'\\x00\\xff text'"
    await run(worker, "import os; os.makedirs('/tmp/sub/zz'); open('/tmp/sub/empty', 'w').close()")
    rows = [(row.path, row.is_dir, row.size) for row in await worker.list_files("sub", limit=10)]
    assert rows == [
        ("/tmp/sub/empty", False, 0),
        ("/tmp/sub/zz", True, 0),
        ("/tmp/sub/über file.txt", False, 7),
    ]
    assert len(await worker.list_files("sub", limit=2)) == 2
    assert await worker.write_file("sub/empty2", b"") == "/tmp/sub/empty2"
    assert await worker.read_file("sub/empty2", max_bytes=0) == b""


async def test_what_is_refused_is_said(worker: SandboxWorker) -> None:
    await run(worker, "import os; os.makedirs('/tmp/folder', exist_ok=True); os.mkfifo('/tmp/pipe')")
    await worker.write_file("big", b"x" * 2000)
    for path, words in (
        ("nope", "There is no file or folder /tmp/nope in the sandbox."),
        ("folder", "/tmp/folder is a folder, not a file."),
        ("big", "/tmp/big has 2,000 bytes; at most 1,000 can be taken."),
        ("", "The path is empty or holds a null byte."),
        ("a\0b", "The path is empty or holds a null byte."),
        ("a\ud83c", "The path holds a character that no file name can have."),
    ):
        with pytest.raises(SandboxFileError) as caught:
            await worker.read_file(path, max_bytes=1000)
        assert str(caught.value) == words
    with pytest.raises(SandboxFileError, match="/tmp/nope"):
        await worker.list_files("nope", limit=10)
    with pytest.raises(SandboxFileError, match="cannot be listed"):
        await worker.list_files("big", limit=10)
    with pytest.raises(SandboxFileError, match=r"/tmp/folder cannot be written"):
        await worker.write_file("folder", b"x")
    with pytest.raises(SandboxFileError):
        await worker.write_file("big/below", b"x")
    assert (await run(worker, "1")).result_text == "1", "the sandbox is still the same"


async def test_large_files_go_piece_by_piece_with_progress(worker: SandboxWorker) -> None:
    size = 20 << 20
    data = bytes(range(256)) * (size // 256)
    steps: list[tuple[int, int]] = []
    full = await worker.upload(io.BytesIO(data), size, "large.bin", lambda *step: steps.append(step))
    assert full == "/tmp/large.bin"
    assert steps[-1] == (size, size)
    assert len(steps) > 5
    digest = hashlib.sha256(data).hexdigest()
    code = "import hashlib; hashlib.sha256(open('/tmp/large.bin', 'rb').read()).hexdigest()"
    assert (await run(worker, code)).result_text == repr(digest)
    steps.clear()
    target = io.BytesIO()
    assert (
        await worker.download(
            "large.bin", target, max_bytes=size, on_progress=lambda *step: steps.append(step)
        )
        == size
    )
    assert target.getvalue() == data
    assert steps[-1] == (size, size)
    with pytest.raises(SandboxFileError, match="at most"):
        await worker.download("large.bin", io.BytesIO(), max_bytes=size - 1)


async def test_a_source_that_ends_too_soon(worker: SandboxWorker) -> None:
    for size in (100, 20 << 20):
        with pytest.raises(SandboxFileError, match="The source ended after 10 of"):
            await worker.upload(io.BytesIO(b"0123456789"), size, "short")
    assert (await run(worker, "1")).result_text == "1"


class _Full(io.BytesIO):
    """A file of this machine that takes or gives nothing."""

    def write(self, _data: object) -> int:
        raise OSError(28, "No space left on device")

    def read(self, _size: int | None = -1) -> bytes:
        raise OSError(5, "Input/output error")


async def test_trouble_on_this_side_is_not_said_of_the_sandbox(worker: SandboxWorker) -> None:
    await worker.write_file("some", b"data")
    with pytest.raises(OSError, match="No space left") as caught:
        await worker.download("some", _Full(), max_bytes=1000)
    assert caught.type is OSError
    with pytest.raises(OSError, match="Input/output error"):
        await worker.upload(_Full(), 10, "some")
    assert not (await run(worker, "1")).fresh
