"""Attacks of code on the guest's own connection to the program, each a short script.

A script finds the connection as code can (``get_ipython().link``) and has ``send(message, blob)``, ``raw(bytes)``,
``frame(message, blob)`` and ``me``, the number of its run. ``tail`` attacks need what happens after the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Literal

Want = Literal["any", "died", "kept"]

PRELUDE = """
import ctypes, fcntl, gc, json, os, signal, socket, struct, sys, threading, time
link = get_ipython().link
sock = link._sock
me = link.cell
def frame(message, blob=b""):
    body = message if isinstance(message, bytes) else json.dumps(message).encode()
    return struct.pack("!II", len(body), len(blob)) + body + blob
def raw(data):
    data = memoryview(data)
    while data: data = data[sock.send(data):]
def send(message, blob=b""): raw(frame(message, blob))
def display(text=None, sizes=(), result=False): return {"op": "display", "id": me, "result": result, "text": text or {}, "sizes": list(sizes)}
files = next(module for name, module in list(sys.modules.items()) if name.endswith(".files") and hasattr(module, "entries"))
NAN, INF = float("nan"), float("inf")
"""


@dataclass(frozen=True)
class Attack:
    """``want``: how the run must end (``kept``: and the variables are there afterwards). ``tries``: runs until one works;
    ``seconds``: the time limit. 0 tries when code has broken its own shell for good, which nobody can tell: then the runs that follow must still end in time."""

    name: str
    script: str
    want: Want = "any"
    tries: int = 1
    seconds: int = 3

    @property
    def code(self) -> str:
        """The whole code."""
        return f"{PRELUDE}\n{dedent(self.script)}"


ATTACKS = [
    Attack("found_by_gc", "found = [o for o in [*gc.get_referents(link.__dict__), *vars(link).values()] if isinstance(o, socket.socket)]\nfound[0].send(b'x' * 100)", "died"),
    Attack("found_by_number", "fd = [int(n) for n in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + n) and os.readlink('/proc/self/fd/' + n).startswith('socket:')][0]\nos.write(fd, b'GET / HTTP/1.1\\r\\n\\r\\n')", "died"),
    Attack("second_hello", "send({'op': 'hello', 'protocol': 99, 'python': 'evil'})", "kept"),
    Attack("hellos", "for _ in range(20000): send({'op': 'hello', 'protocol': 1, 'python': '\\x1b[2J' * 100})", "kept", seconds=60),
    Attack("done_twice", "send({'op': 'done', 'id': me, 'error': None})", "kept", 2),
    Attack("done_early_then_busy", "send({'op': 'done', 'id': me, 'error': None})\ntime.sleep(60)", tries=2),
    Attack("done_for_others", "for n in (me - 1, me + 1, 0, -1, 2**63, 10**4000, 'x', None, [], {}, 1.5, NAN, INF): send({'op': 'done', 'id': n, 'error': {'name': 'no'}})", "kept"),
    Attack("done_for_the_next", "for n in range(me + 1, me + 50): send({'op': 'done', 'id': n, 'error': None})", "kept", 2),
    Attack("error_of_wrong_types", "send({'op': 'done', 'id': me, 'error': {'name': [1, {'a': 2}], 'value': NAN, 'traceback': {'x': 1}}})", "any", 2),
    Attack("error_is_text", "send({'op': 'done', 'id': me, 'error': 'x'})", "any", 2),
    Attack("error_huge", "send({'op': 'done', 'id': me, 'error': {'name': 'N' * 5000000, 'value': 'V' * 5000000, 'traceback': '\\x1b]0;x\\x07' * 500000}})", "any", 2),
    Attack("length_of_json", "raw(struct.pack('!II', 0xFFFFFFFF, 0))", "died"),
    Attack("length_of_blob", "raw(struct.pack('!II', 2, 0xFFFFFFFF))", "died"),
    Attack("length_just_allowed", "raw(struct.pack('!II', 16 << 20, 64 << 20))\ntry:\n    while True: raw(b' ' * 65536)\nexcept OSError: pass", "died"),
    Attack("no_json", "raw(frame(b'{\"op\": '))", "died"),
    Attack("no_utf8", "raw(frame(b'{\"op\": \"\\xff\\xfe\"}'))", "died"),
    Attack("array", "raw(frame(b'[1]'))", "died"),
    Attack("number", "raw(frame(b'7'))", "died"),
    Attack("empty", "raw(frame(b''))", "died"),
    Attack("nan", "raw(frame(b'{\"op\": NaN, \"id\": Infinity, \"text\": -Infinity}'))", "kept"),
    Attack("huge_number", "raw(frame(b'{\"op\": \"done\", \"id\": ' + b'9' * 100000 + b'}'))", "died"),
    Attack("deep_arrays", "raw(frame(b'[' * 500000 + b']' * 500000))", "died"),
    Attack("deep_objects", "raw(frame(b'{\"a\":' * 300000 + b'1' + b'}' * 300000))", "died"),
    Attack("deep_in_fields", "raw(frame(b'{\"op\": \"done\", \"id\": %d, \"error\": {\"name\": ' % me + b'[' * 900 + b']' * 900 + b', \"value\": 1}}'))", "any", 2),
    Attack("many_parts", "body = b'{\"op\": \"x\", \"y\": [' + b'{},' * 5000000 + b'{}]}'\nfor _ in range(20): raw(frame(body))", "died"),
    Attack("many_keys", "raw(frame(b'{' + b','.join(b'\"%d\":0' % n for n in range(1000000)) + b'}'))", "died"),
    Attack("many_texts", "raw(frame(b'{\"op\": [' + b'\"\",' * 4000000 + b'\"\"]}'))", "died"),
    Attack("open_text", "raw(frame(b'{\"op\": \"' + b'\\\\\\\\\\\\\"' * 3000000))", "died"),
    Attack("same_key", "raw(frame(b'{\"op\": \"done\", \"op\": \"display\", \"id\": %d, \"text\": {}, \"sizes\": []}' % me))", "kept"),
    Attack("display_of_wrong_types", "send({'op': 'display', 'id': me, 'result': 'yes', 'text': [1, 2], 'sizes': {}})", "died"),
    Attack("display_texts_of_wrong_types", "send(display({'text/plain': 5, 'text/html': None, 'image/png': 'text', 'x' * 100000: 'y'}))", "kept"),
    Attack("display_sizes_too_large", "send(display(sizes=[['image/png', 2**62]]), b'x')", "died"),
    Attack("display_sizes_negative", "send(display(sizes=[['image/png', -5]]), b'x' * 10)", "died"),
    Attack("display_sizes_true", "send(display(sizes=[['image/png', True]]), b'x' * 10)", "any"),
    Attack("display_sizes_nan", "send(display(sizes=[['image/png', NAN]]), b'x' * 10)", "died"),
    Attack("display_many_sizes", "send(display(sizes=[['image/png', 0]] * 100000))", "any"),
    Attack("display_200_mb", "blob = bytes(50_000_000)\nfor _ in range(4): send(display(sizes=[['image/png', len(blob)]]), blob)", "kept", seconds=60),
    Attack("display_2_gb", "blob = bytes(60_000_000)\nfor _ in range(34): send(display(sizes=[['image/jpeg', len(blob)]]), blob)", "any"),
    Attack("display_unknown_kinds", "blob = bytes(30_000_000)\nfor _ in range(10): send(display(sizes=[['application/x-evil', len(blob)]]), blob)", "kept", seconds=60),
    Attack("displays", "for n in range(100000): send(display({'text/plain': str(n)}))", "any"),
    Attack("displays_wide_text", "text = 'a' * 7_000_000 + '\\U0001F600'\nfor _ in range(30): send(display({'text/plain': text, 'text/html': text}))", "any"),
    Attack("results", "for n in range(5000): send(display({'text/plain': 'x' * 10000}, result=True))", "kept", seconds=60),
    Attack("result_of_control_characters", "send(display({'text/plain': '\\x1b]52;c;aGk=\\x07' * 700000}, result=True))", "kept", seconds=60),
    Attack("late_for_others", "for n in range(-5, me + 5): send({'op': 'late', 'id': n, 'stream': 'stdout', 'text': 'forged'})", "kept"),
    Attack("late_of_wrong_types", "for n, s, t in ((NAN, 'stdout', 'x'), (me, 'stdin', 'x'), (me, ['stdout'], 'x'), (me, 'stdout', 5), (True, 'stderr', None), ({}, {}, {})): send({'op': 'late', 'id': n, 'stream': s, 'text': t})", "kept"),
    Attack("late_flood", "while True: raw(frame({'op': 'late', 'id': me, 'stream': 'stdout', 'text': 'x' * 60000}) * 20)", "any"),
    Attack("late_huge", "for _ in range(20): send({'op': 'late', 'id': me, 'stream': 'stderr', 'text': '\\x9b' * 2000000})", "any"),
    Attack("unknown_operations", "for n in range(50000): send({'op': n, 'id': me})", "kept", seconds=60),
    Attack("forged_replies", "for n in range(me - 3, me + 30): send({'op': 'reply', 'id': n, 'path': '/etc/passwd', 'size': 5, 'entries': []}, b'forged')", "kept"),
    Attack("dribble", "body = frame({'op': 'late', 'id': 0, 'stream': 'stdout', 'text': 'x' * 1000000})\nfor byte in body: raw(bytes([byte])); time.sleep(0.005)", "any", 2),
    Attack("half_a_frame", "raw(struct.pack('!II', 1000, 0) + b'{')", "any", 2),
    Attack("half_a_frame_then_silence", "raw(struct.pack('!II', 1000, 0) + b'{')\nthreading.Event().wait(60)", "any", 2),
    Attack("frames_without_end", "body = frame({'op': 'x'}) * 5000\nwhile True: raw(body)", "any"),
    Attack("close_the_socket", "sock.close(); time.sleep(30)", "died"),
    Attack("shut_the_socket", "sock.shutdown(socket.SHUT_RDWR); time.sleep(30)", "died"),
    Attack("shut_one_way", "sock.shutdown(socket.SHUT_WR); time.sleep(30)", "died"),
    Attack("shut_the_other_way", "sock.shutdown(socket.SHUT_RD)", "any", 2),
    Attack("swap_for_null", "os.dup2(os.open('/dev/null', os.O_RDWR), sock.fileno())", "died"),
    Attack("swap_for_own_pair", "one, two = socket.socketpair(); os.dup2(one.fileno(), sock.fileno()); keep = (one, two)", "died"),
    Attack("swap_for_output", "os.dup2(1, sock.fileno())", "died"),
    Attack("output_to_the_socket", "os.dup2(sock.fileno(), 1); print('hello' * 100)", "died"),
    Attack("copies_of_the_socket", "copies = [os.dup(sock.fileno()) for _ in range(1000)]", "any"),
    Attack("child_with_the_socket", "pid = os.fork()\nif pid == 0:\n    link._owner = os.getpid()\n    os.write(2, b'child')\n    time.sleep(60)\n    os._exit(0)", "any"),
    Attack("close_everything", "os.closerange(0, 4096)", "died"),
    Attack("close_outputs", "for fd in (0, 1, 2, *range(200, 210)):\n    try: os.close(fd)\n    except OSError: pass", "any", 2),
    Attack("swap_outputs", "null = os.open('/dev/null', os.O_RDWR)\nfor fd in (0, 1, 2, *range(200, 210)): os.dup2(null, fd)", "any", 2),
    Attack("read_the_hosts_words", "def steal():\n    while True: sock.recv(100000)\nthreading.Thread(target=steal, daemon=True).start()", "any", 3),
    Attack("no_interrupts", "signal.signal(signal.SIGIO, signal.SIG_IGN); signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass", "died"),
    Attack("no_interrupts_by_mask", "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGIO, signal.SIGINT, signal.SIGTERM})\nwhile True: pass", "died"),
    Attack("no_interrupts_by_flag", "fcntl.fcntl(sock, fcntl.F_SETFL, 0)\nwhile True: pass", "died"),
    Attack("no_interrupts_by_owner", "fcntl.fcntl(sock, fcntl.F_SETOWN, 0)\nwhile True: pass", "died"),
    Attack("no_interrupts_by_method", "type(link)._stop = lambda self: None\nwhile True: pass", "died"),
    Attack("interrupts_caught", "while True:\n    try:\n        while True: pass\n    except BaseException: pass"),
    Attack("handlers_gone_for_later", "type(link).begin = lambda self, cell: None", "any", 0),
    Attack("answers_gone_for_later", "type(link).send = lambda self, *a: None", "any", 3),
    Attack("requests_gone_for_later", "type(link).receive = lambda self: time.sleep(1000)", "any", 3),
    Attack("shell_gone_for_later", "type(get_ipython()).run = lambda self, *a: time.sleep(1000)", "any", 3),
    Attack("answers_for_ever", "real = type(link).send\ntype(link).send = lambda self, message, blob=b'': real(self, {'op': 'x'})", "any", 3),
    Attack("stop_itself", "os.kill(os.getpid(), signal.SIGSTOP)", "died"),
    Attack("stop_everybody", "child = os.fork() or time.sleep(60)\nos.kill(-1, signal.SIGSTOP); os.kill(os.getpid(), signal.SIGSTOP)", "died"),
    Attack("end_the_parent", "os.kill(os.getppid(), signal.SIGKILL); os.kill(1, signal.SIGKILL); time.sleep(1)", "any"),
    Attack("end_itself", "os.kill(os.getpid(), signal.SIGKILL)", "died"),
    Attack("end_itself_later", "threading.Thread(target=lambda: (time.sleep(0.3), os._exit(0))).start()", "any", 2),
    Attack("end_in_mid_frame", "raw(struct.pack('!II', 1000, 1000) + b'{\"op\"'); os._exit(0)", "died"),
    Attack("end_after_forged_done", "send({'op': 'done', 'id': me, 'error': None}); os._exit(0)", "any", 2),
    Attack("never_start_again", "def again(*a, **k): raise SystemExit\nimport builtins; builtins.compile = again; builtins.exec = again; sys.modules.clear()", "any", 3),
    Attack("send_descriptors", "fds = struct.pack('64i', *[os.open('/dev/null', os.O_RDONLY) for _ in range(64)])\nfor _ in range(50): sock.sendmsg([frame({'op': 'x'})], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])", "kept"),
]  # fmt: skip

REPLY = "real = {name: getattr(files, name) for name in ('read', 'write', 'entries')}"
FILE_ATTACKS = [
    Attack("size_negative", "files.read = lambda *a: ({'path': 'x', 'size': -5}, b'abc')"),
    Attack("size_huge", "files.read = lambda *a: ({'path': 'x', 'size': 10**4000}, b'abc')"),
    Attack("size_is_text", "files.read = lambda *a: ({'path': 'x', 'size': '5'}, b'abc')"),
    Attack("size_is_nan", "files.read = lambda *a: ({'path': 'x', 'size': NAN}, b'abc')"),
    Attack("size_is_missing", "files.read = lambda *a: ({}, b'abc')"),
    Attack("part_too_long", "files.read = lambda *a: ({'path': 'x', 'size': 60_000_000}, bytes(60_000_000))"),
    Attack("more_than_said", "files.read = lambda *a: ({'path': 'x', 'size': 10}, b'x' * 100)"),
    Attack("grows_for_ever", "files.read = lambda path, offset, size: ({'path': 'x', 'size': offset + size + 1}, b'y' * size)"),
    Attack("drips_for_ever", "files.read = lambda path, offset, size: ({'path': 'x', 'size': 999999}, b'y')"),
    Attack("other_content", "files.read = lambda *a: ({'path': '/etc/shadow', 'size': 6}, b'forged')"),
    Attack("never_replies", "files.read = files.write = files.entries = lambda *a, **k: time.sleep(1000)"),
    Attack("replies_to_others", "files.read = files.write = files.entries = lambda *a, **k: ({'op': 'reply', 'id': 1}, b'')"),
    Attack("problem_huge", "class Long(Exception): pass\ndef fail(*a, **k): raise files.FileError('\\x1b[2J' * 1000000)\nfiles.read = files.write = files.entries = fail"),
    Attack("problem_of_wrong_type", "files.read = lambda *a: ({'problem': {'x': [1, NAN]}}, b'')\nfiles.write = files.entries = lambda *a, **k: {'problem': ['no']}"),
    Attack("path_of_wrong_type", "files.write = lambda *a, **k: {'path': {'x': 1}}\nfiles.entries = lambda *a: {'path': 5, 'entries': []}"),
    Attack("path_huge", "files.write = lambda *a, **k: {'path': '/' + 'x' * 8_000_000}\nfiles.entries = lambda *a: {'path': '/' + 'x' * 8_000_000, 'entries': [['a', False, 1]] * 1000}"),
    Attack("names_huge", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['\\x1b' * 1_000_000, False, 1]] * 3}"),
    Attack("names_of_wrong_types", "files.entries = lambda *a: {'path': '/tmp', 'entries': [[5, False, 1]]}"),
    Attack("rows_of_wrong_shape", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['a', 'b'], {}, 5, None]}"),
    Attack("sizes_of_wrong_types", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['a', False, NAN]]}"),
    Attack("sizes_huge", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['a', False, 10**4000], ['b', False, -10**4000]]}"),
    Attack("entries_many", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['a', False, 1]] * 30000}"),
    Attack("entries_too_many", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['a', False, 1]] * 900000}"),
    Attack("names_that_climb", "files.entries = lambda *a: {'path': '/tmp', 'entries': [['../../etc/passwd', False, 1], ['..', True, 0], ['', False, 0], ['a\\0b', False, 1]]}"),
    Attack("takes_no_bytes", "type(link).receive = lambda self: time.sleep(1000)"),
    Attack("deaf_to_interrupts", "signal.signal(signal.SIGIO, signal.SIG_IGN)\nfiles.read = files.write = files.entries = lambda *a, **k: time.sleep(1000)"),
]  # fmt: skip
