"""What hostile code may try in the local sandbox, one short script each. Add rows freely.

A script defines ``go()``. If ``go`` raises, the attempt was refused. If it returns, the attempt worked,
and what it returns says how. Names that a script can use: ``PORT`` (a TCP port on which this machine
listens on loopback), ``ABSTRACT`` (an abstract Unix socket that listens), ``VICTIM`` (a process id
outside), ``HOME_FILE`` (a file in the home of the user who runs the program, with the secret in it),
``TMP_FILE`` (the same in the machine's /tmp), ``SECRET`` parts are never handed in: ``SECRET_HASH`` and
``SECRET_LENGTH`` tell it when it is seen, by ``seen(bytes)``. ``libc`` and ``call(number, *args)`` make
system calls; ``NR`` maps their names to numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Literal

Expect = Literal["refused", "killed"]

HEAD = '''
import ctypes, errno, fcntl, hashlib, mmap, os, pathlib, platform, resource, signal, socket, struct, subprocess, sys, time
libc = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
NR = dict(zip(
    ("ptrace keyctl add_key unshare setns mount bpf perf_event_open userfaultfd memfd_create process_vm_readv "
     "open_by_handle_at init_module kexec_load clone kcmp syslog pivot_root").split(),
    (101, 250, 248, 272, 308, 165, 321, 298, 323, 319, 310, 304, 175, 246, 56, 312, 103, 155) if X86 else
    (117, 219, 217, 97, 268, 40, 280, 241, 282, 279, 270, 265, 105, 104, 220, 272, 116, 41)))
NR.update(io_uring_setup=425, open_tree=428, fsopen=430, clone3=435, pidfd_open=434, pidfd_getfd=438, memfd_secret=447)

def call(number, *args):
    """Make a system call; raises OSError when it fails."""
    args = [a if isinstance(a, (bytes, ctypes.Array, ctypes.c_void_p)) else ctypes.c_long(a) for a in args]
    result = libc.syscall(ctypes.c_long(number), *args)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result

def seen(data):
    """Return True when the secret is somewhere in data."""
    if isinstance(data, str):
        data = data.encode("utf-8", "surrogateescape")
    start = data.find(b"canary-")
    while start >= 0:
        if hashlib.sha256(data[start:start + SECRET_LENGTH]).hexdigest() == SECRET_HASH:
            return True
        start = data.find(b"canary-", start + 1)
    return False

def must(condition, why="nothing was found"):
    """Refuse when the condition does not hold."""
    if not condition:
        raise PermissionError(why)

def readable(paths):
    for path in paths:
        try:
            with open(path, "rb") as file:
                yield path, file.read(1 << 20)
        except OSError:
            continue
'''
TAIL = """
try:
    _how = go()
except BaseException as _error:
    print("REFUSED", type(_error).__name__, str(_error)[:300])
else:
    print("WORKED", repr(_how)[:300])
