"""Contexts of searches that stand within each other: the innermost is asked first, and those around it then."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from typing_extensions import Self


class Nested:
    """A context of a kind: the class directly below this one, whose `current` is the context that was entered last. It may be entered
    several times."""

    current: ClassVar[Nested | None] = None
    _kind: ClassVar[type[Nested]]

    def __init_subclass__(cls) -> None:
        if Nested in cls.__bases__:
            cls._kind, cls.current = cls, None

    def __init__(self) -> None:
        self._around: list[Nested | None] = []
        self._entered: list[ExitStack] = []

    @property
    def outer(self) -> Nested | None:
        """The context around this one; None for the outermost."""
        return self._around[-1] if self._around else None

    def _asked_by_builds(self) -> AbstractContextManager[None]:
        """Within, builds ask this context."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        self._around.append(self._kind.current)
        self._kind.current = self
        self._entered.append(ExitStack())
        self._entered[-1].enter_context(self._asked_by_builds())
        return self

    def __exit__(self, *error: object) -> None:
        self._kind.current = self._around.pop()
        self._entered.pop().close()
