"""`NamedTuple`, as that of `typing`, for classes that a program may never make an object of.

Python's own compiles each annotation and the constructor where the class is defined, which was a thirtieth of a build of a
network. This one compiles the constructor when it is first looked up, and leaves annotations as they are. Objects mean the same.
"""

from __future__ import annotations

from _collections import _tuplegetter  # what `collections` has its fields by
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

__all__ = ["NamedTuple"]


class _Named(tuple[object, ...]):
    """What all classes have in common."""

    __slots__ = ()
    _fields: tuple[str, ...] = ()
    _field_defaults: Mapping[str, object] = {}

    @classmethod
    def _make(cls, iterable: Iterable[object]) -> _Named:
        made = tuple.__new__(cls, iterable)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes: object) -> _Named:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return made

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)


class _Constructor:
    """The constructor of a class, which is compiled, and takes this object's place, when it is first looked up."""

    __slots__ = ("owner",)

    def __set_name__(self, owner: type[_Named], name: str) -> None:
        self.owner = owner

    def __get__(self, instance: object, owner: type) -> Callable[..., object]:
        cls = self.owner
        listed = ", ".join(cls._fields)
        names = {"_new_": tuple.__new__, "__builtins__": {}, "__name__": f"namedtuple_{cls.__name__}"}
        made = eval(f"lambda _cls, {listed}: _new_(_cls, ({listed}{',' * bool(listed)}))", names)
        made.__name__, made.__qualname__ = "__new__", f"{cls.__qualname__}.__new__"
        made.__defaults__ = tuple(cls._field_defaults.values()) or None
        made.__annotations__ = dict(cls.__annotations__)
        if isinstance(vars(cls).get("__new__"), _Constructor):
            cls.__new__ = staticmethod(made)  # type: ignore[method-assign]
        return cast(Callable[..., object], made)


class _Maker(type):
    """Makes classes of its class's bodies."""

    def __new__(mcs, name: str, bases: tuple[type, ...], own: dict[str, object]) -> _Maker:
        fields = tuple(cast(dict[str, object], own.get("__annotations__", {})))
        defaults = {field: own.pop(field) for field in fields if field in own}
        if fields[len(fields) - len(defaults) :] != tuple(defaults):
            raise TypeError(f"{name} has a field without a default behind one that has one")
        if len(bases) > 1:
            raise TypeError(f"{name} is a named tuple, and has no other bases")
        own.setdefault("__doc__", f"{name}({', '.join(fields)})")
        own |= {"__slots__": (), "_fields": fields, "__match_args__": fields, "_field_defaults": defaults}
        own |= {field: _tuplegetter(i, f"Alias for field number {i}") for i, field in enumerate(fields)}
        own["__new__"] = _Constructor()
        return cast("_Maker", type(name, (_Named,), own))


if TYPE_CHECKING:
    from typing import NamedTuple  # type checkers know what that one is
else:
    NamedTuple = type.__new__(
        _Maker, "NamedTuple", (), {"__doc__": "Base of a class that becomes a tuple with fields."}
    )
