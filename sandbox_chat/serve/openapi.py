"""The description of the server in OpenAPI, made from what the server itself checks and answers."""

from __future__ import annotations

from typing import Any, get_args

from sandbox_chat import __version__
from sandbox_chat.events import Usage
from sandbox_chat.serve.asking import FILE, SAYS, SESSION, TASK_LIMIT, USER
from sandbox_chat.serve.errors import ERRORS
from sandbox_chat.serve.metrics import CONTENT_TYPE
from sandbox_chat.serve.task import Outcome
from sandbox_chat.settings import Settings

_ABOUT = """\
Each task is a prompt to an agent that runs code in a sandbox. A task without a session begins a new one, whose id the result \
names; with it the next task goes on where that ended. Tasks of one session run one after another in the order in which they \
came. Each user has sessions, sandboxes and skills of their own. A client that closes its connection ends its task: it is taken \
out of the queue, or interrupted.\
"""
_TASK_ERRORS = (
    "not_json", "session_in_use", "no_session", "session_removed", "slow_body", "too_large", "not_json_type", "invalid",
    "queue_full", "draining", "unavailable", "internal",
)  # fmt: skip
FILE_TYPES = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "svg": "image/svg+xml",
    "html": "text/html; charset=utf-8",
    "bin": "application/octet-stream",
}
"""Types of a session's files by the ending of their names."""
_RETRY = {
    "Retry-After": {
        "description": "Seconds after which to come again, where that is known.",
        "schema": {"type": "integer", "minimum": 1},
    }
}
_AGAIN = ("429", "503")


_WHICH: list[dict[str, Any]] = [
    {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": SESSION}},
    {
        "name": "userId",
        "in": "query",
        "required": False,
        "description": "When it is given, the session must be this user's.",
        "schema": {"type": "string", "pattern": USER},
    },
]


def describe(settings: Settings, *, token: bool) -> dict[str, Any]:
    """Return the description of a server with these settings; ``token``: one is needed."""
    common: tuple[str, ...] = ("method_not_allowed", "internal", "wrong_host", "wrong_origin", "unavailable")
    common += ("unauthorized",) if token else ()
    json_of = {"application/json": {"schema": {"$ref": "#/components/schemas/Health"}}}
    open_to_all: dict[str, Any] = {"security": []}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Sandbox Chat", "version": __version__, "description": _ABOUT},
        "security": [{"token": []}] if token else [],
        "paths": {
            "/task": {"post": _task(settings, common)},
            "/sessions/{id}": {"delete": _remove(common)},
            "/sessions/{id}/files/{name}": {"get": _file(common)},
            "/health": {
                "get": {
                    "operationId": "health",
                    "summary": "How the server is; needs no token",
                    **open_to_all,
                    "responses": {
                        "200": {"description": "It takes tasks.", "content": json_of},
                        "503": {
                            "description": "It is starting or ending, or has too many requests.",
                            "content": {
                                "application/json": {
                                    "schema": {
                                        "anyOf": [
                                            {"$ref": "#/components/schemas/Health"},
                                            {"$ref": "#/components/schemas/Error"},
                                        ]
                                    }
                                }
                            },
                        },
                        **_errors("method_not_allowed", "internal", "wrong_host", "wrong_origin"),
                    },
                }
            },
            "/metrics": {
                "get": {
                    "operationId": "metrics",
                    "summary": "Counts for Prometheus",
                    "responses": {
                        "200": {
                            "description": "Prometheus' text form.",
                            "content": {CONTENT_TYPE: {"schema": {"type": "string"}}},
                        },
                        **_errors(*common),
                    },
                }
            },
            "/openapi.json": {
                "get": {
                    "operationId": "describe",
                    "summary": "This description",
                    "responses": {
                        "200": {
                            "description": "OpenAPI 3.1.",
                            "content": {"application/json": {"schema": {"type": "object"}}},
                        },
                        **_errors(*common),
                    },
                }
            },
        },
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}} if token else {},
        },
    }


def _task(settings: Settings, common: tuple[str, ...]) -> dict[str, Any]:
    return {
        "operationId": "task",
        "summary": "Run a task",
        "description": "The answer comes when the task has ended; 200 says that it ran, and outcome how it ended. With "
        "Accept: text/event-stream each event of the session is a message as it happens (id: its number; event: its type; data: "
        "its JSON, as sandbox-chat run --json prints it), with comments while nothing happens. The last message is turn_finished, or "
        "error with the body of an error when the task did not run. At most "
        f"{settings.http_body_kb} kB.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Task"}}},
        },
        "responses": {
            "200": {
                "description": "The task ran.",
                "content": {
                    "application/json": {"schema": {"$ref": "#/components/schemas/Result"}},
                    "text/event-stream": {"schema": {"type": "string"}},
                },
                "links": {
                    "goOn": {
                        "operationId": "task",
                        "requestBody": {
                            "userId": "$request.body#/userId",
                            "session": "$response.body#/session",
                            "task": "Go on.",
                        },
                    },
                    "file": {
                        "operationId": "getFile",
                        "parameters": {
                            "path.id": "$response.body#/session",
                            "path.name": "$response.body#/files/0/name",
                            "query.userId": "$request.body#/userId",
                        },
                    },
                    "remove": {
                        "operationId": "removeSession",
                        "parameters": {
                            "id": "$response.body#/session",
                            "query.userId": "$request.body#/userId",
                        },
                    },
                },
            },
            **_errors(*common, *_TASK_ERRORS),
        },
    }


