"""Markdown that grows: a block parser that takes each line once, and rows drawn only where they are seen."""
