"""The filter, run by a small interpreter of the kernel's filter language."""

from __future__ import annotations

import errno
import struct

import pytest

from sandbox_chat.sandbox import seccomp

X86, ARM = 0xC000003E, 0xC00000B7
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def verdict(program: bytes, arch: int, number: int, *args: int) -> int:
    """Run ``program`` on a system call as the kernel would."""
    data = struct.pack("=IIQ6Q", number, arch, 0, *(list(args) + [0] * (6 - len(args))))
    code = [struct.unpack_from("=HBBI", program, place) for place in range(0, len(program), 8)]
    accumulator = place = 0
    while True:
        operation, if_true, if_false, value = code[place]
        place += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("=I", data, value)
            case 0x15:
                place += if_true if accumulator == value else if_false
            case 0x35:
                place += if_true if accumulator >= value else if_false
            case 0x45:
                place += if_true if accumulator & value else if_false
            case 0x06:
                return value
            case _:
                raise AssertionError(operation)


@pytest.mark.parametrize(
    ("machine", "arch", "clone", "ioctl", "sock", "ptrace", "write", "fcntl", "inotify"),
    [("x86_64", X86, 56, 16, 41, 101, 1, 72, 294), ("aarch64", ARM, 220, 29, 198, 117, 64, 25, 26)],
)
def test_rules(
    machine: str,
    arch: int,
    clone: int,
    ioctl: int,
    sock: int,
    ptrace: int,
    write: int,
    fcntl: int,
    inotify: int,
) -> None:
    program = seccomp.program(machine)
    assert program is not None
    refused = ERRNO | errno.EPERM
    assert verdict(program, arch, write) == ALLOW
    assert verdict(program, 0x40000003, write) == KILL
    assert verdict(program, arch, ptrace) == refused
    assert verdict(program, arch, 435) == ERRNO | errno.ENOSYS
    assert verdict(program, arch, 425) == refused
    assert verdict(program, arch, clone, 0x01200011) == ALLOW  # fork
    assert verdict(program, arch, clone, 0x003D0F00) == ALLOW  # a thread
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(program, arch, clone, flag | 17) == refused
    assert verdict(program, arch, ioctl, 0, 0x5401) == ALLOW
    assert verdict(program, arch, ioctl, 0, 0x5412) == refused
    assert verdict(program, arch, ioctl, 0, 0x5412 | 1 << 32) == refused  # the kernel looks at 32 bits too
    assert verdict(program, arch, ioctl, 0, 0x541C) == refused
    assert verdict(program, arch, inotify) == refused
    for command in (1024, 1026):
        assert verdict(program, arch, fcntl, 3, command) == refused
    for command in (0, 1, 2, 3, 4, 6, 8, 1025, 1030, 1031):
        assert verdict(program, arch, fcntl, 3, command) == ALLOW
    for family in (1, 2, 10, 16):
        assert verdict(program, arch, sock, family) == ALLOW
        assert verdict(program, arch, sock + (12 if arch == X86 else 1), family) == ALLOW
    for family in (0, 17, 38, 40, 44):
        assert verdict(program, arch, sock, family) == ERRNO | errno.EAFNOSUPPORT


def test_every_call_ends_in_a_verdict() -> None:
    for machine, arch in (("x86_64", X86), ("arm64", ARM)):
        program = seccomp.program(machine)
        assert program is not None
        assert len(program) // 8 < 4096
        for number in range(600):
            assert verdict(program, arch, number) in (
                ALLOW,
                ERRNO | errno.EPERM,
                ERRNO | errno.ENOSYS,
                ERRNO | errno.EAFNOSUPPORT,
            )


def test_second_calling_convention_of_x86_is_killed() -> None:
    program = seccomp.program("AMD64")
    assert program is not None
    assert verdict(program, X86, 0x40000001) == KILL


def test_unknown_machine() -> None:
    assert seccomp.program("pdp11") is None
