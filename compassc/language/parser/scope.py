"""Names of a function while it is parsed: C block scoping over frames, then captured names, then Python builtins."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compass_core.errors import CompassError, Note, Span

from ..specs import LoopSpec
from .flow import Flow

_MISSING = object()


class Poison:
    """Bound to a name whose definition failed, so that its uses do not report the same mistake again."""


class PoisonUsed(Exception):
    """A name with a failed definition was used; the mistake is already reported."""


class Undefined(CompassError):
    """A name that means nothing; `name` is reported once per function."""

    def __init__(self, name: str, why: str = "", help: str = "", notes: tuple[Note, ...] = ()) -> None:
        super().__init__(f"undefined variable {name!r}{why}", code="undefined", notes=notes, help=help)
        self.name = name


def _range(*args: object) -> LoopSpec:
    return LoopSpec("range", args)


class Scope(Flow):
    """A stack of frames over the captured names of one function, which `names` some of them. `places`: where a name was last
    defined."""

    def __init__(self, captured: Mapping[str, object], names: Iterable[str]) -> None:
        super().__init__({name: captured[name] for name in names if name in captured})
        self.captured = captured
        self.loop_names: set[str] = set()
        self.blocks = 0  # schedulable blocks around the current place
        self.places: dict[str, Span] = {}
        self.ended: set[str] = set()
        self.reported: set[str] = set()  # undefined names
        self.imported: set[str] = set()  # by statements of the kernel

    def push(self) -> None:
        self.frames.append({})

    def pop(self) -> None:
        for name in self.frames.pop():
            self.loop_names.discard(name)
            self.ended.add(name)

    @contextmanager
    def hidden_frame(self) -> Iterator[None]:
        """A frame for names that no statement defines: those of a comprehension or a lambda."""
        self.frames.append({})
        try:
            yield
        finally:
            self.frames.pop()

    def state(self) -> tuple[object, ...]:
        """All that statements change; `restore` undoes what was done since."""
        names = set(self.loop_names), dict(self.places), set(self.ended), set(self.reported)
        return self.ways(), names

    def restore(self, state: tuple[Any, ...]) -> None:
        ways, names = state
        self.take(ways)
        self.loop_names, self.places, self.ended, self.reported = names

    def local(self, name: str) -> object:
        """The binding of a name in the function's own frames; None when it has none, or its definition failed."""
        for frame in reversed(self.frames):
            if name in frame:
                return None if frame[name] is Poison else frame[name]
        return None

    def bind(self, name: str, value: object) -> None:
        """Define a name in the innermost frame."""
        self.frames[-1][name] = value

    def defined_here(self, name: str) -> tuple[Note, ...]:
        """A note that shows the definition of a name, if its place is known."""
        place = self.places.get(name)
        return (Note(f"{name!r} is defined here", place),) if place else ()

    def rebind(self, name: str, value: object, place: Span | None = None) -> None:
        """Replace the binding of a name where it is defined. CompassError where later turns of a loop would differ."""
        for depth in reversed(range(len(self.frames))):
            if name in self.frames[depth]:
                if value is Poison:
                    self.frames[depth][name] = value
                else:
                    self.change(depth, name, value, place)
                return
        self.bind(name, value)

    def look_up(self, name: str) -> object:
        """The value of a name; CompassError when it is not defined anywhere."""
        for depth in reversed(range(len(self.frames))):
            if name in self.frames[depth]:
                try:
                    found = self.read(depth, name)
                except CompassError:
                    self.frames[depth][name] = Poison
                    raise
                if found is Poison:
                    raise PoisonUsed
                return found
        if name == "range":
            return _range
        found = self.captured.get(name, _MISSING)
        if found is not _MISSING:
            return found
        found = getattr(builtins, name, _MISSING)
        if found is not _MISSING:
            return found
        if name in self.reported:
            raise PoisonUsed
        if name in self.ended and name in self.places:
            raise Undefined(
                name, ": the block that defines it has ended", "define it before that block", self.defined_here(name)
            )
        if name in self.imported:
            raise Undefined(name, ": what a kernel itself imports is for PySim", "import it outside of the kernel")
        raise Undefined(name, help=self._similar(name))

    def visible(self, name: str) -> bool:
        return any(name in frame for frame in self.frames) or name in self.captured

    def _similar(self, name: str) -> str:
        import difflib

        names = {n for frame in self.frames for n in frame} | {n for n in self.captured if not n.startswith("__")}
        close = difflib.get_close_matches(name, sorted(names), 1)
        return f"did you mean {close[0]!r}?" if close else "assign it first, or define it outside of the kernel"
