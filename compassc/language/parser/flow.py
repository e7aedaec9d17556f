"""What names stand for where statements may run, or run again: behind branches, and from turn to turn of a loop.

A run-time variable has its value in memory. A name for anything else (a tuple, S.meta_var, a buffer) is what it is while
statements are parsed, each once, in the order of the text. Where a run that takes another way would find another value,
uses of the name are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from compass_core.errors import CompassError, Note, Span

from ...ir import exprs as E
from ...ir import stmts as S
from .errors import language_error
from .reached import Reached, may_change, same
from .values import BufferValue, PointerValue, Value

Frames = list[dict[str, object]]
_MUTABLE = (list, set, dict)


class Unclear:
    """Bound to a name whose value depends on the run; `place`: where that comes from."""

    def __init__(self, place: Span | None) -> None:
        self.place = place


class Turns:
    """A loop around: what names stood for before it, which of them its turns use as such, and which they change."""

    def __init__(self, frames: Frames) -> None:
        self.before = [dict(frame) for frame in frames]
        self.used: set[str] = set()
        self.changed: dict[str, Span | None] = {}

    def found(self, depth: int, name: str, value: object) -> bool:
        """Whether a name of a frame still has the value that it had before the loop."""
        return depth < len(self.before) and self.before[depth].get(name, self) is value


class Flow:
    """The frames of names of a function, innermost last, and the ways through its statements."""

    def __init__(self, around: Mapping[str, object]) -> None:
        """`around`: what names stand for that the function finds outside of itself."""
        self.frames: Frames = [{}]
        self._around = dict(around)
        self._turns: list[Turns] = []
        self._outside: list[int] = []  # frames around each block that may run or not
        self._held: Reached | None = None  # by what is around, before the statement used any of it

    # -- what names stand for

    def read(self, depth: int, name: str) -> object:
        """The value of a name of a frame. CompassError where it depends on the run."""
        value = self.frames[depth][name]
        if isinstance(value, Unclear):
            raise _unclear(name, "stands for different values here, which depends on the run", value.place)
        for loop in self._turns:
            if loop.found(depth, name, value):
                if name in loop.changed:
                    raise _unclear(name, "has another value in later turns of the loop", loop.changed[name])
                loop.used.add(name)
        return value

    def change(self, depth: int, name: str, value: object, place: Span | None) -> None:
        """Let a name of a frame stand for another value from here on. CompassError where a loop has used the old one."""
        if same(self.frames[depth][name], value):
            return
        around = [loop for loop in self._turns if depth < len(loop.before)]
        if any(name in loop.used for loop in around):
            raise _unclear(
                name, "is given another value here, which later turns of the loop would find where they use it"
            )
        for loop in around:
            loop.changed[name] = place
        self.frames[depth][name] = value

    def names(self) -> _Known:
        """What all names stand for now, and what lists and the like among it hold."""
        return [{name: (value, _contents(value)) for name, value in frame.items()} for frame in self.frames]

    def changed_since(self, before: _Known) -> list[str]:
        """The names of frames that were there which stand for something else, or for something that was changed."""
        pairs = zip(self.frames, before)
        return [n for frame, was in pairs for n, x in frame.items() if n in was and not _unchanged(x, *was[n])]

    def ways(self) -> _Ways:
        """All of this, to be taken back."""
        return self.names(), [(set(t.used), dict(t.changed)) for t in self._turns]

    def take(self, ways: _Ways) -> None:
        """Go back to what `ways` gave; the blocks around are the same."""
        names, turns = ways
        self.frames = [{name: value for name, (value, _) in frame.items()} for frame in names]
        for value, contents in (x for frame in names for x in frame.values()):
            if contents is not None:
                contents.restore(value)
        for loop, (used, changed) in zip(self._turns, turns):
            loop.used, loop.changed = used, changed

    # -- ways through statements

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Statements that may run or not."""
        self._outside.append(len(self.frames))
        try:
            yield
        finally:
            self._outside.pop()

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Statements that run any number of times, of which there is one text."""
        turns = Turns(self.frames)
        self._turns.append(turns)
        try:
            with self.inside():
                yield
        finally:
            self._turns.remove(turns)
        for frame, before in zip(self.frames, turns.before):
            for name in turns.changed.keys() & before.keys():
                frame[name] = Unclear(turns.changed[name])

    def go_back(self, names: _Known) -> _Known:
        """Let names stand for what they did; gives what they stand for now."""
        now = self.names()
        for frame, before in zip(self.frames, names):
            frame.update((name, value) for name, (value, _) in before.items())
        return now

    def join(self, before: _Known, other: _Known, leave: tuple[bool, bool], place: Span | None) -> None:
        """Two ways meet: that of `other`, and the one taken last. `leave`: which of them end elsewhere."""
        for frame, was, there in zip(self.frames, before, other):
            for name in frame.keys() & was.keys():
                values = (there[name][0], frame[name])
                ways = [x for x, left in zip(values, leave) if not left] or [frame[name]]
                found = ways[0] is was[name][0] or not _is_computed(ways[0])
                frame[name] = ways[0] if found and all(same(x, ways[0]) for x in ways) else Unclear(place)

    # -- lists and objects that statements change

    def begin(self) -> Reached | None:
        """A statement begins. Gives what `end` takes."""
        outer, self._held = self._held, None
        return outer

    def end(self, outer: Reached | None) -> None:
        """A statement ended, well or not."""
        self._held = outer

    def runs_often(self) -> None:
        """All statements may run or not, or more than once: those of sub-functions, and of macros in a block."""
        self._outside.append(0)

    @property
    def depends_on_run(self) -> bool:
        """Whether statements here may run or not."""
        return bool(self._outside)

    def use(self, value: object) -> None:
        """The statement uses a value of Python: what it may change but must not, in a block that may run or not, is what it
        holds now."""
        if self._outside and self._held is None and may_change(value):
            self._held = self.reached(self._outside[-1])

    def reached(self, frames: int | None = None) -> Reached:
        """What Python that runs may change of what this many frames hold, and of what is outside of the function."""
        around = (self._around, *self.frames[:frames])
        return Reached(x for frame in around for x in frame.items())

    def check_held(self) -> None:
        """CompassError where the statement changed what it must not."""
        if self._held is not None:
            refuse_changed(
                self._held,
                "is changed here while the kernel is compiled, once, whatever the run does",
                "change it outside of blocks that depend on the run, or keep run-time values in memory: S.alloc",
            )


def refuse_changed(held: Reached, what: str, help: str) -> None:
    """CompassError where something holds something else now; `what` tells of it."""
    changed = held.changed()
    if changed:
        raise language_error("depends-on-run", f"{changed!r} {what}", help)


def leaves(body: S.Body) -> bool:
    """Whether a block certainly ends by going elsewhere."""
    last = body[-1] if body else None
    if isinstance(last, S.IfThenElse):
        return leaves(last.then_case) and leaves(last.else_case or ())
    return isinstance(last, (S.Return, S.Break, S.Continue))


def _unclear(name: str, what: str, place: Span | None = None) -> CompassError:
    """The error of a name whose value depends on the run."""
    notes = (Note(f"{name!r} is given another value here", place),) if place else ()
    help = f"use another name for the other value, or a variable for a number: {name} = S.i32(...)"
    return language_error("depends-on-run", f"{name!r} {what}", help, *notes)


def _unchanged(value: object, was: object, contents: _Contents | None) -> bool:
    return same(value, was) and _contents(value) == contents


class _Contents:
    """What a list or the like holds; equal where that is the same objects."""

    def __init__(self, value: list[object] | tuple[object, ...] | set[object] | dict[object, object]) -> None:
        self.copy: Any = value.copy() if isinstance(value, (list, set, dict)) else value
        self.items = [*value, *value.values()] if isinstance(value, dict) else [*value]
        self.inner = [_contents(item) for item in self.items]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Contents) or [*map(id, self.items)] != [*map(id, other.items)]:
            return False
        return self.inner == other.inner

    __hash__ = None  # type: ignore[assignment]

    def restore(self, value: Any) -> None:
        """Let the container hold that again."""
        if isinstance(value, _MUTABLE):
            value.clear()
            value.extend(self.copy) if isinstance(value, list) else value.update(self.copy)
        for item, inner in zip(self.items, self.inner):
            if inner is not None:
                inner.restore(item)


def _contents(value: object) -> _Contents | None:
    """What a list or the like holds, to be compared; None for anything else."""
    return _Contents(value) if isinstance(value, (list, tuple, set, dict)) else None


_Known = list[dict[str, tuple[object, _Contents | None]]]
"""Frames with what the containers in them hold."""
_Ways = tuple[_Known, list[tuple[set[str], dict[str, Span | None]]]]


def _is_computed(value: object) -> bool:
    """Whether a value has parts that were computed at run time, in a variable of the block."""
    if isinstance(value, (list, tuple, set)):
        return any(map(_is_computed, value))
    if isinstance(value, dict):
        return any(map(_is_computed, value.values()))
    if isinstance(value, Value):
        return not isinstance(value.expr, (E.IntImm, E.FloatImm))
    return isinstance(value, (PointerValue, BufferValue))
