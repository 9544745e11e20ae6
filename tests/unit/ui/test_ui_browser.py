"""Pages for the browser: what code made is text of a frame in a page of ours."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from sandbox_chat.ui import browser
from sandbox_chat.ui.browser import frame_page, needed_hosts, prepare

BREAKING = "</iframe><script>alert(1)</script>\"><img src=x onerror=alert(2)>&quot;>'<!-- ]]>"


class Tags(HTMLParser):
    """Collects the tags of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize("online", [False, True])
def test_nothing_of_a_page_leaves_its_frame(online: bool) -> None:
    tags = Tags(frame_page(BREAKING, BREAKING, online=online)).tags
    assert [tag for tag, _ in tags] == [
        "html",
        "head",
        "meta",
        "meta",
        "meta",
        "meta",
        "title",
        "style",
        "body",
        "iframe",
    ]
    [frame] = [attrs for tag, attrs in tags if tag == "iframe"]
    assert frame["sandbox"] == "allow-scripts"
    assert frame["srcdoc"] == BREAKING


def test_the_policy_lets_nothing_out() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', frame_page("x", "y", online=False))
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy.group(1)).split(";"))
    assert (
        rules["default-src"] == rules["form-action"] == rules["base-uri"] == rules["object-src"] == "'none'"
    )
    assert not any(scheme in " ".join(rules.values()) for scheme in ("http", "ws:", "file:", "*"))
    assert rules["connect-src"] == "data: blob:"
    assert "https:" in frame_page("x", "y", online=True)


def test_a_page_is_written_once_and_privately(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "scratch_folder", lambda: tmp_path)
    source = tmp_path / "a.html"
    source.write_bytes(b"<b>x</b>\xff")
    made = prepare(source, "t", online=False)
    assert made.stat().st_mode & 0o777 == 0o600
    assert "&lt;b&gt;x&lt;/b&gt;\ufffd" in made.read_text(encoding="utf-8")
    assert prepare(source, "t", online=False) == made
    assert prepare(source, "t", online=True) != made
    with pytest.raises(OSError, match="No such file"):
        prepare(tmp_path / "gone.html", "t", online=False)


def test_hosts_that_a_page_needs(tmp_path: Path) -> None:
    page = tmp_path / "a.html"
    page.write_text(
        '<script src="https://cdn.plot.ly/x.js"></script><link href=//unpkg.com/y><script>'
        'const p = {vega: "https://cdn.jsdelivr.net/npm/vega@6"}; const ns = "http://www.w3.org/2000/svg"</script>'
    )
    assert needed_hosts(page) == ["cdn.plot.ly", "unpkg.com", "cdn.jsdelivr.net"]
    page.write_text('<svg xmlns="http://www.w3.org/2000/svg"></svg>')
    assert needed_hosts(page) == []
    assert needed_hosts(tmp_path / "gone.html") == []
