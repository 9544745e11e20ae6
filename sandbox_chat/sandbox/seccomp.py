"""The system call filter of the local sandbox, as a classic BPF program made here.

It is a second wall behind the namespaces: it takes away calls that reach into the kernel's rarely
used parts, that look into other processes or watch files, that make new namespaces, or that hide memory
from the limits. Everything else is allowed, so that scientific libraries work as ever.
"""

from __future__ import annotations

import errno
import platform
import struct
from dataclasses import dataclass

_LOAD, _JUMP_EQ, _JUMP_GE, _JUMP_SET, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARG0, _ARG1 = 0, 4, 16, 24  # offsets in struct seccomp_data; low halves of the arguments

# NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C  # put characters into a terminal's input
_SETLEASE, _NOTIFY = 1024, 1026  # make others wait at a file; tell of what others do in a folder
# UNIX, INET, INET6, NETLINK. Not among them: VSOCK, which no network namespace shuts off, and ALG, PACKET, …
_FAMILIES = (1, 2, 10, 16)

# Calls with the same number everywhere (all since Linux 5.1).
_NEW_CALLS = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "mount_setattr": 442, "quotactl_fd": 443, "memfd_secret": 447, "open_tree_attr": 467,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Machine:
    audit: int
    """The kernel's number of the architecture."""
    clone: int
    ioctl: int
    socket: int
    socketpair: int
    fcntl: int
    denied: dict[str, int]
    foreign_from: int = 0
    """Numbers from here on belong to another calling convention (x32); 0 if there is none."""


_X86_64 = _Machine(
    audit=0xC000003E, clone=56, ioctl=16, socket=41, socketpair=53, fcntl=72, foreign_from=0x40000000,
    denied={
        "shmget": 29, "ptrace": 101, "syslog": 103, "uselib": 134, "ustat": 136, "sysfs": 139,
        "vhangup": 153, "modify_ldt": 154, "pivot_root": 155, "_sysctl": 156, "adjtimex": 159, "chroot": 161,
        "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166, "swapon": 167, "swapoff": 168,
        "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
        "create_module": 174, "init_module": 175, "delete_module": 176, "get_kernel_syms": 177,
        "query_module": 178, "quotactl": 179, "nfsservctl": 180, "lookup_dcookie": 212,
        "clock_settime": 227, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
        # They tell when other programs of this machine use the files that the sandbox sees.
        "inotify_init": 253, "inotify_add_watch": 254, "inotify_init1": 294,
        "migrate_pages": 256, "unshare": 272, "move_pages": 279, "perf_event_open": 298,
        "fanotify_init": 300, "name_to_handle_at": 303, "open_by_handle_at": 304, "clock_adjtime": 305,
        "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "finit_module": 313,
        "memfd_create": 319, "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, **_NEW_CALLS,
    },
)  # fmt: skip
_AARCH64 = _Machine(
    audit=0xC00000B7, clone=220, ioctl=29, socket=198, socketpair=199, fcntl=25,
    denied={
        "lookup_dcookie": 18, "inotify_init1": 26, "inotify_add_watch": 27, "umount2": 39, "mount": 40, "pivot_root": 41, "nfsservctl": 42, "chroot": 51,
        "vhangup": 58, "quotactl": 60, "acct": 89, "unshare": 97, "kexec_load": 104, "init_module": 105,
        "delete_module": 106, "clock_settime": 112, "syslog": 116, "ptrace": 117, "reboot": 142,
        "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171, "shmget": 194,
        "add_key": 217, "request_key": 218, "keyctl": 219, "swapon": 224, "swapoff": 225,
        "migrate_pages": 238, "move_pages": 239, "perf_event_open": 241, "fanotify_init": 262,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268,
        "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272, "finit_module": 273,
        "memfd_create": 279, "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, **_NEW_CALLS,
    },
)  # fmt: skip
_MACHINES = {"x86_64": _X86_64, "amd64": _X86_64, "aarch64": _AARCH64, "arm64": _AARCH64}
_CLONE3 = 435


def program(machine: str = "") -> bytes | None:
    """Return the filter for ``machine`` (this one when empty), or ``None`` for one that is not known."""
    known = _MACHINES.get((machine or platform.machine()).lower())
    if known is None:
        return None
    code = [
        _op(_LOAD, _ARCH),
        _op(_JUMP_EQ, known.audit, 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NR),
    ]
    if known.foreign_from:
        code += [_op(_JUMP_GE, known.foreign_from, 0, 1), _op(_RETURN, _KILL)]
    # clone3 keeps its flags in memory, out of a filter's sight. ENOSYS makes the C library use clone.
    code += _refuse(_CLONE3, errno.ENOSYS)
    for number in sorted(known.denied.values()):
        code += _refuse(number, errno.EPERM)
    code += _look(
        known.clone, _ARG0, [_op(_JUMP_SET, _NEW_NAMESPACES, 0, 1), _op(_RETURN, _ERRNO | errno.EPERM)]
    )
    code += _look(
        known.ioctl,
        _ARG1,
        [
            _op(_JUMP_EQ, _TIOCSTI, 1, 0),
            _op(_JUMP_EQ, _TIOCLINUX, 0, 1),
            _op(_RETURN, _ERRNO | errno.EPERM),
        ],
    )
    code += _look(
        known.fcntl,
        _ARG1,
        [
            _op(_JUMP_EQ, _SETLEASE, 1, 0),
            _op(_JUMP_EQ, _NOTIFY, 0, 1),
            _op(_RETURN, _ERRNO | errno.EPERM),
        ],
    )
    for number in (known.socket, known.socketpair):
        count = len(_FAMILIES)
        tests = [_op(_JUMP_EQ, family, count - place, 0) for place, family in enumerate(_FAMILIES)]
        code += _look(number, _ARG0, [*tests, _op(_RETURN, _ERRNO | errno.EAFNOSUPPORT)])
    code.append(_op(_RETURN, _ALLOW))
    return b"".join(code)


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(number: int, error: int) -> list[bytes]:
    return [_op(_JUMP_EQ, number, 0, 1), _op(_RETURN, _ERRNO | error)]


def _look(number: int, argument: int, tests: list[bytes]) -> list[bytes]:
    """For call ``number``, run ``tests`` on an argument; falling out of them goes on with the next rule."""
    inner = [_op(_LOAD, argument), *tests, _op(_LOAD, _NR)]
    return [_op(_JUMP_EQ, number, 0, len(inner)), *inner]
