"""What expressions, patterns and types have in common: immutable objects of declared fields, compared by identity unless
they say otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
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


_known: dict[type, tuple[list[str], list[str]]] = {}


def _names(cls: type[Node]) -> tuple[list[str], list[str]]:
    """The names of the fields of a class, and of those that its objects are made of."""
    found = _known.get(cls)
    if found is None:
        own = fields(cls)  # type: ignore[arg-type]  # all nodes are dataclasses
        found = _known[cls] = [f.name for f in own], [f.name for f in own if f.init]
    return found


class Node:
    """Base of all nodes."""

    def parts(self) -> Iterator[tuple[str, object]]:
        """Names and values of the fields that count when nodes are compared."""
        return ((name, getattr(self, name)) for name in _names(type(self))[0] if name not in NOT_COMPARED)

    def replace(self, **changes: object) -> Self:
        """The same node with some fields changed."""
        kept = {name: getattr(self, name) for name in _names(type(self))[1] if name not in changes}
        return type(self)(**kept, **changes)

    def same_as(self, other: object) -> bool:
        """Whether it is this object."""
        return self is other

    def _keep(self, **values: object) -> None:
        """Set fields while the node is made (`__post_init__`): lists become tuples."""
        for name, value in values.items():
            object.__setattr__(self, name, value)
