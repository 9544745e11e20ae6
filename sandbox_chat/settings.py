"""All settings of the program: typed, checked, with one documented default each.

Sources, the first that has a value wins: command line, process environment, ``.env`` in the working
folder, ``config.toml`` in the user's configuration folder, default. A setting is called by its name
in ``config.toml`` and by its variable in the environment and in ``.env``.
"""

from __future__ import annotations

import dataclasses
import difflib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SANDBOXES = ("local", "e2b", "docker", "off", "unsafe-local")
IMAGE_MODES = ("auto", "kitty", "sixel", "half", "off")
THEMES = ("dark", "light")
PREFIX = "SANDBOX_CHAT_"


class ConfigError(Exception):
    """A setting is wrong. The message names the setting, where it was found, and what is right."""


class Secret:
    """A credential. Never printed: ``str`` and ``repr`` show only that it is set. ``reveal`` unwraps it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the value. Only the CLI child's environment and the sandbox client may call this."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret(set)" if self._value else "Secret(empty)"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash((Secret, self._value))

    def __reduce__(self) -> Any:
        raise TypeError("a Secret is not pickled or copied to other processes")


# --- how a value is read -------------------------------------------------------------------------------


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be text")
    return value.strip()


def _secret(value: Any) -> Secret:
    return Secret(_text(value))


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("must be true or false")


def _whole(low: int, high: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = int(str(value).strip().replace("_", ""))
        except ValueError:
            raise ValueError(f"must be a whole number from {low} to {high}") from None
        if not low <= number <= high:
            raise ValueError(f"must be a whole number from {low} to {high}")
        return number

    return read


def _number(low: float, high: float) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        try:
            if isinstance(value, bool):
                raise ValueError
            number = float(str(value).strip())
        except ValueError:
            raise ValueError(f"must be a number from {low:g} to {high:g}") from None
        if not low <= number <= high:
            raise ValueError(f"must be a number from {low:g} to {high:g}")
        return number

    return read


def _one_of(*choices: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        word = str(value).strip().lower()
        if word not in choices:
            near = difflib.get_close_matches(word, choices, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"must be one of {', '.join(choices)}{hint}")
        return word

    return read


def _url(value: Any) -> str:
    text = _text(value).rstrip("/")
    if not text:
        return ""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        port_ok = False
    if (
        not port_ok
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or any(c.isspace() for c in text)
    ):
        raise ValueError("must be a URL such as https://gateway.example.com (http or https, with a host)")
    if parts.username or parts.password:
        raise ValueError("must not hold a user name or password; put the token into ANTHROPIC_AUTH_TOKEN")
    return text


def _path(value: Any) -> Path | None:
    text = _text(str(value))
    return Path(text).expanduser() if text else None


def _setting(default: Any, read: Callable[[Any], Any], doc: str, *, env: str = "", group: str) -> Any:
    return field(default=default, metadata={"read": read, "doc": doc, "env": env, "group": group})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. The metadata of a field holds its reader, documentation, variable and group."""

    # Model
    anthropic_api_key: Secret = _setting(
        Secret(""), _secret, "Key for Claude, used directly.", env="ANTHROPIC_API_KEY", group="model"
    )
    anthropic_base_url: str = _setting(
        "",
        _url,
        "Address of an Anthropic-compatible gateway or local model server.",
        env="ANTHROPIC_BASE_URL",
        group="model",
    )
    anthropic_auth_token: Secret = _setting(
        Secret(""), _secret, "Token for that gateway.", env="ANTHROPIC_AUTH_TOKEN", group="model"
    )
    model: str = _setting(
        "", _text, "Name of the model; the CLI's default when empty.", env="CLAUDE_MODEL", group="model"
    )
    claude_login: bool = _setting(
        False, _flag, "Use the login of an installed Claude Code instead of a key.", group="model"
    )
    demo: bool = _setting(
        False, _flag, "Talk to the built-in demo, which is rules and no model; needs no key.", group="model"
    )
    max_turns: int = _setting(
        30, _whole(1, 1000), "Steps that the model may take to answer one prompt.", group="model"
    )
    request_timeout: float = _setting(
        600.0, _number(1, 3600), "Seconds that one request to the model may take.", group="model"
    )
    request_retries: int = _setting(
        4, _whole(0, 20), "How often a failed request to the model is tried again.", group="model"
    )
    connect_timeout: float = _setting(
        60.0, _number(1, 600), "Seconds that the CLI may take to start.", group="model"
    )

    # Sandbox
    sandbox: str = _setting(
        "local",
        _one_of(*SANDBOXES),
        "Where code runs: local, e2b, docker, off, or unsafe-local.",
        group="sandbox",
    )
    run_timeout: int = _setting(
        25, _whole(1, 3600), "Longest time in seconds that one run_code call may take.", group="sandbox"
    )
    start_timeout: float = _setting(
        30.0, _number(1, 600), "Seconds that a sandbox may take to start.", group="sandbox"
    )
    sandbox_memory_mb: int = _setting(
        2048, _whole(128, 1 << 20), "Memory of a local sandbox's process in megabytes.", group="sandbox"
    )
    sandbox_processes: int = _setting(
        256, _whole(8, 65536), "Processes and threads in a local sandbox.", group="sandbox"
    )
    sandbox_file_mb: int = _setting(
        1024, _whole(1, 1 << 20), "Largest file that code may write, in megabytes.", group="sandbox"
    )
    sandbox_disk_mb: int = _setting(
        1024,
        _whole(16, 1 << 20),
        "Room in a local sandbox's /tmp, in megabytes (it lies in memory).",
        group="sandbox",
    )
    sandbox_python: Path | None = _setting(
        None,
        _path,
        "Python interpreter whose packages the local sandbox offers; the program's own when empty.",
        env="SANDBOX_PYTHON",
        group="sandbox",
    )
    output_limit: int = _setting(
        1_000_000,
        _whole(1000, 1 << 30),
        "Characters of output kept of one run; the middle is cut.",
        group="sandbox",
    )
    e2b_api_key: Secret = _setting(
        Secret(""), _secret, "Key of an E2B-compatible cloud.", env="E2B_API_KEY", group="sandbox"
    )
    e2b_api_url: str = _setting(
        "", _url, "Control address of that cloud.", env="E2B_API_URL", group="sandbox"
    )
    e2b_domain: str = _setting(
        "", _text, "Domain of that cloud's sandboxes.", env="E2B_DOMAIN", group="sandbox"
    )

    # Tools
    text_limit: int = _setting(
        20_000,
        _whole(1000, 45_000),
        "Characters of text that one tool call gives to the model.",
        group="tools",
    )
    image_limit: int = _setting(
        5_000_000, _whole(10_000, 20_000_000), "Bytes of the largest picture that is read.", group="tools"
    )
    image_side: int = _setting(
        1568, _whole(64, 8000), "Longest side in pixels of a picture given to the model.", group="tools"
    )
    images_per_call: int = _setting(
        4, _whole(0, 20), "Pictures that one tool call gives to the model; all are shown.", group="tools"
    )
    download_limit: int = _setting(
        100_000_000, _whole(1000, 1 << 40), "Bytes of the largest file that is downloaded.", group="tools"
    )
    downloads_dir: Path | None = _setting(
        None,
        _path,
        "Folder for downloaded files; ./downloads in the working folder when empty.",
        group="tools",
    )

    # Interface
    images: str = _setting(
        "auto",
        _one_of(*IMAGE_MODES),
        "How pictures are drawn: auto, kitty, sixel, half, off.",
        group="interface",
    )
    image_rows: int = _setting(
        24, _whole(4, 200), "Height of a picture in the transcript, in rows at most.", group="interface"
    )
    image_pixels: int = _setting(
        50_000_000,
        _whole(10_000, 1 << 31),
        "Pixels of the largest picture that is decoded.",
        group="interface",
    )
    theme: str = _setting("dark", _one_of(*THEMES), "Colours: dark or light.", group="interface")
    tabs_below: int = _setting(
        100, _whole(40, 1000), "Below this width in columns, panes become tabs.", group="interface"
    )
    probe_timeout: float = _setting(
        0.2,
        _number(0, 5),
        "Seconds to wait for the terminal to say which pictures it can draw.",
        group="interface",
    )
    reduced_motion: bool = _setting(False, _flag, "No spinners or moving parts.", group="interface")

    # Program
    data_dir: Path | None = _setting(
        None, _path, "Folder of the sessions; the system's place for user data when empty.", group="program"
    )
    log: Path | None = _setting(None, _path, "File for the log; none when empty.", group="program")
    close_timeout: float = _setting(
        5.0, _number(0.5, 60), "Seconds that closing may take before what is left is killed.", group="program"
    )

    # Not settings: where the values came from, and what deserves a word.
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)

    # -- derived ---------------------------------------------------------------------------------------

    @property
    def has_model(self) -> bool:
        """True when an endpoint or a login is configured, so that the demo is not needed."""
        return bool(self.anthropic_api_key or self.anthropic_base_url or self.claude_login)

    @property
    def data_path(self) -> Path:
        """Folder of sessions and of the CLI's own files."""
        if self.data_dir is not None:
            return self.data_dir
        import platformdirs

        return platformdirs.user_data_path("sandbox-chat", appauthor=False)

    @property
    def cache_path(self) -> Path:
        """Folder of what can be made again."""
        if self.data_dir is not None:
            return self.data_dir / "cache"
        import platformdirs

        return platformdirs.user_cache_path("sandbox-chat", appauthor=False)

    @property
    def downloads_path(self) -> Path:
        """Folder that download_file writes to."""
        return self.downloads_dir if self.downloads_dir is not None else Path.cwd() / "downloads"

    def secrets(self) -> list[str]:
        """Values of all credentials that are set, for scrubbing logs and messages."""
        values = (getattr(self, item.name) for item in dataclasses.fields(self))
        return [value.reveal() for value in values if isinstance(value, Secret) and value]

    def scrub(self, text: str) -> str:
        """Return ``text`` with every credential replaced by ``[secret]``."""
        for value in sorted(self.secrets(), key=len, reverse=True):
            if len(value) >= 4:
                text = text.replace(value, "[secret]")
        return text


