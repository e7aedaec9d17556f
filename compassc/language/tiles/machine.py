"""What the parser and PySim do differently where tiles are computed."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from compassc.ir.dtypes import DataType
from compassc.ops import get

from ..dispatch import LOCAL, op_api, outside_kernel
from .storage import Shape, Storage
from .values import Computed, Number, Pointer

if TYPE_CHECKING:
    from ..specs import LoopSpec

_T = TypeVar("_T")


class Variable(Protocol):
    """A vector variable."""

    def get(self) -> Computed:
        """Its value."""

    def set(self, value: object) -> None:
        """Assign to it."""


class Work(Protocol):
    """What is emitted, or done, where the machine wants it."""

    def work(self) -> None:
        """Emit it."""


class Machine(Protocol):
    """Statements, as the parser emits them and PySim does them."""

    eager: bool
    """Whether values are computed where they are made; else where they are assigned, stored or needed as a whole."""

    def width(self, columns: int) -> int:
        """Lanes that element-wise work on so many columns is done in."""

    def loop(self, start: int, stop: int, step: int, body: Callable[[Number], None]) -> None:
        """`for i in range(start, stop, step): body(i)`; a single turn without a loop."""

    def when(self, condition: object, body: Callable[[], None]) -> None:
        """`if condition: body()`."""

    def do(self, name: str, *args: object) -> None:
        """An operation as a statement."""

    def let(self, name: str, value: _T) -> _T:
        """A scalar or vector that is computed here, once."""

    def variable(self, name: str, value: object) -> Variable:
        """A variable that begins with a value."""

    def allocate(self, dtype: DataType, count: int, name: str) -> Pointer:
        """A pointer to LSRAM of its own, which has a name in messages ("": any)."""

    def retyped(self, pointer: Pointer, kind: str) -> Pointer:
        """The same address as a pointer to another type."""

    def store(self, pointer: Pointer, value: object) -> None:
        """`pointer[0] = value`, a scalar."""

    def binary(self, symbol: str, a: object, b: object) -> Computed:
        """`a symbol b`, where literals take the type of the other side; also `and` and `or` of conditions."""

    def missing(self, condition: object) -> Computed:
        """`not condition`."""

    def unary(self, symbol: str, a: object) -> Computed:
        """`symbol a`."""

    def constant(self, x: object) -> int | None:
        """A number that is known while the kernel is compiled; None for anything else."""

    def operand(self, x: object, what: str) -> Number:
        """A scalar operand of a tile, checked: a number or a scalar value."""

    def offsets(self, offsets: tuple[Number, ...], sizes: tuple[Number, ...]) -> tuple[Number, ...]:
        """Offsets into a tensor of some sizes, as places are calculated of them: as numbers where they are known by now
        and no sum or product of them is more than an int32 holds."""

    def elementwise(
        self, function: Callable[..., Computed], operands: tuple[object, ...], what: str, key: Hashable
    ) -> object:
        """A tile of a function of elements, where the machine has a way of its own to that, else None; `tile.elementwise` tells what
        the key is."""

    def loaded(self, tensor: object, offsets: object, shape: Shape, fill: object) -> object:
        """A tile of a part of a tensor, where the machine has a way of its own to that, else None."""

    def stored(self, tensor: object, offsets: object, tile: object) -> bool:
        """Write a tile to a tensor, where the machine has a way of its own to that; whether it is done."""

    def values(self, tile: object) -> object:
        """The elements of a tile, where the machine computes at once; None where it needs memory for that."""

    def sample(self, tile: object, dtype: DataType, shape: Shape) -> Computed:
        """The lanes of a tile that is spread over a shape where they are known, else some value of its type."""

    def computed(self, tile: object, to: Storage) -> bool:
        """Compute a tile as a whole, where there is a way of its own to that; whether it is done."""

    def pack(self, packed: Work) -> None:
        """Make the right side of a product, here or before loops that do not change it."""

    def add_up(self, sums: Work) -> None:
        """Add products to a tile, now or together with those that are added to it next."""

    def shared_loop(self, counts: tuple[object, ...], stages: int) -> LoopSpec:
        """What the loop of S.parallel_tiles runs over."""

    def tensor(self, x: object) -> tuple[Pointer, tuple[Number, ...]]:
        """Pointer and shape of a buffer in device memory, checked."""


def machine(what: str) -> Machine:
    """The machine of the kernel that this thread parses or runs."""
    owner = LOCAL.tec or LOCAL.parser
    if owner is None:
        raise outside_kernel(what)
    found: Machine = owner.machine
    return found


@cache
def op(name: str) -> Callable[..., Any]:
    """An operation of the language, as kernels call it."""
    return op_api(get(name))
