"""The interpreter of kernel IR: what a function does, and what an expression is worth, at every stage up to C.

It is what passes and schedules are held against: exact, independent of PySim and of the C headers (operations are
computed by their definitions), with every access checked. It runs functions of blocks, parsed kernels and lowered ones;
what only a device has (the AIFF, printing, addresses as numbers, C builtins of legalised IR) is refused.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from compass_core.arrays import Array
from compass_core.errors import CompassError, Span
from compass_core.lazy import np

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import DataType, PointerType, Type
from ...ir.visit import all_exprs, walk_exprs
from ...ops.core import get
from ...ops.numeric import convert, np_dtype
from . import memory as M
from .memory import OutOfBounds
from .operations import lane_of
from .text import INTEGERS, ExprText, FunctionText, Names, function_name

__all__ = ["Interpreter", "OutOfBounds", "Undefined", "evaluate"]


class Undefined(CompassError):
    """C leaves a value open: that of a shift by more bits than there are."""


# ---------------------------------------------------------------------------------------------------- expressions


def evaluate(e: E.Expr, values: Mapping[E.Var, object]) -> Any:
    """The value of an expression for values of its variables: a Python int, a NumPy scalar for reals, an array for vectors.

    None where the value is not known: a variable has none, memory is read, something is called, or C leaves it open.
    """
    if type(e) is E.IntImm:
        return e.value
    if type(e) is E.Var:
        return values.get(e)
    compiled = _compiled(e)
    if compiled is None:
        return None
    function, variables, whole = compiled
    try:
        known = [values[var] for var in variables]
    except KeyError:
        return None
    try:
        if whole:
            return function(*known)
        with np.errstate(all="ignore"):
            return function(*known)
    except Undefined:
        return None


@lru_cache(maxsize=1 << 12)
def _compiled(e: E.Expr) -> tuple[Callable[..., Any], list[E.Var], bool] | None:
    """An expression as a function of its variables, and whether only whole numbers occur, which need no NumPy; None where
    it needs more than variables."""
    names = Names()
    if e.flags & (E.F_LOAD | E.F_FUNC | E.F_POINTER) or not all(map(_is_value, walk_exprs(e))):
        return None
    try:
        text = ExprText(names)(e)
    except CompassError:
        return None
    scope = {**_HELPERS, **names.bound}
    function = eval(f"lambda {', '.join(names.of.values())}: {text}", scope)  # text that was made here
    whole = all(e.data_type.is_integer and e.dtype.is_scalar for e in walk_exprs(e))
    return function, list(names.of), whole


def _is_value(e: E.Expr) -> bool:
    return not isinstance(e, E.Call) or (get(e.op).effect == "pure" and bool(e.args))


# ------------------------------------------------------------------------------------------------------ functions


class Interpreter:
    """A function, or the entry of a module with what it calls; it is called with arrays and numbers in the order of the
    parameters, and changes the arrays in place.

    `tecs` TECs run by turns from barrier to barrier. Transfers in the background take place when they are waited for, or
    (`early`) at once: a kernel must not tell the difference. Memory that nobody wrote holds bytes of `memory.UNSET`.
    CompassError with the statement's place for an access out of bounds, an assertion that does not hold, a barrier that some
    TECs do not reach; Undefined where C leaves a value open.
    """

    def __init__(self, program: S.PrimFunc | S.IRModule, tecs: int = 4, early: bool = False) -> None:
        module = program.module()
        self.function, self.tecs, self.early = module.entry_func, tecs, early
        self._functions = {f.name: f for f in module.functions}
        names, lines = Names(), list[str]()
        self._spans: list[Span | None] = []
        for name in sorted(_reached(module)):
            entry = name == module.entry
            made = FunctionText(self._functions[name], names, self._meets, entry or self._meets(name))
            lines += made.lines
            self._spans += made.spans
        self.text = "\n".join(lines)
        self._file = f"<interpreted {self.function.name}>"
        scope = {**_HELPERS, **names.bound}
        exec(compile(self.text, self._file, "exec"), scope)  # noqa: S102 - text that was made here
        self._entry = scope[function_name(module.entry)]

    def __call__(self, *args: Array) -> None:
        params = self.function.params
        if len(args) != len(params):
            raise CompassError(f"{self.function.name} takes {len(params)} arguments, got {len(args)}", code="arguments")
        values = [_argument(p, a) for p, a in zip(params, args, strict=True)]
        shared: dict[str, M.Memory] = {}
        tecs = [Tec(i, self.tecs, shared, self.early) for i in range(self.tecs)]
        with np.errstate(all="ignore"):
            try:
                self._run([self._entry(t, *values) for t in tecs])
                for t in tecs:
                    t.finish()
            except CompassError as error:
                if error.span is None:
                    error.span = self._place(error)
                raise

    def _run(self, running: list[Iterator[Span | None]]) -> None:
        """All TECs from one barrier to the next, until they end."""
        while True:
            reached = [next(r, _END) for r in running]
            if all(r is _END for r in reached):
                return
            if any(r is _END for r in reached) or len(set(map(str, reached))) > 1:
                raise CompassError("some TECs wait at a barrier that others do not reach", code="barrier")

    def _place(self, error: CompassError) -> Span | None:
        lines = [n for f, n in traceback.walk_tb(error.__traceback__) if f.f_code.co_filename == self._file]
        return self._spans[lines[-1] - 1] if lines else None

    def _meets(self, name: str) -> bool:
        """Whether a function has a barrier, in itself or in what it calls."""
        for e in all_exprs(self._functions[name].body, E.F_CALL | E.F_FUNC):
            if isinstance(e, E.Call) and e.op == "barrier":
                return True
            if isinstance(e, E.FuncCall) and self._meets(e.func):
                return True
        return False


_END = object()


def _reached(module: S.IRModule) -> set[str]:
    """The functions that the entry calls, and itself."""
    found, todo = {module.entry}, [module.entry]
    while todo:
        for e in all_exprs(module[todo.pop()].body, E.F_FUNC):
            if isinstance(e, E.FuncCall) and e.func not in found:
                found.add(e.func)
                todo.append(e.func)
    return found


def _argument(param: E.Var, value: object) -> Any:
    """An argument as the text has it: the address of an array's memory, or a number of the parameter's type."""
    kind = param.dtype
    if isinstance(kind, PointerType):
        if value is None:
            return None
        array = np.asarray(value)
        if not array.flags.c_contiguous:
            raise CompassError(f"the array for '{param.name}' is not in one piece", code="arguments")
        return M.Address(M.Memory(array.reshape(-1).view(np.uint8), param.name), 0)
    return np_dtype(kind).type(value).item() if kind.is_integer else np_dtype(kind).type(value)


class Tec:
    """A TEC that runs: its events with what was started on them, and the memory that it shares with the others."""

    def __init__(self, number: int, size: int, shared: dict[str, M.Memory], early: bool) -> None:
        self.id, self.size = number, size
        self._shared, self._early = shared, early
        self._pending: dict[int, list[tuple[Any, ...]]] = {}

    def own(self, name: str, size: int) -> M.Address:
        return M.Address(M.Memory.unset(size, name), 0)

    def shared(self, name: str, size: int) -> M.Address:
        if name not in self._shared:
            self._shared[name] = M.Memory.unset(size, name)
        return M.Address(self._shared[name], 0)

    def mine(self, turns: Iterable[int]) -> Iterator[int]:
        """The turns of a loop over TECs that are this one's."""
        return (i for i in turns if i == self.id)

    def take_event(self) -> int:
        event = next(n for n in range(len(self._pending) + 1) if n not in self._pending)
        self._pending[event] = []
        return event

    def async_dma_copy(self, *operands: Any) -> None:
        *transfer, event = operands
        if self._early:
            M.copy(*transfer)
        else:
            self._pending.setdefault(event, []).append(tuple(transfer))

    def wait_events(self, bits: int) -> None:
        for event in [n for n in self._pending if bits >> n & 1]:
            for transfer in self._pending[event]:
                M.copy(*transfer)
            self._pending[event] = []

    def free_events(self, bits: int) -> None:
        self.wait_events(bits)
        for event in [n for n in self._pending if bits >> n & 1]:
            del self._pending[event]

    def finish(self) -> None:
        """Wait for everything that was started."""
        self.wait_events(-1)


