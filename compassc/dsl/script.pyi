"""The script module `S`: what kernel authors write kernels with.

`from compassc.dsl import script as S`. Operations, data type names and decorators are looked up on first use, so that
importing this module costs nothing."""

# Written by `make docs` from the declarations of the operations, for editors and type checkers.

from builtins import bool as _bool
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias, TypeVar

import numpy as np
from typing_extensions import Self

from compass_core.arrays import Array

from ..ir.dtypes import DataType
from ..language import axis as axis
from ..tuning.kernels import autotune as autotune
from .decorators import macro as macro
from .decorators import prim_func as prim_func

_T = TypeVar("_T")

class Value(int):
    """A run-time value of a kernel: a scalar, a vector, a mask or a tile."""

    # A number to checkers, for a variable that starts as 0 may be assigned one.
    def __new__(cls, value: Lanes) -> Self: ...
    @property
    def dtype(self) -> DataType:
        """The type of the value."""
    @property
    def addr(self) -> Pointer:
        """The address of a variable."""
    def __getitem__(self, lane: object) -> Any: ...
    def __setitem__(self, lane: object, value: Operand) -> None: ...
    def __add__(self, other: object) -> Value: ...
    def __radd__(self, other: object) -> Value: ...
    def __sub__(self, other: object) -> Value: ...
    def __rsub__(self, other: object) -> Value: ...
    def __mul__(self, other: object) -> Value: ...
    def __rmul__(self, other: object) -> Value: ...
    def __truediv__(self, other: object) -> Value: ...
    def __rtruediv__(self, other: object) -> Value: ...
    def __floordiv__(self, other: object) -> Value: ...
    def __rfloordiv__(self, other: object) -> Value: ...
    def __mod__(self, other: object) -> Value: ...
    def __rmod__(self, other: object) -> Value: ...
    def __and__(self, other: object) -> Value: ...
    def __rand__(self, other: object) -> Value: ...
    def __or__(self, other: object) -> Value: ...
    def __ror__(self, other: object) -> Value: ...
    def __xor__(self, other: object) -> Value: ...
    def __rxor__(self, other: object) -> Value: ...
    def __lshift__(self, other: object) -> Value: ...
    def __rlshift__(self, other: object) -> Value: ...
    def __rshift__(self, other: object) -> Value: ...
    def __rrshift__(self, other: object) -> Value: ...
    def __eq__(self, other: object) -> Any: ...
    def __ne__(self, other: object) -> Any: ...
    def __lt__(self, other: object) -> Any: ...
    def __le__(self, other: object) -> Any: ...
    def __gt__(self, other: object) -> Any: ...
    def __ge__(self, other: object) -> Any: ...
    def __neg__(self) -> Value: ...
    def __invert__(self) -> Value: ...

class Pointer:
    """An address in a kernel. `p + i` is the address of `p[i]`."""

    @property
    def dtype(self) -> DataType:
        """The type pointed to."""
    @property
    def scope(self) -> str:
        """The memory pointed to."""
    @property
    def is_nullptr(self) -> Value:
        """Whether the host passed None."""
    def as_ptr(self, dtype: Dtype) -> Pointer:
        """The same address as a pointer to another type."""
    def addr_of(self, index: object = 0) -> Pointer:
        """The address of an element: `p + index`."""
    def __getitem__(self, index: object) -> Any: ...
    def __setitem__(self, index: object, value: Operand) -> None: ...
    def __add__(self, elements: Operand) -> Pointer: ...
    def __radd__(self, elements: Operand) -> Pointer: ...
    def __sub__(self, elements: Operand) -> Pointer: ...

class Buffer:
    """Memory with a shape: `b[i, j]` is an element."""

    @property
    def dtype(self) -> DataType:
        """The type of an element."""
    @property
    def scope(self) -> str:
        """The memory it lies in."""
    @property
    def shape(self) -> tuple[Value, ...]:
        """The elements of each dimension."""
    def addr_of(self, index: object) -> Pointer:
        """The address of an element."""
    def __getitem__(self, index: object) -> Any: ...
    def __setitem__(self, index: object, value: Operand) -> None: ...
    def __add__(self, elements: Operand) -> Pointer: ...

Operand: TypeAlias = Value | float | np.generic
Address: TypeAlias = Pointer | Buffer
Mask: TypeAlias = Value | str | Sequence[_bool] | Array | None
Dtype: TypeAlias = str | type[Any] | np.dtype[Any] | DataType
Lanes: TypeAlias = Operand | Sequence[Operand] | str
Event: TypeAlias = Value

