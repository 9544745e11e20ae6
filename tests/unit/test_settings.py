"""Settings: which source wins, what messages say, and that no credential is ever shown."""

from __future__ import annotations

import copy
import dataclasses
import io
import json
import logging
import pickle
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import settings_doc

from sandbox_chat import values
from sandbox_chat.settings import ConfigError, Secret, Settings, config_path, fields, load, variable

CANARY = "canary-7f3e9c1b5d8a2046"


class Sources:
    """A working folder with ``.env`` and a configuration folder with ``config.toml``."""

    def __init__(self, root: Path) -> None:
        self.work = root / "work"
        self.config = root / "config"
        self.work.mkdir()
        self.config.mkdir()

    def env_file(self, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        (self.work / ".env").write_bytes(raw)

    def config_file(self, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        (self.config / "config.toml").write_bytes(raw)

    def load(self, overrides: Mapping[str, Any] | None = None, **environ: str) -> Settings:
        environ = {"SANDBOX_CHAT_CONFIG_DIR": str(self.config), **environ}
        return load(overrides, environ=environ, folder=self.work)

    def problem(self, overrides: Mapping[str, Any] | None = None, **environ: str) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(overrides, **environ)
        return str(caught.value)


@pytest.fixture
def sources(tmp_path: Path) -> Sources:
    return Sources(tmp_path)


# --- which source wins --------------------------------------------------------------------------------


def test_each_source_gives_way_to_the_one_before(sources: Sources) -> None:
    assert sources.load().max_turns == 30
    sources.config_file("max_turns = 4")
    assert sources.load().max_turns == 4
    sources.env_file("SANDBOX_CHAT_MAX_TURNS=3")
    assert sources.load().max_turns == 3
    assert sources.load(SANDBOX_CHAT_MAX_TURNS="2").max_turns == 2
    found = sources.load({"max_turns": "1"}, SANDBOX_CHAT_MAX_TURNS="2")
    assert found.max_turns == 1
    assert found.origins["max_turns"] == "the command line"


def test_origins_name_the_source(sources: Sources) -> None:
    sources.config_file("theme = 'light'")
    sources.env_file("CLAUDE_MODEL=m")
    found = sources.load(E2B_DOMAIN="d")
    assert found.origins == {
        "theme": str(sources.config / "config.toml"),
        "model": str(sources.work / ".env"),
        "e2b_domain": "the environment",
    }


def test_options_that_were_not_given_do_not_count(sources: Sources) -> None:
    assert sources.load({"model": None, "demo": None}, CLAUDE_MODEL="m").model == "m"


def test_an_empty_variable_hides_the_sources_after_it(sources: Sources) -> None:
    sources.env_file(f"ANTHROPIC_API_KEY={CANARY}\nSANDBOX_CHAT_MAX_TURNS=3")
    found = sources.load(ANTHROPIC_API_KEY="", SANDBOX_CHAT_MAX_TURNS=" ")
    assert not found.anthropic_api_key
    assert found.max_turns == 30


@pytest.mark.parametrize("blank", ["", " ", "\t", " \n "])
def test_a_blank_model_is_no_model(sources: Sources, blank: str) -> None:
    assert sources.load(CLAUDE_MODEL=blank).model == ""
    assert sources.load({"model": blank}).model == ""


def test_a_blank_choice_on_the_command_line_is_wrong(sources: Sources) -> None:
    assert sources.problem({"sandbox": ""}).startswith("--sandbox must be one of local, ")


def test_every_setting_can_be_set_by_its_variable_and_its_name(sources: Sources) -> None:
    examples = {
        str: "word",
        bool: "true",
        int: "",
        float: "",
        Secret: CANARY,
        type(None): "/tmp/x",
        tuple: "",
    }
    choices = {
        "effort": "low",
        "notify": "bell",
        "thinking": "4096",
        "silence_timeout": "90",
        "sandbox": "off",
        "images": "half",
        "theme": "light",
        "expand_tools": "failed",
        "glyphs": "ascii",
        "language": "zh",
        "local_tools": "read, Grep",
        "e2b_charts": "files",
        "mcp": "time, git",
        "mcp_allow": "time/*",
        "sandbox_mcp": '{"time": {}}',
        "code_mode": "both",
        "code_mode_policy": "time=free",
        "pii": "off",
        "pii_kinds": "EMAIL,IP",
        "pii_regions": "US,DE",
        "pii_patterns": '[{"name": "STAFF", "regex": "E-[0-9]{6}"}]',
        "pii_engine": "presidio",
        "pii_reveal": "mail/send/to",
    }
    for item in fields():
        raw = choices.get(item.name) or examples[type(item.default)] or str(item.default)
        if item.name.endswith("_url"):
            raw = "https://a.example"
        by_variable = sources.load(**{variable(item): raw})
        assert by_variable.origins[item.name] == "the environment"
        sources.config_file(f"{item.name} = {json.dumps(raw)}")
        assert getattr(sources.load(), item.name) == getattr(by_variable, item.name), item.name
        sources.config_file("")


@pytest.mark.parametrize(
    ("given", "read"), [("ON", "on"), (" off ", "off"), ("10_000", "10000"), (2048, "2048")]
)
def test_thinking_is_on_off_or_a_limit(given: object, read: str) -> None:
    assert values.thinking(given) == read


@pytest.mark.parametrize("given", [True, "yes", "1023", "-5000", "1e6", "10000000", "٢٠٤٨", "on off"])
def test_other_thinking_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="on, off, or a number of tokens"):
        values.thinking(given)


# --- .env -----------------------------------------------------------------------------------------------


def test_env_files_as_people_write_them(sources: Sources) -> None:
    sources.env_file(
        b"\xef\xbb\xbf# a comment\r\nexport ANTHROPIC_API_KEY='" + CANARY.encode() + b"'\r\n\r\n"
        b'CLAUDE_MODEL = "my-model" # trailing\r\nSANDBOX_CHAT_E2B_TAG=${HOME}\nSANDBOX_CHAT_DEMO\nOTHER_THING=1\n'
    )
    found = sources.load()
    assert found.anthropic_api_key.reveal() == CANARY
    assert found.model == "my-model"
    assert found.e2b_tag == "${HOME}"  # nothing is filled in from the environment
    assert found.demo is False
    assert found.warnings == ()


def test_a_line_that_cannot_be_understood_is_named(
    sources: Sources, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    sources.env_file("CLAUDE_MODEL=m\nthis is no variable\nE2B_DOMAIN=d\n")
    found = sources.load()
    assert (found.model, found.e2b_domain) == ("m", "d")
    assert found.warnings == (f"Line 2 of {sources.work / '.env'} cannot be understood and was ignored.",)
    assert caplog.text == ""
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("dotenv.main").filters == []


def test_an_env_file_that_cannot_be_read(sources: Sources) -> None:
    path = sources.work / ".env"
    sources.env_file(b"CLAUDE_MODEL=\xff\xfe")
    assert sources.problem() == (
        f"The file {path} cannot be read (it is not UTF-8 text). Mend it, or remove it, or start in another folder."
    )
    path.unlink()
    path.mkdir()
    assert f"The file {path} cannot be read (Is a directory)." in sources.problem()


def test_no_env_file_and_no_config_is_fine(tmp_path: Path) -> None:
    found = load(environ={"SANDBOX_CHAT_CONFIG_DIR": str(tmp_path / "no")}, folder=tmp_path / "gone")
    assert dict(found.origins) == {}
    assert found == Settings()


def test_a_working_folder_that_was_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(ConfigError, match=r"The working folder no longer exists\."):
        load(environ={})
    monkeypatch.chdir(tmp_path)


OWN = [item for item in fields() if item.metadata["own"]]


def test_what_decides_about_this_computer_is_not_taken_from_the_folder(sources: Sources) -> None:
    assert {item.name for item in OWN} == {
        "docker_command", "sandbox_python", "sandbox_workspace", "downloads_dir", "mcp", "mcp_config", "mcp_allow",
        "data_dir", "log", "code_mode_policy", "pii_patterns", "pii_reveal", "skills_dir",
        "http_token", "pii_passphrase",
    }  # fmt: skip
    sources.env_file(
        "".join(f"{variable(item)}=/evil/x\n" for item in OWN) + "SANDBOX_CHAT_SANDBOX=unsafe-local\n"
    )
    found = sources.load()
    assert found.sandbox == "local"
    for item in OWN:
        assert getattr(found, item.name) == item.default
        assert any(variable(item) in warning and "was not taken" in warning for warning in found.warnings)
    assert any("SANDBOX_CHAT_SANDBOX=unsafe-local in " in warning for warning in found.warnings)
    assert len(found.warnings) == len(OWN) + 1


def test_it_still_counts_where_it_is_the_users_own(sources: Sources) -> None:
    sources.env_file("SANDBOX_CHAT_MCP_ALLOW=evil/*\nSANDBOX_CHAT_SANDBOX=unsafe-local\nSANDBOX_PYTHON=\n")
    sources.config_file("mcp_allow = ['time/*']\nsandbox = 'off'\n")
    found = sources.load()
    assert (found.mcp_allow, found.sandbox, len(found.warnings)) == (("time/*",), "off", 2)
    found = sources.load(SANDBOX_CHAT_MCP_ALLOW="git/*", SANDBOX_CHAT_SANDBOX="unsafe-local")
    assert (found.mcp_allow, found.sandbox, found.warnings) == (("git/*",), "unsafe-local", ())


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("ANTHROPIC_BASE_URL=https://evil.example", "ANTHROPIC_API_KEY"),
        ("ANTHROPIC_BASE_URL=https://evil.example", "ANTHROPIC_AUTH_TOKEN"),
        ("E2B_API_URL=https://evil.example", "E2B_API_KEY"),
        ("E2B_DOMAIN=evil.example", "E2B_API_KEY"),
        ("E2B_SANDBOX_URL=https://evil.example", "E2B_API_KEY"),
        ("CUBE_PROXY_NODE_IP=192.0.2.1", "E2B_API_KEY"),
    ],
)
def test_a_key_is_never_sent_to_an_address_of_the_folder(sources: Sources, address: str, key: str) -> None:
    sources.env_file(address)
    found = sources.load(**{key: CANARY})
    assert "evil" not in repr(found) and "192.0.2.1" not in repr(found)
    (warning,) = found.warnings
    assert warning.startswith(address.partition("=")[0]) and f"{key} comes from elsewhere" in warning
    assert CANARY not in warning
    sources.env_file(f"{address}\n{key}={CANARY}")
    assert sources.load().warnings == ()
    assert sources.load(ANTHROPIC_BASE_URL="https://own.example").anthropic_base_url == "https://own.example"


