"""Other processes, and privileges that the code does not have."""

from __future__ import annotations

from .base import a, syscall

PROCESSES = [
    a("signal_outside", "end a process of this machine", """
        def go():
            return os.kill(VICTIM, 9)
    """),
    a("signal_all", "end every process", """
        def go():
            os.kill(-1, 0)
            must(len(pids()) > 8)
            return pids()
    """),
    a("see_others", "see a process of this machine", """
        def go():
            must(os.path.exists(f"/proc/{VICTIM}"))
    """),
    a("limit_others", "lower a limit of a process of this machine", """
        def go():
            worked = []
            for pid in (VICTIM, 1, os.getppid()):
                try: resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3)); worked.append(pid)
                except (OSError, ValueError): pass
            must(VICTIM in worked)
            return worked
    """, "killed"),
    a("end_first", "end the process that guards the sandbox", """
        def go():
            for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM, signal.SIGSEGV):
                try: os.kill(1, number)
                except OSError: pass
            time.sleep(0.3); must(not os.path.exists("/proc/1"))
    """, "killed"),
    a("end_parent", "end the process above the shell, and live on without it", """
        def go():
            parent = os.getppid()
            os.kill(parent, 9); time.sleep(1)
            must(not os.path.exists(f"/proc/{parent}"), "it is still there")
    """, "killed"),
    a("outlive", "outlive the sandbox: detached, deaf to signals, unbound from its parent", """
        def go():
            code = "import ctypes,os,signal,time\\nctypes.CDLL(None).prctl(1,0,0,0,0)\\n[signal.signal(n, signal.SIG_IGN) for n in range(1, 65) if n not in (9, 19, 32, 33)]\\ntime.sleep(600)"
            for _ in range(3):
                if os.fork() == 0:
                    os.setsid()
                    libc.prctl(1, 0, 0, 0, 0)
                    if os.fork() == 0: os.execv(sys.executable, [sys.executable, "-S", "-c", code, MARK])
                    os._exit(0)
            time.sleep(0.5)
            must(False, "what is left is counted outside, after the sandbox was closed")
    """, ends=True),
    a("outlive_crash", "outlive the sandbox by crashing it while a child is born", """
        def go():
            if os.fork() == 0:
                os.setsid()
                while True:
                    if os.fork(): os._exit(0)       # a chain: never the same process twice
                    try: os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", MARK]) if time.time() % 1 > 0.98 else None
                    except OSError: pass
            os.kill(os.getpid(), 11); time.sleep(5)
    """, "killed", ends=True),
    a("trace_first", "trace the process that guards the sandbox", """
        def go():
            return reached("ptrace", 16, 1, 0, 0)
    """),
    a("trace_me", "be traced by the parent", """
        def go():
            return reached("ptrace", 0, 0, 0, 0)
    """),
    a("trace_child", "trace a child", """
        def go():
            child = subprocess.Popen(["sleep", "5"])
            try: return reached("ptrace", 16, child.pid, 0, 0)
            finally: child.kill()
    """),
    a("stronger_processes", "find a process in the sandbox that may do more than the code, to be changed or asked", """
        def go():
            found = []
            for pid in pids():
                status = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status") if ":" in line)
                caps = any(int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"))
                free = status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2" or int(status.get("Seccomp_filters", 1)) < FILTERS
                if caps or free or set(status["Uid"].split()) != {str(os.getuid())}:
                    try: os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR)); found.append((pid, status["CapEff"], status["Seccomp"]))
                    except OSError: pass
            must(found)
            return found
        FILTERS = int(dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line).get("Seccomp_filters", 1))
    """),
    a("pidfd_steal", "take an open file of another process", """
        def go():
            return reached("pidfd_getfd", call("pidfd_open", 1, 0), 0, 0)
    """),
    a("peer_process", "get hold of the program outside by the shell's own socket, and signal it", """
        def go():
            found = []
            for name in os.listdir("/proc/self/fd"):
                try: s = socket.socket(fileno=os.dup(int(name)))
                except OSError: continue
                try:
                    if struct.unpack("iII", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]: continue     # it is in the sandbox itself
                    fd = struct.unpack("i", s.getsockopt(socket.SOL_SOCKET, 77, 4))[0]     # SO_PEERPIDFD
                    for what in (lambda: call("pidfd_send_signal", fd, 0, 0, 0), lambda: call("pidfd_getfd", fd, 0, 0),
                                 lambda: call("process_madvise", fd, struct.pack("QQ", 4096, 4096), 1, 21, 0), lambda: call("process_mrelease", fd, 0),
                                 lambda: call("setns", fd, 0x20000000), lambda: call("setns", fcntl.ioctl(fd, 0xFF04), 0)):
                        try: found.append(what() or "worked")
                        except OSError: pass
                except OSError: pass
                finally: s.close()
            must(found)
            return found
    """),
    a("become_root", "become root", """
        def go():
            os.setuid(0)
    """),
    a("become_other", "become another user or group", """
        def go():
            worked = []
            for number in (0, 1, 1234, 60000):
                for one in (os.setuid, os.setgid, lambda n: os.setresuid(n, n, n), lambda n: os.setresgid(n, n, n), lambda n: os.setgroups([n])):
                    try: one(number); worked.append(number)
                    except OSError: pass
            libc.setfsuid(0)
            if libc.setfsuid(-1) == 0: worked.append("fsuid")
            must(worked)
            return worked
    """),
    a("capabilities", "have any privilege", """
        def go():
            status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
            caps = {n: status[n].strip() for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")}
            must(any(int(v, 16) for v in caps.values()) or status["NoNewPrivs"].strip() != "1" or status["Seccomp"].strip() != "2")
            return caps
    """),
    a("capabilities_raise", "give itself a privilege", """
        def go():
            header = struct.pack("Ii", 0x20080522, 0)
            full = ctypes.create_string_buffer(struct.pack("6I", *(0xFFFFFFFF,) * 6))
            return call("capset", header, full)
    """),
    a("no_new_privileges_off", "switch off the bar to privileges, or the filter", """
        def go():
            worked = [name for name, args in dict(nnp=(38, 0, 0, 0, 0), seccomp=(22, 0, 0, 0, 0), keepcaps=(8, 1, 0, 0, 0), ambient=(47, 2, 21, 0, 0),
                      securebits=(28, 47, 0, 0, 0)).items() if libc.prctl(*args) == 0 and name != "keepcaps"]
            must(worked)
            return worked
    """),
    a("setuid_programs", "get privileges from a setuid or setgid program", """
        def go():
            for folder in ("/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/lib", "/usr/libexec", "/usr/lib/openssh", "/usr/lib/dbus-1.0"):
                if not os.path.isdir(folder): continue
                for entry in os.scandir(folder):
                    try: mode = entry.stat().st_mode
                    except OSError: continue
                    if not (stat.S_ISREG(mode) and mode & 0o6000): continue
                    try: child = subprocess.Popen([entry.path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    except OSError: continue
                    time.sleep(0.1)
                    status = open(f"/proc/{child.pid}/status").read()      # also there for one that has ended
                    child.kill(); child.wait()
                    ids = {line.split(":")[0]: set(line.split()[1:]) for line in status.splitlines() if line.startswith(("Uid", "Gid"))}
                    if ids["Uid"] - {str(os.getuid())} or ids["Gid"] - {str(os.getgid())}: return entry.path, ids
            must(False)
    """),
    a("capable_programs", "get privileges from a program that has some of its own", """
        def go():
            for folder in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"):
                if not os.path.isdir(folder): continue
                for entry in os.scandir(folder):
                    try: os.getxattr(entry.path, "security.capability")
                    except OSError: continue
                    try: child = subprocess.Popen([entry.path], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    except OSError: continue
                    time.sleep(0.1)
                    status = dict(line.split(":", 1) for line in open(f"/proc/{child.pid}/status") if ":" in line)
                    child.kill(); child.wait()
                    if int(status["CapEff"], 16) or int(status["CapPrm"], 16): return entry.path, status["CapEff"]
            must(False)
    """),
    a("setuid_file", "make a setuid program", """
        def go():
            import shutil
            shutil.copy("/usr/bin/id", "/tmp/id"); os.chmod("/tmp/id", 0o4755)
            out = subprocess.run(["/tmp/id"], capture_output=True, text=True).stdout
            must("euid=0" in out, out)
            return out
    """),
    a("file_capabilities", "make a program with privileges of its own", """
        def go():
            import shutil
            shutil.copy("/usr/bin/id", "/tmp/id2")
            os.setxattr("/tmp/id2", "security.capability", struct.pack("<5I", 0x02000001, 1 << 21, 0, 0, 0))
    """),
    a("user_maps", "map another user into the own namespace", """
        def go():
            worked = []
            for name, text in (("uid_map", "0 0 1"), ("gid_map", "0 0 1"), ("setgroups", "allow"), ("projid_map", "0 0 1")):
                try: os.write(os.open(f"/proc/self/{name}", os.O_WRONLY), text.encode()); worked.append(name)
                except OSError: pass
            must(worked)
            return worked
    """),
    a("out_of_memory_shield", "be the last to be ended when memory is short", """
        def go():
            return os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"-1000")
    """),
    a("hostname", "rename this machine", """
        def go():
            return socket.sethostname("pwned")
    """),
    a("clock", "set the clock", """
        def go():
            return time.clock_settime(time.CLOCK_REALTIME, 0)
    """),
    a("priority", "take precedence over other programs", """
        def go():
            worked = []
            for one in (lambda: os.nice(-5), lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50)),
                        lambda: call("ioprio_set", 1, 0, 1 << 13), lambda: os.setpriority(os.PRIO_USER, os.getuid(), -10)):
                try: one(); worked.append(one)
                except OSError as e: last = e
            must(worked, str(last))
            return len(worked)
    """),
    a("raise_limits", "raise a limit", """
        def go():
            worked = []
            for name in ("NPROC", "DATA", "AS", "FSIZE", "CORE", "MEMLOCK", "MSGQUEUE", "RTPRIO", "NICE", "NOFILE"):
                number = getattr(resource, "RLIMIT_" + name, None)
                if number is None or resource.getrlimit(number)[1] == resource.RLIM_INFINITY and name in ("RTPRIO",): continue
                try: resource.setrlimit(number, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)); worked.append(name)
                except (OSError, ValueError): pass
            must(worked)
            return worked
    """),
    syscall("reboot", 0, 0, 0, tries="restart this machine (with numbers that do nothing)"),
    syscall("acct", 0, tries="switch this machine's accounting"),
    syscall("swapon", 0, 0, tries="add a swap file"),
    syscall("setdomainname", 0, 0, tries="change this machine's domain"),
    syscall("settimeofday", 0, 0, tries="set the clock the old way"),
    syscall("quotactl", 0, 0, 0, 0, tries="change quotas"),
    syscall("vhangup", tries="hang up the terminal"),
]  # fmt: skip
