"""The sandbox's tools for other MCP clients: ``sandbox-chat mcp serve``, over stdio and over HTTP."""