def test_a_token_beside_the_address_goes_before_a_key_of_the_environment(sources: Sources) -> None:
    sources.env_file("ANTHROPIC_BASE_URL=https://gateway.example\nANTHROPIC_AUTH_TOKEN=tok\n")
    found = sources.load(ANTHROPIC_API_KEY=CANARY)
    assert (found.anthropic_base_url, found.warnings) == ("https://gateway.example", ())


# --- config.toml ----------------------------------------------------------------------------------------


def test_tables_group_settings(sources: Sources) -> None:
    sources.config_file(
        b"\xef\xbb\xbfmodel = 'm'\n[sandbox]\nrun_timeout = 20\nsandbox = 'off'\n[anything]\ndemo = true\n"
    )
    found = sources.load()
    assert (found.model, found.run_timeout, found.sandbox, found.demo) == ("m", 20, "off", True)


def test_servers_in_the_sandbox_are_a_table_names_or_an_object(sources: Sources) -> None:
    sources.config_file(
        "[sandbox]\nrun_timeout = 20\n[sandbox.mcp.time]\n[sandbox.mcp.filesystem]\npaths = ['/tmp']\n"
    )
    found = sources.load()
    assert found.run_timeout == 20
    assert dict(found.sandbox_mcp) == {"time": {}, "filesystem": {"paths": ["/tmp"]}}
    assert found.warnings == ()
    assert dict(sources.load(SANDBOX_CHAT_SANDBOX_MCP="time, fetch,").sandbox_mcp) == {
        "time": {},
        "fetch": {},
    }
    assert dict(sources.load({"sandbox_mcp": '{"a": null}'}).sandbox_mcp) == {"a": {}}
    assert not sources.load(SANDBOX_CHAT_SANDBOX_MCP="").sandbox_mcp


