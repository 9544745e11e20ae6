"""Which values of a server's configuration are kept out of its results."""

from __future__ import annotations

from sandbox_chat.mcp.base import Endpoint, ServerConfig
from sandbox_chat.mcp.definitions import definitions
from sandbox_chat.mcp.secrets import credentials, scrubbed
from sandbox_chat.settings import Secret


def test_credentials_are_known_by_their_names_and_within_addresses() -> None:
    config = ServerConfig(
        name="db",
        command=("server", "postgresql://me:p%40ssw0rd@host/db"),
        env={
            "API_KEY": Secret("key-12345"),
            "DB_HOST": Secret("127.0.0.1"),
            "MEMORY_FILE_PATH": Secret("/home/me/memory.json"),
            "SERVICE_URL": Secret("https://service.example.com"),
            "USE_TOKEN": Secret("true"),
            "PIN_TOKEN": Secret("1234"),
        },
    )
    assert set(credentials(config)) == {"key-12345", "p%40ssw0rd", "p@ssw0rd"}


def test_headers_are_credentials() -> None:
    endpoint = Endpoint(
        url="https://x.example.com",
        headers={"Authorization": Secret("Bearer abcdef99"), "Host": Secret("x.example")},
    )
    found = credentials(ServerConfig(name="web", endpoint=endpoint))
    assert found == ["Bearer abcdef99", "abcdef99"]
    assert scrubbed("it was Bearer abcdef99, or abcdef99", found) == "it was [secret], or [secret]"


def test_what_tools_say_of_themselves_holds_no_credential() -> None:
    """It goes to the model, into the session and into a file. Names stay: a call needs them."""
    schema = {
        "type": "object",
        "properties": {
            "tok-abcdef": {"type": "string", "default": "db://u:tok-abcdef@h", "enum": ["tok-abcdef"]}
        },
        "$defs": {"a": {"description": "tok-abcdef"}},
    }
    listed = [
        {
            "name": "query",
            "description": "Asks db://u:tok-abcdef@h.",
            "inputSchema": schema,
            "outputSchema": schema,
        },
        {"name": "titled", "title": "of tok-abcdef", "inputSchema": {}},
    ]
    tools, _ = definitions("db", listed, lambda text: scrubbed(text, ["tok-abcdef"]))
    assert [tool.description for tool in tools] == ["Asks db://u:[secret]@h.", "of [secret]"]
    for found in (tools[0].schema, tools[0].output_schema):
        assert str(found).count("tok-abcdef") == 1 and list((found or {})["properties"]) == ["tok-abcdef"]
