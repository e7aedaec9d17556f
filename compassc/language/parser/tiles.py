"""Tiles while a kernel is parsed: their work as statements, and names for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compass_core.errors import CompassError

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, DataType, pointer_type
from ...ops.args import known_int
from ...ops.typing import is_literal
from ..specs import LoopSpec
from ..tiles.dot import Sums
from ..tiles.machine import Work, op
from ..tiles.storage import Shape, Storage
from ..tiles.tile import Constant, Stored, Tile, copied, error
from ..tiles.values import Number
from . import products
from .access import resolve
from .context import FunctionContext
from .errors import language_error
from .operators import binary, logical, unary
from .values import ZERO, BufferValue, PointerValue, Value, kind_name

WIDTH = 32
"""Lanes of element-wise work: a register of bytes, or several registers that are worked on side by side."""


class _Assigned:
    """A vector variable."""

    def __init__(self, fp: FunctionContext, name: str, value: Value) -> None:
        self.fp, self.value = fp, Value(E.Var(name, value.dtype))
        fp.emit(S.Let, self.value.expr, value.expr)

    def get(self) -> Value:
        return self.value

    def set(self, value: Value) -> None:
        self.fp.emit(S.Assign, self.value.expr, value.expr)


class IRMachine:
    """Work on tiles as statements of the function that is parsed."""

    eager = False

    def __init__(self, current: Callable[[], FunctionContext]) -> None:
        """`current` gives the function that is parsed."""
        self.current = current

    @property
    def fp(self) -> FunctionContext:
        return self.current()

    def _name(self, word: str) -> str:
        """A name that nothing else of the function has: IR text keeps it."""
        numbers = self.fp.numbers
        numbers[word] = numbers.get(word, -1) + 1
        return f"{word}_t{numbers[word]}"

    @staticmethod
    def width(columns: int) -> int:
        return WIDTH

    def loop(self, start: int, stop: int, step: int, body: Callable[[object], None]) -> None:
        if start + step >= stop:
            if start < stop:
                body(start)
            return
        var = E.Var(self._name("i"), INT32, True)
        inner = self._inside(lambda: body(Value(var)))
        self.fp.emit(S.For, var, "serial", *(E.IntImm(INT32, n) for n in (start, stop, step)), inner)

    def _inside(self, body: Callable[[], None]) -> S.Body:
        fp = self.fp
        with fp.helpers.run(False):
            return fp.apart(body)[1]

    def when(self, condition: Value, body: Callable[[], None]) -> None:
        if isinstance(condition, Value):
            self.fp.emit(S.IfThenElse, condition.expr, self._inside(body), ())
        elif condition:
            body()

    def do(self, name: str, *args: object) -> None:
        with self.fp.helpers.run(False):
            self.fp.emit(S.Evaluate, op(name)(*args).expr)

    def let(self, name: str, value: Any) -> Any:
        if not isinstance(value, Value) or isinstance(value.expr, (E.IntImm, E.FloatImm)):
            return value
        var = E.Var(self._name(name), value.dtype)
        self.fp.emit(S.Let, var, value.expr)
        return Value(var)

    def variable(self, name: str, value: Value) -> _Assigned:
        return _Assigned(self.fp, self._name(name), value)

    def allocate(self, dtype: DataType, count: int, name: str) -> PointerValue:
        data = E.Var(name or self._name("tile"), pointer_type(dtype, "lsram"))
        self.fp.emit(S.Alloc, E.Buffer(data, dtype, (E.IntImm(INT32, count),)))
        return PointerValue(dtype, data, ZERO)

    def retyped(self, pointer: PointerValue, kind: str) -> PointerValue:
        moved = pointer.as_ptr(kind)
        var = E.Var(self._name("words"), pointer_type(moved.elem, moved.scope))
        self.fp.emit(S.Let, var, moved.expr)
        return PointerValue(moved.elem, var, ZERO)

    def store(self, pointer: PointerValue, value: object) -> None:
        self.fp.append(resolve(pointer, 0).store(value))

    @staticmethod
    def binary(symbol: str, a: object, b: object) -> object:
        return logical(symbol, a, b) if symbol in ("and", "or") else binary(symbol, a, b)

    @staticmethod
    def missing(condition: object) -> object:
        return unary("not", condition) if isinstance(condition, Value) else not condition

    @staticmethod
    def unary(symbol: str, a: object) -> object:
        return unary(symbol, a)

    @staticmethod
    def constant(x: object) -> int | None:
        number = known_int(x)
        return number if type(number) is int else None

    @staticmethod
    def operand(x: object, what: str) -> object:
        if is_literal(x) or (isinstance(x, Value) and x.dtype.is_scalar):
            return x
        raise error(f"{what} with {kind_name(x)}", "tiles go together with tiles, scalars and numbers")

    @staticmethod
    def offsets(offsets: tuple[Number, ...], sizes: tuple[Number, ...]) -> tuple[Number, ...]:
        return offsets

    @staticmethod
    def elementwise(function: object, operands: object, what: str, key: object) -> None:
        return None

    @staticmethod
    def loaded(tensor: object, offsets: object, shape: Shape, fill: object) -> None:
        return None

    @staticmethod
    def stored(tensor: object, offsets: object, tile: Tile) -> bool:
        return False

    @staticmethod
    def values(tile: object) -> None:
        return None

    @staticmethod
    def sample(tile: object, dtype: DataType, shape: Shape) -> Value:
        return Value(E.Var("sample", dtype.with_lanes(WIDTH)))

    def computed(self, tile: object, to: Storage) -> bool:
        """A number is what products may be added to."""
        if not isinstance(tile, Constant) or to.is_column:
            return False
        self.add_up(Sums.of(tile, to))
        return True

    def pack(self, packed: Work) -> None:
        products.await_packed(self.fp, packed)

    def add_up(self, sums: Work) -> None:
        products.await_sums(self.fp, sums)

    @staticmethod
    def shared_loop(counts: tuple[Value, ...], stages: int) -> LoopSpec:
        return LoopSpec("parallel_tiles", counts, (("stages", stages),) if stages > 1 else ())

    @staticmethod
    def tensor(x: object) -> tuple[PointerValue, tuple[object, ...]]:
        if not isinstance(x, BufferValue) or not x.scope.startswith("global"):
            raise error(
                f"a tensor is a buffer in device memory, this is {kind_name(x)}",
                "give the parameter a shape: t = S.match_buffer(p, (rows, cols))",
            )
        return x.addr_of(0), x.shape


def assign_tile(fp: FunctionContext, name: str, value: Tile) -> None:
    """`name = tile`: memory of its own for a new name; else the tile that has the name changes."""
    old = fp.scope.local(name)
    if old is None:
        made = value if isinstance(value, Stored) and value.own else copied(value, name)
        fp.define(name, made.held())
        return
    if not isinstance(old, Stored) or old.shape != value.shape or old.dtype is not value.dtype:
        was = repr(old) if isinstance(old, Stored) else kind_name(old)
        raise language_error(
            "type-change",
            f"{name!r} is {was} and cannot become {value!r}",
            "use another name, or convert the tile",
            *fp.scope.defined_here(name),
        )
    if value is old:
        return
    to = old.storage
    (value.stored() if value.reads(to.base, to) else value).write(to)


def parse_shared_loop(fp: FunctionContext, spec: LoopSpec, names: list[str], body: Callable[[], None]) -> None:
    """`for i, j in S.parallel_tiles(m, n)`: one loop over all turns of the TEC, from which i and j are computed."""
    machine = IRMachine(lambda: fp)
    counts = [machine.let("count", _count(c)) for c in spec.args]
    total = counts[0]
    for c in counts[1:]:
        total = binary("*", total, c)
    turn = E.Var(names[0] if len(names) == 1 else machine._name("turn"), INT32, True)

    def inside() -> None:
        rest = Value(turn)
        places: list[object] = []
        for c in reversed(counts[1:]):
            places.append(machine.let("_place", _divided("mod", rest, c)))
            rest = machine.let("_place", _divided("div", rest, c))
        for name, place in zip(names, [rest, *reversed(places)]):
            fp.define(name, place)
            fp.scope.loop_names.add(name)
        body()

    inner = machine._inside(inside)
    start, step = (E.Call(f"get_local_{what}", (), INT32) for what in ("id", "size"))
    kind = "pipelined" if spec.options else "serial"
    stop = total.expr if isinstance(total, Value) else E.IntImm(INT32, total)
    fp.emit(S.For, turn, kind, start, stop, step, inner, spec.options)


def _divided(op: str, a: Value, b: Value | int) -> Value:
    right = b.expr if isinstance(b, Value) else E.IntImm(INT32, b)
    return Value(E.Binary(op, a.expr, right))


def _count(x: object) -> Value | int:
    if type(x) is int or (isinstance(x, Value) and x.dtype is INT32):
        return x
    raise CompassError(f"S.parallel_tiles: a count is an int32, got {kind_name(x)}", code="loop-bounds")
