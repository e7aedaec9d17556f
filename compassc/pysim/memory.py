"""Memory of a running PySim kernel: byte storage, typed pointers into it, and N-dimensional buffers.

A `Storage` is a flat array of bytes with a name for messages. Pointers and buffers are typed views of one; every
access is checked against the storage's bounds.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, NoReturn, SupportsIndex, cast

import numpy as np

from compass_core.arrays import Array
from compass_core.errors import CompassError
from compassc.ir.dtypes import INT32, DataType
from compassc.ops.args import refuse_constant
from compassc.ops.numeric import convert, np_dtype
from compassc.ops.typing import type_error

from ..language.specs import BUFFER_ATTRIBUTES, POINTER_ATTRIBUTES, one_index, pointee_dtype
from .checks import check_narrowing
from .values import PyVar, to_element

if TYPE_CHECKING:
    from .checks import StorageMonitor

UNINITIALISED = 0xA5
_PREVIEW = 8


class Storage:
    """Flat bytes. `view(dtype)` is the whole of it as elements of one type.

    `watch` is told every access of a storage that is checked (`checks.StorageMonitor`), else None.
    """

    __slots__ = ("_views", "data", "name", "watch")

    def __init__(self, data: Array, name: str, watch: StorageMonitor | None = None) -> None:
        self.data = data
        self.name = name
        self.watch = watch
        self._views: dict[DataType, Array] = {}

    @staticmethod
    def fresh(size: int, name: str) -> Storage:
        """Uninitialised storage: a fixed pattern, so that a kernel that reads it fails the same way every time."""
        return Storage(np.full(size, UNINITIALISED, np.uint8), name)

    def view(self, elem: DataType) -> Array:
        found = self._views.get(elem)
        if found is None:
            kind = np_dtype(elem)
            usable = self.data.size - self.data.size % kind.itemsize
            found = self._views[elem] = self.data[:usable].view(kind)
        return found


def _shown(storage: Storage, items: Array, first: int) -> Array:
    """Elements of a storage from byte `first` on; elements that were never written are shown as `?`."""
    written = storage.watch.written if storage.watch is not None else None
    if written is None:
        return items
    size = items.itemsize
    known = np.frombuffer(written, np.uint8)[first : first + items.size * size].reshape(items.size, size).any(axis=1)
    shown = items.astype(object)
    shown[~known] = _UNWRITTEN
    return shown


class _Unwritten:
    """Prints as a question mark."""

    def __repr__(self) -> str:
        return "?"


_UNWRITTEN = _Unwritten()


class OutOfBounds(CompassError, IndexError):
    """An access beyond the end of its array."""


class BadPointer(CompassError, AssertionError):
    """An access through a pointer that points to nothing: null, moved out of its array, or of no type."""


def bounds_error(what: str, ptr: PyPointer, first: int, last: int) -> CompassError:
    """An access of elements first..last (counted from the pointer) that leaves the storage."""
    assert ptr.storage is not None
    elem = ptr.dtype.element_of
    behind = max(0, ptr.storage.data.size - ptr.offset) // elem.bytes
    span = f"element {first}" if first == last else f"elements {first} to {last}"
    outside = first < 0 or not 0 <= ptr.offset < ptr.storage.data.size
    return (BadPointer if outside else OutOfBounds)(
        f"{what}: {span} of {ptr.storage.name} out of bounds: {behind} {elem} elements lie at and after the pointer",
        code="bounds",
        notes=(f"the pointer is {ptr.offset} bytes into {ptr.storage.data.size}",),
        help="for the last, incomplete vector give a mask: S.tail_mask(n, lanes)" if last > first else "",
    )


def index_of(x: object, what: str = "an index") -> int:
    """An integer index; anything else needs an explicit conversion."""
    try:
        return x if type(x) is int else operator.index(cast(SupportsIndex, x))
    except TypeError:
        raise type_error(f"{what} must be an integer, got {x!r}", "convert it explicitly, e.g. S.i32(...)") from None


class PyPointer:
    """A typed address. Null when it has no storage."""

    __slots__ = ("_base", "_view", "dtype", "offset", "scope", "storage")
    attributes: tuple[str, ...] = POINTER_ATTRIBUTES
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, storage: Storage | None, offset: int, dtype: DataType, scope: str) -> None:
        self.storage = storage
        self.offset = offset
        self.dtype = dtype
        self.scope = scope
        self._view: Array | None = None
        self._base: int

    def __repr__(self) -> str:
        """Type, place and the next elements, as a debugger shows a variable."""
        if self.storage is None:
            return f"{self.scope} {self.dtype}*(null)"
        return f"{self.scope} {self.dtype}*({self.storage.name} + {self.offset} bytes{self._preview()})"

    def _preview(self) -> str:
        """The first elements from the pointer on."""
        assert self.storage is not None
        if self.dtype.is_void or not 0 <= self.offset < self.storage.data.size:
            return ""
        view, base = self.elements()
        shown = _shown(self.storage, view[base : base + _PREVIEW], self.offset).tolist()
        return f": [{', '.join(map(str, shown))}{', ...' if base + _PREVIEW < view.size else ''}]"

    @property
    def is_nullptr(self) -> bool:
        return self.storage is None

    def elements(self, elem: DataType | None = None) -> tuple[Array, int]:
        """The storage as an array of elements, and the pointer's index in it."""
        if elem is None:
            if self._view is not None:
                return self._view, self._base
            view, self._base = found = self.elements(self.dtype.element_of)
            self._view = view  # last: another TEC may be looking
            return found
        storage = self.storage
        if storage is None:
            raise BadPointer(f"a null {self.dtype} pointer is accessed", code="null", help="test p.is_nullptr first")
        if elem.is_void:
            raise type_error("a void pointer cannot be accessed", "retype it with as_ptr")
        base, rest = divmod(self.offset, elem.bytes)
        if rest:
            tail = storage.data[rest:]
            return tail[: tail.size - tail.size % elem.bytes].view(np_dtype(elem)), base
        return storage.view(elem), base

    def as_ptr(self, dtype: object) -> PyPointer:
        """The same address with another pointee type."""
        found = pointee_dtype(dtype, "as_ptr")
        return self if found is self.dtype else PyPointer(self.storage, self.offset, found, self.scope)

    # ------------------------------------------------------------------------------------------- arithmetic

    def __add__(self, n: object) -> PyPointer:
        if self.dtype.is_void:
            raise type_error("a void pointer cannot be moved", "retype it with as_ptr")
        return self.moved(int(n.value) if type(n) is PyVar and n.dtype is INT32 else index_of(n, "a pointer step"))

    __radd__ = __add__

    def addr_of(self, index: object = 0) -> PyPointer:
        """A pointer to an element, as of a buffer of one dimension."""
        return self + one_index(index, index_of)

    def moved(self, step: int) -> PyPointer:
        """The pointer `step` pointees further on, in the same array."""
        dtype = self.dtype
        found = PyPointer(self.storage, self.offset + step * dtype.total_bytes, dtype, self.scope)
        if self._view is None and self.storage is not None and not dtype.is_void:
            self.elements()  # the same array, further on
        if self._view is not None:
            found._view = self._view
            found._base = self._base + step * dtype.lanes
        return found

    def __sub__(self, n: object) -> PyPointer:
        if isinstance(n, PyPointer):
            raise type_error(
                "pointers cannot be subtracted from each other", "count the elements in an integer variable"
            )
        return self + -index_of(n, "a pointer step")

    def _distance(self, other: object) -> int | None:
        """Bytes from another pointer to this one; None when they point into different memory."""
        if not isinstance(other, PyPointer):
            raise type_error(
                f"a pointer can only be compared with a pointer, got {other!r}", "test null with p.is_nullptr"
            )
        mine, theirs = self.storage, other.storage
        if mine is theirs:
            return self.offset - other.offset
        if mine is None or theirs is None or not np.may_share_memory(mine.data, theirs.data):
            return None
        return int(mine.data.ctypes.data + self.offset - theirs.data.ctypes.data - other.offset)

    def _order(self, other: object) -> int:
        found = self._distance(other)
        if found is None:
            raise CompassError(
                "pointers to unrelated memory have no order",
                code="pointer",
                notes=(repr(self), repr(other)),
                help="compare pointers into the same array; == and != compare any two",
            )
        return found

    def __lt__(self, other: object) -> bool:
        return self._order(other) < 0

    def __le__(self, other: object) -> bool:
        return self._order(other) <= 0

    def __gt__(self, other: object) -> bool:
        return self._order(other) > 0

    def __ge__(self, other: object) -> bool:
        return self._order(other) >= 0

    def __eq__(self, other: object) -> bool:
        return self.storage is None if other is None else self._distance(other) == 0

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __bool__(self) -> bool:
        raise type_error("a pointer has no truth value", "test null with p.is_nullptr")

    # ------------------------------------------------------------------------------------------- access

    def __getitem__(self, index: object) -> PyVar:
        if type(index) is PyVar and index.dtype is INT32:
            return self.load(int(index.value), 1, 1, self.dtype)
        if type(index) is slice:
            first, count, step = slice_range(index)
            return self.load(first, count, step, self.dtype.with_lanes(self.dtype.lanes * count))
        if type(index) is tuple:
            raise type_error("a pointer is 1-D and takes one index", "S.match_buffer(p, shape) gives it dimensions")
        return self.load(index_of(index), 1, 1, self.dtype)

    def __setitem__(self, index: object, value: object) -> None:
        if type(index) is PyVar and index.dtype is INT32:
            self.store(int(index.value), 1, 1, value)
        elif type(index) is slice:
            first, count, step = slice_range(index)
            self.store(first, count, step, value)
        elif type(index) is tuple:
            raise type_error("a pointer is 1-D and takes one index", "S.match_buffer(p, shape) gives it dimensions")
        else:
            self.store(index_of(index), 1, 1, value)

    def load(self, first: int, count: int, step: int, result: DataType, what: str = "load") -> PyVar:
        """`count` pointees from item `first`; `step` is a stride in scalar elements."""
        view, base = (self._view, self._base) if self._view is not None else self.elements()
        start = base + first * self.dtype.lanes
        lanes = result.lanes
        stop = start + (lanes - 1) * step + 1
        if first < 0 or start < 0 or stop > len(view):
            raise bounds_error(what, self, start - base, stop - base - 1)
        if self.storage.watch is not None:  # type: ignore[union-attr]
            self.watched(what, start - base, lanes, step, False)
        if lanes == 1:
            return PyVar(view[start], result)
        return PyVar(view[start:stop:step].copy(), result)

    def rows(self, what: str, count: int, length: int, pitch: int, writes: bool) -> Array:
        """A view of `count` rows of elements, whose beginnings lie `pitch` apart, to be read or written at once."""
        view, base = self.elements()
        assert self.storage is not None
        stop = base + (count - 1) * pitch + length
        if base < 0 or stop > len(view):
            raise bounds_error(what, self, 0, stop - base - 1)
        if count == 1 or pitch == length:
            found, parts, size = view[base:stop].reshape(count, length), 1, stop - base
        else:  # a tile has its last row whole, too
            found, parts, size = view[base : base + count * pitch].reshape(count, pitch)[:, :length], count, length
        for k in range(parts):
            if self.storage.watch is None:
                break
            self.watched(what, k * pitch, size, 1, writes)
        return found

    def window(self, elem: DataType, step: int, lanes: int) -> Array | None:
        """A view of the elements that begin `step` pointees further on; None if the access must be checked."""
        view = self._view
        storage = self.storage
        if view is None or storage is None or self.dtype.element_of is not elem or storage.watch is not None:
            return None
        start = self._base + step * self.dtype.lanes
        stop = start + lanes
        return view[start:stop] if start >= 0 and stop <= len(view) else None

    def store(self, first: int, count: int, step: int, value: object) -> None:
        """Convert `value` to the pointee type and write it to `count` pointees from item `first`."""
        refuse_constant(self.scope)
        view, base = (self._view, self._base) if self._view is not None else self.elements()
        dtype = self.dtype
        lanes = dtype.lanes * count
        start = base + first * dtype.lanes
        stop = start + (lanes - 1) * step + 1
        if first < 0 or start < 0 or stop > len(view):
            raise bounds_error("store", self, start - base, stop - base - 1)
        if self.storage.watch is not None:  # type: ignore[union-attr]
            self.watched("store", start - base, lanes, step, True)
        if lanes == 1:
            view[start] = value.value if type(value) is PyVar and value.dtype is dtype else scalar_of(value, dtype)
        else:
            view[start:stop:step] = lanes_of(value, dtype.element_of, lanes)

    def watched(
        self,
        what: str,
        first: int,
        count: int,
        step: int,
        writes: bool,
        active: Array | None = None,
        atomic: bool = False,
    ) -> None:
        """Tell the storage's watch about elements `first + i * step` behind the pointer; `active` is a bool array."""
        size = self.dtype.bytes
        assert self.storage is not None and self.storage.watch is not None
        self.storage.watch.access(what, self.offset + first * size, size, count, step * size, writes, active, atomic)


