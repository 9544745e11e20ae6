"""Personal data in what tools give: replaced by tokens before the model, the screen and the record get it."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from sandbox_chat.events import Content, TableContent, TextContent
from sandbox_chat.tools.context import TextBlock, ToolOutcome

if TYPE_CHECKING:
    from sandbox_chat.vault import Vault

log = logging.getLogger(__name__)

QUICK = 2_000
"""Characters that are looked at at once; more in a thread."""


class Privacy:
    """The vault of a session, as tools use it."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault

    async def outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        """Return an outcome without personal data, also where it is written in another way. Pictures are as they were."""
        size = sum(len(block.text) for block in outcome.model if isinstance(block, TextBlock))
        if size <= QUICK and all(isinstance(each, TextContent) for each in outcome.display):
            return self._outcome(outcome)
        return await asyncio.to_thread(self._outcome, outcome)

    def text(self, text: str) -> str:
        """Return a text without personal data; what was found in another writing is logged."""
        found, findings = self.vault.guard(text)
        for finding in findings:
            log.warning("personal data was on its way to the model: %s, %s", finding.kind, finding.how)
        return found

    def prompt(self, text: str) -> str:
        """Return what the user wrote without personal data."""
        return self.vault.hide(text)

    def stream(self) -> tuple[Callable[[str], str], Callable[[], str]]:
        """Return what takes pieces of live output and gives those that may be shown, and what gives the rest at the end."""
        stream = self.vault.stream()
        return stream.feed, stream.close

    def _outcome(self, outcome: ToolOutcome) -> ToolOutcome:
        model = tuple(
            TextBlock(self.text(block.text)) if isinstance(block, TextBlock) else block
            for block in outcome.model
        )
        return dataclasses.replace(
            outcome, model=model, display=tuple(self._content(each) for each in outcome.display)
        )

    def _content(self, content: Content) -> Content:
        if isinstance(content, TextContent):
            return self._shown(content)
        if isinstance(content, TableContent):
            return dataclasses.replace(
                content,
                columns=tuple(self.text(name) for name in content.columns),
                rows=tuple(tuple(self.text(cell) for cell in row) for row in content.rows),
            )
        return content

    def _shown(self, content: TextContent) -> TextContent:
        """The places at which parts begin move with what is before them."""
        if content.titles is None or not content.titles:
            return dataclasses.replace(content, text=self.text(content.text))
        starts = sorted({0, *content.titles})
        parts, titles, at = [], [], 0
        for start, end in zip(starts, [*starts[1:], len(content.text)], strict=True):
            if start in content.titles:
                titles.append(at)
            parts.append(self.text(content.text[start:end]))
            at += len(parts[-1])
        return TextContent("".join(parts), tuple(titles))
