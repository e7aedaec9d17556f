"""The objects that script calls other than operations return to the kernel parser, and those of annotations.

Outside PySim `S.grid(2, 3)`, `S.alloc(...)`, `S.match_buffer(...)` and the like check their arguments and return one
of the specs below; the parser turns a spec into IR where it is assigned or iterated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, SupportsIndex, TypeVar

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for

from ..ir.dtypes import SCOPES, STORAGE, DataType, PointerType, pointer_type
from ..ops.args import dtype_arg, known_int
from ..ops.numeric import np_dtype
from ..ops.typing import check_literal
from .advice import advice
from .dispatch import convert

ALLOC_SCOPES = ("private", "lsram", "shared")
LOOPS = ("range", "S.grid", "S.vectorized", "S.unroll", "S.tec_range", "S.pipelined", "S.parallel_tiles")


@dataclass(frozen=True)
class LoopSpec:
    """A loop constructor: kind is `range`, `grid`, `vectorized`, `unroll`, `tec_range`, `pipelined` or
    `parallel_tiles`; args as written, and options of the loop.

    A `range` or `unroll` of known numbers is their sequence, too, in comprehensions, `enumerate`, `zip` and the like.
    """

    kind: str
    args: tuple[object, ...]
    options: tuple[tuple[str, object], ...] = ()
    what: ClassVar[str] = "a loop"

    def _range(self) -> range:
        """The numbers of a `range` or `S.unroll` of constants, for `list(range(4))` and the like."""
        numbers = [n for n in map(known_int, self.args) if type(n) is int]
        if self.kind in ("range", "unroll") and len(numbers) == len(self.args):
            return range(*numbers)
        name = self.kind if self.kind == "range" else f"S.{self.kind}"
        raise CompassError(
            f"{name}(...) is no sequence of known numbers here",
            code="loop-iterator",
            help="give range constants, or write a loop: for i in range(n)",
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._range())

    def __reversed__(self) -> Iterator[int]:
        return reversed(self._range())

    def __len__(self) -> int:
        return len(self._range())

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, index: SupportsIndex) -> int:
        return self._range()[index]


@dataclass(frozen=True)
class AllocSpec:
    """Static storage. kind is `pointer` (S.alloc) or `buffer` (S.alloc_buffer); shape counts `dtype` items."""

    kind: str
    shape: tuple[int, ...]
    dtype: DataType
    scope: str
    what: ClassVar[str] = "storage without a name"


@dataclass(frozen=True)
class MatchSpec:
    """S.match_buffer: an N-D row-major view of a pointer; shape items are ints or expressions."""

    pointer: object
    shape: tuple[object, ...]
    what: ClassVar[str] = "storage without a name"


@dataclass(frozen=True)
class ConstSpec:
    """S.alloc_const: a read-only table; `data` is a NumPy array of `shape` and `dtype`."""

    shape: tuple[int, ...]
    dtype: DataType
    data: Array
    what: ClassVar[str] = "storage without a name"


@dataclass(frozen=True)
class MetaVar:
    """S.meta_var: a value that stays a Python value when it is assigned to a name."""

    value: object
    what: ClassVar[str] = "S.meta_var(...)"


@dataclass(frozen=True)
class BlockSpec:
    """S.block: a schedulable block."""

    name: str
    no_realize: bool
    what: ClassVar[str] = "a block"


@dataclass(frozen=True)
class PtrType:
    """The annotation `S.ptr(dtype, scope)`."""

    dtype: DataType
    scope: str
    what: ClassVar[str] = "a pointer type"

    @property
    def type(self) -> PointerType:
        """The type of the IR."""
        return pointer_type(self.dtype, self.scope)


class DTypeName:
    """A data type name of `S`: an annotation when uncalled, a conversion when called (not for bools).

    `size` names (`S.size_i32`) promise a value >= 0.
    """

    __slots__ = ("dtype", "size")
    what = "a data type"

    def __init__(self, dtype: DataType, size: bool = False) -> None:
        self.dtype = dtype
        self.size = size

    def __call__(self, init_value: object) -> object:
        if self.dtype.is_bool:
            raise CompassError(
                f"S.{self.dtype} is an annotation and cannot be called",
                code="type",
                help="make bools with comparisons, masks with S.const_mask or S.tail_mask",
            )

        return convert(init_value, self.dtype)

    def __repr__(self) -> str:
        return f"S.{'size_' if self.size else ''}{self.dtype}"


@cache
def _storage_help() -> str:
    return "element types are " + ", ".join(STORAGE)


def pointee_dtype(value: object, what: str) -> DataType:
    """The pointee type of `S.ptr` and `as_ptr`: a storage type, a vector of one, or void."""
    if value is None or value == "":
        raise CompassError(
            f'{what}: a pointer needs a type; use "void" explicitly', code="pointee", help='write e.g. as_ptr("i32")'
        )
    try:
        found = dtype_arg(value, what)
    except CompassError as e:
        e.code = "pointee"
        raise
    if found.is_void or found.element_of in STORAGE:
        return found
    raise CompassError(
        f"{what}: {found} cannot be pointed to",
        code="pointee",
        help=f"pointers are to {', '.join(STORAGE)}, vectors of them, or void",
    )


def ptr(dtype: object, scope: str = "private") -> PtrType:
    """Pointer type of a parameter or return value."""
    if scope not in SCOPES:
        raise CompassError(f"S.ptr: {scope!r} is not a scope", code="scope", help=f"the scopes are {', '.join(SCOPES)}")
    return PtrType(pointee_dtype(dtype, "S.ptr"), scope)


VALUE_ATTRIBUTES = ("dtype", "addr")
Index = TypeVar("Index")
POINTER_ATTRIBUTES = ("dtype", "scope", "is_nullptr", "as_ptr", "addr_of")
BUFFER_ATTRIBUTES = ("dtype", "scope", "shape", "addr_of")


def one_index(index: object, convert: Callable[[object], Index]) -> Index:
    """The index of an element of storage that a pointer is to, converted. CompassError for several."""
    items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
    if len(items) != 1:
        raise CompassError(
            f"{len(items)} indices for a pointer, which has one dimension",
            code="index-count",
            help="give the offset; S.alloc_buffer has several dimensions",
        )
    return convert(items[0])


def no_attribute(
    attributes: tuple[str, ...], kind: str, name: str, error: type[CompassError] = CompassError
) -> CompassError:
    """The error of an attribute that a value of a kernel does not have. `kind` says what the value is."""
    help = advice(name) or help_for(name, attributes, "its attributes")
    return error(f"{kind} has no attribute {name!r}", code="attribute", help=help)


def check_alloc(what: str, shape: object, dtype: object, scope: str) -> tuple[tuple[int, ...], DataType]:
    """The arguments of S.alloc and S.alloc_buffer, checked."""
    given = tuple(known_int(n) for n in (shape if isinstance(shape, (list, tuple)) else (shape,)))
    items = tuple(item for item in given if type(item) is int)
    for item in given:
        if type(item) is not int:
            raise CompassError(
                f"{what}: a shape item must be an integer constant, got {item!r}",
                code="shape",
                help="a name assigned inside the kernel is a variable; use a module constant or S.meta_var",
            )
        if item <= 0:
            raise CompassError(
                f"{what}: the shape {given} must be positive",
                code="shape",
                help="give at least one element per dimension",
            )
    found = dtype_arg(dtype, what)
    if found.element_of not in STORAGE or not (found.is_scalar or found.is_native):
        raise CompassError(
            f"{what}: storage of type {found} is not possible",
            code="type",
            help=_storage_help() + ", and native vectors",
        )
    if scope not in ALLOC_SCOPES:
        raise CompassError(
            f"{what}: {scope!r} is not a scope for storage", code="scope", help=f"use {', '.join(ALLOC_SCOPES)}"
        )
    return items, found


def check_stages(stages: object) -> int:
    """The argument of S.pipelined, checked."""
    if type(stages) is not int or stages < 2:
        raise CompassError(
            f"S.pipelined: stages must be an integer constant from 2 on, got {stages!r}",
            code="loop-arguments",
            help="2 has one tile copied while another one is worked on",
        )
    return stages


def const_table(shape: object, dtype: object, data: object) -> ConstSpec:
    """The checked table of S.alloc_const."""
    import numpy as np

    items: Any = tuple(known_int(n) for n in (shape if isinstance(shape, (list, tuple)) else (shape,)))
    found = dtype_arg(dtype, "S.alloc_const")
    if found.element_of not in STORAGE or not found.is_scalar:
        raise CompassError(f"S.alloc_const: a table of {found} is not possible", code="type", help=_storage_help())
    try:
        given = np.asarray(data)
        for number in (given.min(), given.max()) if given.size and given.dtype.kind in "iuO" else ():
            check_literal(int(number), found)
        array = np.ascontiguousarray(given.astype(np_dtype(found)).reshape(items))
    except (TypeError, ValueError) as e:
        raise CompassError(
            f"S.alloc_const: the data does not make a table of {found} with shape {items}: {e}",
            code="shape",
            help="the shape must have as many elements as the data",
        ) from None
    return ConstSpec(array.shape, found, array)


def shape_items(shape: object) -> tuple[object, ...]:
    """A shape argument as a tuple."""
    return tuple(shape) if isinstance(shape, (tuple, list, LoopSpec)) else (shape,)