def fields() -> list[dataclasses.Field[Any]]:
    """The settings in order, without the fields that only describe."""
    return [item for item in dataclasses.fields(Settings) if "read" in item.metadata]


def variable(item: dataclasses.Field[Any]) -> str:
    """Name of the environment variable of a setting."""
    return item.metadata["env"] or PREFIX + item.name.upper()


def config_path(environ: Mapping[str, str]) -> Path:
    """Path of the user's ``config.toml``."""
    if folder := environ.get("SANDBOX_CHAT_CONFIG_DIR"):
        return Path(folder).expanduser() / "config.toml"
    if folder := environ.get("XDG_CONFIG_HOME"):
        return Path(folder) / "sandbox-chat" / "config.toml"
    import platformdirs

    return platformdirs.user_config_path("sandbox-chat", appauthor=False) / "config.toml"


def load(
    overrides: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Settings:
    """Read the settings from all sources.

    ``overrides`` are values of the command line by setting name. Raises ``ConfigError`` with one
    sentence that names the setting and its source.
    """
    environ = os.environ if environ is None else environ
    folder = Path.cwd() if folder is None else folder
    warnings: list[str] = []
    dotenv = _read_dotenv(folder / ".env")
    config_file = config_path(environ)
    config = _read_config(config_file, warnings)

    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for item in fields():
        name, var = item.name, variable(item)
        if overrides and overrides.get(name) is not None:
            raw, origin, shown = overrides[name], "the command line", "--" + name.replace("_", "-")
        elif var in environ:
            raw, origin, shown = environ[var], "the environment", var
        elif dotenv.get(var) is not None:
            raw, origin, shown = dotenv[var], str(folder / ".env"), var
        elif name in config:
            raw, origin, shown = config[name], str(config_file), name
        else:
            continue
        try:
            values[name] = item.metadata["read"](raw)
        except ValueError as error:
            secret = isinstance(item.default, Secret)
            got = "" if secret else f" (it is {str(raw)[:80]!r})"
            raise ConfigError(f"{shown} from {origin} {error}{got}.") from None
        origins[name] = origin
    warnings.extend(_unknown_variables({**dotenv, **environ}))
    return Settings(**values, origins=origins, warnings=tuple(warnings))


def _unknown_variables(names: Mapping[str, Any]) -> list[str]:
    known = {variable(item) for item in fields()} | {PREFIX + "CONFIG_DIR"}
    found = []
    for name in names:
        if name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f" Did you mean {near[0]}?" if near else ""
            found.append(f"The variable {name} is not a setting and was ignored.{hint}")
    return found


def _read_dotenv(path: Path) -> dict[str, str]:
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigError(
            f"The file {path} cannot be read ({reason}). Mend it, or remove it, or start in another folder."
        ) from None
    import io
    import logging

    from dotenv import dotenv_values

    logger = logging.getLogger("dotenv.main")
    level = logger.level
    logger.setLevel(logging.CRITICAL)  # a faulty line is not shouted over the screen
    try:
        values = dotenv_values(stream=io.StringIO(content), interpolate=False)
    finally:
        logger.setLevel(level)
    return {name: value for name, value in values.items() if value is not None}


def _read_config(path: Path, warnings: list[str]) -> dict[str, Any]:
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(
            f"The file {path} cannot be read ({error.strerror}). Mend its permissions or remove it."
        ) from None
    import tomllib

    try:
        data = tomllib.loads(raw.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The file {path} is not valid TOML: {error}.") from None
    names = {item.name for item in fields()}
    values: dict[str, Any] = {}
    for key, value in data.items():
        # A table groups settings for the eye: [sandbox] run_timeout = 20 is the same as run_timeout = 20.
        inner = value if isinstance(value, dict) else {key: value}
        for name, item in inner.items():
            if name in names:
                values[name] = item
            else:
                near = difflib.get_close_matches(name, names, 1)
                hint = f" Did you mean {near[0]}?" if near else ""
                warnings.append(f"{name} in {path} is not a setting and was ignored.{hint}")
    return values