bf16: TypeAlias = float
bf16x16: TypeAlias = Value
bfloat16: TypeAlias = float
bfloat16x16: TypeAlias = Value
bool: TypeAlias = Value
boolx16: TypeAlias = Value
boolx32: TypeAlias = Value
boolx8: TypeAlias = Value
float16: TypeAlias = float
float16x16: TypeAlias = Value
float16x32: TypeAlias = Value
float32: TypeAlias = float
float32x16: TypeAlias = Value
float32x8: TypeAlias = Value
fp16: TypeAlias = float
fp16x16: TypeAlias = Value
fp16x32: TypeAlias = Value
fp32: TypeAlias = float
fp32x16: TypeAlias = Value
fp32x8: TypeAlias = Value
i16: TypeAlias = Value
i16x16: TypeAlias = Value
i16x32: TypeAlias = Value
i32: TypeAlias = Value
i32x16: TypeAlias = Value
i32x32: TypeAlias = Value
i32x8: TypeAlias = Value
i8: TypeAlias = Value
i8x32: TypeAlias = Value
int16: TypeAlias = Value
int16x16: TypeAlias = Value
int16x32: TypeAlias = Value
int32: TypeAlias = Value
int32x16: TypeAlias = Value
int32x32: TypeAlias = Value
int32x8: TypeAlias = Value
int8: TypeAlias = Value
int8x32: TypeAlias = Value
size_i16: TypeAlias = Value
size_i16x16: TypeAlias = Value
size_i16x32: TypeAlias = Value
size_i32: TypeAlias = Value
size_i32x16: TypeAlias = Value
size_i32x32: TypeAlias = Value
size_i32x8: TypeAlias = Value
size_i8: TypeAlias = Value
size_i8x32: TypeAlias = Value
size_int16: TypeAlias = Value
size_int16x16: TypeAlias = Value
size_int16x32: TypeAlias = Value
size_int32: TypeAlias = Value
size_int32x16: TypeAlias = Value
size_int32x32: TypeAlias = Value
size_int32x8: TypeAlias = Value
size_int8: TypeAlias = Value
size_int8x32: TypeAlias = Value
u16: TypeAlias = Value
u16x16: TypeAlias = Value
u16x32: TypeAlias = Value
u32: TypeAlias = Value
u32x16: TypeAlias = Value
u32x32: TypeAlias = Value
u32x8: TypeAlias = Value
u8: TypeAlias = Value
u8x32: TypeAlias = Value
uint16: TypeAlias = Value
uint16x16: TypeAlias = Value
uint16x32: TypeAlias = Value
uint32: TypeAlias = Value
uint32x16: TypeAlias = Value
uint32x32: TypeAlias = Value
uint32x8: TypeAlias = Value
uint8: TypeAlias = Value
uint8x32: TypeAlias = Value

def ptr(dtype: Dtype, scope: str = "private") -> type[Pointer]:
    """Pointer type of a parameter or return value."""

def grid(*extents: Operand) -> Iterator[Any]:
    """Nested serial loops from 0, outermost first: `for i, j in S.grid(h, w)`."""

def vectorized(start: Operand, stop: Operand | None = None) -> Iterator[Value]:
    """A loop whose body becomes vector operations: `for i in S.vectorized(n)`."""

def unroll(start: Operand, stop: Operand | None = None, step: Operand = 1) -> Iterator[Value]:
    """A loop of constant extent whose body is repeated in the C text: `for i in S.unroll(4)`.

    `i` is an int32 with a known value: also an index of tuples and lists, a shape, an option, a condition for `if`.
    """

def tec_range(start: Operand, stop: Operand | None = None) -> Iterator[Value]:
    """Run the body on every TEC with the TEC's number: `for t in S.tec_range(4)`."""

def pipelined(
    start: Operand,
    stop: Operand | None = None,
    step: Operand | None = None,
    *,
    stages: int = 2,
) -> Iterator[Value]:
    """A loop over tiles whose copies run beside its work: `for t in S.pipelined(0, n, TILE)`.

    Copies between device memory and arrays in SRAM that stand directly in the body are started `stages - 1` turns ahead,
    or waited for later. The arrays have room for several tiles then; a turn finds in them what it copies itself.
    """

def parallel_tiles(*counts: Operand, stages: int = 1) -> Iterator[Any]:
    """Loops from 0 whose turns the TECs share: `for i, j in S.parallel_tiles(rows, cols)`.

    TEC t does the turns t, t + n, t + 2n, ... of all, the last count running fastest. With `stages` from 2 on they are
    pipelined, as by S.pipelined.
    """

def tile_load(
    tensor: Buffer,
    offsets: Operand | Sequence[Operand],
    shape: int | Sequence[int],
    fill: float = 0,
) -> Value:
    """A tile of a tensor in device memory, from the element at `offsets` on.

    `tensor` is a buffer (S.match_buffer), `offsets` has a number per dimension of it, `shape` one or two constants for
    its last ones. Elements beyond the tensor, also in front of it, are `fill`, a number.
    """

def tile_store(tensor: Buffer, offsets: Operand | Sequence[Operand], tile: Value) -> None:
    """Write a tile to a tensor in device memory, from the element at `offsets` on, as far as the tensor goes."""

def tile_full(shape: int | Sequence[int], value: Operand, dtype: Dtype) -> Value:
    """A tile with a value in every element."""

def tile_index(shape: int | Sequence[int], axis: int = -1) -> Value:
    """The number of each element along an axis, an int32: what lies beyond a tensor is found by it."""

def tile_sum(tile: Value, axis: int = -1) -> Value:
    """The sums along an axis, whose size becomes 1, in 32 bits of the elements' kind."""

def tile_max(tile: Value, axis: int = -1) -> Value:
    """The largest elements along an axis, whose size becomes 1."""

def tile_min(tile: Value, axis: int = -1) -> Value:
    """The smallest elements along an axis, whose size becomes 1."""