def _remove(common: tuple[str, ...]) -> dict[str, Any]:
    return {
        "operationId": "removeSession",
        "summary": "End a session",
        "description": "Ends the session with its sandbox, interrupts what runs in it, and removes it from the server. Its record "
        "is kept on the server's disk. It is then no longer there, for tasks neither.",
        "parameters": _WHICH,
        "responses": {
            "204": {"description": "It was removed."},
            **_errors(*common, "no_session", "invalid"),
        },
    }


def _file(common: tuple[str, ...]) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string", "pattern": FILE}}
    return {
        "operationId": "getFile",
        "summary": "Get a picture or page that a task has made",
        "parameters": [*_WHICH, name],
        "responses": {
            "200": {
                "description": "What is in it.",
                "content": {each: {"schema": {"type": "string"}} for each in FILE_TYPES.values()},
            },
            **_errors(*common, "no_file", "invalid"),
        },
    }


def _errors(*codes: str) -> dict[str, Any]:
    """Return the answers for errors of these codes, by status."""
    by_status: dict[int, list[str]] = {}
    for code in sorted(set(codes)):
        by_status.setdefault(ERRORS[code][0], []).append(code)
    found: dict[str, Any] = {}
    for status, these in sorted(by_status.items()):
        found[str(status)] = {
            "description": " ".join(f"{code}: {ERRORS[code][1]}" for code in these),
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        }
        if str(status) in _AGAIN:
            found[str(status)]["headers"] = _RETRY
        if status == 405:
            found["405"]["headers"] = {"Allow": {"schema": {"type": "string"}}}
    return found


def _object(
    properties: dict[str, Any], optional: tuple[str, ...] = (), *, closed: bool = True
) -> dict[str, Any]:
    return {
        "type": "object",
        "required": [name for name in properties if name not in optional],
        "properties": properties,
        "additionalProperties": not closed,
    }


def _schemas() -> dict[str, Any]:
    text: dict[str, Any] = {"type": "string"}
    count: dict[str, Any] = {"type": "integer", "minimum": 0}
    yes: dict[str, Any] = {"type": "boolean"}
    tool = _object({"name": text, "is_error": yes, "interrupted": yes, "duration_ms": count})
    return {
        "Task": _object(
            {
                "userId": {"type": "string", "pattern": USER, "description": "Whose task it is."},
                "task": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": TASK_LIMIT,
                    "pattern": SAYS,
                    "description": "The prompt.",
                },
                "session": {
                    "type": ["string", "null"],
                    "pattern": SESSION,
                    "description": "A session of this user's to go on with; a new one when left out.",
                },
            },
            ("session",),
        ),
        "Result": _object(
            {
                "task": {**text, "description": "Its id in the log."},
                "session": {**text, "pattern": SESSION},
                "turn": text,
                "outcome": {
                    "enum": [each for each in get_args(Outcome) if each not in ("left", "unavailable")],
                    "description": "ok; failed (error says why); timeout, drained or removed: it was interrupted because its "
                    "time was over, the server ended, or its session was removed.",
                },
                "answer": {**text, "description": "What the agent wrote, blocks with an empty line between."},
                "answer_cut": {**yes, "description": "The answer was longer than a result holds."},
                "subtype": text,
                "is_error": yes,
                "interrupted": yes,
                "error": {**text, "description": "A sentence when the task failed; empty otherwise."},
                "duration_ms": count,
                "cost_usd": {"type": ["number", "null"], "description": "null when it is not known."},
                "usage": _object(dict.fromkeys(Usage.__slots__, count)),
                "tools": {"type": "array", "items": tool},
                "files": {
                    "type": "array",
                    "items": _object({"name": {**text, "pattern": FILE}, "mime": text, "title": text}),
                    "description": "Pictures and pages that calls have made; their names are for getFile.",
                },
                "tools_left_out": {**count, "description": "Earlier calls that are not in tools."},
            }
        ),
        "Health": _object(
            {
                "state": {"enum": ["starting", "ok", "draining"]},
                "version": text,
                "running": {**count, "description": "Tasks that run."},
                "queued": {**count, "description": "Tasks that wait."},
                "sessions": {**count, "description": "Sessions that are kept alive."},
            }
        ),
        "Error": _object({"error": _object({"code": {"enum": list(ERRORS)}, "message": text})}),
    }