def scalar_of(value: object, elem: DataType) -> Array:
    """The value of a one-element store."""
    if type(value) is PyVar and value.dtype.is_vector:
        raise type_error(f"{value.dtype} cannot be stored in one {elem}", "use a slice or S.vstore")
    return to_element(value, elem)


def lanes_of(value: object, elem: DataType, lanes: int) -> Array:
    """The value of a vector store: a vector of as many lanes, or a scalar for all of them."""
    if type(value) is not PyVar or value.dtype.is_scalar:
        return to_element(value, elem)
    if value.dtype.lanes != lanes:
        raise type_error(
            f"{value.dtype} cannot be stored in {elem.with_lanes(lanes)}: the lanes differ",
            "match the slice to the vector",
        )
    converted = convert(value.value, value.dtype, elem)
    check_narrowing(value.value, converted, elem)
    return converted


def slice_range(s: slice, size: int | None = None) -> tuple[int, int, int]:
    """First item, number of items and step of a slice; `size` is the default stop of a buffer dimension."""
    if s.stop is None and size is None:
        raise type_error(
            "the stop of a slice of a pointer must be given", "a pointer knows no length: write p[i:i + 8]"
        )
    first = 0 if s.start is None else index_of(s.start, "a slice start")
    stop = size if s.stop is None else index_of(s.stop, "a slice stop")
    step = 1 if s.step is None else index_of(s.step, "a slice step")
    assert stop is not None
    if step < 1:
        raise CompassError(
            f"the step of a slice must be positive, got {step}",
            code="slice",
            help="take the elements forwards, then S.vrevs",
        )
    count = (stop - first + step - 1) // step
    if first < 0 or count < 1:
        raise CompassError(
            f"the slice {first}:{stop} selects nothing", code="slice", help="0 <= start < stop is needed"
        )
    return first, count, step