def tile_dot(a: Value, b: Value, acc: Value | None = None, transpose_b: _bool = False) -> Value:
    """`acc + a @ b` of bytes (int32, wrapping) or floats (float32, fused in the order of the depth).

    a is rows x depth, b depth x columns, or columns x depth with `transpose_b`; acc is rows x columns.
    """

def tile_where(condition: Value, x: Operand, y: Operand) -> Value:
    """x where the condition holds, y elsewhere; each is a tile or a scalar, one of x and y is a tile."""

def meta_var(value: _T) -> _T:
    """Keep a value a Python value when it is assigned to a name in a kernel."""

def alloc(shape: int | Sequence[int], dtype: Dtype, scope: str = "private") -> Pointer:
    """Storage of constant size; the result is a pointer to its first item."""

def alloc_buffer(shape: int | Sequence[int], dtype: Dtype, scope: str = "private") -> Buffer:
    """Storage of constant size; the result is an N-dimensional buffer."""

def alloc_const(shape: int | Sequence[int], dtype: Dtype, data: object) -> Buffer:
    """A read-only table whose content is known when the kernel is built."""

def match_buffer(pointer: Address, shape: object) -> Buffer:
    """View a parameter pointer as an N-dimensional row-major buffer."""

def block(name: str = "", no_realize: _bool = False) -> AbstractContextManager[object]:
    """A schedulable block: `with S.block("name"):`."""

def abs(x: Operand, mask: Mask = None, saturate: _bool = False) -> Value:
    """Absolute value of a scalar or vector.

    The most negative integer wraps to itself, or with `saturate` (vectors only) becomes the largest one. Unsigned
    values stay as they are; floating-point values lose their sign bit.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `saturate`: clip the result to the range of its type instead of wrapping
    """

def aiff(ctrl_desc: object, param_desc: object, act_desc: object) -> None:
    """Run the fixed-function unit (AIFF) on three descriptor chains and wait.

    Each argument points to the beginning of a chain, in a parameter of uint32 or int32 that a `DescChainArray` is passed
    for. Simulator and PySim have one model of the unit: what open programs prove to the bit runs, and everything else is
    refused, by register and value, before anything is written (docs/aiff.md).
    """

def alloc_events(count: int) -> Any:
    """Reserve `count` events of this TEC: one event, or a tuple to unpack into names."""

def asm(
    template: str,
    outputs: object = None,
    inputs: object = None,
    clobbers: object = None,
    qualifiers: object = None,
) -> None:
    """Inline assembly of the NPU, in the C text as it is given.

    `outputs` and `inputs` map names to pairs of a constraint and a value: a scalar, a register or a mask, for outputs a
    variable. Neither the simulator nor PySim runs it: both say so when a kernel comes to it.
    """

def assert_(cond: Operand, text: str = "") -> None:
    """State that a condition holds: PySim and checked runs stop with `text` where it does not. Ours.

    Plain runs have no code of it. A condition that is known when the kernel is compiled is checked then.
    """

def assume(cond: Operand) -> None:
    """Promise that a condition holds from here to the end of the block, so that the compiler counts on it. Ours.

    Comparisons of integers that do not change, and `n % 16 == 0`, take away masks of tails, bounds and divisions that are
    not needed then. Where a promise does not hold the results are undefined in plain runs; PySim and checked runs tell it,
    as they do of `S.assert_`.
    """

def assume_unclipped() -> None:
    """Promise that no sum of `S.vdpa` or `S.vqdpa` in this kernel file leaves the range of its accumulator. Ours.

    The simulator then needs not look for sums to clip, which hosts without an instruction for it spend a third of the time
    of products on; for the NPU it changes nothing. Where the promise does not hold the results are undefined in plain runs;
    PySim and checked runs clip as always.
    """

def async_aiff(ctrl_desc: object, param_desc: object, act_desc: object, event: Event | None) -> None:
    """Start the fixed-function unit (AIFF) in the background; `event` is set when it is done. Otherwise as `S.aiff`.

    `event`: an event of `S.alloc_events`, by which `S.wait_events` waits for the copy
    """

def async_dma_copy(
    dst: Address,
    src: Address,
    width: Operand,
    src_stride: Operand | None = None,
    times: Operand = 1,
    dst_stride: Operand | None = None,
    event: Event | None = None,
) -> None:
    """Start a copy in the background; `event` tells when it is done. Copies on one event run in order.

    `src_stride`: elements from one row of the source to the next

    `times`: number of rows

    `dst_stride`: elements from one row of the destination to the next

    `event`: an event of `S.alloc_events`, by which `S.wait_events` waits for the copy
    """

def atomic_add(ptr: Address, value: Operand) -> Value:
    """Add `value` to the integer at `ptr` in one step, and give what it was before. Ours.

    The memory is int32 or uint32, shared or global. Sums wrap. No other TEC's atomic operation on this integer comes
    between reading and writing it; plain accesses to it by other TECs need a barrier between.
    """

def atomic_compare_exchange(ptr: Address, expected: Operand, value: Operand) -> Value:
    """Replace the integer at `ptr` by `value` if it is `expected`, in one step, and give what it was before. Ours.

    It was replaced where the result equals `expected`. Otherwise as `S.atomic_add`.
    """

