"""What type rules share: extents that may be open, shapes that are stretched, axes, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compassc.relay.types import Dim, Open, RelationError, TensorType, TupleType, Type


def fail(message: str, help: str = "") -> RelationError:
    """The error of types that do not fit."""
    return RelationError(message, help)


def require(holds: bool, message: str | Callable[[], str]) -> None:
    """RelationError unless something holds."""
    if not holds:
        raise fail(message if isinstance(message, str) else message())


def known(d: Dim) -> bool:
    """Whether an extent is a number."""
    return isinstance(d, int)


def differ(a: Dim, b: Dim) -> bool:
    """Whether two extents are known to be different."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def of(function: Callable[..., int], *dims: Dim) -> Dim:
    """What a function gives of extents, open where one of them is."""
    if all(isinstance(d, int) for d in dims):
        return function(*dims)
    return Open()


def product(dims: Iterable[Dim]) -> Dim:
    """The product of extents."""
    found = 1
    for d in dims:
        if not isinstance(d, int):
            return Open()
        found *= d
    return found


def total(dims: Iterable[Dim]) -> Dim:
    """The sum of extents."""
    return of(lambda *n: sum(n), *dims)


def merged(a: Dim, b: Dim, *types: Type) -> Dim:
    """The extent that two are, of types that are named where they differ; what is known of one holds of the other."""
    require(not differ(a, b), lambda: f"extents {a} and {b} of {' and '.join(map(str, types))} differ")
    return a if isinstance(a, int) or isinstance(b, Open) else b


def axis_of(axis: int, rank: int, what: str = "axis") -> int:
    """An axis counted from the front."""
    require(isinstance(axis, int), lambda: f"{what} {axis!r} is no whole number")
    require(-rank <= axis < rank, lambda: f"{what} {axis} is out of range for {rank} dimensions")
    return axis + rank if axis < 0 else axis


def axes_of(axes: int | Sequence[int] | None, rank: int, what: str = "axis") -> list[int]:
    """Axes counted from the front: of one number, several, or None for all."""
    if axes is None:
        return list(range(rank))
    given = axes if isinstance(axes, Sequence) else [axes]
    found = [axis_of(a, rank, what) for a in given]
    require(len(set(found)) == len(found), lambda: f"{what} {axes} names an axis twice")
    return found


def shaped(t: TensorType, shape: Sequence[Dim], dtype: str = "") -> TensorType:
    """A tensor of another shape, of the same type of elements unless one is given."""
    return TensorType(shape, dtype or t.dtype)


def stretched(a: Sequence[Dim], b: Sequence[Dim], what: Callable[[], str]) -> list[Dim]:
    """The shape that two are stretched to, by NumPy's rule; an open extent goes with any."""
    rank = max(len(a), len(b))
    found: list[Dim] = []
    for x, y in zip([1] * (rank - len(a)) + list(a), [1] * (rank - len(b)) + list(b)):
        if x == 1:
            found.append(y)
        elif y == 1:
            found.append(x)
        elif isinstance(x, Open):
            found.append(y)
        elif isinstance(y, Open) or x is y or x == y:
            found.append(x)
        else:
            raise fail(what(), "extents of one axis must be equal, or one of them 1")
    return found


def same(a: object, data: TensorType, *rest: Type) -> Type:
    """The type of the first argument."""
    return data


def one_dtype(what: str, *types: TensorType) -> None:
    """RelationError for tensors of different types of elements."""
    for t in types[1:]:
        if t.dtype != types[0].dtype:
            raise fail(f"data types {types[0].dtype} of {types[0]} and {t.dtype} of {t} do not match in {what}")


def broadcast(a: object, x: TensorType, y: TensorType) -> TensorType:
    """Two tensors of one type of elements, stretched to each other's shapes."""
    one_dtype("BroadcastRel", x, y)
    return shaped(x, stretched(x.shape, y.shape, lambda: f"Incompatible broadcast type {x} and {y}"))


def compared(a: object, x: TensorType, y: TensorType) -> TensorType:
    """As `broadcast`, with bools as the result."""
    one_dtype("BroadcastCompRel", x, y)
    return shaped(x, stretched(x.shape, y.shape, lambda: f"Incompatible broadcast type {x} and {y}"), "bool")


def bools(a: object, data: TensorType) -> TensorType:
    """Bools of the shape of the argument."""
    return shaped(data, data.shape, "bool")


def tensors(t: TupleType, what: str) -> list[TensorType]:
    """The fields of a tuple of tensors."""
    found: list[TensorType] = []
    for f in t.fields:
        if not isinstance(f, TensorType):
            raise fail(f"{what} takes a tuple of tensors, not {f}")
        found.append(f)
    return found
