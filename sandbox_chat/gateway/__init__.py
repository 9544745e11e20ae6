"""The program ``mcp-gateway``: MCP servers behind one address with one token. Runs inside sandboxes; imports nothing of ours."""

VERSION = "1.0.0"
