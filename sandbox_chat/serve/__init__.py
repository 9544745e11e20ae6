"""The session over HTTP, for other programs: ``sandbox-chat serve --http``.

``face`` starts and ends the server, ``app`` answers requests, ``scheduler`` decides which task runs when, ``session`` is a
chat that is kept alive, ``task`` one task and what came of it. What it looks like from outside is in ``openapi``; ``HTTP.md``
tells how to use it. Nothing is imported here: each user takes what it needs.
"""
