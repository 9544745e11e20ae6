"""Fixtures that several files share."""

from support.docker_fixture import docker

__all__ = ["docker"]