def atomic_exchange(ptr: Address, value: Operand) -> Value:
    """Replace the integer at `ptr` by `value` in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """

def atomic_max(ptr: Address, value: Operand) -> Value:
    """Replace the integer at `ptr` by `value` where that is greater, in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """

def atomic_min(ptr: Address, value: Operand) -> Value:
    """Replace the integer at `ptr` by `value` where that is less, in one step, and give what it was before. Ours.

    Otherwise as `S.atomic_add`.
    """

def barrier() -> None:
    """Wait until every TEC is here; the TEC's own events are finished first."""

def cast(
    x: Operand,
    dtype: Dtype,
    part: Literal["all", "low", "high", "even", "odd", "ll", "lh", "hl", "hh"] = "all",
    saturate: _bool | None = None,
) -> Value:
    """Convert a scalar, a vector, a list of scalars (vector literal) or a list of vectors (merge) to another type.

    A dtype without lanes keeps the lanes of a vector. `part` takes the low, high, even or odd half, or a quarter, of a
    register for a widening conversion. `saturate` clips integers instead of wrapping them.

    `dtype`: the type to convert to; without a lane count it keeps that of x

    `part`: `"all"`, a half (`"low"`, `"high"`, `"even"`, `"odd"`) or a quarter (`"ll"`, `"lh"`, `"hl"`, `"hh"`)

    `saturate`: clip integers to the range of the new type instead of wrapping
    """

def ceil(x: Operand) -> Value:
    """Smallest integer value not below x, as a floating-point number; exact. Between -1 and 0 it is -0.0."""

def ceildiv(x: Operand, y: Operand) -> Value:
    """Quotient of two integer scalars, rounded up.

    Computed as (x + y - 1) / y in the common type of x and y, where every step wraps and the division truncates, so
    it is the ceiling only for x >= 0 and y > 0 whose sum stays in range. It is 0 where y is 0.
    """

def clip(x: Operand, min_val: Operand, max_val: Operand, mask: Mask = None) -> Value:
    """x limited to the range from `min_val` to `max_val`.

    Literal bounds beyond the range of x's type are cut to it. Bounds may be scalars or vectors and must fit the type
    of x; `min_val <= max_val` is the caller's duty. NaN lanes of a vector stay NaN. Inactive lanes keep x; a scalar
    call ignores the mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def clz(x: Operand, mask: Mask = None) -> Value:
    """Leading zero bits of a scalar or of each lane; 0 gives all bits, a negative value none. A scalar call ignores the
    mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def const_mask(x: str | Sequence[_bool] | Array) -> Value:
    """A mask from bools, a NumPy bool array or a mask string, lane 0 first."""

def cos(x: Operand) -> Value:
    """Cosine of an angle in radians; NaN for an infinite angle."""

def dma_copy(
    dst: Address,
    src: Address,
    width: Operand,
    src_stride: Operand | None = None,
    times: Operand = 1,
    dst_stride: Operand | None = None,
    only_read: _bool = False,
) -> None:
    """Copy `times` rows of `width` elements by DMA and wait. Strides are elements between rows, default `width`.

    `only_read` promises that the copy is only read, by `dst`, a pointer in a variable of its own, and no further than it
    reaches, and that nothing writes the source meanwhile: the simulator then may read the source in its place. PySim, checks
    and profiles copy. Ours.

    `src_stride`: elements from one row of the source to the next

    `times`: number of rows

    `dst_stride`: elements from one row of the destination to the next
    """

def dma_memset(ptr: Address, value: Operand, num: Operand) -> None:
    """Fill `num` scalar elements with `value` by DMA and wait."""

def dma_transpose2d(
    dst: Address,
    src: Address,
    row: Operand,
    col: Operand,
    dst_stride: Operand | None = None,
    src_stride: Operand | None = None,
) -> None:
    """Transpose a matrix of `row` x `col` elements by DMA and wait. Strides are elements between rows.

    `dst_stride`: elements from one row of the destination to the next

    `src_stride`: elements from one row of the source to the next
    """

def dma_upsample(
    dst: Address,
    src: Address,
    h_scale: Operand,
    w_scale: Operand,
    c: Operand,
    w: Operand,
    src_c_stride: Operand | None = None,
    dst_c_stride: Operand | None = None,
    dst_w_stride: Operand | None = None,
) -> None:
    """Replicate one row of `w` pixels of `c` elements `w_scale` times across and `h_scale` times down, by DMA."""

def erf(x: Operand) -> Value:
    """Gauss error function, 2/sqrt(pi) times the integral of exp(-u*u) from 0 to x."""

def exp(x: Operand) -> Value:
    """Natural exponential e^x.

    The device's own algorithm, computed in float32. Results below the smallest normal float32 become 0; above about
    88.38 the result is infinite.
    """

def exp2(x: Operand) -> Value:
    """2 to the power x; exact for integral x within range, infinite on overflow."""

def floor(x: Operand) -> Value:
    """Largest integer value not above x, as a floating-point number; exact."""

def flush_cache(invalidate: _bool = True) -> None:
    """Write the data cache back to DDR, and drop its content if `invalidate`. Nothing to do in PySim."""

