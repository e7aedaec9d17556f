"""What expressions, patterns and types have in common: immutable objects of declared fields, compared by identity unless
they say otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import TYPE_CHECKING, TypeVar

from compass_core.dataclass import dataclass

if TYPE_CHECKING:
    from typing_extensions import Self, dataclass_transform
else:

    def dataclass_transform(**_):
        return lambda decorator: decorator


_N = TypeVar("_N")
NOT_COMPARED = frozenset(("span", "vid", "tag"))
"""Fields that say where a node comes from or who it is, not what it is."""


@dataclass_transform(frozen_default=True, eq_default=False)
def node(cls: type[_N]) -> type[_N]:
    """Make a node class of a class of annotated fields."""
    return dataclass(frozen=True, eq=False, repr=False)(cls)


class Node:
    """Base of all nodes."""

    def parts(self) -> Iterator[tuple[str, object]]:
        """Names and values of the fields that count when nodes are compared."""
        return ((f.name, getattr(self, f.name)) for f in fields(self) if f.name not in NOT_COMPARED)  # type: ignore[arg-type]  # all nodes are dataclasses

    def replace(self, **changes: object) -> Self:
        """The same node with some fields changed."""
        return replace(self, **changes)  # type: ignore[type-var]  # all nodes are dataclasses

    def same_as(self, other: object) -> bool:
        """Whether it is this object."""
        return self is other

    def _keep(self, **values: object) -> None:
        """Set fields while the node is made (`__post_init__`): lists become tuples."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
