"""Using up what this machine has: memory, processes, files, time."""

from __future__ import annotations

from .base import a

RESOURCES = [
    a("big_file", "write a file beyond the limit", """
        def go():
            with open("/tmp/big", "wb") as file:
                os.posix_fallocate(file.fileno(), 0, 3 << 30)
    """, "bounded"),
    a("fill_tmp", "fill the machine's memory by way of /tmp", """
        def go():
            try:
                for n in range(64):
                    with open(f"/tmp/fill{n}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 256 << 20)
            finally:
                for n in range(64):
                    try: os.unlink(f"/tmp/fill{n}")
                    except OSError: pass
    """, "bounded"),
    a("fill_shm", "the same by way of /dev/shm", """
        def go():
            try:
                for n in range(64):
                    with open(f"/dev/shm/fill{n}", "wb") as file: os.posix_fallocate(file.fileno(), 0, 64 << 20)
            finally:
                for n in range(64):
                    try: os.unlink(f"/dev/shm/fill{n}")
                    except OSError: pass
    """, "bounded"),
    a("fill_home", "the same by way of the home folder and every other place that can be written", """
        def go():
            places = {os.path.expanduser("~"), "/var/tmp", "/run", "/dev", "/run/lock", "/home", "/dev/mqueue", os.getcwd()}
            for place in places:
                made = []
                try:
                    for n in range(24):
                        made.append(f"{place}/fill{n}")
                        with open(made[-1], "wb") as file: os.posix_fallocate(file.fileno(), 0, 256 << 20)
                    return place
                except OSError as e: last = e
                finally:
                    for path in made:
                        try: os.unlink(path)
                        except OSError: pass
            raise last
    """, "bounded"),
    a("many_files", "make millions of empty files, whose names take the kernel's memory", """
        def go():
            os.mkdir("/tmp/many")
            for n in range(3_000_000): os.close(os.open(f"/tmp/many/{n}", os.O_CREAT | os.O_WRONLY))
            return n
    """, "bounded", seconds=150, ends=True),
    a("many_names", "the same with names of one file", """
        def go():
            os.mkdir("/tmp/names"); open("/tmp/names/one", "w").close()
            for n in range(3_000_000): os.link("/tmp/names/one", f"/tmp/names/{n}")
            return n
    """, "bounded", seconds=150, ends=True),
    a("memory", "take 6 GB of memory", """
        def go():
            return len(bytearray(6 << 30))
    """, "bounded"),
    a("memory_by_processes", "take 6 GB of memory with twelve processes", """
        def go():
            children = []
            for _ in range(12):
                pid = os.fork()
                if pid == 0:
                    try: block = bytearray(b"x") * (512 << 20); time.sleep(15); os._exit(0)
                    except BaseException: os._exit(9)
                children.append(pid)
            ended = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
            must(not any(ended), f"ended with {ended}")
            return ended
    """, "bounded"),
    a("shared_memory", "take 16 GB of shared memory", """
        def go():
            return mmap.mmap(-1, 16 << 30)
    """, "bounded"),
    a("shared_memory_used", "take and use 5 GB of shared memory", """
        def go():
            blocks = []
            for _ in range(10):
                block = mmap.mmap(-1, 512 << 20); blocks.append(block)
                for at in range(0, len(block), 4096): block[at] = 1
            time.sleep(2)
            return len(blocks)
    """, "bounded"),
    a("system_v_memory", "take memory that outlives its process", """
        def go():
            return call("shmget", 0, 1 << 30, 0o1600)
    """),
    a("system_v_queues", "hide memory in message queues", """
        def go():
            queues, message = [], struct.pack("l", 1) + b"x" * 8000
            while len(queues) < 40000:
                queue = call("msgget", 0, 0o1600); queues.append(queue)
                try:
                    while True: call("msgsnd", queue, message, 8000, 0o4000)
                except BlockingIOError: pass
                if len(queues) * 16000 > 3 << 30: return len(queues)
    """, "bounded", ends=True),
    a("posix_queues", "hide memory in named queues", """
        def go():
            made = []
            for n in range(300):
                made.append(call("mq_open", f"q{n}".encode(), os.O_CREAT | os.O_RDWR, 0o600, ctypes.c_void_p()))
            return len(made)
    """, "bounded"),
    a("pipes", "hide memory in pipes", """
        def go():
            full = 0
            for _ in range(2000):
                read, write = os.pipe(); os.set_blocking(write, False)
                try: fcntl.fcntl(write, 1031, 1 << 20)
                except OSError: pass
                try:
                    while True: full += os.write(write, b"x" * 65536)
                except BlockingIOError: pass
                if full > 3 << 30: return full
            raise OSError(f"{full} bytes in all")
    """, "bounded", ends=True),
    a("locked_memory", "lock memory, so that it is never swapped", """
        def go():
            block = mmap.mmap(-1, 256 << 20)
            address = ctypes.addressof(ctypes.c_char.from_buffer(block))
            must(libc.mlock(ctypes.c_void_p(address), ctypes.c_size_t(256 << 20)) == 0, os.strerror(ctypes.get_errno()))
    """),
    a("processes", "start more processes than are allowed", """
        def go():
            children = []
            try:
                for _ in range(2000): children.append(subprocess.Popen(["sleep", "20"]))
            finally:
                for child in children: child.kill()
                for child in children: child.wait()
    """, "bounded", ends=True),
    a("threads", "start more threads than are allowed", """
        def go():
            stop = threading.Event(); threads = []
            try:
                for _ in range(4000):
                    thread = threading.Thread(target=stop.wait, daemon=True); thread.start(); threads.append(thread)
                return len(threads)
            finally: stop.set()
    """, "bounded", ends=True),
    a("fork_bomb", "fork without end", """
        def go():
            while True: os.fork()
    """, "bounded", ends=True, seconds=4),
    a("orphans", "fork without end, each child an orphan", """
        def go():
            while True:
                if os.fork() == 0:
                    os.setsid()
                    if os.fork() == 0: time.sleep(60)
                    os._exit(0)
    """, "bounded", ends=True, seconds=4),
    a("descriptors", "open files without end", """
        def go():
            held = []
            try:
                for _ in range(1 << 20): held.append(os.open("/dev/null", os.O_RDONLY))
                return len(held)
            finally:
                for fd in held: os.close(fd)
    """, "bounded"),
    a("locks", "hold locks without end", """
        def go():
            with open("/tmp/locks", "wb") as file:
                file.truncate(1 << 30)
                for n in range(5_000_000): fcntl.lockf(file, fcntl.LOCK_EX, 1, 2 * n)
                return n
    """, "bounded", ends=True, seconds=5),
    a("processor", "use the processor without end", """
        def go():
            while True: pass
    """, "bounded", seconds=3),
    a("processor_deaf", "use the processor without end, deaf to every request to stop", """
        def go():
            while True:
                try:
                    signal.signal(signal.SIGINT, signal.SIG_IGN); signal.signal(signal.SIGIO, signal.SIG_IGN)
                    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
                    while True: pass
                except BaseException: pass
    """, "bounded", seconds=3),
    a("stop_itself", "stop the shell, so that it answers no more", """
        def go():
            os.kill(os.getpid(), signal.SIGSTOP)
            return "went on"
    """, "bounded", seconds=3),
    a("output", "write output without end", """
        def go():
            while True: os.write(1, b"x" * 65536)
    """, "bounded", seconds=3),
    a("output_by_children", "the same by many processes at once", """
        def go():
            for _ in range(20):
                if os.fork() == 0:
                    while True: os.write(1, b"y" * 65536); os.write(2, b"z" * 65536)
            time.sleep(60)
            return "ran on"
    """, "bounded", ends=True, seconds=3),
    a("core_file", "leave a memory image on the machine by a crash", """
        def go():
            pid = os.fork()
            if pid == 0: os.chdir("/tmp"); os.abort()
            status = os.waitpid(pid, 0)[1]
            must(os.WCOREDUMP(status), "no image was written")
            return status
    """),
]  # fmt: skip
