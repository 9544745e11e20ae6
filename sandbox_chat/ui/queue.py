"""The prompts that wait for their turn: each with an id, in order, sent one by one and once. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from sandbox_chat.ui.tokens import Part, files, written


def _new_id() -> str:
    return uuid.uuid4().hex[:12]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt. ``text`` is what is sent, ``parts`` how it stands in the composer, with the files that are mentioned.

    ``left``: an earlier run of the program left it. It goes out when the person says so, and not before.
    """

    text: str
    parts: tuple[Part, ...] = ()
    left: bool = False
    id: str = field(default_factory=_new_id)

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Prompt:
        """Return the prompt that ``parts`` make."""
        return cls("".join(map(written, parts)).strip(), tuple(parts))

    @property
    def draft(self) -> list[Part]:
        """The prompt as it is put into the composer."""
        return list(self.parts) or [Part("text", self.text)]

    @property
    def files(self) -> list[str]:
        """Paths of the mentioned files, which are attached when it is sent."""
        return files(self.parts)


class Queue:
    """Prompts in the order in which they are sent. ``changed`` is called after each change.

    ``held`` says why none of them goes on by itself; empty when they do. The one with the id ``editing`` is in the
    composer: it is not sent meanwhile, nor are those behind it.
    """

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        self.held = ""
        self.editing = ""
        self.revision = 0
        self._prompts: list[Prompt] = []
        self._changed = changed

    def __len__(self) -> int:
        return len(self._prompts)

    def __iter__(self) -> Iterator[Prompt]:
        return iter(tuple(self._prompts))

    @property
    def due(self) -> bool:
        """True while prompts wait that this run was given."""
        return any(not prompt.left for prompt in self._prompts)

    @property
    def left(self) -> bool:
        """True while prompts wait that an earlier run left."""
        return any(prompt.left for prompt in self._prompts)

    def place(self, prompt_id: str) -> int:
        """Return the place of a prompt from 0; -1 when it does not wait here."""
        return next((place for place, each in enumerate(self._prompts) if each.id == prompt_id), -1)

    def find(self, prompt_id: str) -> Prompt | None:
        """Return a prompt that waits."""
        place = self.place(prompt_id)
        return self._prompts[place] if place >= 0 else None

    # -- coming and going --------------------------------------------------------------------------------

    def add(self, prompt: Prompt, *, first: bool = False) -> None:
        """Let a prompt wait, behind the others or before them. One that waits already is not taken twice."""
        if self.place(prompt.id) < 0:
            self._prompts.insert(0 if first else len(self._prompts), prompt)
            self._tell()

    def bring(self, prompts: Iterable[Prompt]) -> int:
        """Take what an earlier run left, before all others. Returns how many of them were not here already."""
        found: dict[str, Prompt] = {}
        for prompt in prompts:
            if self.place(prompt.id) < 0:
                found.setdefault(prompt.id, replace(prompt, left=True))
        self._prompts[:0] = found.values()
        if found:
            self._tell()
        return len(found)

    def remove(self, prompt_id: str) -> Prompt | None:
        """Take a prompt out for good."""
        place = self.place(prompt_id)
        return self._pop(place) if place >= 0 else None

    def take(self) -> Prompt | None:
        """Take the prompt that goes out next; ``None`` when none may."""
        if self.held:
            return None
        place = next((place for place, each in enumerate(self._prompts) if not each.left), -1)
        if place < 0 or self._prompts[place].id == self.editing:
            return None
        return self._pop(place)

    def _pop(self, place: int) -> Prompt:
        prompt = self._prompts.pop(place)
        if prompt.id == self.editing:
            self.editing = ""
        if not self._prompts:
            self.held = ""
        self._tell()
        return prompt

    # -- changing ----------------------------------------------------------------------------------------

    def move(self, prompt_id: str, by: int) -> bool:
        """Move a prompt by so many places, to an end at most. Returns whether it moved."""
        place = self.place(prompt_id)
        target = max(0, min(place + by, len(self._prompts) - 1))
        if place < 0 or target == place:
            return False
        self._prompts.insert(target, self._prompts.pop(place))
        self._tell()
        return True

    def edit(self, prompt_id: str) -> Prompt | None:
        """Begin to edit a prompt, and return it; ``None`` when it is gone or another one is being edited."""
        prompt = self.find(prompt_id)
        if prompt is None or self.editing not in ("", prompt_id):
            return None
        self.editing = prompt_id
        self._tell()
        return prompt

    def put_back(self, parts: Sequence[Part] | None = None) -> None:
        """End the editing: with ``parts`` in place of what it was, or as it was."""
        place = self.place(self.editing)
        if place >= 0 and parts is not None:
            before = self._prompts[place]
            self._prompts[place] = replace(Prompt.of(parts), id=before.id, left=before.left)
        self.editing = ""
        self._tell()

    def hold(self, why: str) -> None:
        """Let none go on by itself; without any that waits nothing is held."""
        if self._prompts:
            self.held = why
            self._tell()

    def go_on(self, *, left: bool = False) -> None:
        """Let them go on again; with ``left`` also those that an earlier run left."""
        self.held = ""
        if left:
            self._prompts = [replace(prompt, left=False) for prompt in self._prompts]
        self._tell()

    def release(self, prompt_id: str) -> None:
        """Let one prompt that an earlier run left go on as if this run had been given it."""
        place = self.place(prompt_id)
        if place >= 0 and self._prompts[place].left:
            self._prompts[place] = replace(self._prompts[place], left=False)
            self._tell()

    def _tell(self) -> None:
        self.revision += 1
        self._changed()
