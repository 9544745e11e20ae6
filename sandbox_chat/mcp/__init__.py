"""MCP servers beside the sandbox's own tools: on the user's machine, or inside the sandbox behind one gateway."""
