"""All settings of the program: typed, checked, with one documented default each.

Sources, the first that has a value wins: command line, process environment, ``.env`` in the working
folder, ``config.toml`` in the user's configuration folder, default. A setting is called by its name
in ``config.toml`` and by its variable in the environment and in ``.env``.
"""

# ruff: noqa: RUF009 - _setting and those made of it are dataclasses.field with the metadata of a setting

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox_chat import settings_sources as sources
from sandbox_chat import values
from sandbox_chat.values import ConfigError, Secret, Servers

if TYPE_CHECKING:
    from sandbox_chat.prices import Price

__all__ = [
    "COMMAND_LINE",
    "EXPAND",
    "IMAGE_MODES",
    "PREFIX",
    "SANDBOXES",
    "THEMES",
    "ConfigError",
    "Secret",
    "Settings",
    "config_path",
    "fields",
    "load",
    "variable",
]

SANDBOXES = ("local", "e2b", "docker", "off", "unsafe-local")
IMAGE_MODES = ("auto", "kitty", "sixel", "iterm", "sharp", "symbols", "half", "ascii", "off")
EXPAND = ("never", "failed", "always")
LOCAL_TOOLS = ("Read", "Glob", "Grep")
THEMES = ("auto", "dark", "light", "contrast", "terminal")
GLYPHS = ("auto", "unicode", "ascii")
LANGUAGES = ("auto", "en", "zh")
NOTIFY = ("auto", "bell", "osc9", "osc777", "title", "off")
PII_KINDS = ("EMAIL", "IP", "CN_ID", "CARD", "SSN", "PHONE")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
COMMAND_LINE = "the command line"
"""Origin of a setting that was an option of this start of the program."""
PREFIX = "SANDBOX_CHAT_"
CONFIG_DIR = PREFIX + "CONFIG_DIR"
"""Variable that names the folder of ``config.toml``; not a setting, because it says where they are."""


NOT_FROM_FOLDER = (
    "{what} in {file} was not taken: a file that may have come with the folder does not choose what happens on this "
    "computer. Set it in the environment or in config.toml."
)


KEY_WOULD_GO = (
    "{address} in {file} was not taken: {key} comes from elsewhere and would be sent to an address that may have come with "
    "the folder. Put the key beside the address, or set the address where the key is."
)
SENT_TO = {
    "anthropic_base_url": ("anthropic_auth_token", "anthropic_api_key"),
    "e2b_api_url": ("e2b_api_key",),
    "e2b_domain": ("e2b_api_key",),
    "e2b_sandbox_url": ("e2b_api_key",),
    "cube_proxy_node_ip": ("e2b_api_key",),
}
"""Addresses, and the credentials that are sent there: the first of them that is set."""


def _setting(
    default: Any,
    read: Callable[[Any], Any],
    doc: str,
    *,
    env: str = "",
    group: str,
    own: bool = False,
    own_values: tuple[str, ...] = (),
) -> Any:
    """``own``: not taken from the working folder's ``.env``, which may have come with it; ``own_values``: these values are not."""
    about = {"read": read, "doc": doc, "env": env, "group": group, "own": own, "own_values": own_values}
    return field(default=default, metadata=about)