def test_what_servers_are_given_is_never_printed(sources: Sources) -> None:
    found = sources.load({"sandbox_mcp": json.dumps({"x": {"runCmd": "y", "envs": {"K": CANARY}}})})
    assert CANARY not in repr(found)
    for raw in (f'{{"x": "{CANARY}"}}', f'["{CANARY}"', f'"{CANARY}"'):
        problem = sources.problem({"sandbox_mcp": raw})
        assert problem.startswith("--sandbox-mcp ")
        assert CANARY not in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"model = \n", "is not valid TOML: Invalid value (at line 1, column 9). Mend that line."),
        (b"\xff\xfe", "is not UTF-8 text. Mend it or remove it."),
        (b"model = 5", "must be text. It is '5'."),
        (b"model = ['a']", "must be text."),
        (b"max_turns = 2.5", "must be a whole number from 1 to 1000. It is '2.5'."),
        (b"max_turns = true", "must be a whole number from 1 to 1000. It is 'True'."),
        (b"demo = 'perhaps'", "must be true or false. It is 'perhaps'."),
        (b"data_dir = 7", "must be text. It is '7'."),
        (b'log = "a\\u0000b"', "must be plain text without control characters."),
    ],
)
def test_faults_in_the_config_name_the_file(sources: Sources, text: bytes, said: str) -> None:
    sources.config_file(text)
    problem = sources.problem()
    assert said in problem
    assert str(sources.config / "config.toml") in problem


