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
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .shell import Shell

PACKAGES = (
    "numpy",
    "pandas",
    "matplotlib",
    "matplotlib.pyplot",
    "matplotlib_inline.backend_inline",
    "PIL.PngImagePlugin",
)
"""What ``warm_up`` imports, as far as it is there."""


def serve(config: dict[str, Any]) -> None:
    """Serve the host over the socket ``config["fd"]``. Does not return.

    ``config`` also holds ``alone`` (the guest has a process namespace to itself), ``limits`` (resource
    name to value, as in the ``resource`` module), ``first`` (this process is the first of that namespace),
    ``preload`` (import the usual packages before the first word) and ``die_with_parent``, the host's process id
    where nothing else ends the guest and its children with the host.
    """
    if config.get("die_with_parent"):
        from . import warden

        warden.stand_above(int(config["die_with_parent"]), int(config["fd"]))
    if config.get("first"):
        from . import warden

        warden.stand_first(int(config["fd"]))
    set_limits(config.get("limits", {}))
    gc.disable()  # nothing of what is loaded now is garbage
    sock = socket.socket(fileno=int(config["fd"]))
    shell = ready_shell()
    if config.get("preload"):
        warm_up(shell)
    gc.collect()
    gc.freeze()
    gc.enable()
    answer(shell, sock, config)


def ready_shell() -> Shell:
    """Return the shell of this process, not yet connected to anything."""
    from .shell import make_shell

    shell = make_shell()
    sys.path.insert(0, "")
    return shell


def warm_up(shell: Shell) -> list[str]:
    """Do once what is slow the first time: import the usual packages, draw a figure. Returns what was there.

    Leaves no trace that code could notice but the modules that are loaded. What fails is left out.
    """
    import importlib

    from .shell import NOWHERE

    loaded = []
    shell.link = NOWHERE
    ipython: Any = shell
    ipython.run_cell("None", silent=True)
    for name in PACKAGES:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
            loaded.append(name)
    with contextlib.suppress(Exception):
        frame = sys.modules["pandas"].DataFrame({"a": [1.5, 2.5], "b": ["x", "y"]})
        ipython.display_formatter.format(frame)
        ipython.display_formatter.format(frame.describe())
    with contextlib.suppress(Exception):
        pyplot: Any = sys.modules["matplotlib.pyplot"]
        _, axes = pyplot.subplots()
        axes.plot([0, 1], [1, 0], label="a")
        axes.set(title="A", xlabel="x", ylabel="y")
        axes.legend()
        importlib.import_module("matplotlib_inline.backend_inline").flush_figures()
    with contextlib.suppress(Exception):
        sys.modules["matplotlib.pyplot"].close("all")
    return loaded


def answer(shell: Shell, sock: socket.socket, config: dict[str, Any]) -> NoReturn:
    """Serve the host over ``sock`` with ``shell`` until the host is gone. ``config``: see ``serve``."""
    sock.set_inheritable(False)

    from . import calls, files, helper, processes
    from .link import Link
    from .protocol import VERSION
    from .streams import Outlets, Stream, ThreadCells

    link = Link(sock)
    cells = ThreadCells(link)
    outlets = Outlets(Stream(1, "stdout", link, cells.current), Stream(2, "stderr", link, cells.current))
    outlets.restore()
    cells.install()
    link.listen()
    shell.link = link
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
                if processes.bury_many():
                    link.send({"op": "cleared", "id": number})
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
            elif op == "discard":
                reply = files.discard(str(request["path"]))
            elif op == "read":
                reply, data = files.read(str(request["path"]), int(request["offset"]), int(request["size"]))
            elif op == "list":
                reply = files.entries(str(request["path"]), int(request["limit"]))
            elif op == "keeper":
                path = str(request.get("path", ""))
                reply = helper.start_keeper(link.take_descriptor(), str(request["folder"]), path)
            elif op == "tools":
                calls.install(str(request["path"]), str(request["token"]))
                reply = {}
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
    """Run the guest, or with ``warm_parent`` the warm parent of guests, as ``argument``, a JSON object, says."""
    config = json.loads(argument)
    if config.get("warm_parent"):
        from . import zygote

        zygote.serve(config)
    serve(config)
