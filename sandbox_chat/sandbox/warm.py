"""Local sandboxes that are ready at once: the host's side of the warm parent, and what serves where it cannot be.

In the background, ``guest.zygote`` is started in bubblewrap; asked for a sandbox, it forks one into namespaces of its
own. Where the machine refuses namespaces inside namespaces, an ordinary cold sandbox is kept ready instead
and replaced when it is taken: sandboxes never share namespaces. All this only saves time: while there is
nothing ready, ``spawn`` says so at once and the caller starts a cold one.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import threading
import time

from sandbox_chat.sandbox import bwrap, spawn
from sandbox_chat.sandbox.base import SandboxError
from sandbox_chat.sandbox.environment import PythonEnvironment, find
from sandbox_chat.sandbox.prepare import Preparer
from sandbox_chat.sandbox.skills_folder import SkillsFolder
from sandbox_chat.sandbox.spawn import Started
from sandbox_chat.sandbox.warm_parent import Parent, Refused, readable
from sandbox_chat.settings import Settings

DELAY = 0.3
"""Seconds after the program's start at which the parent is started, so that the screen comes first."""
LIVES = 2
"""How often a parent is started: once, and again when it ended by itself."""
_REST = 1.0  # seconds before a sandbox that was taken is replaced
_CLOSE_WAIT = 2.0
log = logging.getLogger(__name__)