def test_a_config_that_cannot_be_read(sources: Sources) -> None:
    (sources.config / "config.toml").mkdir()
    assert "config.toml cannot be read (Is a directory)." in sources.problem()


def test_unknown_names_are_warned_about(sources: Sources) -> None:
    sources.config_file("modle = 'x'\n[deep]\nzzz = 1\n")
    path = sources.config / "config.toml"
    assert sources.load().warnings == (
        f"modle in {path} is not a setting and was ignored. Did you mean model?",
        f"zzz in {path} is not a setting and was ignored.",
    )


def test_unknown_variables_are_warned_about(sources: Sources) -> None:
    sources.env_file(f"ANTHROPIC_API_KEYS={CANARY}\nSANDBOX_CHAT_SANDBOXES=off\nOPENAI_API_KEY=x\n")
    env = sources.work / ".env"
    assert sources.load(SANDBOX_CHAT_MODEL="x", ANTHROPIC_API_KEYS="not ours", SANDBOX_CHAT_CONFIG_DIR=str(sources.config)).warnings == (
        "The variable SANDBOX_CHAT_MODEL in the environment is not a setting and was ignored. "
        "Did you mean SANDBOX_CHAT_DEMO?",
        f"The variable ANTHROPIC_API_KEYS in {env} is not a setting and was ignored. Did you mean ANTHROPIC_API_KEY?",
        f"The variable SANDBOX_CHAT_SANDBOXES in {env} is not a setting and was ignored. Did you mean SANDBOX_CHAT_SANDBOX?",
    )  # fmt: skip


