"""One server of a file: checked, with its ``${VAR}`` as they stand, and what it is when they are filled in."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sandbox_chat.mcp.base import Endpoint, ServerConfig
from sandbox_chat.mcp.checks import UNFIT, is_unfit, name_problem, strings, url_problem
from sandbox_chat.mcp.variables import (
    Unset,
    expand,
    expand_all,
    hidden,
    like_a_credential,
    masked,
    masked_address,
    references,
    worth_hiding,
)
from sandbox_chat.settings import ConfigError, Secret
from sandbox_chat.text import clean_line

WORD_LIMIT = 32_000
"""Characters of one argument, variable or header at most."""
WORDS_LIMIT = 256
"""Arguments, variables or headers of one server at most."""
MILLISECONDS_FROM = 1000
"""A ``timeout`` of this or more is in milliseconds, as most programs write it; a smaller one is in seconds."""
LONGEST_CALL = 86_400.0
SHOWN_LIMIT = 4000
"""Characters of how a server is started that are shown at most."""
KEYS = (
    "command", "args", "env", "cwd", "type", "url", "headers", "insecure", "disabled", "enabled", "timeout", "catalogue", "properties",
)  # fmt: skip
_OF_OTHERS = ("description", "$schema", "name", "title", "icon")
"""Keys that only describe, so that nothing is lost when they are passed over."""
_ALLOWING = ("autoApprove", "alwaysAllow", "trust", "autoAllow", "always_allow")
_HTTP = ("http", "streamable-http", "streamableHttp", "streamable_http")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_OF_HTTP = ("host", "content-length", "transfer-encoding", "connection", "content-type", "accept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A server as a file has it: a program, an address, or a server of the catalogue with its properties.

    ``timeout`` in seconds for one call. ``path`` is the file.
    """

    name: str
    path: Path
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    insecure: bool = False
    disabled: bool = False
    timeout: float | None = None
    catalogue: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def whole(self) -> str:
        """Return how it is started or reached as it stands, credentials too."""
        if self.catalogue:
            said = (f" {name}={_plain(value)}" for name, value in self.properties.items())
            return f"{self.catalogue} of the catalogue" + "".join(said)
        return shlex.join(self.command) if self.command else self.url

    def how(self, limit: int = SHOWN_LIMIT) -> str:
        """Return how it is started or reached in one line of at most ``limit`` characters, credentials left out."""
        text = (masked_address if self.url else masked)(self.whole()[: 4 * limit])
        return clean_line(text.replace("\n", "⏎"), limit)

    def given(self, limit: int = SHOWN_LIMIT) -> list[str]:
        """Return its variables and headers as they stand, each of at most ``limit`` characters, credentials left out."""
        found = []
        for table in (self.env, self.headers):
            for name, value in table.items():
                # A variable may tell what is run: one that only looks like a credential is shown.
                secret = like_a_credential(name, value) and (table is self.headers or _named(name))
                shown = (hidden if secret else masked)(value[: 4 * limit])
                found.append(f"{name}={clean_line(shown, limit)}")
        return found

    def variables(self) -> list[str]:
        """Return the variables of the environment that it names, in their order."""
        return list(dict.fromkeys(variable for _, text in self._texts() for variable, _ in references(text)))

    def check_variables(self) -> None:
        """Look whether all that is written as a variable is one. Raises ``ConfigError``."""
        every = dict.fromkeys(self.variables(), "")
        for place, text in self._texts():
            self._expand(text, every, place)

    def unset(self, environ: Mapping[str, str]) -> list[str]:
        """Return the variables that it needs, in their order, that have neither a value nor a default."""
        found: dict[str, None] = {}
        for _, text in self._texts():
            for variable, default in references(text):
                if default is None and variable not in environ:
                    found[variable] = None
        return list(found)

    def config(self, environ: Mapping[str, str]) -> ServerConfig:
        """Return how it is started, with the variables filled in; not for one of the catalogue. Raises ``ConfigError``."""
        if self.url:
            url = self._expand(self.url, environ, "url")
            if problem := url_problem(url, insecure=self.insecure):
                raise ConfigError(wrong(self.name, self.path, "url", problem))
            headers = {
                name: Secret(self._header(name, self._expand(value, environ, f"headers.{name}")))
                for name, value in self.headers.items()
            }
            return ServerConfig(
                name=self.name,
                endpoint=Endpoint(url=url, headers=headers),
                call_timeout=self.timeout,
                source=str(self.path),
                hidden=self._hidden(environ),
            )
        command = tuple(
            self._expand(word, environ, _place(number)) for number, word in enumerate(self.command)
        )
        if not command[0].strip():
            raise ConfigError(wrong(self.name, self.path, "command", "is empty"))
        return ServerConfig(
            name=self.name,
            command=(_home(command[0]), *command[1:]),
            env=self.secret_env(environ),
            cwd=self.folder(environ),
            call_timeout=self.timeout,
            source=str(self.path),
            hidden=self._hidden(environ),
        )

    def folder(self, environ: Mapping[str, str]) -> Path | None:
        """Return the folder that it is started in; without ``cwd`` that of the file. Raises ``ConfigError``.

        It is never just the present one: what lies there (``.npmrc``, modules of Python or node, a program of that name)
        would decide what is run.
        """
        return self.path.absolute().parent / _home(self._expand(self.cwd, environ, "cwd"))

    def filled(self, environ: Mapping[str, str]) -> dict[str, Any]:
        """Return the properties of a server of the catalogue with the variables filled in. Raises ``ConfigError``."""
        try:
            return {name: expand_all(value, environ) for name, value in self.properties.items()}
        except Unset as error:
            raise ConfigError(unset_sentence(self.name, self.path, "properties", error)) from None

    def filled_env(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that it is given, filled in. Raises ``ConfigError``."""
        return {name: self._expand(value, environ, f"env.{name}") for name, value in self.env.items()}

    def secret_env(self, environ: Mapping[str, str]) -> dict[str, Secret]:
        """Return the variables that it is given, as they are kept. Raises ``ConfigError``."""
        return {name: Secret(value) for name, value in self.filled_env(environ).items()}

    def _texts(self) -> Iterator[tuple[str, str]]:
        """Yield each text that variables are filled in in, after its place."""
        yield from ((_place(number), word) for number, word in enumerate(self.command))
        yield "url", self.url
        yield "cwd", self.cwd
        yield from ((f"env.{name}", value) for name, value in self.env.items())
        yield from ((f"headers.{name}", value) for name, value in self.headers.items())
        yield from (("properties", text) for text in strings(list(self.properties.values())))

    def _expand(self, text: str, environ: Mapping[str, str], place: str) -> str:
        try:
            return expand(text, environ)
        except Unset as error:
            raise ConfigError(unset_sentence(self.name, self.path, place, error)) from None

    def _header(self, name: str, value: str) -> str:
        if not value.isascii() or not value.isprintable():
            said = "holds a sign that an HTTP header cannot carry; copy it again without spaces and newlines at its end"
            raise ConfigError(wrong(self.name, self.path, f"headers.{name}", said))
        return value

    def _hidden(self, environ: Mapping[str, str]) -> tuple[Secret, ...]:
        """Return the credentials in the arguments and the address: values of variables by their names."""
        found = dict.fromkeys(
            environ[variable]
            for text in (*self.command[1:], self.url)
            for variable, _ in references(text)
            if variable in environ and worth_hiding(variable, environ[variable])
        )
        return tuple(Secret(value) for value in found if value)


def read_entry(name: str, raw: Any, path: Path, warnings: list[str]) -> Entry:
    """Return the server ``name`` as it stands in the file at ``path``. Raises ``ConfigError`` with one sentence that names the place.

    What is not understood in it is added to ``warnings``.
    """
    if problem := name_problem(name):
        raise ConfigError(
            f"A server in {clean_line(str(path), 500)} is called {clean_line(name, 60)!r}: {problem}."
        )
    reader = _Reader(name, path)
    if not isinstance(raw, dict):
        raise reader.wrong("", 'must be an object such as {"command": "…"}')
    warnings += reader.unknown(raw)
    shared: dict[str, Any] = {
        "name": name,
        "path": path,
        "disabled": reader.flag(raw, "disabled") or not reader.flag(raw, "enabled", True),
        "timeout": reader.timeout(raw),
    }
    kind = reader.kind(raw)
    if kind == "url":
        url = reader.text(raw["url"], "url")
        insecure = reader.flag(raw, "insecure")
        if not list(references(url)) and (problem := url_problem(url, insecure=insecure)):
            raise reader.wrong("url", problem)
        return Entry(**shared, url=url, headers=reader.headers(raw), insecure=insecure)
    env, cwd = reader.variables(raw), reader.text(raw.get("cwd", ""), "cwd")
    if kind == "catalogue":
        properties = raw.get("properties", {})
        if not isinstance(properties, dict):
            raise reader.wrong("properties", "must be an object")
        for text in strings(properties):
            reader.text(text, "properties")
        of = reader.text(raw["catalogue"], "catalogue")
        return Entry(**shared, catalogue=of, properties=properties, env=env, cwd=cwd)
    return Entry(**shared, command=reader.command(raw), env=env, cwd=cwd)


def wrong(name: str, path: Path, place: str, problem: str) -> str:
    """Return the sentence about a mistake in the file at ``path``."""
    where = f"{clean_line(place, 120)} of the server" if place else "The server"
    return f"{where} {clean_line(name, 60)} in {clean_line(str(path), 500)} {problem}."


def unset_sentence(name: str, path: Path, place: str, error: Unset) -> str:
    """Return the sentence about a variable that cannot be filled in."""
    if not error.variable:
        said = (
            f"holds {clean_line(error.text, 60)}, which is not understood; write ${{NAME}} or ${{NAME:-default}}, "
            "and $${ for a literal ${"
        )
        return wrong(name, path, place, said)
    return (
        f"The server {clean_line(name, 60)} in {clean_line(str(path), 500)} needs the variable {error.variable} "
        f"({clean_line(place, 120)}), which is not set. Set it in the environment, or write a default: "
        f"${{{error.variable}:-…}}."
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the parts of one server; each mistake is one sentence with its place."""

    name: str
    path: Path

    def wrong(self, place: str, problem: str) -> ConfigError:
        return ConfigError(wrong(self.name, self.path, place, problem))

    def unknown(self, raw: Mapping[str, Any]) -> Iterator[str]:
        where = f"of the server {clean_line(self.name, 60)} in {clean_line(str(self.path), 500)}"
        for key in raw:
            word = clean_line(str(key), 60)
            if key in _ALLOWING:
                yield (
                    f"{word} {where} was ignored: tools that run without asking are named in SANDBOX_CHAT_MCP_ALLOW."
                )
            elif key not in KEYS and key not in _OF_OTHERS:
                near = difflib.get_close_matches(word, KEYS, 1)
                yield f"{word} {where} is not known and was ignored." + (
                    f" Did you mean {near[0]}?" if near else ""
                )

    def kind(self, raw: Mapping[str, Any]) -> str:
        ways = [way for way in ("command", "url", "catalogue") if raw.get(way) not in (None, "")]
        if len(ways) != 1:
            said = "has both " + " and ".join(ways) if ways else "has neither a command nor a url"
            raise self.wrong("", f"{said}; it needs one of them")
        way, kind = ways[0], raw.get("type")
        if kind is None:
            return way
        if kind in ("sse", "ws", "websocket"):
            raise self.wrong(
                "type",
                f'is {kind}, a transport that is not spoken here; most such servers also offer "http": ask its makers for that address',
            )
        if kind not in ("stdio", *_HTTP):
            raise self.wrong("type", 'must be "stdio" or "http"')
        if (kind in _HTTP) != (way == "url"):
            raise self.wrong("type", f"is {kind}, which does not go with {way}")
        return way

    def text(self, value: Any, place: str) -> str:
        if not isinstance(value, str):
            raise self.wrong(place, "must be text")
        if is_unfit(value):
            raise self.wrong(place, UNFIT)
        if len(value) > WORD_LIMIT:
            raise self.wrong(place, f"must not be longer than {WORD_LIMIT:,} characters")
        return value

    def flag(self, raw: Mapping[str, Any], key: str, default: bool = False) -> bool:
        value = raw.get(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, "must be true or false")
        return value

    def timeout(self, raw: Mapping[str, Any]) -> float | None:
        value = raw.get("timeout")
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool):
            if 1 <= value < MILLISECONDS_FROM:
                return float(value)
            if MILLISECONDS_FROM <= value <= LONGEST_CALL * 1000:
                return value / 1000
        raise self.wrong(
            "timeout",
            f"must be seconds below {MILLISECONDS_FROM}, or milliseconds, of one second to one day in all",
        )

    def command(self, raw: Mapping[str, Any]) -> tuple[str, ...]:
        first = self.text(raw["command"], "command")
        args = raw.get("args", [])
        if args is None:
            args = []
        if not isinstance(args, list) or len(args) > WORDS_LIMIT:
            raise self.wrong("args", f"must be a list of at most {WORDS_LIMIT} texts")
        if not first.strip():
            raise self.wrong("command", "is empty")
        return (first, *(self.text(word, f"args[{number}]") for number, word in enumerate(args)))

    def variables(self, raw: Mapping[str, Any]) -> dict[str, str]:
        found = self._table(raw, "env")
        for name in found:
            if not _VARIABLE.fullmatch(name):
                raise self.wrong(
                    "env", f"holds {clean_line(name, 60)!r}, which is not the name of a variable"
                )
        return found

    def headers(self, raw: Mapping[str, Any]) -> dict[str, str]:
        found = self._table(raw, "headers")
        for name, value in found.items():
            if not _HEADER.fullmatch(name) or name.lower() in _OF_HTTP:
                raise self.wrong(
                    "headers", f"holds {clean_line(name, 60)!r}, which cannot be a header of yours"
                )
            if not value.isascii() or not value.isprintable():
                raise self.wrong(f"headers.{name}", "must be one line of plain letters, digits and signs")
        return found

    def _table(self, raw: Mapping[str, Any], key: str) -> dict[str, str]:
        table = raw.get(key)
        if table is None:
            return {}
        if not isinstance(table, dict) or len(table) > WORDS_LIMIT:
            raise self.wrong(key, f"must be an object of at most {WORDS_LIMIT} texts")
        return {str(name): self.text(value, f"{key}.{name}") for name, value in table.items()}


def _home(text: str) -> str:
    if not text.startswith("~"):
        return text
    try:
        return str(Path(text).expanduser())
    except RuntimeError:
        return text


def _named(name: str) -> bool:
    """Does the name of a variable tell that it is a credential?"""
    return like_a_credential(name, "x")


def _place(number: int) -> str:
    """Return the place of a word of the command."""
    return "command" if number == 0 else f"args[{number - 1}]"


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
