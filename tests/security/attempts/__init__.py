"""What hostile code may try in a sandbox, one short script each, by theme. Add rows freely; ``base`` says how."""

from __future__ import annotations

from .base import Attempt
from .credentials import CREDENTIALS
from .files import FILES
from .kernel import KERNEL
from .neighbours import NEIGHBOURS
from .network import NETWORK
from .processes import PROCESSES
from .resources import RESOURCES

THEMES: dict[str, list[Attempt]] = {
    "network": NETWORK,
    "files": FILES,
    "credentials": CREDENTIALS,
    "processes and privileges": PROCESSES,
    "kernel": KERNEL,
    "resources": RESOURCES,
    "other sandboxes": NEIGHBOURS,
}
ATTEMPTS: list[Attempt] = [attempt for rows in THEMES.values() for attempt in rows]