def test_where_the_config_is(tmp_path: Path) -> None:
    assert config_path({"SANDBOX_CHAT_CONFIG_DIR": str(tmp_path)}) == tmp_path / "config.toml"
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/sandbox-chat/config.toml")
    assert config_path({"XDG_CONFIG_HOME": "relative"}).is_absolute()


# --- checks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("sandbox", "lcal", "--sandbox must be one of local, e2b, docker, off, unsafe-local; did you mean 'local'? It is 'lcal'."),
        ("images", "png", "--images must be one of auto, kitty, sixel, iterm, sharp, symbols, half, ascii, off. It is 'png'."),
        ("theme", "drak", "--theme must be one of auto, dark, light, contrast, terminal; did you mean 'dark'? It is 'drak'."),
        ("run_timeout", "0", "--run-timeout must be a whole number from 1 to 3600. It is '0'."),
        ("run_timeout", "3601", "must be a whole number from 1 to 3600"),
        ("run_timeout", "1e3", "must be a whole number"),
        ("run_timeout", "9" * 5000, "must be a whole number"),
        ("connect_timeout", "nan", "must be a number from 1 to 600"),
        ("connect_timeout", "inf", "must be a number from 1 to 600"),
        ("connect_timeout", "-1", "must be a number from 1 to 600"),
        ("close_timeout", "soon", "must be a number from 0.5 to 60. It is 'soon'."),
        ("demo", "maybe", "must be true or false"),
        ("anthropic_base_url", "ftp://h", "must be a URL such as https://gateway.example.com"),
        ("anthropic_base_url", "gateway.example.com", "must be a URL"),
        ("anthropic_base_url", "http://", "must be a URL"),
        ("anthropic_base_url", "http://h:0", "must be a URL"),
        ("anthropic_base_url", "http://h:99999", "must be a URL"),
        ("anthropic_base_url", "http://[::1", "must be a URL"),
        ("anthropic_base_url", "http://a b", "must be a URL"),
        ("model", "a\x1b[2Jb", "must be plain text without control characters"),
        ("model", "a\udcffb", "must be plain text without control characters"),
        ("sandbox_mcp", "[1]", "must be a JSON object of servers"),
        ("sandbox_mcp", "{", "is not valid JSON"),
        ("sandbox_mcp", '{"a": 1}', "must give an object of properties for the server a"),
        ("sandbox_mcp", "a\x1bb", "must be plain text without control characters"),
        ("mcp", "a\nb", "must be plain text without control characters"),
        ("log", "~nobody-of-this-name/x", "names a home folder that is not known"),
        ("log", "a\0b", "must be plain text without control characters"),
    ],
)  # fmt: skip
def test_wrong_values_are_explained(sources: Sources, name: str, raw: str, said: str) -> None:
    problem = sources.problem({name: raw})
    assert said in problem
    assert problem.isprintable()
    assert len(problem) < 400


def test_a_wrong_variable_is_named_with_its_source(sources: Sources) -> None:
    assert sources.problem(SANDBOX_CHAT_THEME="blue") == (
        "SANDBOX_CHAT_THEME in the environment must be one of auto, dark, light, contrast, terminal. It is 'blue'."
    )
    sources.env_file("SANDBOX_CHAT_MAX_TURNS=many")
    assert sources.problem().startswith(f"SANDBOX_CHAT_MAX_TURNS in {sources.work / '.env'} must be a whole")


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        ("https://gw.example.com/", "https://gw.example.com"),
        (" http://127.0.0.1:8080/base/ ", "http://127.0.0.1:8080/base"),
        ("http://[::1]:9", "http://[::1]:9"),
    ],
)
def test_addresses(sources: Sources, raw: str, found: str) -> None:
    assert sources.load(ANTHROPIC_BASE_URL=raw).anthropic_base_url == found


