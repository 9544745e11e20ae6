"""The agent: SDK options, prompt, translation of messages into events, the long-lived session, the ledger."""