class PyBuffer(PyPointer):
    """An N-dimensional row-major view of storage; the unit of shape and indices is `dtype`."""

    __slots__ = ("_array", "_dims", "_steps", "shape")
    attributes = BUFFER_ATTRIBUTES

    def __init__(
        self, storage: Storage | None, offset: int, dtype: DataType, scope: str, shape: tuple[int, ...]
    ) -> None:
        super().__init__(storage, offset, dtype, scope)
        for item in shape:
            if item <= 0:
                raise CompassError(
                    f"the shape {shape} of a buffer must be positive",
                    code="shape",
                    help="give at least one element per dimension",
                )
        self.shape = shape
        steps, size = [], 1
        for item in reversed(shape):
            steps.append(size)
            size *= item
        self._steps = tuple(reversed(steps))
        self._dims = tuple(zip(shape, self._steps))
        self._array: Array | None = None
        have = 0 if storage is None else storage.data.size - offset
        missing = size * dtype.total_bytes - have
        if missing > 0:
            name = "a null pointer" if storage is None else storage.name
            raise CompassError(
                f"{name} is {missing} bytes too small for {dtype} elements of shape {shape}",
                code="shape",
                help="the shape counts elements; the array that is passed must have as many",
            )

    def __repr__(self) -> str:
        if self.storage is None:
            return super().__repr__()
        first = self.offset // self.dtype.bytes
        count = self.dtype.lanes
        for size in self.shape:
            count *= size
        items = _shown(self.storage, self.storage.view(self.dtype.element_of)[first : first + count], self.offset)
        lanes = (self.dtype.lanes,) if self.dtype.is_vector else ()
        text = np.array2string(items.reshape(*self.shape, *lanes), separator=", ", threshold=256, max_line_width=120)
        return f"{self.scope} {self.dtype}{list(self.shape)}({self.storage.name} + {self.offset} bytes)\n{text}"

    def _flat(self, index: object) -> tuple[int, int, int]:
        """First flat item, number of items and step of a subscript."""
        items = index if type(index) is tuple else (index,)
        if len(items) != len(self.shape):
            raise type_error(
                f"a buffer of shape {self.shape} takes {len(self.shape)} indices, got {len(items)}",
                "give one index per dimension",
            )
        flat, count, step = 0, 1, 1
        for axis, (item, size, stride) in enumerate(zip(items, self.shape, self._steps)):
            if type(item) is slice:
                first, count, step = slice_range(item, size)
                if count > 1 and axis != len(items) - 1:
                    raise type_error("only the last index of a buffer may be a slice", "loop over the other dimensions")
                last = first + (count - 1) * step
            else:
                first = last = index_of(item)
            if first < 0 or last >= size:
                raise OutOfBounds(
                    f"index {first if first < 0 else last} of {self._named()} is out of bounds: dimension {axis} has size {size}",
                    code="bounds",
                    help=f"indices of this dimension go from 0 to {size - 1}",
                )
            flat += first * stride
        return flat, count, step

    def array(self) -> Array:
        """Its elements in its shape."""
        if self._array is None:
            view, base = self.elements()
            self._array = view[base : base + self._steps[0] * self.shape[0]].reshape(self.shape)
        return self._array

    def _named(self) -> str:
        return "a null buffer" if self.storage is None else self.storage.name

    def _item(self, index: object) -> int:
        """The flat item of a subscript of plain indices within bounds; -1 for any other."""
        items = index if type(index) is tuple else (index,)
        if len(items) != len(self._dims):
            return -1
        flat = 0
        for item, (size, stride) in zip(items, self._dims):
            if type(item) is PyVar and item.dtype is INT32:
                at = int(item.value)
            elif type(item) is int:
                at = item
            else:
                return -1
            if not 0 <= at < size:
                return -1
            flat += at * stride
        return flat

    def __getitem__(self, index: object) -> PyVar:
        item = self._item(index)
        if item >= 0:
            return self.load(item, 1, 1, self.dtype)
        first, count, step = self._flat(index)
        return self.load(first, count, step, self.dtype.with_lanes(self.dtype.lanes * count))

    def __setitem__(self, index: object, value: object) -> None:
        item = self._item(index)
        first, count, step = (item, 1, 1) if item >= 0 else self._flat(index)
        self.store(first, count, step, value)

    def addr_of(self, index: object = 0) -> PyPointer:
        """A pointer to an element; missing trailing indices are 0."""
        items = tuple(index) if isinstance(index, (tuple, list)) else (index,)
        if len(items) > len(self.shape):
            raise type_error(
                f"a buffer of shape {self.shape} takes {len(self.shape)} indices, got {len(items)}",
                "give one index per dimension",
            )
        flat = sum(index_of(item) * stride for item, stride in zip(items, self._steps))
        return PyPointer(self.storage, self.offset + flat * self.dtype.total_bytes, self.dtype, self.scope)

    def __add__(self, n: object) -> PyPointer:
        if self.scope == "constant":  # a table is a pointer, too
            return super().__add__(n)
        return self._no_arithmetic(n)

    __radd__ = __add__

    def __sub__(self, n: object) -> PyPointer:
        return super().__sub__(n) if self.scope == "constant" else self._no_arithmetic(n)

    def _no_arithmetic(self, _other: object) -> NoReturn:
        raise type_error("a buffer cannot be moved or compared", "use a pointer: buf.addr_of(0)")

    __lt__ = __le__ = __gt__ = __ge__ = _no_arithmetic


def pointer_of(x: object, what: str) -> PyPointer:
    """An address argument."""
    if type(x) is PyPointer or isinstance(x, PyPointer):
        return x
    raise type_error(f"{what} must be a pointer or a buffer, got {x!r}", "p + i is the address of p[i]")


def address_of(variable: PyVar) -> PyPointer:
    """A private pointer to the variable's own storage."""
    return PyPointer(Storage(variable.pin(), "a variable"), 0, variable.dtype, "private")


PyVar.addr = property(address_of)
