"""Entry of the guest: set the limits, make the shell, serve the host's requests until it is gone."""

from __future__ import annotations

import contextlib
import functools
import gc
import json
import os
import resource
import socket
import sys
from typing import Any


def serve(config: dict[str, Any]) -> None:
    """Serve the host over the socket ``config["fd"]``. Does not return.

    ``config`` also holds ``alone`` (the guest has a process namespace to itself), ``limits`` (resource
    name to value, as in the ``resource`` module) and ``die_with_parent``, the host's process id where
    nothing else ends the guest and its children with the host.
    """
    if config.get("die_with_parent"):
        from . import warden

        warden.stand_above(int(config["die_with_parent"]), int(config["fd"]))
    set_limits(config.get("limits", {}))
    gc.disable()  # nothing of what is loaded now is garbage
    sock = socket.socket(fileno=int(config["fd"]))
    sock.set_inheritable(False)

    from . import files, processes
    from .link import Link
    from .protocol import VERSION
    from .shell import make_shell
    from .streams import Outlets, Stream, ThreadCells

    link = Link(sock)
    cells = ThreadCells(link)
    outlets = Outlets(Stream(1, "stdout", link, cells.current), Stream(2, "stderr", link, cells.current))
    outlets.restore()
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
            before = None
            with contextlib.suppress(
                Exception
            ):  # code may have used up all descriptors, or replaced os.listdir
                before = processes.others(alone=alone)
                if alone:
                    link.on_stop = functools.partial(processes.freeze_if_many, processes.last_id())
            outlets.restore()
            error = shell.run(str(request["code"]), number)
            if link.stopped and before is not None:
                with contextlib.suppress(Exception):
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


def main(argument: str) -> None:
    """Run the guest as ``argument``, a JSON object, says."""
    serve(json.loads(argument))