class Warm:
    """Gives local sandboxes that are ready at once. ``start`` and ``close`` from any thread; see the module's text."""

    def __init__(
        self, settings: Settings, preparer: Preparer | None = None, skills: SkillsFolder | None = None
    ) -> None:
        """``preparer`` makes caches that the parent profits from; it is waited for, in the background.

        ``skills``: what every sandbox sees of the user's skills.
        """
        self._settings = settings
        self._skills = skills
        self._preparer = preparer
        self._lock = threading.Lock()
        self._forking = threading.Lock()  # held while a parent is spoken with, and before it is given up
        self._thread: threading.Thread | None = None
        self._usable = threading.Event()
        self._stop_read, self._stop_write = -1, -1
        self._closed = False
        self._parent: Parent | None = None
        self._python: PythonEnvironment | None = None
        self._key = ""
        self._spare: Started | None = None
        self._taken = threading.Event()
        self._spare_died = False
        self.state = "not started"
        """What there is now, for the log and for ``doctor``."""

    def start(self, delay: float = DELAY) -> None:
        """Begin in the background, ``delay`` seconds from now. Returns at once; a second call does nothing.

        Never fails: what goes wrong is told by ``state``, and cold sandboxes serve.
        """
        with self._lock:
            if self._closed or self._thread is not None:
                return
            self._stop_read, self._stop_write = os.pipe()
            # Bubblewrap ends with the thread that started it: this one lives as long as all that it starts.
            self._thread = threading.Thread(
                target=self._live, args=(delay,), name="sandbox-warm", daemon=True
            )
            self._thread.start()

    def wait(self, timeout: float) -> bool:
        """Wait until there is something to give, or it is certain that there never will be; returns whether there is."""
        self._usable.wait(timeout)
        with self._lock:
            return self._parent is not None or self._spare is not None

    def spawn(self) -> Started | None:
        """Return a sandbox that is up, or ``None`` at once when none is ready. Any thread, one at a time."""
        with self._forking:
            with self._lock:
                parent, spare = self._parent, self._spare
                if self._closed or (parent is None and spare is None):
                    return None
                self._spare = None
            if parent is not None:
                return self._fork(parent)
            assert spare is not None
            self._spare_died = bool(spare.ended())
            self._taken.set()
            if self._spare_died or self._stale():
                spawn.discard(spare)
                return None
            return spare

    def close(self) -> None:
        """End the parent and every sandbox that came from it. Any thread, any number of times; quick."""
        with self._lock:
            first, self._closed = not self._closed, True
            thread, parent = self._thread, self._parent
            if parent is not None:
                parent.process.kill()
        if thread is None:
            return
        if first:
            os.write(self._stop_write, b"!")
            self._taken.set()
        if thread is not threading.current_thread():
            thread.join(_CLOSE_WAIT)

    # -- the thread ------------------------------------------------------------------------------------

    def _live(self, delay: float) -> None:
        try:
            if self._stopped(delay):
                return
            python = self._python = find(self._settings.sandbox_python)
            if self._preparer is not None:
                self.state = "waiting for the caches of this Python"
                self._preparer.begin(python)
                while not self._preparer.wait(0.1):
                    if self._stopped(0):
                        return
            self._key = python.key
            for _ in range(LIVES):
                if problem := self._live_once(python):
                    self._keep_spares(python, problem)
                if problem or self._stopped(0):
                    break
        except (SandboxError, OSError, ValueError) as error:
            self._say(f"there is none: {error}")
        except Exception as error:
            self.state = f"there is none, because of an internal fault ({type(error).__name__})"
            log.exception("warm start of the sandbox failed")
        finally:
            self._usable.set()
            # What was taken of the spares ends with this thread.
            self._stopped(None)
            os.close(self._stop_read)
            os.close(self._stop_write)

    def _live_once(self, python: PythonEnvironment) -> str:
        """Live one parent's life. Returns why it cannot be had here, or nothing when it could."""
        from sandbox_chat.sandbox import local

        self.state = "starting"
        program, _ = local.needed()
        begun = time.monotonic()
        plan = local.make_plan(self._settings, python, warm_parent=True, skills=self._skills)
        parent = Parent(*spawn.warm_parent(plan, program))
        try:
            try:
                word = parent.ready(self._stop_read)
                spawn.discard(parent.fork(self._request()))  # whether it can be done here at all
            except (Refused, OSError, ValueError) as problem:
                return str(problem)
            loaded = [name for name in word.get("loaded", ()) if name in ("numpy", "pandas", "matplotlib")]
            with self._lock:
                if self._closed:
                    return ""
                self._parent = parent
            self._say(
                f"ready after {time.monotonic() - begun:.1f} s, with {', '.join(loaded) or 'no packages'}"
            )
            self._usable.set()
            parent.wait(self._stop_read)
        finally:
            with self._lock:
                self._parent = None
            with self._forking:
                parent.end()
        if not self._stopped(0):
            self._say("the parent ended by itself")
        return ""

    def _keep_spares(self, python: PythonEnvironment, why: str) -> None:
        """Keep one cold sandbox ready, and replace it whenever it is taken."""
        from sandbox_chat.sandbox import local

        while not self._stopped(0) and not self._spare_died:
            self._taken.clear()
            plan = local.make_plan(self._settings, python, preload=True, skills=self._skills)
            spare = spawn.in_bubblewrap(plan, *local.needed())
            with self._lock:
                if self._closed:
                    spawn.discard(spare)
                    return
                self._spare = spare
            self._say(f"one cold sandbox is kept ready, because there can be no warm parent: {why}")
            self._usable.set()
            self._taken.wait()
            if self._stopped(_REST):  # the one that was taken has the processor first
                break
        with self._lock:
            left, self._spare = self._spare, None
        if left is not None:
            spawn.discard(left)
        if self._spare_died:
            self._say("there is none: a sandbox that was kept ready ended by itself")

    # -- inner parts -----------------------------------------------------------------------------------

    def _fork(self, parent: Parent) -> Started | None:
        if self._stale():
            return None
        try:
            return parent.fork(self._request())
        except Refused as problem:
            self._say(f"a sandbox was refused: {problem}")
        except (OSError, ValueError) as problem:
            # An answer that comes late would be taken for the next one's. What it has made lives on.
            with self._lock:
                self._parent = None
            self._say(f"not asked any more, because it did not answer: {problem}")
        return None

    def _stale(self) -> bool:
        """Whether packages were installed or removed since the parent started: it has the old ones in memory."""
        try:
            stale = self._python is None or self._python.key != self._key
        except OSError:
            stale = True
        if stale:
            self.state = "not used, because packages have changed since the start"
        return stale

    def _request(self) -> bytes:
        from sandbox_chat.sandbox import local

        _, filter_program = local.needed()
        room = {
            "user": bwrap.USER_ID,
            "home_mb": min(bwrap.HOME_MB, self._settings.sandbox_disk_mb),
            "shm_mb": bwrap.SHARED_MB,
            "disk_mb": self._settings.sandbox_disk_mb,
            "files": self._settings.sandbox_files,
            "workspace": self._settings.sandbox_workspace is None,
        }
        request = {
            "room": room,
            "filter": base64.b64encode(filter_program).decode(),
            "config": local.guest_config(self._settings),
        }
        return json.dumps(request).encode()

    def _stopped(self, seconds: float | None) -> bool:
        """Wait so long for the end (``None``: until it comes); return whether it has come."""
        return readable(self._stop_read, seconds)

    def _say(self, state: str) -> None:
        self.state = state
        log.info("warm start of the sandbox: %s", self._settings.scrub(state))


def report(settings: Settings) -> tuple[bool, str]:
    """Try for real whether sandboxes are ready at once here. Returns that and a sentence; takes some seconds."""
    if not settings.sandbox_warm:
        return False, "Warm start is switched off (SANDBOX_CHAT_SANDBOX_WARM); each sandbox starts cold."
    warm = Warm(settings)
    try:
        warm.start(delay=0.0)
        usable = warm.wait(settings.start_timeout)
        begun = time.monotonic()
        started = warm.spawn() if usable else None
        took = (time.monotonic() - begun) * 1000
        if started is None:
            return False, f"Each sandbox starts cold. Of a warm parent: {warm.state.rstrip('.')}."
        spawn.discard(started)
        return True, f"A sandbox is made in {took:.0f} ms; the warm parent: {warm.state.rstrip('.')}."
    finally:
        warm.close()
