"""The agent: one long-lived client of the SDK, its messages as events, its cost.

``session`` is light to import; the SDK is imported when a session connects.
"""