_model = partial(_setting, group="model")
_sandbox = partial(_setting, group="sandbox")
_tools = partial(_setting, group="tools")
_interface = partial(_setting, group="interface")
_program = partial(_setting, group="program")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every setting. The metadata of a field holds its reader, documentation, variable and group."""

    # Model
    anthropic_api_key: Secret = _model(
        Secret(""), values.secret, "Key for Claude, used directly.", env="ANTHROPIC_API_KEY"
    )
    anthropic_base_url: str = _model(
        "",
        values.url,
        "Address of an Anthropic-compatible gateway or local model server.",
        env="ANTHROPIC_BASE_URL",
    )
    anthropic_auth_token: Secret = _model(
        Secret(""), values.secret, "Token for that gateway.", env="ANTHROPIC_AUTH_TOKEN"
    )
    model: str = _model(
        "", values.text, "Name of the model; the CLI's default when empty.", env="CLAUDE_MODEL"
    )
    claude_login: bool = _model(
        False, values.flag, "Use the login of an installed Claude Code instead of a key."
    )
    demo: bool = _model(
        False, values.flag, "Talk to the built-in demo, which is rules and no model; needs no key."
    )
    demo_pace: float = _model(0.012, values.number(0, 1), "Seconds between two words of the demo's answers.")
    max_turns: int = _model(30, values.whole(1, 1000), "Steps that the model may take to answer one prompt.")
    request_timeout: float = _model(
        600.0, values.number(1, 3600), "Seconds that one request to the model may take."
    )
    request_retries: int = _model(
        4, values.whole(0, 20), "How often a failed request to the model is tried again."
    )
    connect_timeout: float = _model(60.0, values.number(1, 600), "Seconds that the CLI may take to start.")
    effort: str = _model(
        "",
        values.one_of(*EFFORTS),
        "How hard the model tries: low, medium, high, xhigh, max; as the CLI has it when empty.",
    )
    thinking: str = _model(
        "",
        values.thinking,
        "Thinking of the model: on, off, or a limit in tokens; as the CLI has it when empty.",
    )
    interrupt_grace: float = _model(
        0.5,
        values.number(0.05, 60),
        "Seconds that the CLI may take to react to an interruption, which it does in a tenth of that; then it is ended and started again.",
    )
    silence_notice: float = _model(
        15.0,
        values.number(0, 86_400),
        "Seconds without a word from the CLI in a turn after which the interface says so; 0: never.",
    )
    silence_timeout: float | None = _model(
        None,
        values.number(0, 86_400),
        "Seconds without a word in a turn after which the CLI is ended and started again; 0: never; request_timeout + 60 when empty.",
    )
    restart_limit: int = _model(
        3,
        values.whole(0, 100),
        "How often in a row within a minute the CLI may end before it is not started again by itself any more.",
    )
    budget_usd: float = _model(
        0.0,
        values.number(0, 1_000_000),
        "Dollars that one session may cost in all; then no further prompt is sent until you raise it. 0: no limit.",
    )
    cold_tokens: int = _model(
        50_000,
        values.whole(0, 100_000_000),
        "Tokens of a resumed session's context from which on its next prompt's cost is told beforehand; 0: never.",
    )
    cold_after: float = _model(
        3600.0,
        values.number(0, 31_536_000),
        "Seconds without a turn after which the endpoint's cache of a session is taken for gone.",
    )

    # Sandbox
    sandbox: str = _sandbox(
        "local",
        values.one_of(*SANDBOXES),
        "Where code runs: local, e2b, docker, off, or unsafe-local.",
        own_values=("unsafe-local",),
    )
    run_timeout: int = _sandbox(
        25,
        values.whole(1, 3600),
        "Longest time in seconds that one run_code call may take.",
    )
    start_timeout: float = _sandbox(30.0, values.number(1, 600), "Seconds that a sandbox may take to start.")
    sandbox_memory_mb: int = _sandbox(
        2048,
        values.whole(128, 1 << 20),
        "Memory of a sandbox in megabytes, all its processes together (local, Docker).",
    )
    sandbox_processes: int = _sandbox(
        256, values.whole(8, 65536), "Processes and threads in a sandbox (local, Docker)."
    )
    sandbox_file_mb: int = _sandbox(
        1024, values.whole(1, 1 << 20), "Largest file that code may write, in megabytes (local, Docker)."
    )
    sandbox_disk_mb: int = _sandbox(
        1024,
        values.whole(16, 1 << 20),
        "Room in the sandbox's /tmp, in megabytes, and as much in its /workspace; it lies in memory (local, Docker).",
    )
    sandbox_files: int = _sandbox(
        100_000,
        values.whole(1000, 1 << 30),
        "Files and folders in the sandbox's /tmp, and as many in its home and /dev/shm (local, warm start).",
    )
    sandbox_cpus: float = _sandbox(
        0.0,
        values.number(0, 1024),
        "Processors that a sandbox may use; 0 for all (local where cgroups can be had, Docker).",
    )
    sandbox_cpu_seconds: int = _sandbox(
        3600,
        values.whole(0, 1 << 30),
        "Processor seconds that a sandbox may use from the start of one run to the next; 0 for no limit (local, Docker).",
    )
    sandbox_mcp: Servers = _sandbox(
        Servers(),
        values.servers,
        "MCP servers that run inside the sandbox: names with commas between, or a JSON object of name and properties ([sandbox.mcp] in config.toml).",
    )
    sandbox_mcp_timeout: float = _sandbox(
        60.0, values.number(5, 600), "Seconds that the MCP servers in the sandbox may take to be ready."
    )
    cube_mcp_template_id: str = _sandbox(
        "",
        values.text,
        "Template of cloud sandboxes with MCP servers; mcp-gateway when empty.",
        env="CUBE_MCP_TEMPLATE_ID",
    )
    cube_template_id: str = _sandbox(
        "",
        values.text,
        "Template of cloud sandboxes with MCP servers where the cloud has none named mcp-gateway.",
        env="CUBE_TEMPLATE_ID",
    )
    sandbox_workspace: Path | None = _sandbox(
        None,
        values.path,
        "Folder of this machine that code may read and write as /workspace, and that stays (local, Docker); when empty, /workspace is a new folder in each sandbox and gone with it.",
        own=True,
    )
    keep_workspace: bool = _sandbox(
        False,
        values.flag,
        "Keep the files in /workspace with the session, after each turn, and bring them back when it is resumed (local, Docker, E2B).",
    )
    keep_workspace_mb: int = _sandbox(
        100,
        values.whole(1, 100_000),
        "Megabytes of such files that are kept; what is larger is named and left out.",
    )
    sandbox_warm: bool = _sandbox(
        True,
        values.flag,
        "Keep a warm parent process ready, so that a local sandbox starts at once; it takes about 100 MB.",
    )
    sandbox_python: Path | None = _sandbox(
        None,
        values.path,
        "Python interpreter whose packages the local sandbox offers; the program's own when empty.",
        env="SANDBOX_PYTHON",
        own=True,
    )
    output_limit: int = _sandbox(
        1_000_000, values.whole(1000, 1 << 30), "Characters of output kept of one run; the middle is cut."
    )
    output_keep_mb: int = _sandbox(
        50,
        values.whole(0, 100_000),
        "Megabytes of one run's output that are kept whole in a file when it is cut for the chat; 0: none.",
    )
    e2b_api_key: Secret = _sandbox(
        Secret(""), values.secret, "Key of an E2B-compatible cloud.", env="E2B_API_KEY"
    )
    e2b_api_url: str = _sandbox("", values.url, "Control address of that cloud.", env="E2B_API_URL")
    e2b_domain: str = _sandbox("", values.domain, "Domain of that cloud's sandboxes.", env="E2B_DOMAIN")

    e2b_template: str = _sandbox("code-interpreter-v1", values.text, "Template of the cloud's sandboxes.")
    e2b_ttl: int = _sandbox(
        900,
        values.whole(30, 86_400),
        "Seconds after which the cloud ends a sandbox that nobody prolongs; it is prolonged while the chat is in use.",
    )
    e2b_idle_limit: int = _sandbox(
        1800,
        values.whole(0, 604_800),
        "Seconds that an unused cloud sandbox is kept by prolonging it; then it is ended. 0: never prolonged unused.",
    )
    e2b_request_timeout: float = _sandbox(
        30.0,
        values.number(1, 600),
        "Seconds that one request to the cloud may take, beside the time of the code.",
    )
    e2b_tag: str = _sandbox(
        "",
        values.text,
        "A word of your own that is put on the cloud's sandboxes, to tell yours from a colleague's.",
    )
    e2b_charts: str = _sandbox(
        "auto",
        values.one_of("auto", "inline", "files"),
        "How charts come from the cloud: inline as results, files saved and fetched, or auto, which finds out.",
    )
    e2b_internet: bool = _sandbox(True, values.flag, "Whether code in the cloud reaches the internet.")
    e2b_sandbox_url: str = _sandbox(
        "",
        values.url,
        "Address under which all sandboxes of the cloud are reached, named by headers.",
        env="E2B_SANDBOX_URL",
    )
    cube_proxy_node_ip: str = _sandbox(
        "",
        values.text,
        "Address of a CubeSandbox proxy node through which the sandboxes are reached.",
        env="CUBE_PROXY_NODE_IP",
    )
    docker_command: str = _sandbox(
        "docker",
        values.text,
        "Program that runs containers: docker or podman.",
        own=True,
    )
    docker_image: str = _sandbox(
        "",
        values.text,
        "Image of the containers; the one that 'sandbox-chat docker build' makes when empty.",
    )
    docker_network: str = _sandbox(
        "none",
        values.text,
        "Docker network of the containers: none, or the name of one that lets out what you allow.",
    )

    # Tools
    text_limit: int = _tools(
        20_000, values.whole(1000, 45_000), "Characters of text that one tool call gives to the model."
    )
    image_limit: int = _tools(
        5_000_000, values.whole(10_000, 20_000_000), "Bytes of the largest picture that is read."
    )
    image_side: int = _tools(
        1568, values.whole(64, 8000), "Longest side in pixels of a picture given to the model."
    )
    images_per_call: int = _tools(
        4, values.whole(0, 20), "Pictures that one tool call gives to the model; all are shown."
    )
    table_rows: int = _tools(
        60, values.whole(1, 2000), "Rows of a data frame that are kept for the screen at most."
    )
    table_columns: int = _tools(
        40, values.whole(1, 500), "Columns of a data frame that are kept for the screen at most."
    )
    table_cell: int = _tools(
        200, values.whole(10, 10_000), "Characters of one cell of a data frame that are kept at most."
    )
    html_limit: int = _tools(
        20_000_000,
        values.whole(0, 24_000_000),
        "Bytes of the largest HTML result (an interactive plot) that is kept for the browser; 0: none.",
    )
    mcp: tuple[str, ...] = _tools(
        (),
        values.words,
        "MCP servers that are on, with commas between: names of the catalogue or of your own (see sandbox-chat mcp list); off: none but those beside it.",
        own=True,
    )
    mcp_config: Path | None = _tools(
        None,
        values.path,
        "A further file with servers in the form of .mcp.json; your own are in mcp.json beside config.toml.",
        own=True,
    )
    mcp_allow: tuple[str, ...] = _tools(
        (),
        values.words,
        "Tools of MCP servers that run without asking, with commas between: server/tool, or server/* for all of one.",
        own=True,
    )
    mcp_start_timeout: float = _tools(
        60.0, values.number(1, 3600), "Seconds that an MCP server may take to start and to tell its tools."
    )
    mcp_call_timeout: float = _tools(
        300.0, values.number(1, 86_400), "Seconds that one call of an MCP server's tool may take."
    )
    mcp_result_mb: float = _tools(
        20.0, values.number(0.01, 1000), "Megabytes of the largest result of an MCP server that is taken."
    )
    mcp_log_mb: float = _tools(
        1.0, values.number(0.01, 1000), "Megabytes kept of what one MCP server writes on its standard error."
    )
    mcp_install_timeout: float = _tools(
        900.0, values.number(10, 86_400), "Seconds that 'sandbox-chat mcp add' may take to install a server."
    )
    serve_sessions: int = _tools(
        8,
        values.whole(1, 1000),
        "Sandboxes that mcp serve --http keeps at the same time, one for each client.",
    )
    serve_idle: float = _tools(
        1800.0,
        values.number(1, 604_800),
        "Seconds after which mcp serve --http ends the sandbox of a client that is not connected or not heard of.",
    )
    serve_keep_mb: float = _tools(
        200.0,
        values.number(1, 100_000),
        "Megabytes of pictures, pages and long outputs that mcp serve keeps for each client until it leaves.",
    )
    http_tasks: int = _tools(
        4, values.whole(1, 1000), "Tasks that serve --http runs at the same time; more of them wait."
    )
    http_queue: int = _tools(
        64,
        values.whole(0, 100_000),
        "Tasks that wait in serve --http at most; beyond it they are refused (429).",
    )
    http_sessions: int = _tools(
        16,
        values.whole(1, 1000),
        "Sessions that serve --http keeps alive; of more, the one unused longest is closed, and opened again when it is used.",
    )
    http_idle: float = _tools(
        900.0,
        values.number(1, 604_800),
        "Seconds after which serve --http closes a session that is not used; the next task opens it again, with a new sandbox.",
    )
    http_task_timeout: float = _tools(
        600.0,
        values.number(1, 86_400),
        "Seconds that one task of serve --http may run; then it is interrupted. Waiting does not count.",
    )
    http_drain: float = _tools(
        30.0,
        values.number(0, 86_400),
        "Seconds that running tasks of serve --http get to finish when it is told to end.",
    )
    http_body_kb: int = _tools(
        1024, values.whole(1, 65_536), "Kilobytes of the largest request that serve --http takes."
    )
    http_token: Secret = _tools(
        Secret(""),
        values.secret,
        "Token that opens serve --http, 16 signs or more; one in a file of the data folder when empty.",
        own=True,
    )
    code_mode: str = _tools(
        "off",
        values.one_of("off", "on", "both"),
        "How the agent uses MCP servers of this machine: off (it calls each tool), on (its code in the sandbox calls them), both.",
        own_values=("on", "both"),
    )
    code_mode_policy: tuple[str, ...] = _tools(
        (),
        values.words,
        "What code may call without asking, with commas between: server=ask, server=read-only or server=free; *=… for all others. Else: ask.",
        own=True,
    )
    code_mode_calls: int = _tools(
        1000, values.whole(1, 1_000_000), "Calls of MCP tools that the code of one run may make."
    )
    code_mode_rate: float = _tools(
        100.0, values.number(0.1, 100_000), "The same, in one second; more of them wait."
    )
    code_mode_parallel: int = _tools(
        16, values.whole(1, 1000), "The same, at the same time; more of them wait."
    )
    code_mode_request_mb: float = _tools(
        8.0, values.number(0.01, 64), "Megabytes of the arguments of one call that code makes."
    )
    code_mode_result_mb: float = _tools(
        16.0,
        values.number(0.01, 512),
        "Megabytes of the largest result that code gets; what is longer is refused.",
    )
    code_mode_shown: int = _tools(
        4000,
        values.whole(100, 1_000_000),
        "Characters of the result of a call that code made which are shown and recorded; the code gets all.",
    )
    pii: str = _tools(
        "auto",
        values.one_of("auto", "on", "off"),
        "Whether personal data is replaced by tokens before the model sees it: auto (in code mode), on, off.",
        own_values=("off",),
    )
    pii_kinds: tuple[str, ...] = _tools(
        PII_KINDS,
        values.some_of(*PII_KINDS),
        "Kinds of personal data that are replaced: EMAIL, IP, CN_ID, CARD, SSN, PHONE, with commas.",
    )
    pii_regions: tuple[str, ...] = _tools(
        ("US", "CN"),
        values.regions,
        "Countries whose phone numbers are found without their country's code, as two letters with commas; each more takes longer.",
    )
    pii_patterns: tuple[values.Pattern, ...] = _tools(
        (),
        values.patterns,
        "Your own kinds: a list of name, regex and, if need be, validator (luhn, card, ssn, cn_id); [[pii_patterns]] in config.toml, JSON elsewhere.",
        own=True,
    )
    pii_engine: str = _tools(
        "builtin",
        values.one_of("builtin", "presidio"),
        "What finds personal data: builtin, or presidio with it (pip install 'sandbox-chat[pii]'; slow, finds names too).",
    )
    pii_prompt: bool = _tools(False, values.flag, "Replace personal data in your own prompts too.")
    pii_keep: bool = _tools(
        False,
        values.flag,
        "Keep what the tokens stand for with the session, encrypted with pii_passphrase, so that a resumed session knows it; else it is gone with the program.",
    )
    pii_passphrase: Secret = _tools(
        Secret(""),
        values.secret,
        "Passphrase of what pii_keep keeps, 12 signs or more. It cannot be recovered. Not taken from .env: set it in the environment or in config.toml.",
        own=True,
    )
    pii_reveal: tuple[str, ...] = _tools(
        (),
        values.words,
        "Arguments in which tokens become the real values again when a tool is called: server/tool/argument, with commas.",
        own=True,
    )
    skills_dir: Path | None = _tools(
        None,
        values.path,
        "Folder of your skills: code that worked and was kept; skills in the data folder when empty.",
        own=True,
    )
    download_limit: int = _tools(
        100_000_000, values.whole(1000, 1 << 40), "Bytes of the largest file that is downloaded."
    )
    attach_limit: int = _tools(
        500_000_000,
        values.whole(1000, 1 << 40),
        "Bytes of the largest file that /attach puts into the sandbox.",
    )
    export_limit: int = _tools(
        64_000_000,
        values.whole(1000, 1 << 31),
        "Bytes of the largest picture or file of a session that goes into an exported document.",
    )
    local_tools: tuple[str, ...] = _tools(
        (),
        values.some_of(*LOCAL_TOOLS),
        "Tools that read the working folder on this machine: Read, Glob, Grep, with commas; none when empty.",
    )
    downloads_dir: Path | None = _tools(
        None,
        values.path,
        "Folder for downloaded files; ./downloads in the working folder when empty.",
        own=True,
    )

    # Interface
    images: str = _interface(
        "auto",
        values.one_of(*IMAGE_MODES),
        "How pictures are drawn: auto, kitty, sixel, iterm, sharp (sextants), symbols, half (half-cells), ascii, off.",
    )
    image_rows: int = _interface(
        24, values.whole(4, 200), "Height of a picture in the transcript, in rows at most."
    )
    image_pixels: int = _interface(
        50_000_000, values.whole(10_000, 1 << 31), "Pixels of the largest picture that is decoded."
    )
    theme: str = _interface(
        "auto",
        values.one_of(*THEMES),
        "Colours: dark, light, contrast, terminal (its own colours), or auto: dark or light as the terminal is.",
    )
    glyphs: str = _interface(
        "auto",
        values.one_of(*GLYPHS),
        "Signs: unicode, ascii, or auto, which takes ascii where the terminal cannot show more.",
    )
    language: str = _interface(
        "auto", values.one_of(*LANGUAGES), "Language of the interface: en, zh, or auto, which asks LANG."
    )
    plain: bool = _interface(
        False, values.flag, "Chat line by line, for screen readers: nothing is drawn, nothing moves."
    )
    expand_tools: str = _interface(
        "never",
        values.one_of(*EXPAND),
        "Which tool calls open in the transcript when they end: never (none), failed, or always (all).",
    )
    transcript_memory_mb: int = _interface(
        16,
        values.whole(1, 10_000),
        "Megabytes of a session's text that stay in memory; the rest waits on disk until it is scrolled to.",
    )
    tabs_below: int = _interface(
        100, values.whole(40, 1000), "Below this width in columns, panes become tabs."
    )
    paste_fold_lines: int = _interface(
        20,
        values.whole(0, 1000),
        "A pasted text of more lines stands in the composer as one token; 0: only what would make it slow.",
    )
    paste_fold_chars: int = _interface(
        2000,
        values.whole(0, 20_000),
        "The same for its characters; 0: only what would make it slow.",
    )
    draft_delay: float = _interface(
        0.5, values.number(0.05, 60), "Seconds after which an unsent prompt is kept on disk while you type."
    )
    files_listed: int = _interface(
        20_000, values.whole(100, 1_000_000), "Names of the working folder that the list at @ looks at."
    )
    files_depth: int = _interface(12, values.whole(1, 100), "Levels of folders that the list at @ goes down.")
    files_seconds: float = _interface(
        2.0, values.number(0.1, 60), "Seconds that looking for those files may take."
    )
    probe_timeout: float = _interface(
        0.2, values.number(0, 5), "Seconds to wait for the terminal to say which pictures it can draw."
    )
    reduced_motion: bool = _interface(False, values.flag, "No spinners or moving parts.")
    notify: str = _interface(
        "auto",
        values.one_of(*NOTIFY),
        "How you are called when a turn ends or asks and the window has no focus: bell, osc9 or osc777 (messages of the desktop), title, off, or auto: what the terminal shows.",
    )
    notify_after: float = _interface(
        10.0,
        values.number(0, 86_400),
        "Seconds that a turn must take to call you where the terminal does not tell whether its window has the focus.",
    )
    window_title: bool = _interface(
        True, values.flag, "Call the terminal's window after the session, until the program ends."
    )

    # Program
    data_dir: Path | None = _program(
        None,
        values.path,
        "Folder of the sessions; the system's place for user data when empty.",
        own=True,  # programs of MCP servers, and what was allowed, lie there
    )
    keep_days: int = _program(
        0,
        values.whole(0, 36_500),
        "Days after which a session that was not used is deleted at the start; 0: never. One that you renamed is kept.",
    )
    log: Path | None = _program(
        None,
        values.path,
        "File for the log; auto: sandbox-chat.log in the data folder; none when empty.",
        own=True,  # it is written to, whatever it is
    )
    log_mb: float = _program(
        5.0, values.number(0.01, 10_000), "Megabytes of the log after which it is begun anew."
    )
    log_parts: int = _program(3, values.whole(1, 100), "Older parts of the log that are kept.")
    crash_reports: int = _program(
        20, values.whole(1, 1000), "Crash reports that are kept in the data folder, the newest ones."
    )
    close_timeout: float = _program(
        5.0, values.number(0.5, 60), "Seconds that closing may take before what is left is killed."
    )

    # Not settings: the user's keys by action and prices by model, where the values came from, and what deserves a word.
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict, compare=False)
    prices: Mapping[str, Price] = field(default_factory=dict, compare=False)
    origins: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    warnings: tuple[str, ...] = field(default=(), repr=False, compare=False)

    # -- derived ---------------------------------------------------------------------------------------

    @property
    def hides_personal_data(self) -> bool:
        """Whether personal data is replaced by tokens."""
        return self.pii == "on" or (self.pii == "auto" and self.code_mode != "off")

    @property
    def has_model(self) -> bool:
        """True when an endpoint or a login is configured, so that the demo is not needed."""
        return bool(self.anthropic_api_key or self.anthropic_base_url or self.claude_login)

    @property
    def data_path(self) -> Path:
        """Folder of sessions and of the CLI's own files. Raises ``ConfigError`` when there is no home folder."""
        if self.data_dir is not None:
            return self.data_dir.absolute()
        import platformdirs

        return _with_home(platformdirs.user_data_path("sandbox-chat", appauthor=False))

    @property
    def cache_path(self) -> Path:
        """Folder of what can be made again."""
        if self.data_dir is not None:
            return self.data_dir.absolute() / "cache"
        import platformdirs

        return _with_home(platformdirs.user_cache_path("sandbox-chat", appauthor=False))

    @property
    def log_is_own(self) -> bool:
        """True when the log is to be in the data folder."""
        return self.log == Path("auto")

    @property
    def log_path(self) -> Path | None:
        """File of the log, ``None`` without one."""
        return self.data_path / "logs" / "sandbox-chat.log" if self.log_is_own else self.log

    @property
    def downloads_path(self) -> Path:
        """Folder that download_file writes to."""
        folder = self.downloads_dir or Path("downloads")
        try:
            return folder.absolute()
        except OSError:  # the working folder is gone: who writes there gets to know it
            return folder

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


