"""A bare ipykernel and a plain client of it over tcp, with nothing of ours: what the sandbox is measured against."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty
from typing import Any

PATIENCE = 120.0


@dataclass
class Ran:
    """What a cell gave: its output, the pictures as base64 text, the text of its result, and how long it took in seconds."""

    seconds: float = 0.0
    stdout: int = 0
    pictures: list[str] = field(default_factory=list)
    result: str = ""


class BareKernel:
    """One kernel process of this interpreter, and a blocking client. The time from ``__init__`` on is the start."""

    def __init__(self) -> None:
        from jupyter_client.blocking.client import BlockingKernelClient
        from jupyter_client.connect import write_connection_file

        self._folder = tempfile.TemporaryDirectory(prefix="sandbox-chat-bench-")
        self._file = str(Path(self._folder.name) / "kernel.json")
        write_connection_file(self._file, ip="127.0.0.1", transport="tcp")
        environment = {
            **os.environ,
            "IPYTHONDIR": self._folder.name,
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        }
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "ipykernel_launcher", "-f", self._file],
            env=environment,
            cwd=self._folder.name,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._client: Any = BlockingKernelClient(connection_file=self._file)
        self._client.load_connection_file()
        self._client.start_channels()
        self._wait_ready()

    def _wait_ready(self) -> None:
        # ``wait_for_ready`` takes a slow start for a death when there is no kernel manager.
        deadline = time.perf_counter() + PATIENCE
        while time.perf_counter() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"the kernel ended with exit code {self._process.returncode}")
            self._client.kernel_info()
            with contextlib.suppress(Empty):
                self._client.get_shell_msg(timeout=0.1)
                break
        else:
            raise RuntimeError("the kernel did not answer")
        # The subscription to output must be there before the first cell, or its output is missed.
        while time.perf_counter() < deadline:
            with contextlib.suppress(Empty):
                self._client.get_iopub_msg(timeout=0.05)
                break
            self._client.kernel_info()
        while True:
            try:
                self._client.get_shell_msg(timeout=0.001)
            except Empty:
                return

    def run(self, code: str) -> Ran:
        """Run a cell to its end."""
        ran = Ran()
        started = time.perf_counter()
        sent = self._client.execute(code, store_history=True)
        while True:
            message = self._client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != sent:
                continue
            content = message["content"]
            match message["msg_type"]:
                case "stream":
                    ran.stdout += len(content["text"])
                case "display_data" | "execute_result":
                    data = content["data"]
                    ran.result = data.get("text/plain", "")
                    if "image/png" in data:
                        ran.pictures.append(data["image/png"])
                case "error":
                    raise RuntimeError(json.dumps(content)[:2000])
                case "status" if content["execution_state"] == "idle":
                    break
        while self._client.get_shell_msg(timeout=PATIENCE)["parent_header"].get("msg_id") != sent:
            pass
        ran.seconds = time.perf_counter() - started
        return ran

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()
