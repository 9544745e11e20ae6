"""Two servers over one cloud and one data folder: sessions go from one to the other, sandboxes end with their sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.e2b_server import Cloud
from support.e2b_server.fixtures import cloud_fixture  # noqa: F401
from support.http_serving import PATIENCE, serving
from support.program import wait_until

from sandbox_chat.settings import Secret


def environ(cloud: Cloud) -> dict[str, str]:
    """The test cloud's settings as variables."""
    found = {}
    for name, value in cloud.settings().items():
        known = name.upper() if name.startswith("e2b_") else f"SANDBOX_CHAT_{name.upper()}"
        text = value.reveal() if isinstance(value, Secret) else str(value)
        found[known] = text
    return found


@pytest.mark.slow
def test_a_session_goes_on_at_another_server(cloud: Cloud, tmp_path: Path) -> None:
    env = environ(cloud)
    with serving(tmp_path, env=env) as one, serving(tmp_path, env=env) as other:
        first = one.task("ann", "```python\nkept = 41\n```")
        assert not first["tools"][0]["is_error"], first
        [sandbox] = cloud.sandboxes
        second = one.task("ann", "```python\nprint(kept + 1)\n```", first["session"])
        assert not second["tools"][0]["is_error"] and list(cloud.sandboxes) == [sandbox]
        # the other has it only when the first has let it go
        body = {"userId": "ann", "task": "hello", "session": first["session"]}
        assert other.request("POST", "/task", json=body).status_code == 409
        assert one.end() == 0
        wait_until(lambda: not cloud.sandboxes, PATIENCE, "the end of its sandbox")
        third = other.task("ann", "```python\nprint(kept + 1)\n```", first["session"])
        assert third["session"] == first["session"]
        assert third["tools"][0]["is_error"]  # what was said is there, the sandbox is a new one
        assert len(cloud.sandboxes) == 1
        gone = other.request("DELETE", f"/sessions/{first['session']}", params={"userId": "ann"})
        assert gone.status_code == 204
        wait_until(lambda: not cloud.sandboxes, PATIENCE, "the end of its sandbox")
