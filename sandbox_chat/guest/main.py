"""Entry of the guest: set the limits, make the shell, serve the host's requests until it is gone."""

from __future__ import annotations

import functools
import gc
import json
import os
import resource
import signal
import socket
import sys
from typing import Any


def serve(config: dict[str, Any]) -> None:
    """Serve the host over the socket ``config["fd"]``. Does not return.

    ``config`` also holds ``alone`` (the guest has a process namespace to itself), ``limits`` (resource
    name to value, as in the ``resource`` module) and ``die_with_parent``.
    """
    if config.get("die_with_parent"):
        _die_with_parent(int(config["die_with_parent"]))
    set_limits(config.get("limits", {}))
    gc.disable()  # nothing of what is loaded now is garbage
    sock = socket.socket(fileno=int(config["fd"]))
    sock.set_inheritable(False)

    from . import files, processes
    from .link import Link
    from .protocol import VERSION
    from .shell import make_shell
    from .streams import Stream, ThreadCells

    link = Link(sock)
    cells = ThreadCells(link)
    sys.stdout = sys.__stdout__ = Stream(1, "stdout", link, cells.current)  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = Stream(2, "stderr", link, cells.current)  # type: ignore[misc, assignment]
    cells.install()
    link.listen()
    shell = make_shell(link)
    sys.path.insert(0, "")
    gc.collect()
    gc.freeze()
    gc.enable()
    alone = bool(config.get("alone"))
    os.register_at_fork(after_in_child=sock.close)
    link.send({"op": "hello", "protocol": VERSION, "python": sys.version.split()[0]})
    while True:
        request, blob = link.receive()
        op, number = request.get("op"), int(request.get("id", 0))
        if op == "run":
            before = processes.others(alone=alone)
            if alone:
                link.on_stop = functools.partial(processes.freeze_if_many, processes.last_id())
            error = shell.run(str(request["code"]), number)
            if link.stopped:
                processes.end_new(before, alone=alone)
            link.send({"op": "done", "id": number, "error": error})
            continue
        reply: dict[str, Any]
        data = b""
        try:
            if op == "write":
                reply = files.write(str(request["path"]), blob, append=bool(request.get("append")))
            elif op == "read":
                reply, data = files.read(str(request["path"]), int(request["offset"]), int(request["size"]))
            elif op == "list":
                reply = files.entries(str(request["path"]), int(request["limit"]))
            else:
                reply = {"problem": "The sandbox does not know this request."}
        except files.FileError as problem:
            reply = {"problem": str(problem)}
        except Exception as error:
            reply = {"problem": f"The sandbox could not do it: {type(error).__name__}: {error}"[:2000]}
        link.send({**reply, "op": "reply", "id": number}, data)


def set_limits(limits: dict[str, int]) -> None:
    """Lower resource limits for good; names are those of the ``resource`` module without ``RLIMIT_``."""
    for name, value in limits.items():
        number = getattr(resource, "RLIMIT_" + name, None)
        if number is None:
            continue
        hard = resource.getrlimit(number)[1]
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (lower, lower))


def _die_with_parent(parent: int) -> None:
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:  # it died before the line above
        os._exit(0)


def main(argument: str) -> None:
    """Run the guest as ``argument``, a JSON object, says."""
    serve(json.loads(argument))
