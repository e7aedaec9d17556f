"""Small things of `tvm.meta_schedule`: classes made usable, and times of parts of a search."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, TypeVar

C = TypeVar("C", bound=type)


def derived_object(cls: C) -> C:
    """Makes a class of a program's usable. It cannot be inherited from: TypeError."""

    def refused(*args: object, **options: object) -> None:
        raise TypeError(
            f"Inheritance from a decorated object `{cls.__name__}` is not allowed. Please inherit from `{cls.__name__}._cls`."
        )

    made: C = type(cls)(cls.__name__, (cls,), {"_cls": cls, "__doc__": cls.__doc__, "__module__": cls.__module__})
    made.__init_subclass__ = classmethod(refused)  # type: ignore[method-assign,assignment]
    return made


class Profiler:
    """Seconds by name, of the parts that are timed within it."""

    _contexts: ClassVar[list[Profiler]] = []

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = 0.0
        self._total: float | None = None

    def get(self) -> dict[str, float]:
        """The seconds of each part, and the total."""
        total = time.perf_counter() - self._start if self._total is None else self._total
        return {**self._seconds, "Total": total}

    def table(self) -> str:
        """The same as text."""
        found = self.get()
        return "\n".join(
            f"{name:<40} {seconds:10.4f} s {100 * seconds / found['Total']:6.2f} %" for name, seconds in found.items()
        )

    def __enter__(self) -> Profiler:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        Profiler._contexts.append(self)
        self._start, self._total = time.perf_counter(), None
        return self

    def __exit__(self, *error: object) -> None:
        Profiler._contexts.pop()
        self._total = time.perf_counter() - self._start

    @staticmethod
    def current() -> Profiler | None:
        """The innermost one; None outside."""
        return Profiler._contexts[-1] if Profiler._contexts else None

    @staticmethod
    @contextmanager
    def timeit(name: str) -> Iterator[None]:
        """Times the block for the current one."""
        start = time.perf_counter()
        try:
            yield
        finally:
            if (current := Profiler.current()) is not None:
                current._seconds[name] = current._seconds.get(name, 0.0) + time.perf_counter() - start
