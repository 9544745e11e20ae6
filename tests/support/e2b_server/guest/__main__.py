"""The program of a sandbox: serves envd and the code interpreter on ``<box>/guest.sock``.

Its argument is JSON: ``box``, ``home``, ``charts``, ``quirks``, ``death_delay``. It says ``ready`` on its
output when it listens, and ends when its input is closed, which is when the cloud is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import threading
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Host, Route, Router

from .asgi import Receive, Send
from .files import Files
from .interpreter import Interpreter
from .kernels import Kernels
from .processes import Processes


class Token:
    """Every call of envd but ``/health`` has to bring the access token; ``/files`` looks for itself."""

    def __init__(self, app: Any, files: Files) -> None:
        self.app = app
        self.files = files

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http" and self.files.token and scope["path"] not in ("/health", "/files"):
            headers = Request(scope).headers
            if headers.get("host") == "envd" and headers.get("x-access-token") != self.files.token:
                app = JSONResponse({"code": "unauthenticated", "message": "invalid access token"}, 401)
        await app(scope, receive, send)


def build(options: dict[str, Any]) -> tuple[Starlette, Kernels]:
    """Hosts name the services: ``envd`` and ``code``; ``init`` is the cloud's own, to give out the sandbox."""
    files, processes = Files(options["home"]), Processes(options["home"])
    kernels = Kernels(options["box"], options["home"], options["charts"])
    interpreter = Interpreter(
        kernels, options["home"], quirks=options["quirks"], death_delay=options["death_delay"]
    )

    async def init(request: Request) -> Response:
        wanted = await request.json()
        files.token = interpreter.token = wanted["token"]
        kernels.envs = processes.envs = wanted["envs"]
        return Response(status_code=204)

    async def health(request: Request) -> Response:
        return Response(status_code=204)

    envd = Router([Route("/health", health), *files.routes(), *processes.routes()])
    app = Starlette(
        routes=[
            Host("envd", envd),
            Host("code", Router(interpreter.routes())),
            Host("init", Router([Route("/init", init, methods=["POST"])])),
        ],
        middleware=[Middleware(Token, files=files)],
    )
    return app, kernels


def end_with_parent() -> None:
    sys.stdin.read()
    os._exit(0)


async def main() -> None:
    options = json.loads(sys.argv[1])
    threading.Thread(target=end_with_parent, daemon=True).start()
    app, kernels = build(options)
    kernels.prepare()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(f"{options['box']}/guest.sock")
    config = uvicorn.Config(app, log_level="warning", lifespan="off", http="h11", ws="none", loop="asyncio")
    config.backlog = 256
    listener.listen(256)
    print("ready", flush=True)
    await uvicorn.Server(config).serve(sockets=[listener])


asyncio.run(main())