def fma(acc: Operand, x: Operand, y: Operand, mask: Mask = None) -> Value:
    """acc + x*y with a single rounding, float32 only.

    With a vector acc, x and y may be scalars. Inactive lanes keep acc; a scalar call ignores the mask. The argument acc
    itself is not changed.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def free_events(*events: Event) -> None:
    """Wait for the given events and make them free again."""

def get_group_id() -> Value:
    """The number of the group of TECs, from 0: a kernel that asks runs once on every core of the target, a group on each."""

def get_local_id() -> Value:
    """The number of this TEC, from 0."""

def get_local_size() -> Value:
    """How many TECs run the kernel."""

def get_num_groups() -> Value:
    """How many groups run the kernel: the number of cores of the target."""

def i(x: Operand) -> Value:
    """Convert an integer to the signed type of the same width; wraps."""

def iota(dtype: Dtype, lanes: int, start: Operand = 0, step: float = 1) -> Value:
    """The vector `start, start + step, start + 2 * step, ...`. Ours.

    `dtype` is the type of an element and `lanes` their number, any from 2. `step` is known when the kernel is compiled,
    `start` may be a run-time scalar, which is converted to `dtype`. Sums of integers with a run-time start wrap; of known
    ones every lane must fit. Of floats `lane * step` is rounded, then the sum.

    `lanes`: lanes of the result, a constant above 1
    """

def isfinite(x: Operand, mask: Mask = None) -> Value:
    """Whether x is neither NaN nor infinite: a mask for a vector (inactive lanes false), a bool for a scalar, which
    ignores the mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def isinf(x: Operand, mask: Mask = None) -> Value:
    """Whether x is +inf or -inf: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the
    mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def isnan(x: Operand, mask: Mask = None) -> Value:
    """Whether x is NaN: a mask for a vector (inactive lanes false), a bool for a scalar, which ignores the mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def log(x: Operand) -> Value:
    """Natural logarithm. Zero gives -inf, a negative number NaN."""

def max(x: Operand, y: Operand, mask: Mask = None, r: Operand | None = None) -> Value:
    """Larger of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def min(x: Operand, y: Operand, mask: Mask = None, r: Operand | None = None) -> Value:
    """Smaller of x and y, lane by lane or of two scalars.

    Of a number and a NaN it is the number. Two scalars take their common type and ignore mask and `r`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def perf_tick_begin(cid: int) -> None:
    """Begin of the region `cid` for the profiler. Nothing to do in PySim."""

def perf_tick_end(cid: int) -> None:
    """End of the region `cid` for the profiler. Nothing to do in PySim."""

def pow(x: Operand, exponent: Operand) -> Value:
    """x to the power `exponent`.

    Either argument may be a scalar. x^0 and 1^y are 1, also for NaN; a negative base with a fractional exponent gives
    NaN.
    """

def printf(fmt: str, *args: object) -> None:
    """Print formatted text; no newline is added. Takes no flags, widths or precisions."""

def reinterpret(x: Operand, dtype: Dtype) -> Value:
    """Use the bit pattern of a value as another type of the same total width.

    A pointer becomes a 32-bit integer; an integer becomes a pointer with a target such as `"lsram i8*"`.
    """

def rint(x: Operand, mask: Mask = None) -> Value:
    """Nearest integer value, ties to even, as a floating-point number. NaN and the infinities stay.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def rsqrt(x: Operand) -> Value:
    """Reciprocal square root, computed in float32 as sqrt(1/x).

    +0.0 gives inf and -0.0 gives -inf; a negative number gives NaN.
    """

def sin(x: Operand) -> Value:
    """Sine of an angle in radians; NaN for an infinite angle."""

def sqrt(x: Operand) -> Value:
    """Square root, correctly rounded. A negative number gives NaN, -0.0 itself."""

def tag(node: _T, attr: str) -> _T:
    """Attach a hint to the result of an operation. `no_zip` on a cast from a 16-bit float to float32 lets X2 deliver
    even lanes before odd ones; PySim keeps the order.
    """

def tail_mask(n: Operand, lanes: int) -> Value:
    """The mask of `lanes` lanes whose first `n` are active: all of them for a larger `n`, none for a negative one.

    `lanes`: lanes of the result, a constant above 1
    """

def tanh(x: Operand) -> Value:
    """Hyperbolic tangent; the infinities give +-1."""

def u(x: Operand) -> Value:
    """Convert an integer to the unsigned type of the same width; wraps."""

def vadd(
    x: Operand,
    y: Operand,
    mask: Mask = None,
    saturate: _bool = False,
    out_sign: Literal["s", "u"] | None = None,
    r: Operand | None = None,
) -> Value:
    """Lane-wise addition, `x + y`.

    Integer sums wrap in the result type, or with `saturate` are clipped to its range. Floating-point sums are rounded
    once. Signed and unsigned arguments mix only with `out_sign` ("u" or "s"), which chooses the result's sign.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `saturate`: clip the result to the range of its type instead of wrapping

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vaddh(x: Operand, y: Operand) -> Value:
    """Saturating sums of neighbouring lanes.

    The sums of the pairs of x fill the low half of the result, those of y the high half. Sums are clipped to the
    range of the type.
    """

def vall(mask: Mask) -> Value:
    """Whether every lane of a mask expression is true, as a scalar bool."""

