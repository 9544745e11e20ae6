"""Namespaces, mounts and the kernel's rarely used parts."""

from __future__ import annotations

from .base import a, syscall

KERNEL = [
    a("user_namespace", "make a user namespace", """
        def go():
            return reached("unshare", 0x10000000)
    """),
    a("user_namespace_command", "the same with a program", """
        def go():
            out = subprocess.run(["unshare", "-Ur", "id"], capture_output=True, text=True)
            must("uid=0" in out.stdout, out.stderr)
            return out.stdout
    """),
    a("other_namespaces", "make any other namespace", """
        def go():
            worked = []
            for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x20000000, 0x40000000, 0x00000080):
                try: call("unshare", flag); worked.append(hex(flag))
                except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("clone_namespace", "make a namespace with a new process", """
        def go():
            pid = call("clone", 0x10000000 | 17, 0, 0, 0, 0)
            if pid == 0: os._exit(0)
            return pid
    """),
    a("clone3", "the same with the newer call", """
        def go():
            args = struct.pack("8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0)
            pid = call("clone3", args, 64)
            if pid == 0: os._exit(0)
            return pid
    """),
    a("clone3_group", "start a process in another control group", """
        def go():
            args = struct.pack("11Q", 0x200000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, os.open("/", os.O_PATH))
            pid = call("clone3", args, 88)
            if pid == 0: os._exit(0)
            return pid
    """),
    a("join_namespace", "join another namespace", """
        def go():
            worked = []
            for pid in pids():
                for name in ("user", "mnt", "net", "pid", "ipc", "uts", "cgroup"):
                    try: call("setns", os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0); worked.append((pid, name))
                    except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("namespace_parent", "get hold of the namespace above", """
        def go():
            worked = []
            for name in ("user", "pid", "mnt", "net", "uts", "ipc"):
                for request in (0xB701, 0xB702):
                    try: worked.append(fcntl.ioctl(os.open(f"/proc/self/ns/{name}", os.O_RDONLY), request))
                    except OSError: pass
            joined = []
            for fd in worked:
                try: call("setns", fd, 0); joined.append(fd)
                except OSError: pass
            must(joined)
            return joined
    """),
    a("mount_proc", "mount a fresh /proc, /sys, device folder or memory disk", """
        def go():
            worked = []
            for kind in (b"proc", b"sysfs", b"devpts", b"tmpfs", b"overlay", b"ramfs", b"debugfs", b"securityfs", b"mqueue", b"fuse", b"ext4"):
                try: call("mount", kind, b"/tmp", kind, 0, ctypes.c_void_p()); worked.append(kind)
                except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("move_root", "swap the root folder", """
        def go():
            os.makedirs("/tmp/root/old")
            return reached("pivot_root", b"/tmp/root", b"/tmp/root/old")
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
    a("terminal_paste", "put a terminal's selection into its input", """
        def go():
            import pty
            main, other = pty.openpty()
            try: return fcntl.ioctl(other, 0x541C, b"\\x03")
            except OSError as error:
                if error.errno in (errno.EPERM, errno.EACCES): raise
                return str(error)
    """, only=("local", "warm"), why_only="a container has no terminal, and its daemon's filter knows no arguments of this call"),
    a("console", "take over the machine's console output", """
        def go():
            import pty
            return fcntl.ioctl(pty.openpty()[1], 0x541D)
    """),
    a("keyring_add", "use the kernel's key store", """
        def go():
            return reached("add_key", b"user", b"name", b"value", 5, -3)
    """),
    a("keyring_session", "take another key ring of the user", """
        def go():
            return reached("keyctl", 1, b"_uid_ses." + str(os.getuid()).encode())
    """),
    a("old_calls", "make system calls of the 32-bit machine", """
        def go():
            must(X86, "only there on x86")
            code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, 7)
            code.write(b"\\x53\\xb8\\x14\\x00\\x00\\x00\\xcd\\x80\\x5b\\xc3")    # push rbx; mov eax, 20 (getpid); int 0x80; pop rbx; ret
            return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
    """, "killed"),
    a("foreign_calls", "make a call of the x32 kind", """
        def go():
            must(X86, "only there on x86")
            result = libc.syscall(ctypes.c_long(0x40000000 + 39))
            must(result >= 0, os.strerror(ctypes.get_errno()))
            return result
    """, "killed"),
    a("vm86", "change the machine's tables", """
        def go():
            must(X86, "only there on x86")
            return reached("modify_ldt", 1, struct.pack("IIII", 0, 0, 0, 0x51), 16)
    """),
    a("ports", "reach the machine's input and output ports", """
        def go():
            must(X86, "only there on x86")
            try: return call("iopl", 3)
            except OSError: return call("ioperm", 0x80, 1, 1)
    """),
    syscall("keyctl", 0, -3, 0),
    syscall("bpf", 0, 0, 0, tries="make a BPF map"),
    syscall("perf_event_open", 0, 0, -1, -1, 0, tries="measure with the processor's counters"),
    syscall("userfaultfd", 0, tries="handle page faults, which eases attacks on the kernel"),
    syscall("io_uring_setup", 1, 0, tries="make an io_uring"),
    syscall("io_uring_enter", 0, 0, 0, 0, 0, 0, tries="use an io_uring"),
    syscall("io_uring_register", 0, 0, 0, 0, tries="register with an io_uring"),
    a("memfd_create", "have memory in a nameless file, hidden from the limits", """
        def go():
            return reached("memfd_create", b"x", 0)
    """, only=("local", "warm"), why_only="a container's limit counts such memory"),
    syscall("memfd_secret", 0, tries="have memory that nobody can look at"),
    a("process_vm_readv", "read the memory of another process by a call", """
        def go():
            buffer = ctypes.create_string_buffer(64)
            local = struct.pack("QQ", ctypes.addressof(buffer), 64)
            return reached("process_vm_readv", os.getppid(), local, 1, local, 1, 0)
    """),
    a("process_vm_writev", "write into the memory of another process by a call", """
        def go():
            buffer = ctypes.create_string_buffer(64)
            local = struct.pack("QQ", ctypes.addressof(buffer), 64)
            return reached("process_vm_writev", os.getppid(), local, 1, local, 1, 0)
    """),
    syscall("init_module", 0, 0, 0, tries="load a kernel module"),
    syscall("finit_module", -1, 0, 0, tries="load a kernel module from a file"),
    syscall("delete_module", 0, 0, tries="unload a kernel module"),
    syscall("kexec_load", 0, 0, 0, 0, tries="replace the kernel"),
    syscall("kexec_file_load", -1, -1, 0, 0, 0, tries="replace the kernel from a file"),
    syscall("kcmp", 1, 1, 0, 0, 0, tries="compare the kernel's pointers"),
    syscall("syslog", 3, 0, 0, tries="read the kernel's log"),
    syscall("open_tree", -100, 0, 1, tries="copy a mount"),
    syscall("move_mount", -1, 0, -1, 0, 0, tries="move a mount"),
    syscall("fsopen", 0, 0, tries="begin a mount the new way"),
    syscall("mount_setattr", -100, 0, 0, 0, 0, tries="change a mount"),
    syscall("pivot_root", 0, 0, tries="swap the root folder"),
    syscall("fanotify_init", 0, 0, tries="watch all files of this machine"),
    syscall("move_pages", 1, 0, 0, 0, 0, 0, tries="move the memory of another process"),
    syscall("migrate_pages", 1, 0, 0, 0, tries="move the memory of a process between nodes"),
    syscall("lookup_dcookie", 0, 0, 0, tries="learn names of files from the profiler"),
    syscall("quotactl_fd", -1, 0, 0, 0, tries="change quotas by a descriptor"),
]  # fmt: skip