def test_an_address_with_v1_is_warned_about(sources: Sources) -> None:
    (warning,) = sources.load(ANTHROPIC_BASE_URL="http://h/v1/").warnings
    assert "ends with /v1" in warning


@pytest.mark.parametrize("word", ["1", "true", "YES", " on "])
def test_words_for_true(sources: Sources, word: str) -> None:
    assert sources.load(SANDBOX_CHAT_DEMO=word).demo is True


@pytest.mark.parametrize("word", ["0", "false", "No", "off"])
def test_words_for_false(sources: Sources, word: str) -> None:
    assert sources.load(SANDBOX_CHAT_DEMO=word).demo is False


@given(st.sampled_from([item.name for item in fields()]), st.text(max_size=40))
def test_any_value_is_read_or_refused_with_a_value_error(name: str, raw: str) -> None:
    (item,) = [item for item in fields() if item.name == name]
    try:
        item.metadata["read"](raw)
    except ValueError as error:
        assert str(error).startswith(("must ", "names "))


# --- credentials ----------------------------------------------------------------------------------------


def with_secrets() -> Settings:
    secret = Secret(CANARY)
    return Settings(anthropic_api_key=secret, anthropic_auth_token=secret, e2b_api_key=secret)


def test_a_secret_never_prints() -> None:
    settings = with_secrets()
    secret = settings.anthropic_api_key
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("test.secrets")
    logger.addHandler(handler)
    try:
        logger.error("%s %r %s", secret, secret, settings)
    finally:
        logger.removeHandler(handler)
    shown = [
        *(str(secret), repr(secret), f"{secret}", f"{secret!r}", ascii(secret)),
        *(str(settings), repr(settings), repr(dataclasses.asdict(settings)), repr(copy.deepcopy(settings))),
        repr(dataclasses.replace(settings, model="m")),
        json.dumps(dataclasses.asdict(settings), default=str),
        stream.getvalue(),
    ]
    for text in shown:
        assert CANARY not in text
    with pytest.raises(TypeError):
        json.dumps(secret)
    for thing in (secret, settings):
        with pytest.raises(TypeError) as caught:
            pickle.dumps(thing)
        assert CANARY not in str(caught.value)
    with pytest.raises(AttributeError):
        vars(secret)["x"] if hasattr(secret, "__dict__") else secret.other  # type: ignore[attr-defined]
    assert Secret(CANARY) == secret
    assert Secret("x") != secret
    assert len({secret, Secret(CANARY)}) == 1
    assert not Secret("")


def test_a_secret_is_not_in_a_traceback_with_local_variables() -> None:
    def fail(settings: Settings) -> None:
        token = settings.anthropic_auth_token
        raise RuntimeError(f"with {token} and {settings}")

    try:
        fail(with_secrets())
    except RuntimeError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    assert "Secret(set)" in shown
    assert CANARY not in shown


@pytest.mark.parametrize(
    "raw", [f"{CANARY}\n{CANARY}", f"{CANARY} {CANARY}", f"“{CANARY}”", f"{CANARY}\x00", f"{CANARY}\u200b"]
)
def test_a_malformed_credential_is_refused_without_showing_it(sources: Sources, raw: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "E2B_API_KEY"):
        problem = sources.problem(**{name: raw})
        assert problem.startswith(f"{name} in the environment must be ")
        assert CANARY not in problem


@pytest.mark.parametrize(
    "raw",
    [
        f"https://user:{CANARY}@gw.example.com",
        f"https://{CANARY}@gw.example.com",
        f"https://gw.example.com/?key={CANARY}",
        f"https://gw.example.com/#{CANARY}",
        f"sk-{CANARY}",
        CANARY,
    ],
)
def test_a_credential_in_an_address_is_refused_without_showing_it(sources: Sources, raw: str) -> None:
    for name in ("ANTHROPIC_BASE_URL", "E2B_API_URL"):
        assert CANARY not in sources.problem(**{name: raw})