def vand(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Bitwise AND of integer vectors, logical AND of masks. Inactive lanes: false in masks, else undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vany(mask: Mask) -> Value:
    """Whether at least one lane of a mask expression is true, as a scalar bool."""

def vbcast(x: Operand, mask: Mask = None, lanes: int | None = None) -> Value:
    """A typed scalar in every lane; inactive lanes are unspecified.

    A literal needs a type first: `S.i16(5)`. A bool gives a mask, needs `lanes` and takes no mask.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `lanes`: lanes of the result; by default one register of the type of x
    """

def vbrevs(x: Operand, mask: Mask = None) -> Value:
    """The bits of each element in reverse order.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vceq(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x == y. -0.0 equals +0.0; NaN equals nothing.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcge(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x >= y; false where either is NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcgt(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x > y; false where either is NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcle(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x <= y; false where either is NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcls(x: Operand, mask: Mask = None, out_sign: Literal["s", "u"] | None = None) -> Value:
    """How many bits below the sign bit equal it, counted from the top; 0 and -1 give all of them.

    `out_sign` ("u" or "s") chooses the result's sign, by default signed.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default
    """

def vclt(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x < y; false where either is NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcneq(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Mask of the active lanes where x != y; true where either is NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcompc(x: Operand, y: Operand, mask: Mask) -> Value:
    """Pack the active lanes of `x` at the bottom, followed by the first lanes of `y`.

    Both are one register of the same type. With n active lanes, result lane n is lane 0 of `y`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vcompt(x: Operand, mask: Mask) -> Value:
    """Pack the active lanes at the bottom, zero the rest.

    Active lanes keep their order. The vector is one register.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vconcat(inps: Sequence[Value], part: Literal["all", "low", "high", "even", "odd"] = "all") -> Value:
    """Concatenate vectors, or the low, high, even or odd half of each of them.

    `inps` is a tuple or list of at least two vectors of one type that fill whole registers; the result has the lanes of
    all of them, or half as many.

    `part`: which lanes: `"all"`, or the `"low"`, `"high"`, `"even"` or `"odd"` half
    """

def vcumsum(x: Operand) -> Value:
    """Prefix sums of one register: lane i is the sum of the lanes 0 to i. Ours.

    Integer sums wrap. Floats are added pairwise, at distances of 1, 2, 4, ... lanes, with a rounding each.
    """

def vdiv(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Lane-wise division.

    Integer quotients are rounded toward zero and saturate: the smallest value divided by -1 is the largest one, where
    scalars wrap; dividing by 0 gives 0. float32 follows IEEE: x/0 is infinite, 0/0 NaN.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vdot(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Sum of the products of each two neighbouring lanes, in twice the width.

    The exact sum is clipped once to the result's range; the result is signed if x or y is. Inactive lanes contribute
    nothing; where both lanes are inactive the result is undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vdpa(acc: Operand, x: Operand, y: Operand, mask: Mask = None) -> Value:
    """acc plus the products of each two neighbouring lanes.

    acc has twice the element width and half the lanes of x, and is unsigned only if both x and y are; these may mix.
    The exact sum is clipped once to the range of acc's type. The mask has the lanes of x; inactive ones contribute
    nothing.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vfmae(acc: Operand, x: Operand, y: Operand, mask: Mask = None) -> Value:
    """acc plus the products of the even lanes of 16-bit floating-point vectors.

    acc is float32x8, x and y float16x16 or bfloat16x16. The mask has the lanes of acc; inactive ones keep acc.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vfmao(acc: Operand, x: Operand, y: Operand, mask: Mask = None) -> Value:
    """acc plus the products of the odd lanes of 16-bit floating-point vectors; otherwise as `S.vfmae`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vinv(x: Operand, mask: Mask = None) -> Value:
    """Bitwise NOT of an integer vector, logical NOT of a mask. Inactive lanes: false in masks, else undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vload(ptr: Address, mask: Mask = None, lanes: int | None = None, stride: Operand = 1) -> Value:
    """Load a vector from contiguous or strided elements.

    Lane i is element `i * stride` behind `ptr`, or 0 where the mask is inactive; inactive elements are not read.
    `lanes` defaults to one register for a scalar pointer and to the pointer's own lanes for a vector pointer.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `lanes`: lanes of the result; by default one register, or those of a vector pointer

    `stride`: elements between two lanes in memory, at least 1
    """

def vload_gather(ptr: Address, indices: Operand, mask: Mask = None) -> Value:
    """Load the elements at the 16-bit element offsets `indices` behind `ptr`; inactive lanes are 0.

    The byte offset is unsigned and 16 bits wide, so the reachable span is 64 KiB.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vmaxh(x: Operand, y: Operand) -> Value:
    """Larger of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""

def vminh(x: Operand, y: Operand) -> Value:
    """Smaller of each two neighbouring lanes: pairs of x fill the low half of the result, pairs of y the high half."""

def vmma(acc_ptr: Address, x: Operand, y: Operand) -> None:
    """Product of two 4x4 matrices, added to 16 float32 in memory. X2 only; otherwise as `S.vmml`."""

def vmml(ptr: Address, x: Operand, y: Operand) -> None:
    """Product of two 4x4 matrices, written to memory. X2 only.

    x (by rows) and y (by columns) are float16x16 or bfloat16x16; `ptr` points to 16 float32 that take the product by
    rows: `ptr[4*i + j] = sum of x[4*i + k] * y[4*j + k] over k`.
    """

def vmod(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Lane-wise remainder of the division that rounds toward zero; it has the sign of x, and is 0 where y is 0.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vmul(
    x: Operand,
    y: Operand,
    mask: Mask = None,
    out_sign: Literal["s", "u"] | None = None,
    r: Operand | None = None,
) -> Value:
    """Lane-wise multiplication in one width.

    Integer products keep their low bits; floating-point products are rounded once. Signed and unsigned arguments mix
    only with `out_sign` ("u" or "s"), which chooses the result's sign.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vmulh(
    x: Operand,
    y: Operand,
    mask: Mask = None,
    out_sign: Literal["s", "u"] | None = None,
    r: Operand | None = None,
) -> Value:
    """Products of the high half of the lanes, in twice the width; otherwise as `S.vmull`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vmull(
    x: Operand,
    y: Operand,
    mask: Mask = None,
    out_sign: Literal["s", "u"] | None = None,
    r: Operand | None = None,
) -> Value:
    """Products of the low half of the lanes, in twice the width.

    8- and 16-bit lanes give one lane of double width each. Of 32-bit lanes the 64-bit product fills two lanes: the low
    word first. The mask has the lanes of x, `r` those of the result. `out_sign` ("u" or "s") chooses the result's sign
    and allows signed with unsigned.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vnsr(
    x: Operand,
    shift: Operand,
    mask: Mask = None,
    saturate: _bool = False,
    out_sign: Literal["s", "u"] | None = None,
    with_round: _bool = False,
    to_h: _bool = False,
) -> Value:
    """Narrowing shift right: shift, round if asked, clip or truncate to a narrower element.

    The results are 8-bit, or with `to_h` 16-bit, and stay in the low part of their old slots: with elements k times as
    narrow, result lane k*i holds element i and the lanes between are 0, as are those of inactive elements. The shift is
    arithmetic for signed x; its amount is read as unsigned and may have the other sign than x. `with_round` rounds to
    nearest, ties to even; `saturate` clips to the result's range; `out_sign` ("u" or "s") chooses the result's sign.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `saturate`: clip the result to the range of its type instead of wrapping

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `with_round`: round to nearest, ties to even, instead of dropping bits

    `to_h`: narrow to 16 bits instead of 8
    """