# ------------------------------------------------------------------------------------------- what the text calls


def _shift(op: str, a: int, b: int, bits: int) -> int:
    if not 0 <= b < bits:
        raise Undefined(f"{bits} bits are shifted by {b}")
    return a << b if op == "shl" else a >> b


def _turns(start: int, stop: Any, step: Any) -> Iterator[int]:
    """A loop whose bounds are looked at again in each turn."""
    while start < stop():
        yield start
        start += step()


def _whole(value: object, source: DataType, to: DataType) -> Any:
    """A real scalar as an integer, as C converts it here: NaN to 0, out of range to the nearest of 32 bits."""
    found = convert(np.asarray(value), source, to, scalar=True)
    return found.item() if found.ndim == 0 else found.astype(np.int64)


def _reinterpreted(value: object, source: Type, to: Type) -> Any:
    """The bits of a value as another type: a vector of fewer bytes has the first of them."""
    assert isinstance(source, DataType) and isinstance(to, DataType)
    bits = np.asarray(value, np_dtype(source)).reshape(-1).view(np_dtype(to))[: to.lanes]
    return bits if to.is_vector else bits[0].item() if to.is_integer else bits[0]


def _element(vector: Array, index: int) -> Any:
    return vector[lane_of(vector, index)]


def _changed(vector: Any, index: int, value: object) -> Any:
    found = vector.copy()
    found[lane_of(vector, index)] = value
    return found


def _cell(name: str, kind: DataType, value: object) -> M.Address:
    """Memory for a variable whose address is taken."""
    address = M.Address(M.Memory.unset(kind.total_bytes, name), 0)
    M.store(address, kind, 0, value)
    return address


_HELPERS: dict[str, object] = {
    "__builtins__": {"range": range},
    "truth": bool,
    "minimum": min,
    "maximum": max,
    "operators": INTEGERS,
    "shift": _shift,
    "turns": _turns,
    "whole": _whole,
    "where": lambda *a: np.where(*a),
    "ramp": lambda base, stride, lanes, kind: (base + np.arange(lanes) * stride).astype(kind),
    "full": lambda *a: np.full(*a),
    "array": lambda *a: np.array(*a),
    "arange": lambda lanes: np.arange(lanes),
    "reinterpreted": _reinterpreted,
    "element": _element,
    "changed": _changed,
    "cell": _cell,
    "constant": lambda data, name: M.Address(M.Memory(np.frombuffer(data, np.uint8), name), 0),
    "position": M.position,
    "load": M.load,
    "store": M.store,
    "load_lanes": M.load_lanes,
    "store_lanes": M.store_lanes,
}
