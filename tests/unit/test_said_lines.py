"""What is said on a line of its own has been cleaned, wherever its words come from."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support.hostile import HOSTILE
from support.written import faults

from sandbox_chat import arguments, docker_face, sandboxes
from sandbox_chat.linear import Lines
from sandbox_chat.sandbox.docker_build import BuildFailed
from sandbox_chat.settings import Settings

WORDS = " ".join(each.text for each in HOSTILE if "\t" not in each.text)


def written(capsys: pytest.CaptureFixture[str]) -> bytes:
    captured = capsys.readouterr()
    return (captured.out + captured.err).encode("utf-8")


def test_the_plain_chat(capsys: pytest.CaptureFixture[str]) -> None:
    out = io.StringIO()
    Lines(io.StringIO(), out).say(WORDS)
    assert faults(out.getvalue().encode("utf-8")) == []
    assert written(capsys) == b""


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    arguments.say(WORDS)
    sandboxes._say(WORDS)
    assert faults(written(capsys)) == []


def test_building_an_image(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def build(*_: object, **__: object) -> None:
        raise BuildFailed(WORDS, "")

    monkeypatch.setattr("sandbox_chat.sandbox.docker_build.build", build)
    docker_face.build(Settings(data_dir=tmp_path), base="", wheels="", tag=WORDS, quiet=True)
    assert faults(written(capsys)) == []
