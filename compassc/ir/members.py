"""Functions and attributes of a module by name, as programs look them up and change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for

if TYPE_CHECKING:
    from typing_extensions import Self

    from .stmts import IRModule, PrimFunc


class NoFunction(UsageError, ValueError, KeyError):
    """A module has no function of that name."""

    __str__ = UsageError.__str__


class Attributes(tuple[tuple[str, object], ...]):
    """Pairs of names and values, which are looked up by name, too."""

    __slots__ = ()

    def _named(self) -> dict[str, object]:
        return dict(self)

    def __getitem__(self, key: Any) -> Any:
        return self._named()[key] if isinstance(key, str) else super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        return key in self._named() if isinstance(key, str) else super().__contains__(key)

    def get(self, key: str, default: object = None) -> Any:
        """The value of a name."""
        return self._named().get(key, default)

    def items(self) -> Iterator[tuple[str, object]]:
        """The pairs."""
        return iter(self)

    def changed(self, more: Mapping[str, object]) -> Attributes:
        """With more of them; those of the same names are replaced."""
        return Attributes({**dict(self), **more}.items())

    def without(self, key: str) -> Attributes:
        """All but one."""
        return Attributes((name, value) for name, value in self if name != key)


class FunctionAttributes(Attributes):
    """Those of a function, whose name is found under `global_symbol`, too."""

    symbol: str

    @classmethod
    def of(cls, name: str, attrs: tuple[tuple[str, object], ...]) -> FunctionAttributes:
        """The attributes of a function of a name."""
        if isinstance(attrs, cls) and attrs.symbol == name:
            return attrs
        made = cls(attrs)
        made.symbol = name
        return made

    def _named(self) -> dict[str, object]:
        return {**dict(self), "global_symbol": self.symbol}


@dataclass(frozen=True)
class GlobalVar:
    """The name of a function of a module."""

    name_hint: str

    def __str__(self) -> str:
        return self.name_hint


class GraphMember(Protocol):
    """A graph of layers as a module knows it: its name, and what its text form is made of."""

    @property
    def name(self) -> str: ...

    def written(self) -> tuple[str, bytes]:
        """Its text and its constants."""


class Functions(tuple["PrimFunc", ...]):
    """Functions in the order of their names, by which they are looked up, too."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """A function by its place, its name or its `GlobalVar`. NoFunction, with the names that there are, where there is
        none."""
        if not isinstance(key, (str, GlobalVar)):
            return super().__getitem__(key)
        wanted = str(key)
        for f in self:
            if f.name == wanted:
                return f
        names = [f.name for f in self]
        raise NoFunction(
            f"the module has no function '{wanted}'", code="no-function", help=help_for(wanted, names, "functions")
        )

    def keys(self) -> list[GlobalVar]:
        """The names."""
        return [GlobalVar(f.name) for f in self]

    def values(self) -> list[PrimFunc]:
        """The functions."""
        return list(self)

    def items(self) -> list[tuple[GlobalVar, PrimFunc]]:
        """Names and functions."""
        return list(zip(self.keys(), self))


class Members:
    """What a module has of a mapping from names (or `GlobalVar`s) to functions.

    `mod[name] = f`, `update` and `update_func` change the module; passes never do. A function takes the name that it is
    put under.
    """

    __slots__ = ()
    packed_object = True
    """Functions by name take modules."""
    if TYPE_CHECKING:
        functions: tuple[PrimFunc, ...]
        attrs: tuple[tuple[str, object], ...]
        entry: str

        def replace(self, **changes: Any) -> Self: ...

    def __getitem__(self, name: str | GlobalVar) -> PrimFunc:
        """The function of that name. NoFunction, with the names that there are, where there is none."""
        found: PrimFunc = Functions(self.functions)[str(name)]
        return found

    def __contains__(self, name: object) -> bool:
        return any(f.name == str(name) for f in self.functions)

    def __iter__(self) -> Iterator[GlobalVar]:
        return iter(self.get_global_vars())

    def get_global_var(self, name: str) -> GlobalVar:
        """The name of a function, as a `GlobalVar`. NoFunction where there is none."""
        return GlobalVar(self[name].name)

    def get_global_vars(self) -> list[GlobalVar]:
        """The names of all functions."""
        return Functions(self.functions).keys()

    # -- copies

    def shallow_copy(self) -> Self:
        """A module of the same functions."""
        return self.replace()

    clone = shallow_copy  # functions cannot be changed, so that nothing else needs a copy

    def with_attr(self, key: str, value: object) -> Self:
        """The module with one more attribute."""
        return self.with_attrs({key: value})

    def with_attrs(self, more: Mapping[str, object]) -> Self:
        """The module with more attributes; those of the same names are replaced."""
        return self.replace(attrs=Attributes(self.attrs).changed(more))

    def without_attr(self, key: str) -> Self:
        """The module without an attribute."""
        return self.replace(attrs=Attributes(self.attrs).without(key))

    def get_attr(self, key: str) -> Any:
        """The value of an attribute, None without it."""
        return Attributes(self.attrs).get(key)

    # -- changes

    def __setitem__(self, name: str | GlobalVar, function: PrimFunc) -> None:
        self._put({str(name): function})

    def update_func(self, name: str | GlobalVar, function: PrimFunc) -> None:
        """Put a function in the place of the one of that name."""
        self._put({str(name): function})

    def update(self, other: IRModule | Mapping[object, PrimFunc]) -> None:
        """Put all functions of another module (or mapping) into this one, over those of the same names."""
        pairs = other.items() if isinstance(other, Mapping) else ((f.name, f) for f in other.functions)
        self._put({str(name): f for name, f in pairs})

    def _put(self, more: Mapping[str, PrimFunc]) -> None:
        named = {f.name: f for f in self.functions}
        named |= {name: f if f.name == name else f.replace(name=name) for name, f in more.items()}
        changed = self.replace(functions=tuple(named.values()))
        object.__setattr__(self, "functions", changed.functions)
        if self.entry not in self and named:
            object.__setattr__(self, "entry", next(iter(named)))