def vnsrsr(
    x: Operand,
    shift: Operand,
    mask: Mask = None,
    out_sign: Literal["s", "u"] | None = None,
    to_h: _bool = False,
) -> Value:
    """Narrowing shift right with rounding and saturation: `S.vnsr` with `saturate` and `with_round`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `to_h`: narrow to 16 bits instead of 8
    """

def vor(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Bitwise OR of integer vectors, logical OR of masks. Inactive lanes: false in masks, else undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vpcnt(x: Operand, mask: Mask = None, out_sign: Literal["s", "u"] | None = None) -> Value:
    """How many bits of each element are 1. `out_sign` ("u" or "s") chooses the result's sign, by default that of x.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default
    """

def vqdot(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Sum of the products of each four neighbouring lanes, in 32 bits.

    8-bit integers: one result lane per four, signed if x or y is. 16-bit floating point: each sum lies in an even lane
    of the float32 result, odd lanes are undefined. Inactive lanes contribute nothing; without any active lane the
    result is undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vqdpa(acc: Operand, x: Operand, y: Operand, mask: Mask = None) -> Value:
    """acc plus the products of each four neighbouring lanes.

    8-bit integers: acc is a 32-bit vector of a quarter of the lanes, unsigned only if both x and y are, and the exact
    sum is clipped to its range. 16-bit floating point (X2 only): acc is float32 of half the lanes; each sum goes to an even lane, rounded once, odd lanes
    keep acc. The mask has the lanes of x; inactive ones contribute nothing.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vreplic(x: Operand, index: Operand = 0) -> Value:
    """Lane `index` in every lane.

    The vector fills whole registers. The index is at least 0 and less than the number of lanes: one that is known is
    checked when the kernel is built, a run-time one in PySim.
    """

def vrevs(x: Operand) -> Value:
    """Reverse the order of the lanes."""

def vror(x: Operand, shift: Operand, mask: Mask = None) -> Value:
    """Rotate right by the shift, read as unsigned, modulo the element's bits. The shift has the type of x.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vrpadd(x: Operand, mask: Mask = None) -> Value:
    """Sum of the active lanes, in lane 0; the other lanes are undefined.

    Integer sums wrap. Floating-point vectors are summed in float32 (16-bit types give a float32 vector of half the
    lanes): in each register lanes i and i+8 of the 16-bit types first, then neighbours in a tree; the registers' sums
    are added in order.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vrpmax(x: Operand, mask: Mask = None, return_idx: _bool = False) -> Any:
    """Largest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `return_idx`: also give the index of the lane found
    """

def vrpmin(x: Operand, mask: Mask = None, return_idx: _bool = False) -> Any:
    """Smallest active lane, in lane 0; the other lanes are undefined.

    With `return_idx` (not on X2) lane 1 holds the lowest index of that value, as an integer of the element's width
    whatever the element type: read it with `S.reinterpret`. At least one lane must be active.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `return_idx`: also give the index of the lane found
    """

def vsel(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """`x` where the mask is active, `y` elsewhere.

    `mask`: which lanes come from x; None means all
    """

def vshfl(x: Operand, shift: Operand) -> Value:
    """Rotate the lanes towards lane 0 by `shift`.

    Result lane i is lane (i + shift) modulo the lanes. The vector fills whole registers; on one register the shift may
    be a run-time int32, on several it is a constant. It must be from 0 to the lanes minus 1.
    """

def vsl(x: Operand, shift: Operand, mask: Mask = None, saturate: _bool = False, r: Operand | None = None) -> Value:
    """Shift left; with `saturate` (signed x only) the exact value is clipped to the range of the type.

    The shift has the width of x, either sign, and is read as unsigned. An amount of all bits or more gives 0, or with
    `saturate` the limit on x's side.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `saturate`: clip the result to the range of its type instead of wrapping

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vsldl(x: Operand, y: Operand, shift: Operand) -> Value:
    """The lanes of `x` followed by `y`, from lane `shift` on.

    As many lanes as `x` has, which fills whole registers; `shift` is a constant from 0 to the lanes minus 1.
    """

def vsort(x: Operand, descending: _bool = False) -> Value:
    """The lanes of one register in ascending order, or `descending`. Ours.

    The result has the lanes of x in another order in any case; where some are NaN, which is neither less nor greater than
    anything, they are not sorted. Equal lanes, such as -0.0 and 0.0, stand in no certain order.
    """

def vsplit(x: Operand) -> tuple[Value, ...]:
    """The registers of a vector of several registers, as a tuple to unpack into names.

    The vector fills whole registers, at least two.
    """

def vsr(x: Operand, shift: Operand, mask: Mask = None, with_round: _bool = False, r: Operand | None = None) -> Value:
    """Shift right, arithmetic for signed x, logical for unsigned.

    The shift has the type of x and is read as unsigned; an amount of all bits or more leaves 0, or -1 for a negative x.
    With `with_round` the result is the nearest integer to x / 2^shift, ties to even.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `with_round`: round to nearest, ties to even, instead of dropping bits

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vstore(value: Operand, ptr: Address, mask: Mask = None, stride: Operand = 1) -> None:
    """Store the active lanes of a vector to contiguous or strided elements.

    Lane i goes to element `i * stride` behind `ptr`; inactive elements are not touched. The value has the elements of
    `ptr`, whose sign may be another one: convert it with S.cast, or the pointer with `as_ptr`.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `stride`: elements between two lanes in memory, at least 1
    """

def vstore_scatter(value: Operand, ptr: Address, indices: Operand, mask: Mask = None) -> None:
    """Store the active lanes at the 16-bit element offsets `indices` behind `ptr`; of equal offsets the highest lane
    wins.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vsub(
    x: Operand,
    y: Operand,
    mask: Mask = None,
    saturate: _bool = False,
    out_sign: Literal["s", "u"] | None = None,
    r: Operand | None = None,
) -> Value:
    """Lane-wise subtraction, `x - y`.

    Integer differences wrap in the result type, or with `saturate` are clipped to its range (a negative one to 0 in an
    unsigned result). Floating-point differences are rounded once. Signed and unsigned arguments mix only with
    `out_sign` ("u" or "s"), which chooses the result's sign.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all

    `saturate`: clip the result to the range of its type instead of wrapping

    `out_sign`: sign of an integer result: `"s"`, `"u"`, or None for the default

    `r`: value of inactive lanes, a scalar or vector that fits the result; without it the mask is ignored
    """

def vsubh(x: Operand, y: Operand) -> Value:
    """Saturating differences of neighbouring lanes, even minus odd.

    The differences of the pairs of x fill the low half of the result, those of y the high half.
    """

def vtbl(table: Sequence[Value], indices: Operand) -> Value:
    """Look up every lane in the concatenation of 2 to 4 registers; out of range gives 0.

    `table` is a tuple of registers of one type, `indices` one register of integers as wide as its elements.
    """

def vxor(x: Operand, y: Operand, mask: Mask = None) -> Value:
    """Bitwise exclusive OR of integer vectors or masks. Inactive lanes: false in masks, else undefined.

    `mask`: active lanes: a mask string, a list of bools, a bool array or a mask value; None means all
    """

def vxth(x: Operand) -> Value:
    """Extend the high half of an integer register to elements twice as wide."""

def vxtl(x: Operand) -> Value:
    """Extend the low half of an integer register to elements twice as wide."""

def vzip(x: Operand, y: Operand, part: Literal["all", "low", "high", "even", "odd"] = "all") -> Value:
    """Interleave the lanes of two vectors, or of one half of each.

    x gives the even lanes of the result, y the odd ones. With `"all"` the result has twice the lanes; with a half it has
    as many as x, which then fills whole registers.

    `part`: which lanes: `"all"`, or the `"low"`, `"high"`, `"even"` or `"odd"` half
    """

def wait_events(*events: Event) -> None:
    """Wait until everything started on the given events is done."""
