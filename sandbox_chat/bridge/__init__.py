"""Code mode: code in the sandbox finds and calls the MCP tools of this computer, and only what it prints goes to the model."""