def _with_home(path: Path) -> Path:
    if path.is_absolute():
        return path
    raise ConfigError(
        "The folder for the sessions is not known. Set HOME, or SANDBOX_CHAT_DATA_DIR to a folder."
    )


def fields() -> list[dataclasses.Field[Any]]:
    """The settings in order, without the fields that only describe."""
    return [item for item in dataclasses.fields(Settings) if "read" in item.metadata]


def variable(item: dataclasses.Field[Any]) -> str:
    """Name of the environment variable of a setting."""
    return item.metadata["env"] or PREFIX + item.name.upper()


def _is_own(item: dataclasses.Field[Any], raw: str) -> bool:
    """True for a value that a file of the working folder may not set. An empty one changes nothing."""
    value = raw.strip()
    return bool(value) and (item.metadata["own"] or value in item.metadata["own_values"])


def _shown(item: dataclasses.Field[Any]) -> str:
    values_too = "=" + item.metadata["own_values"][0] if item.metadata["own_values"] else ""
    return variable(item) + values_too


def config_path(environ: Mapping[str, str]) -> Path:
    """Path of the user's ``config.toml``."""
    if folder := environ.get(CONFIG_DIR):
        return Path(folder).absolute() / "config.toml"
    if (folder := environ.get("XDG_CONFIG_HOME", "")) and Path(folder).is_absolute():
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

    ``overrides`` are values of the command line by setting name. What decides about this computer is not taken from
    ``.env`` (a warning says so). An empty value in the environment,
    in ``.env`` or in ``config.toml`` means the default, and still hides the sources after it. Raises
    ``ConfigError`` with one sentence that names the setting and its source.
    """
    overrides = overrides or {}
    environ = os.environ if environ is None else environ
    folder = sources.working_folder() if folder is None else folder
    warnings: list[str] = []
    env_file = folder / ".env"
    dotenv = sources.read_dotenv(env_file, warnings)
    config_file = config_path(environ)
    config = sources.read_config(config_file, {item.name for item in fields()}, warnings)
    keys = config.pop(sources.KEYS, {})
    prices = config.pop(sources.PRICES, {})

    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for item in fields():
        name, var = item.name, variable(item)
        if overrides.get(name) is not None:
            raw, origin, subject = overrides[name], COMMAND_LINE, "--" + name.replace("_", "-")
        elif var in environ:
            raw, origin, subject = environ[var], "the environment", f"{var} in the environment"
        elif var in dotenv and _is_own(item, dotenv[var]):
            warnings.append(NOT_FROM_FOLDER.format(what=_shown(item), file=env_file))
            if name not in config:
                continue
            raw, origin, subject = config[name], str(config_file), f"{name} in {config_file}"
        elif var in dotenv:
            raw, origin, subject = dotenv[var], str(env_file), f"{var} in {env_file}"
        elif name in config:
            raw, origin, subject = config[name], str(config_file), f"{name} in {config_file}"
        else:
            continue
        origins[name] = origin
        if isinstance(raw, str) and not raw.strip() and name not in overrides:
            continue
        try:
            found[name] = item.metadata["read"](raw)
        except ValueError as error:
            got = "" if isinstance(item.default, Secret | Servers) else values.shown(raw)
            said = f"{subject} {error}".rstrip(".")
            raise ConfigError(said + ("" if said.endswith("?") else ".") + got) from None
    for address, keys_sent in SENT_TO.items():
        key = next((name for name in keys_sent if found.get(name)), "")
        if found.get(address) and key and origins[address] == str(env_file) != origins[key]:
            names = {item.name: variable(item) for item in fields()}
            warnings.append(KEY_WOULD_GO.format(address=names[address], file=env_file, key=names[key]))
            del found[address], origins[address]
    known = {variable(item) for item in fields()} | {CONFIG_DIR}
    warnings += sources.unknown_variables(environ, known, PREFIX, "the environment")
    warnings += sources.unknown_variables(dotenv, known, PREFIX, str(env_file), near=True)
    if str(found.get("anthropic_base_url", "")).endswith("/v1"):
        warnings.append(
            "ANTHROPIC_BASE_URL ends with /v1, but /v1/messages is added to it: leave /v1 out if the server "
            "answers 404."
        )
    return Settings(**found, keys=keys, prices=prices, origins=origins, warnings=tuple(warnings))
