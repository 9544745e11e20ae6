"""The tools that the model may call, and the MCP server that offers them."""
