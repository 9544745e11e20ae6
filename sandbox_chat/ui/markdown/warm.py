"""Loading ahead what the first answer needs."""

from __future__ import annotations

_SAMPLE = "[a]: b\n\n<b>\n\n| x |\n|---|\n\n- *a* [a] https://x.org &amp; ~~b~~\n\n```py\nx = 1\n```\n"


def warm() -> None:
    """Load the renderers, the reference parser and the lexers of common languages. Meant for a thread."""
    from .document import MarkdownDocument
    from .highlight import warm_lexers

    MarkdownDocument(_SAMPLE, finished=True).prepare(40, 0, 99)
    warm_lexers()