"""


@dataclass(frozen=True)
class Attempt:
    """One attempt: its name, what it tries, and the script."""

    name: str
    tries: str
    script: str
    expect: Expect = "refused"

    def code(self, context: dict[str, object]) -> str:
        """The whole of the code to run."""
        names = "\n".join(f"{name} = {value!r}" for name, value in context.items())
        return f"{names}\n{HEAD}\n{dedent(self.script)}\n{TAIL}"


def a(name: str, tries: str, script: str, expect: Expect = "refused") -> Attempt:
    return Attempt(name, tries, script, expect)


def syscall(name: str, *args: int) -> Attempt:
    """An attempt that is one system call with plain numbers."""
    listed = "".join(f", {arg}" for arg in args)
    script = f"def go():\n    return call(NR[{name!r}]{listed})"
    return Attempt(f"syscall_{name}", f"call {name}", script)


NETWORK = [
    a("tcp_outside", "reach the internet", """
        def go():
            return socket.create_connection(("192.0.2.1", 80), timeout=2)
    """),
    a("tcp_host_loopback", "reach a service on this machine's loopback", """
        def go():
            return socket.create_connection(("127.0.0.1", PORT), timeout=2)
    """),
    a("tcp_host_loopback_v6", "the same over IPv6", """
        def go():
            return socket.create_connection(("::1", PORT), timeout=2)
    """),
    a("dns", "look up a name", """
        def go():
            return socket.getaddrinfo("example.com", 80)
    """),
    a("udp_dns", "send a datagram out", """
        def go():
            return socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53))
    """),
    a("interfaces", "find a network interface beside loopback", """
        def go():
            names = [name for _, name in socket.if_nameindex()]
            must(set(names) - {"lo", "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0"})
            return names
    """),
    a("abstract_socket", "reach an abstract Unix socket of this machine", """
        def go():
            s = socket.socket(socket.AF_UNIX); s.settimeout(2); s.connect("\\0" + ABSTRACT); return s
    """),
    a("unix_sockets", "find a socket of a service of this machine", """
        def go():
            import stat
            found = []
            for top in ("/run", "/var", "/tmp", "/home", "/root", "/dev"):
                for folder, _, files in os.walk(top):
                    for name in files:
                        path = os.path.join(folder, name)
                        try:
                            if stat.S_ISSOCK(os.lstat(path).st_mode): found.append(path)
                        except OSError: pass
            must(found)
            return found
    """),
    a("raw_socket", "make a raw socket", """
        def go():
            return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    """),
    a("packet_socket", "make a packet socket", """
        def go():
            return socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    """),
    a("vsock", "make a socket to the virtual machine's host", """
        def go():
            return socket.socket(40, socket.SOCK_STREAM)
    """),
    a("alg_socket", "reach the kernel's ciphers", """
        def go():
            return socket.socket(38, socket.SOCK_SEQPACKET)
    """),

]  # fmt: skip
FILES = [
    a(
        "home_file",
        "read a file in the user's home",
        """
        def go():
            return open(HOME_FILE).read()
    """,
    ),
    a(
        "host_tmp_file",
        "read a file in this machine's /tmp",
        """
        def go():
            return open(TMP_FILE).read()
    """,
    ),
    a(
        "hunt_secret",
        "find the secret anywhere",
        """
        def go():
            for top in ("/home", "/root", "/tmp", "/var", "/run", "/etc", "/mnt", "/media", "/srv", "/opt/sandbox/guest", "/dev/shm"):
                for folder, _, files in os.walk(top):
                    if "/lib/python" in folder: continue
                    for path, data in readable(os.path.join(folder, name) for name in files):
                        if seen(data): return path
            must(False)
    """,
    ),
    a(
        "shadow",
        "read the password file",
        """
        def go():
            return [p for p, _ in readable(["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/shadow-"])][0]
    """,
    ),
    a(
        "host_users",
        "learn the names of this machine's users",
        """
        def go():
            names = [line.split(":")[0] for line in open("/etc/passwd")]
            must(set(names) - {"user", "nobody"})
            return names
    """,
    ),
    a(
        "write_outside",
        "write anywhere but in the own folders",
        """
        def go():
            worked = []
            tops = ["/", "/usr", "/usr/bin", "/etc", "/opt", "/opt/sandbox", "/dev", "/proc", "/sys", "/run", "/home",
                    "/root", "/var", "/boot", "/mnt", "/usr/local/bin", os.path.dirname(sys.executable),
                    os.path.dirname(os.__file__), *sys.path]
            tops += [os.path.dirname(m.__file__) for m in list(sys.modules.values()) if getattr(m, "__file__", None)]
            for top in dict.fromkeys(t for t in tops if t and not t.startswith("/tmp")):
                path = os.path.join(top, "intruder")
                try: open(path, "w").close(); worked.append(path)
                except OSError: pass
            must(worked)
            return worked
    """,
    ),
    a(
        "change_packages",
        "change an installed package",
        """
        def go():
            import numpy
            return open(numpy.__file__, "a").write("#")
    """,
    ),
    a(
        "change_guest",
        "change the shell's own program",
        """
        def go():
            return open("/opt/sandbox/guest/main.py", "a").write("#")
    """,
    ),
    a(
        "remount",
        "make a read-only place writable",
        """
        def go():
            for target in (b"/", b"/usr", b"/proc/sys", b"/opt/sandbox/packages/0"):
                try: return call(NR["mount"], b"none", target, ctypes.c_void_p(), 32 | 4096, ctypes.c_void_p())
                except OSError as e: last = e
            raise last
    """,
    ),
    a(
        "unmount",
        "take a mount away to see what is under it",
        """
        def go():
            out = subprocess.run(["umount", "-l", "/tmp"], capture_output=True, text=True)
            must(out.returncode == 0, out.stderr)
            return out
    """,
    ),
    a(
        "device_node",
        "make a device",
        """
        def go():
            return os.mknod("/tmp/disk", 0o600 | 0o060000, os.makedev(254, 0)) or open("/tmp/disk", "rb").read(1)
    """,
    ),
    a(
        "devices",
        "open a device of this machine",
        """
        def go():
            names = "kvm mem kmem port vda sda nvme0n1 fuse net/tun vhost-net vsock loop-control mapper/control kmsg dri/card0 snapshot"
            return [p for p, _ in readable("/dev/" + n for n in names.split())][0]
    """,
    ),
    a(
        "proc_sys",
        "change a setting of the kernel",
        """
        def go():
            worked = []
            for folder, _, files in os.walk("/proc/sys"):
                for name in files:
                    path = os.path.join(folder, name)
                    try: os.close(os.open(path, os.O_WRONLY)); worked.append(path)
                    except OSError: pass
            must(worked)
            return worked
    """,
    ),
    a(
        "core_pattern",
        "run a program as this machine's root by way of a crash",
        """
        def go():
            return open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/evil")
    """,
    ),
    a(
        "sysrq",
        "give commands to the kernel",
        """
        def go():
            return open("/proc/sysrq-trigger", "w").write("h")
    """,
    ),
    a(
        "sys",
        "look into /sys",
        """
        def go():
            must(os.listdir("/sys"))
            return os.listdir("/sys")
    """,
    ),
    a(
        "cgroup_agent",
        "reach the control groups",
        """
        def go():
            return os.listdir("/sys/fs/cgroup")
    """,
    ),
    a(
        "proc_root",
        "leave by the root of another process",
        """
        def go():
            for pid in os.listdir("/proc"):
                if pid.isdigit() and os.path.exists(f"/proc/{pid}/root{HOME_FILE}"):
                    return pid
            must(False)
    """,
    ),
    a(
        "chroot_escape",
        "leave by chroot",
        """
        def go():
            os.mkdir("/tmp/jail"); os.chroot("/tmp/jail")
    """,
    ),
    a(
        "file_handle",
        "open a file by its number",
        """
        def go():
            handle = struct.pack("Iiq", 8, 1, 2) + b"\\0" * 8
            folder = os.open("/tmp", os.O_RDONLY)
            try: return call(NR["open_by_handle_at"], folder, handle, 0)
            finally: os.close(folder)
    """,
    ),
    a(
        "inherited_files",
        "find an open file of the program outside",
        """
        def go():
            links = {fd: os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{fd}")}
            odd = {f: l for f, l in links.items() if not l.startswith(("pipe:", "socket:", "/dev/null", "/proc/"))}
            must(odd)
            return odd
    """,
    ),
]
SECRETS = [
    a(
        "environment",
        "find the secret in the environment",
        """
        def go():
            must(seen(repr(dict(os.environ))))
    """,
    ),
    a(
        "environment_names",
        "find a variable of the program outside",
        """
        def go():
            names = [n for n in os.environ if n.startswith(("ANTHROPIC", "CLAUDE", "E2B", "SANDBOX_CHAT", "SSH", "XDG", "DBUS"))]
            must(names)
            return names
    """,
    ),
    a(
        "proc_secrets",
        "find the secret in what processes show of themselves",
        """
        def go():
            names = ("environ", "cmdline", "maps", "mountinfo", "comm", "status", "auxv", "limits", "cgroup")
            paths = [f"/proc/{pid}/{name}" for pid in os.listdir("/proc") if pid.isdigit() for name in names]
            for path, data in readable(paths):
                if seen(data): return path
            must(False)
    """,
    ),
    a(
        "first_process_memory",
        "read the memory of the process that guards the sandbox",
        """
        def go():
            with open("/proc/1/maps") as maps, open("/proc/1/mem", "rb", 0) as memory:
                for line in maps:
                    low, high = (int(x, 16) for x in line.split()[0].split("-"))
                    try:
                        memory.seek(low)
                        if seen(memory.read(min(high - low, 1 << 24))): return line
                    except (OSError, OverflowError, ValueError): pass
            must(False)
    """,
    ),
]
PROCESSES = [
    a(
        "signal_outside",
        "end a process of this machine",
        """
        def go():
            return os.kill(VICTIM, 9)
    """,
    ),
    a(
        "signal_all",
        "end every process",
        """
        def go():
            os.kill(-1, 0)
            must(len([p for p in os.listdir("/proc") if p.isdigit()]) > 5)
    """,
    ),
    a(
        "see_others",
        "see a process of this machine",
        """
        def go():
            must(os.path.exists(f"/proc/{VICTIM}"))
    """,
    ),
    a(
        "end_first",
        "end the process that guards the sandbox",
        """
        def go():
            os.kill(1, 9); time.sleep(0.2); must(not os.path.exists("/proc/1"))
    """,
    ),
    a(
        "trace_first",
        "trace the process that guards the sandbox",
        """
        def go():
            return call(NR["ptrace"], 16, 1, 0, 0)
    """,
    ),
    a(
        "pidfd_steal",
        "take an open file of another process",
        """
        def go():
            return call(NR["pidfd_getfd"], call(NR["pidfd_open"], 1, 0), 0, 0)
    """,
    ),
    a(
        "become_root",
        "become root",
        """
        def go():
            os.setuid(0)
    """,
    ),
    a(
        "become_other",
        "become another user",
        """
        def go():
            os.setresuid(65534, 65534, 65534)
    """,
    ),
    a(
        "capabilities",
        "have any privilege",
        """
        def go():
            status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
            caps = {n: status[n].strip() for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
            must(any(int(v, 16) for v in caps.values()) or status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2")
            return caps
    """,
    ),
    a(
        "setuid_programs",
        "get privileges from a setuid program",
        """
        def go():
            import stat
            for folder in ("/usr/bin", "/usr/sbin", "/bin", "/usr/lib"):
                for entry in os.scandir(folder):
                    try:
                        mode = entry.stat().st_mode
                    except OSError: continue
                    if stat.S_ISREG(mode) and mode & 0o4000 and not os.statvfs(entry.path).f_flag & os.ST_NOSUID:
                        return entry.path
            must(False)
    """,
    ),
    a(
        "setuid_file",
        "make a setuid program",
        """
        def go():
            import shutil
            shutil.copy("/usr/bin/id", "/tmp/id"); os.chmod("/tmp/id", 0o4755)
            must("euid=0" in subprocess.run(["/tmp/id"], capture_output=True, text=True).stdout)
    """,
    ),
    a(
        "hostname",
        "rename this machine",
        """
        def go():
            return socket.sethostname("pwned")
    """,
    ),
    a(
        "clock",
        "set the clock",
        """
        def go():
            return time.clock_settime(time.CLOCK_REALTIME, 0)
    """,
    ),
    a(
        "priority",
        "take precedence over other programs",
        """
        def go():
            os.nice(-5)
    """,
    ),
    a(
        "raise_limits",
        "raise a limit",
        """
        def go():
            worked = []
            for name in ("NPROC", "DATA", "AS", "FSIZE", "CORE"):
                number = getattr(resource, "RLIMIT_" + name)
                try: resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); worked.append(name)
                except (OSError, ValueError): pass
            must(worked)
            return worked
    """,
    ),
]
KERNEL = [
    a("user_namespace", "make a user namespace", """
        def go():
            return call(NR["unshare"], 0x10000000)
    """),
    a("user_namespace_command", "the same with a program", """
        def go():
            out = subprocess.run(["unshare", "-Ur", "id"], capture_output=True, text=True)
            must("uid=0" in out.stdout, out.stderr)
            return out.stdout
    """),
    a("clone_namespace", "make a namespace with a new process", """
        def go():
            pid = call(NR["clone"], 0x10000000 | 17, 0, 0, 0, 0)
            if pid == 0: os._exit(0)
            return pid
    """),
    a("clone3", "the same with the newer call", """
        def go():
            args = struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0)
            pid = call(NR["clone3"], args, 64)
            if pid == 0: os._exit(0)
            return pid
    """),
    a("join_namespace", "join another namespace", """
        def go():
            return call(NR["setns"], os.open("/proc/1/ns/user", os.O_RDONLY), 0)
    """),
    a("trace", "trace a child", """
        def go():
            child = subprocess.Popen(["sleep", "5"])
            try: return call(NR["ptrace"], 16, child.pid, 0, 0)
            finally: child.kill()
    """),
    a("terminal_input", "type into the terminal of the program", """
        def go():
            fd = os.open("/dev/tty", os.O_RDWR)
            return fcntl.ioctl(fd, 0x5412, b"x")
    """),
    a("terminal_input_own", "put characters into a terminal's input", """
        def go():
            import pty
            main, other = pty.openpty()
            return fcntl.ioctl(other, 0x5412, b"x")
    """),
    a("keyring_add", "use the kernel's key store", """
        def go():
            return call(NR["add_key"], b"user", b"name", b"value", 5, -3)
    """),
    syscall("keyctl", 0, -3, 0),
    syscall("bpf", 0, 0, 0),
    syscall("perf_event_open", 0, 0, -1, -1, 0),
    syscall("userfaultfd", 0),
    syscall("io_uring_setup", 1, 0),
    syscall("memfd_create", 0, 0),
    syscall("memfd_secret", 0),
    syscall("process_vm_readv", 1, 0, 0, 0, 0, 0),
    syscall("init_module", 0, 0, 0),
    syscall("kexec_load", 0, 0, 0, 0),
    syscall("kcmp", 1, 1, 0, 0, 0),
    syscall("syslog", 3, 0, 0),
    syscall("open_tree", -100, 0, 1),
    syscall("fsopen", 0, 0),
    syscall("pivot_root", 0, 0),
    a("foreign_calls", "make a call of the 32-bit kind", """
        def go():
            must(X86, "only there on x86")
            return libc.syscall(ctypes.c_long(0x40000000 + 39))
    """, "killed"),
]  # fmt: skip
LIMITS = [
    a(
        "big_file",
        "write a file beyond the limit",
        """
        def go():
            with open("/tmp/big", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 3 << 30)
    """,
    ),
    a(
        "fill_tmp",
        "fill the machine's memory by way of /tmp",
        """
        def go():
            try:
                for n in range(64):
                    with open(f"/tmp/fill{n}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 256 << 20)
            finally:
                for n in range(64):
                    try: os.unlink(f"/tmp/fill{n}")
                    except OSError: pass
    """,
    ),
    a(
        "fill_shm",
        "the same by way of /dev/shm",
        """
        def go():
            try:
                for n in range(64):
                    with open(f"/dev/shm/fill{n}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 64 << 20)
            finally:
                for n in range(64):
                    try: os.unlink(f"/dev/shm/fill{n}")
                    except OSError: pass
    """,
    ),
    a(
        "memory",
        "take 6 GB of memory",
        """
        def go():
            return len(bytearray(6 << 30))
    """,
    ),
    a(
        "shared_memory",
        "take 16 GB of shared memory",
        """
        def go():
            return mmap.mmap(-1, 16 << 30)
    """,
    ),
    a(
        "processes",
        "start more processes than are allowed",
        """
        def go():
            children = []
            try:
                for _ in range(2000): children.append(subprocess.Popen(["sleep", "20"]))
            finally:
                for child in children: child.kill()
                for child in children: child.wait()
    """,
    ),
]

ATTEMPTS: list[Attempt] = [*NETWORK, *FILES, *SECRETS, *PROCESSES, *KERNEL, *LIMITS]
