"""The command that lists and ends sandboxes: its arguments, and what it says when nothing is set up."""

from __future__ import annotations

import pytest

from sandbox_chat import arguments, sandboxes
from sandbox_chat.settings import Secret, Settings


def test_which_kinds_are_looked_at() -> None:
    nothing = Settings(docker_command="no-such-program")
    assert sandboxes.kinds(nothing) == ()
    assert sandboxes.kinds(Settings(docker_command="no-such-program", e2b_api_key=Secret("k"))) == ("e2b",)
    assert sandboxes.kinds(Settings(docker_command="sh", e2b_api_key=Secret("k"))) == ("e2b", "docker")
    assert sandboxes.kinds(Settings(sandbox="docker", e2b_api_key=Secret("k"))) == ("docker",)


def test_nothing_set_up_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    nothing = Settings(docker_command="no-such-program")
    assert sandboxes.print_list(nothing, as_json=True) == 0
    out, err = capsys.readouterr()
    assert out == "[]\n"
    assert "Neither a cloud (E2B_API_KEY) nor Docker" in err
    assert sandboxes.end(nothing, ["x"]) == 1


@pytest.mark.parametrize("words", [[], ["a", "--left"], ["a", "--all"], ["--left", "--all"]])
def test_kill_wants_to_know_which(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        arguments.parse(["sandboxes", "kill", *words])
    assert left.value.code == 2
    assert "say which" in capsys.readouterr().err


def test_arguments() -> None:
    options = arguments.parse(["sandboxes", "kill", "a", "b"])
    assert (options.action, options.ids, options.left, options.all) == ("kill", ["a", "b"], False, False)
    assert arguments.parse(["sandboxes"]).action is None
    assert arguments.parse(["sandboxes", "list", "--json"]).json is True
