"""HTML from the sandbox for the browser: inside a frame that may run its scripts and do nothing else. Blocking functions.

The page that is opened is not the one that code made but one of ours, which holds it as text of a frame
(``sandbox="allow-scripts"``): its scripts run with no origin, so they read no file, cookie or other page, open no
window and leave the frame for nowhere. A Content-Security-Policy, which such a frame inherits, forbids the network.
"""

from __future__ import annotations

import hashlib
import html
import os
import re
from pathlib import Path

from sandbox_chat.ui.folder import scratch_folder

MOST = 40_000_000
"""Bytes of a page that is opened at most."""
HOSTS = 3
"""Hosts that are named."""

_INLINE = "'unsafe-inline' 'unsafe-eval' data: blob:"
_POLICY = (
    "default-src 'none'; script-src {inline}{web}; style-src {inline}{web}; img-src data: blob:{web}; "
    "font-src data:{web}; media-src data: blob:{web}; connect-src {connect}; worker-src blob:; child-src blob: data:; "
    "frame-src blob: data:; object-src 'none'; form-action 'none'; base-uri 'none'; webrtc 'block'"
)
_PAGE = """\
<!doctype html>
<html><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="referrer" content="no-referrer"><meta http-equiv="x-dns-prefetch-control" content="off">
<title>{title}</title>
<style>html, body {{ height: 100%; margin: 0 }} iframe {{ border: 0; width: 100%; height: 100% }}</style></head>
<body><iframe sandbox="allow-scripts" referrerpolicy="no-referrer" srcdoc="{body}"></iframe></body></html>
"""
_LOADED = re.compile(
    r"""(?:\bsrc|\bhref)\s{0,5}=\s{0,5}["']?(?:https?:)?//([\w.-]{1,100})|["']https?://((?:cdn|unpkg)[\w.-]{0,100})""",
    re.I,
)


def frame_page(page: str, title: str, *, online: bool) -> str:
    """Return a page of ours that holds ``page``. ``online``: it may load from the web, and so send there."""
    policy = _POLICY.format(
        inline=_INLINE,
        web=" https:" if online else "",
        connect="https: data: blob:" if online else "data: blob:",
    )
    return _PAGE.format(policy=html.escape(policy), title=html.escape(title), body=html.escape(page))


def prepare(path: Path, title: str, *, online: bool) -> Path:
    """Write the page that holds the one at ``path`` into the scratch folder. Raises ``OSError``."""
    with path.open("rb") as file:
        page = file.read(MOST).decode("utf-8", "replace")
    data = frame_page(page, title, online=online).encode("utf-8", "replace")
    name = hashlib.sha256(data).hexdigest()[:32]
    target = scratch_folder() / f"page-{name}.html"
    if not target.exists():
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
    return target


def needed_hosts(path: Path) -> list[str]:
    """Return hosts that a page loads parts from, a few at most; none when it cannot be read."""
    try:
        with path.open("rb") as file:
            page = file.read(MOST).decode("utf-8", "replace")
    except OSError:
        return []
    found: dict[str, None] = {}
    for match in _LOADED.finditer(page):
        found[(match.group(1) or match.group(2)).lower()] = None
        if len(found) >= HOSTS:
            break
    return list(found)
