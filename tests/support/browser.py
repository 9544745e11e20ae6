"""A headless Chromium that tests look at web pages with, over its own debugging protocol."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
KEYS = {"Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38}
"""Keys that can be pressed, with their codes of Windows, by which pages still go."""


def program() -> str | None:
    """Return the browser's program, ``None`` when there is none."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Page:
    """One tab. ``received`` is what its WebSockets were sent, as bytes."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.received = b""
        self._socket = socket
        self._session = ""
        self._numbers = itertools.count(1)
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._reader = asyncio.create_task(self._read())

    async def open(self, address: str, width: int, height: int) -> None:
        """Go to an address in a window of this size in pixels."""
        target = await self._ask("Target.createTarget", url="about:blank")
        attached = await self._ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        await self._ask("Network.enable")
        await self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        await self._ask("Emulation.setFocusEmulationEnabled", enabled=True)
        await self._ask("Page.navigate", url=address)

    async def click(self, x: int, y: int) -> None:
        """Click at a place."""
        for kind in ("mousePressed", "mouseReleased"):
            await self._ask(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1
            )

    async def type(self, text: str) -> None:
        """Type text, a key at a time."""
        for character in text:
            await self._ask("Input.dispatchKeyEvent", type="keyDown", key=character, text=character)
            await self._ask("Input.dispatchKeyEvent", type="keyUp", key=character)

    async def press(self, key: str) -> None:
        """Press one of ``KEYS``."""
        values: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        await self._ask("Input.dispatchKeyEvent", type="keyDown", **values, **text)
        await self._ask("Input.dispatchKeyEvent", type="keyUp", **values)

    async def screenshot(self) -> bytes:
        """Return what is seen as a PNG."""
        return base64.b64decode((await self._ask("Page.captureScreenshot", format="png"))["data"])

    async def close(self) -> None:
        """Stop listening."""
        self._reader.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reader

    async def _ask(self, method: str, **values: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": number, "method": method, "params": values, **session})
        return await asyncio.wait_for(answer, 30)

    async def _read(self) -> None:
        async for message in self._socket:
            data = message.json()
            answer = self._answers.pop(data.get("id", 0), None)
            if answer is not None and not answer.done():
                if "error" in data:
                    answer.set_exception(RuntimeError(str(data["error"])))
                else:
                    answer.set_result(data["result"])
            elif data.get("method") == "Network.webSocketFrameReceived":
                frame = data["params"]["response"]
                text = frame["payloadData"]
                self.received += base64.b64decode(text) if frame["opcode"] == 2 else text.encode()


@contextlib.asynccontextmanager
async def browser() -> AsyncIterator[Page]:
    """Run a browser that reaches this machine only, and yield an empty tab of it."""
    found = program()
    assert found is not None
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as folder:
        process = subprocess.Popen(
            [
                found,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                "--remote-debugging-port=0",
                f"--user-data-dir={folder}/profile",
                "about:blank",
            ],
            env={"HOME": folder, "PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            address = await _address(Path(folder, "profile", "DevToolsActivePort"), process)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(address, max_msg_size=0, heartbeat=None) as socket,
            ):
                page = Page(socket)
                try:
                    yield page
                finally:
                    await page.close()
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def _address(file: Path, process: subprocess.Popen[bytes]) -> str:
    """Return the address of the debugging socket, which the browser writes into a file when it listens."""
    for _ in range(600):
        assert process.poll() is None, "the browser ended"
        with contextlib.suppress(OSError):
            found = re.fullmatch(r"(\d+)\n(\S+)", file.read_text().strip())
            if found is not None:
                return f"ws://127.0.0.1:{found[1]}{found[2]}"
        await asyncio.sleep(0.1)
    raise AssertionError("the browser does not listen")