def test_a_credential_in_the_wrong_place_is_not_shown(sources: Sources) -> None:
    assert CANARY not in sources.problem(SANDBOX_CHAT_SANDBOX=f"sk-ant-{CANARY}")
    sources.config_file(f'anthropic_api_key = ["{CANARY}"]')
    assert CANARY not in sources.problem()


def test_scrubbing_replaces_every_credential() -> None:
    settings = Settings(
        anthropic_api_key=Secret(CANARY),
        anthropic_auth_token=Secret(CANARY + "longer"),
        e2b_api_key=Secret("abc"),
    )
    assert settings.scrub(f"a {CANARY} b {CANARY}longer abc") == "a [secret] b [secret] abc"
    assert sorted(settings.secrets()) == sorted([CANARY, CANARY + "longer", "abc"])
    assert Settings().scrub("text") == "text"


def test_has_model() -> None:
    assert not Settings().has_model
    assert not Settings(anthropic_auth_token=Secret("x")).has_model
    assert Settings(anthropic_api_key=Secret("x")).has_model
    assert Settings(anthropic_base_url="http://h").has_model
    assert Settings(claude_login=True).has_model


# --- folders --------------------------------------------------------------------------------------------


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    settings = Settings()
    assert settings.data_path.is_relative_to(tmp_path)
    assert settings.cache_path.is_relative_to(tmp_path)
    assert settings.downloads_path == tmp_path / "downloads"
    settings = Settings(data_dir=Path("here"), downloads_dir=Path("there"))
    assert settings.data_path == tmp_path / "here"
    assert settings.cache_path == tmp_path / "here" / "cache"
    assert settings.downloads_path == tmp_path / "there"


def test_without_a_home_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_a, **_k: Path("~/.local/share/sandbox-chat"))
    with pytest.raises(ConfigError, match="Set HOME, or SANDBOX_CHAT_DATA_DIR"):
        _ = Settings().data_path


# --- documentation --------------------------------------------------------------------------------------


def test_every_setting_is_documented_once() -> None:
    names = [variable(item) for item in fields()]
    assert len(names) == len(set(names))
    for item in fields():
        assert item.metadata["doc"].endswith("."), item.name
        assert item.metadata["group"] in settings_doc.GROUPS


def test_the_example_file_is_up_to_date() -> None:
    assert settings_doc.example_file().read_text(encoding="utf-8") == settings_doc.env_example(), (
        "run: python tests/support/settings_doc.py env > .env.example"
    )


def test_the_example_file_with_every_line_taken_is_valid(sources: Sources) -> None:
    lines = settings_doc.env_example().splitlines()
    chosen = [
        line.removeprefix("# ") for line in lines if line.startswith("# ") and "=" in line.split(" ")[1]
    ]
    sources.env_file("\n".join(chosen))
    found = sources.load()
    assert len(found.warnings) == len(OWN)
    assert all("was not taken" in warning for warning in found.warnings)
    assert len(found.origins) == len(fields()) - len(OWN)


def test_the_table_names_every_variable() -> None:
    table = settings_doc.table()
    assert all(f"| `{variable(item)}` | `{item.name}` |" in table for item in fields())


def test_shown_values_are_short() -> None:
    assert len(values.shown("word " * 100)) < 100


@pytest.mark.parametrize(
    "wrong", ["https://cloud.example.com", "cloud.example.com/path", "a b", "x?y", "a@b"]
)
def test_a_domain_is_no_address(sources: Sources, wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"E2B_DOMAIN .* must be a name such as"):
        sources.load(E2B_DOMAIN=wrong)
    for right in ("cloud.example.com", "cloud.example.com:8443", "localhost"):
        assert sources.load(E2B_DOMAIN=right).e2b_domain == right
