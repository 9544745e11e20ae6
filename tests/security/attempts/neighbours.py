"""Other sandboxes of the same program: one beside this one, and the next one.

``first`` runs in that other sandbox, with its own secret as ``SECRET``.
"""

from __future__ import annotations

from .base import a

_HOLD = """
keep = [SECRET, SECRET.encode()]
import os
os.environ["HELD"] = SECRET
"""
_LEAVE = """
import os, pathlib
for folder in ("/tmp", "/var/tmp", "/dev/shm", os.path.expanduser("~"), "/run", "/home", "/opt/sandbox", "/mnt"):
    try: pathlib.Path(folder, "left.txt").write_text(SECRET)
    except OSError: pass
"""

NEIGHBOURS = [
    a("neighbour_memory", "read the memory or environment of another sandbox", """
        def go():
            for pid in pids():
                try:
                    if any(seen(part) for part in memory_of(pid)): return pid
                except OSError: pass
                for path, data in readable([f"/proc/{pid}/environ", f"/proc/{pid}/cmdline"]):
                    if seen(data): return path
            must(False)
    """, first=_HOLD),
    a("neighbour_files", "read the files of another sandbox", """
        def go():
            for path, data in readable(files_below("/tmp", "/var/tmp", "/dev/shm", "/home", "/run", "/mnt")):
                if seen(data): return path
            must(False)
    """, first=_LEAVE),
    a("neighbour_sockets", "reach a socket of another sandbox", """
        def go():
            for path in ("\\0neighbour-" + MARK, "/tmp/neighbour.sock", "/dev/shm/neighbour.sock"):
                s = socket.socket(socket.AF_UNIX); s.settimeout(1)
                try: s.connect(path); return path
                except OSError: pass
            s = socket.socket(); s.settimeout(1); s.connect(("127.0.0.1", 45454))
            return "loopback"
    """, first="""
        held = []
        for path in ("\\0neighbour-" + MARK, "/tmp/neighbour.sock", "/dev/shm/neighbour.sock"):
            s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(); held.append(s)
        s = socket.socket(); s.bind(("127.0.0.1", 45454)); s.listen(); held.append(s)
    """),
    a("neighbour_processes", "see or end the processes of another sandbox", """
        def go():
            found = [pid for pid in pids() for _, data in readable([f"/proc/{pid}/cmdline"]) if MARK.encode() in data]
            me = os.getpid()
            for pid in range(2, 400):
                if pid != me and pid != os.getppid():
                    try: os.kill(pid, 9)
                    except OSError: pass
            must(found)
            return found
    """, first="""
        child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)", MARK])
    """),
    a("neighbour_shared_memory", "open shared memory or a queue of another sandbox", """
        def go():
            found = [line for name in ("shm", "msg", "sem") for line in open(f"/proc/sysvipc/{name}").read().splitlines()[1:]]
            for path in ("/dev/shm/block", "/dev/mqueue/block"):
                if os.path.exists(path): found.append(path)
            must(found)
            return found
    """, first="""
        open("/dev/shm/block", "w").write(SECRET)
        try: call("msgget", 1234, 0o1666)
        except OSError: pass
    """),
    a("next_files", "read what an earlier sandbox left behind", """
        def go():
            for path, data in readable(files_below("/tmp", "/var/tmp", "/dev/shm", "/home", "/run", "/mnt")):
                if seen(data): return path
            must(False)
    """, first=_LEAVE, first_gone=True),
    a("next_memory", "find in memory what an earlier sandbox left behind", """
        def go():
            must(any(seen(part) for part in memory_of("self")))
    """, first=_HOLD, first_gone=True),
    a("next_code", "run code in a later sandbox by what an earlier one left behind", """
        def go():
            import importlib
            names = [getattr(os, "left", None), getattr(sys, "left", None)]
            try: names.append(importlib.import_module("sitecustomize_left"))
            except ImportError: pass
            must(any(names))
            return names
    """, first="""
        import site
        os.left = sys.left = SECRET
        places = [*sys.path, os.path.expanduser("~/.ipython/profile_default/startup"), os.path.expanduser("~/.local/lib"), "/tmp"]
        for place in filter(None, places):
            try:
                os.makedirs(place, exist_ok=True)
                open(os.path.join(place, "sitecustomize_left.py"), "w").write("left = True")
            except OSError: pass
    """, first_gone=True),
    a("next_processes", "meet a process that an earlier sandbox left behind", """
        def go():
            found = [pid for pid in pids() for _, data in readable([f"/proc/{pid}/cmdline"]) if MARK.encode() in data]
            must(found)
            return found
    """, first="""
        for _ in range(3):
            if os.fork() == 0:
                os.setsid(); signal.signal(signal.SIGTERM, signal.SIG_IGN); libc.prctl(1, 0, 0, 0, 0)
                os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", MARK])
        time.sleep(0.3)
    """, first_gone=True),
    a("next_randomness", "know the random numbers of another sandbox", """
        def go():
            import random, numpy
            mine = f"<{random.random()} {numpy.random.random()}>"
            must(mine in FIRST_OUTPUT, "they differ")
            return mine
    """, first="""
        import random, numpy
        print(f"<{random.random()} {numpy.random.random()}>")
    """),
]  # fmt: skip
