"""Files of this machine: reading and changing what is none of the sandbox's business."""

from __future__ import annotations

from .base import a

OWN_IMAGE = (
    "a container has its image's files and the daemon's read-only view of the kernel, not this machine's"
)

FILES = [
    a("home_file", "read a file in the user's home", """
        def go():
            return open(HOME_FILE).read()
    """),
    a("host_tmp_file", "read a file in this machine's /tmp", """
        def go():
            return open(TMP_FILE).read()
    """),
    a("usual_secrets", "read keys, tokens and settings at their usual places", """
        def go():
            names = [".env", ".ssh/id_rsa", ".ssh/id_ed25519", ".ssh/config", ".aws/credentials", ".netrc", ".git-credentials",
                     ".docker/config.json", ".kube/config", ".config/gh/hosts.yml", ".claude.json", ".claude/.credentials.json",
                     ".bash_history", ".pypirc", ".npmrc", ".gnupg/secring.gpg", ".config/sandbox-chat/config.toml"]
            homes = ["/root", "/home/user", os.path.dirname(HOME_FILE), os.path.expanduser("~"), "."]
            homes += [entry.path for entry in os.scandir("/home")]
            found = [p for p, _ in readable(os.path.join(home, name) for home in homes for name in names)]
            must(found)
            return found
    """),
    a("hunt_secret", "find the secret anywhere", """
        def go():
            for top in ("/home", "/root", "/tmp", "/var", "/run", "/etc", "/mnt", "/media", "/srv", "/opt/sandbox/guest", "/dev/shm"):
                for folder, _, files in os.walk(top):
                    if "/lib/python" in folder: continue
                    for path, data in readable(os.path.join(folder, name) for name in files):
                        if seen(data): return path
            must(False)
    """),
    a("symlink_out", "reach a file outside by symbolic links", """
        def go():
            for number, target in enumerate((HOME_FILE, TMP_FILE, "/proc/1/root" + HOME_FILE, "/proc/self/cwd/../.." + HOME_FILE)):
                os.symlink(target, f"/tmp/link{number}")
                try:
                    if seen(open(f"/tmp/link{number}", "rb").read()): return target
                except OSError as e: last = e
            raise last
    """),
    a("climb", "climb above the root folder", """
        def go():
            must(seen(open("../" * 64 + HOME_FILE.lstrip("/"), "rb").read()))
    """),
    a("hard_link", "make a second name of a file outside the own folders", """
        def go():
            worked = []
            for path in (sys.executable, "/etc/passwd", "/usr/bin/env", os.__file__):
                try: os.link(path, "/tmp/hard" + str(len(path))); worked.append(path)
                except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("shadow", "read the password file", """
        def go():
            found = [p for p, _ in readable(["/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/shadow-", "/etc/master.passwd"])]
            must(found)
            return found
    """),
    a("host_users", "learn the names of this machine's users", """
        def go():
            names = [line.split(":")[0] for line in open("/etc/passwd")]
            must(set(names) - {"user", "nobody"})
            return names
    """, only=("local", "warm"), why_only=OWN_IMAGE),
    a("host_configuration", "read how this machine is set up", """
        def go():
            names = "fstab ssh/sshd_config ssh/ssh_host_ed25519_key crontab machine-id krb5.keytab ssl/private docker/daemon.json cron.d"
            found = [name for name in names.split() if os.path.exists("/etc/" + name)]
            must(found)
            return found
    """, only=("local", "warm"), why_only=OWN_IMAGE),
    a("write_outside", "write anywhere but in the own folders", """
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
    """),
    a("change_packages", "change an installed package", """
        def go():
            import numpy
            return open(numpy.__file__, "a").write("#")
    """),
    a("change_packages_otherwise", "change, swap or remove packages by mode, name, link, mount or memory", """
        def go():
            import numpy
            file, folder, worked = numpy.__file__, os.path.dirname(numpy.__file__), []
            tries = [lambda: os.chmod(file, 0o666), lambda: os.rename(file, file + ".old"), lambda: os.unlink(file),
                     lambda: os.utime(file), lambda: os.truncate(file, 0), lambda: os.rename(folder, "/tmp/numpy"),
                     lambda: os.setxattr(file, "user.x", b"y"), lambda: os.mkdir(folder + "/new"), lambda: os.chown(file, 1000, 1000),
                     lambda: os.open(f"/proc/self/fd/{os.open(file, os.O_RDONLY)}", os.O_WRONLY),
                     lambda: mmap.mmap(os.open(file, os.O_RDONLY), 1, mmap.MAP_SHARED, mmap.PROT_WRITE)]
            for number, one in enumerate(tries):
                try: one(); worked.append(number)
                except OSError: pass
            for fd in range(3, 64):
                if os.path.exists(f"/proc/self/fd/{fd}") and "numpy" in os.readlink(f"/proc/self/fd/{fd}"): os.close(fd)
            must(worked)
            return worked
    """),
    a("change_guest", "change the shell's own program", """
        def go():
            guest = getattr(sys.modules.get("sandbox_guest"), "__file__", None) or "/opt/sandbox/guest/__init__.py"
            return open(os.path.join(os.path.dirname(guest), "main.py"), "a").write("#")
    """),
    a("change_bytecode", "change the bytecode that later sandboxes load", """
        def go():
            prefix = sys.pycache_prefix or os.environ.get("PYTHONPYCACHEPREFIX") or "/opt/sandbox/bytecode"
            paths = files_below(prefix)[:2000]
            worked = writable(paths)
            for path in paths[:100]:
                for way in (lambda: os.chmod(path, 0o666), lambda: os.utime(path), lambda: os.unlink(path), lambda: os.setxattr(path, "user.x", b"y")):
                    try: way(); worked.append(path)
                    except OSError: pass
            for folder in (prefix, os.path.join(os.path.dirname(os.__file__), "__pycache__")):
                try: open(folder + "/intruder.pyc", "w").close(); worked.append(folder)
                except OSError: pass
            must(worked)
            return worked
    """),
    a("change_fonts", "change the list of fonts that later sandboxes load", """
        def go():
            folder, worked = os.path.expanduser("~/.cache/matplotlib"), []
            for path in pathlib.Path(folder).glob("fontlist-*.json"):
                if not os.path.ismount(path): continue   # made by this sandbox for itself
                for one in (lambda: os.open(path, os.O_WRONLY), lambda: os.unlink(path), lambda: os.rename(path, "/tmp/fonts"),
                            lambda: os.replace(pathlib.Path("/tmp/fonts2").touch() or "/tmp/fonts2", path)):
                    try: one(); worked.append(str(path))
                    except OSError: pass
            must(worked)
            return worked
    """),
    a("remount", "make a read-only place writable", """
        def go():
            for target in (b"/", b"/usr", b"/proc/sys", b"/sys", b"/opt/sandbox/packages/0"):
                try: return call("mount", b"none", target, ctypes.c_void_p(), 32 | 4096, ctypes.c_void_p())
                except OSError as e: last = e
            raise last
    """),
    a("unmount", "take a mount away to see what is under it", """
        def go():
            worked = []
            for target in (b"/tmp", b"/proc/sys", b"/dev", b"/home/user", b"/"):
                try: call("umount2", target, 2); worked.append(target)
                except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("unmount_command", "the same with a program", """
        def go():
            out = subprocess.run(["umount", "-l", "/tmp"], capture_output=True, text=True)
            must(out.returncode == 0, out.stderr)
            return out
    """),
    a("device_node", "make a device", """
        def go():
            return os.mknod("/tmp/disk", 0o600 | 0o060000, os.makedev(254, 0)) or open("/tmp/disk", "rb").read(1)
    """),
    a("device_nodes_harmless", "make a character device, even one that everybody has", """
        def go():
            worked = []
            for folder in ("/tmp", "/dev/shm", os.path.expanduser("~"), "/dev"):
                for major, minor in ((1, 1), (1, 3), (1, 5), (10, 229), (5, 0)):
                    path = f"{folder}/node{major}.{minor}"
                    try: os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(major, minor)); os.close(os.open(path, os.O_RDWR)); worked.append(path)
                    except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
    a("devices", "open a device of this machine", """
        def go():
            names = ("kvm mem kmem port vda sda nvme0n1 dm-0 loop0 fuse net/tun vhost-net vhost-vsock vsock loop-control mapper/control "
                     "kmsg dri/card0 snapshot uinput input/event0 hpet rtc0 watchdog userfaultfd udmabuf autofs btrfs-control")
            found = [n for n in names.split() for flags in (os.O_RDONLY, os.O_WRONLY) if not _refused("/dev/" + n, flags)]
            must(found)
            return found
        def _refused(path, flags):
            try: os.close(os.open(path, flags | os.O_NONBLOCK)); return False
            except OSError: return True
    """),
    a("terminals", "open a terminal of this machine", """
        def go():
            paths = ["/dev/tty", "/dev/console", "/dev/tty0", "/dev/tty1", "/dev/ttyS0"] + ["/dev/pts/" + n for n in os.listdir("/dev/pts") if n.isdigit()]
            found = []
            for path in paths:
                try: os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)); found.append(path)
                except OSError: pass
            must(found)
            return found
    """),
    a("proc_sys", "change a setting of the kernel", """
        def go():
            worked = writable(files_below("/proc/sys"))
            must(worked)
            return worked
    """),
    a("core_pattern", "run a program as this machine's root by way of a crash", """
        def go():
            return open("/proc/sys/kernel/core_pattern", "w").write("|/tmp/evil")
    """),
    a("binfmt", "run a program as this machine's root by way of a file type", """
        def go():
            try: call("mount", b"binfmt_misc", b"/tmp", b"binfmt_misc", 0, ctypes.c_void_p())
            except OSError: pass
            paths = ("/proc/sys/fs/binfmt_misc/register", "/tmp/register")
            worked = writable(paths)
            must(worked)
            return worked
    """),
    a("module_path", "run a program as this machine's root by way of a kernel module or event", """
        def go():
            worked = writable(["/proc/sys/kernel/modprobe", "/proc/sys/kernel/hotplug", "/sys/kernel/uevent_helper", "/proc/sys/kernel/poweroff_cmd"])
            must(worked)
            return worked
    """),
    a("sysrq", "give commands to the kernel", """
        def go():
            return open("/proc/sysrq-trigger", "w").write("h")
    """),
    a("proc_switches", "write to any switch of the kernel in /proc", """
        def go():
            paths = [p for p in files_below("/proc") if not p.split("/")[2].isdigit() and p.split("/")[2] not in ("self", "thread-self", "sys", "net", "pressure")]   # pressure: only wakes who asked
            worked = [p for p in writable(paths) if stat.S_ISREG(os.stat(p).st_mode)]     # Docker lays /dev/null over some
            must(worked)
            return worked
    """),
    a("kernel_memory", "read the kernel's memory, log or addresses", """
        def go():
            found = []
            for path in ("/proc/kcore", "/proc/kmsg", "/proc/vmallocinfo", "/proc/slabinfo", "/proc/pagetypeinfo", "/dev/mem"):
                try:
                    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    if os.read(fd, 64): found.append(path)
                except OSError: pass
            with open("/proc/kallsyms") as names:
                if any(int(line.split()[0], 16) for line, _ in zip(names, range(1000))): found.append("kallsyms")
            must(found)
            return found
    """),
    a("sys", "look into /sys", """
        def go():
            must(os.listdir("/sys"))
            return os.listdir("/sys")
    """, only=("local", "warm"), why_only=OWN_IMAGE),
    a("sys_write", "change something in /sys", """
        def go():
            worked = writable(files_below("/sys")[:40000])
            must(worked)
            return worked
    """),
    a("cgroup_agent", "run a program as this machine's root by way of a control group", """
        def go():
            worked = writable(p for p in files_below("/sys/fs/cgroup") if p.endswith(("release_agent", "notify_on_release", "cgroup.procs", "tasks", "devices.allow")))
            for version in (b"cgroup", b"cgroup2"):
                try: call("mount", version, b"/tmp", version, 0, ctypes.c_void_p()); worked.append(version)
                except OSError: pass
            must(worked)
            return worked
    """),
    a("cgroup_limits", "lift the limits of the own control group", """
        def go():
            names = "memory.max memory.limit_in_bytes memory.high pids.max cpu.max cpu.cfs_quota_us memory.oom.group memory.swap.max".split()
            worked = writable(p for p in files_below("/sys/fs/cgroup", "/proc/self/cgroup") if os.path.basename(p) in names)
            must(worked)
            return worked
    """),
    a("proc_root", "leave by the root or the working folder of another process", """
        def go():
            for pid in pids():
                for way in ("root", "cwd", *(f"fd/{n}" for n in range(64))):
                    for rest in (HOME_FILE, "/../../../.." + HOME_FILE):
                        try:
                            if seen(open(f"/proc/{pid}/{way}{rest}", "rb").read()): return pid, way
                        except OSError: pass
            must(False)
    """),
    a("chroot_escape", "leave by chroot", """
        def go():
            os.mkdir("/tmp/jail"); os.chroot("/tmp/jail")
    """),
    a("file_handle", "open a file by its number", """
        def go():
            handle = struct.pack("Iiq", 8, 1, 2) + b"\\0" * 8
            folder = os.open("/tmp", os.O_RDONLY)
            try: return reached("open_by_handle_at", folder, handle, 0)
            finally: os.close(folder)
    """),
    a("file_handle_name", "learn the number of a file, to guess others", """
        def go():
            handle = ctypes.create_string_buffer(struct.pack("Ii", 128, 0) + bytes(128)); mount_id = ctypes.create_string_buffer(8)
            return reached("name_to_handle_at", -100, b"/usr/bin/env", handle, mount_id, 0)
    """),
    a("inherited_files", "find an open file, folder or socket of the program outside", """
        def go():
            odd, sockets = {}, []
            for fd in os.listdir("/proc/self/fd"):
                try: link, info = os.readlink(f"/proc/self/fd/{fd}"), os.fstat(int(fd))
                except OSError: continue        # the folder that was just listed
                if link.startswith("socket:"): sockets.append((fd, link))
                elif not link.startswith(("pipe:", "/dev/null", "/proc/")): odd[fd] = link
                elif link.startswith("/proc/") and not link.startswith(f"/proc/{os.getpid()}/"): odd[fd] = link
            if len({link for _, link in sockets}) > 1: odd["sockets"] = sockets   # the shell has one, and IPython none
            must(odd)
            return odd
    """),
    a("guard_program", "change the programs that run in and around the sandbox, by way of /proc", """
        def go():
            worked = []
            for pid in pids():
                exe = f"/proc/{pid}/exe"
                try: before = os.stat(exe)
                except OSError: continue
                ways = dict(write=lambda: os.close(os.open(exe, os.O_WRONLY)), mode=lambda: os.chmod(exe, before.st_mode & 0o7777), time=lambda: os.utime(exe),
                            attribute=lambda: os.setxattr(exe, "user.x", b"y"), owner=lambda: os.chown(exe, before.st_uid, before.st_gid),
                            length=lambda: os.truncate(exe, before.st_size), lease=lambda: fcntl.fcntl(os.open(exe, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK))
                for name, way in ways.items():
                    try: way(); worked.append((pid, name))
                    except OSError: pass
            must(worked)
            return worked
    """),
    a("guard_files", "read what the process that guards the sandbox has open", """
        def go():
            found = []
            for pid in pids():
                if pid == os.getpid(): continue
                try: names = os.listdir(f"/proc/{pid}/fd")
                except OSError: continue
                for name in names:
                    try: link = os.readlink(f"/proc/{pid}/fd/{name}")
                    except OSError: continue
                    if link.startswith(("pipe:", "socket:", "anon_inode:", "/dev/null")): continue
                    found += [(link, data[:50]) for _, data in readable([f"/proc/{pid}/fd/{name}"]) if data]
            must(found)
            return found
    """),
    a("mapped_files", "change the files that processes have in memory", """
        def go():
            worked = writable(path for pid in pids() if os.path.isdir(f"/proc/{pid}/map_files") and os.access(f"/proc/{pid}/map_files", os.R_OK)
                              for path in (f"/proc/{pid}/map_files/{name}" for name in os.listdir(f"/proc/{pid}/map_files")))
            must(worked)
            return worked
    """),
    a("watch_files", "learn which programs others start, by watching their files", """
        def go():
            fd = call("inotify_init1", os.O_NONBLOCK)
            for path in (b"/bin/true", b"/usr/bin/true", os.path.realpath("/bin/true").encode()):
                call("inotify_add_watch", fd, path, 0x20 | 0x1)     # opened, read
            until = time.monotonic() + 3
            while time.monotonic() < until:
                try: return os.read(fd, 4096)
                except BlockingIOError: time.sleep(0.1)
            must(False)
    """),
    a("watch_folders", "the same in the old way, by folder", """
        def go():
            came = []
            signal.signal(signal.SIGUSR2, lambda *_: came.append(1))
            for path in ("/bin", "/usr/bin"):
                fd = os.open(path, os.O_RDONLY)
                fcntl.fcntl(fd, 10, signal.SIGUSR2)                     # F_SETSIG
                fcntl.fcntl(fd, fcntl.F_NOTIFY, 0x80000000 - (1 << 32) | 1)   # read, again and again
            time.sleep(3)
            must(came)
            return "told of it"
    """),
    a("file_lease", "make other programs wait for a file by a lease on it", """
        def go():
            worked = []
            for path in (sys.executable, os.__file__, "/usr/bin/env"):
                try: fcntl.fcntl(os.open(path, os.O_RDONLY), fcntl.F_SETLEASE, fcntl.F_RDLCK); worked.append(path)
                except OSError as e: last = e
            must(worked, str(last))
            return worked
    """),
]  # fmt: skip
