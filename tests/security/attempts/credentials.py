"""The program's credentials: in environments, command lines and memories."""

from __future__ import annotations

from .base import a

CREDENTIALS = [
    a("environment", "find the secret in the environment", """
        def go():
            must(seen(repr(dict(os.environ))))
    """),
    a("environment_names", "find a variable of the program outside", """
        def go():
            names = [n for n in os.environ if n.startswith(("ANTHROPIC", "CLAUDE", "E2B", "SANDBOX_CHAT", "SSH", "XDG", "DBUS", "DISPLAY", "DOCKER", "AWS"))]
            must(names)
            return names
    """),
    a("proc_secrets", "find the secret in what processes show of themselves", """
        def go():
            names = ("environ", "cmdline", "maps", "mountinfo", "comm", "status", "auxv", "limits", "cgroup", "stack", "wchan", "syscall")
            paths = [f"/proc/{pid}/{name}" for pid in pids() for name in names]
            for path, data in readable(paths):
                if seen(data): return path
            must(False)
    """),
    a("other_environments", "read the environment of another process", """
        def go():
            shown = [pid for pid in pids() for _, data in readable([f"/proc/{pid}/environ"]) if b"ANTHROPIC" in data or b"SANDBOX_CHAT_TEST" in data]
            must(shown)
            return shown
    """),
    a("first_process_memory", "read the memory of the process that guards the sandbox", """
        def go():
            must(any(seen(part) for part in memory_of(1)))
    """),
    a("every_memory", "find the secret in the memory of any process", """
        def go():
            for pid in pids():
                try:
                    if any(seen(part) for part in memory_of(pid)): return pid
                except OSError: pass
            must(False)
    """),
    a("own_memory", "find the secret in what this process inherited", """
        def go():
            must(any(seen(part) for part in memory_of("self")))
    """),
    a("unused_memory", "find the secret in memory that the kernel hands out", """
        def go():
            block = mmap.mmap(-1, 256 << 20)
            must(any(seen(block[at:at + (1 << 24)]) for at in range(0, 256 << 20, 1 << 24)))
    """),
    a("keys_listed", "see keys of the user in the kernel's key store", """
        def go():
            found = [data for _, data in readable(["/proc/keys", "/proc/key-users"]) if data.strip()]
            must(any(b"user" in data or seen(data) for data in found))
            return found
    """),
    a("request_key", "get a key of the user from the kernel's key store", """
        def go():
            return reached("request_key", b"user", b"sandbox-chat-test", ctypes.c_void_p(), -3)
    """),
]  # fmt: skip
