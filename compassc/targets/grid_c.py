"""Text of a lowered loop nest in a dialect of C: a kernel for each stage of the outermost level, launched one after another.

A loop that is bound to a thread is no loop: its variable is the number of the thread, and its body is guarded where fewer
turns are wanted than the launch has threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compass_core.operators import OPERATORS
from compassc import pass_manager
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import DataType, PointerType, Type
from compassc.ir.exprs import Binary, Expr, IntImm, Var
from compassc.ir.rules import rule, table
from compassc.ir.visit import walk_exprs, walk_stmts
from compassc.targets.ctext import CText, NoForm, identifier
from compassc.targets.dialects import Dialect
from compassc.targets.signature import names_of
from compassc.te.machine import launches

if TYPE_CHECKING:
    from compass_runtime.arguments import Written as Size
    from compassc.targets.target import Target

_WRAPPING = ("add", "sub", "mul")


@dataclass(frozen=True)
class Launch:
    """One kernel: its name, what it is given (parameters and workspaces by name), and its threads."""

    name: str
    arguments: tuple[str, ...]
    grid: tuple[Size, Size, Size]
    block: tuple[Size, Size, Size]


@dataclass(frozen=True)
class Program:
    """The text, its launches in order, and the bytes of each workspace in the memory of the device."""

    text: str
    launches: tuple[Launch, ...]
    workspaces: tuple[tuple[str, Size], ...]


_LEFT_OUT = ("IfConversion", "VectorizeLoop", "StorageRewrite", "UnrollLoop", "RenameLoopVariables")
"""Passes of the NPU's lowering that are about vectors or its memory, or that compilers for devices do themselves."""


def program_for(module: S.IRModule, target: Target, dialect: Dialect) -> Program:
    """The program of a module that was lowered for a grid. NoForm for blocks of more threads than the target has."""
    names = tuple(name for name in pass_manager.pipeline_names("lower") if name not in _LEFT_OUT)
    lowered = pass_manager.run_pipeline(names, module)
    program = program_of(lowered.entry_func, module.entry_func, dialect)
    most = target.attrs["max_num_threads"]
    for launch in program.launches:
        threads = math.prod(size for size in launch.block if isinstance(size, int))
        if threads > most:
            raise NoForm(
                f"'{launch.name}' has blocks of {threads} threads, there are {most} at most",
                "split the loop and bind the outer one to blockIdx",
            )
    return program


def program_of(function: S.PrimFunc, plain: S.PrimFunc, dialect: Dialect) -> Program:
    """The program of a function that went through the passes; `plain`: as it was before, with the extents of its loops."""
    allocated = [s for s in walk_stmts(function.body) if isinstance(s, S.Alloc)]
    spaces = [s for s in allocated if s.buffer.scope == "global"]
    sizes = names_of(plain)
    names = dict(zip(function.params, sizes.values(), strict=True))
    names |= {s.buffer.data: f"workspace {i}" for i, s in enumerate(spaces)}
    launches, texts = [], []
    for number, (group, before) in enumerate(zip(_groups(function.body), _groups(plain.body), strict=True)):
        used = set(_used(group))
        given = [v for v in (*function.params, *(s.buffer.data for s in spaces)) if v in used]
        printer = GridText(dialect, [s for s in allocated if s not in spaces and s.buffer.data in used])
        name = f"{identifier(function.name)}_kernel{number or ''}"
        params = []
        for v in given:
            if isinstance(v.dtype, PointerType):
                params.append(dialect.pointer.format(type=printer.held(v.dtype.elem), name=printer.define(v)))
            else:
                params.append(f"{printer.type(v.dtype)} {printer.define(v)}")
        _check_shared(function, printer.arrays)
        printer.kernel(group)
        head = f"{dialect.kernel} {name}({', '.join(params)}) {{"
        texts.append("\n".join([head, *printer.lines, "}"]))
        threads = _threads(before, sizes)
        grid, block = (
            (threads.get(f"{unit}_x", 1), threads.get(f"{unit}_y", 1), threads.get(f"{unit}_z", 1))
            for unit in ("blockIdx", "threadIdx")
        )
        launches.append(Launch(name, tuple(names[v] for v in given), grid, block))
    workspaces = tuple((names[s.buffer.data], _space(s.buffer, names)) for s in spaces)
    imported = function.attr("import_c", ())
    return Program("\n\n".join([dialect.prelude(texts), *imported, *texts]) + "\n", tuple(launches), workspaces)


SHARED = 48 << 10
"""Bytes that the threads of a block share at most."""


def _check_shared(function: S.PrimFunc, arrays: list[S.Alloc]) -> None:
    """NoForm for a launch that needs more shared memory than a block has."""
    rows = {s.buffer.data.name: _bytes(s.buffer) for s in arrays if s.buffer.scope == "shared"}
    if sum(rows.values()) > SHARED:
        listed = ", ".join(f"'{name}' {size:,}" for name, size in rows.items())
        raise NoForm(
            f"'{function.name}' needs {sum(rows.values()):,} bytes of shared memory ({listed}), a block has {SHARED:,}",
            "compute smaller parts at a time",
        )


def _groups(body: S.Body) -> list[S.Body]:
    """The statements of each launch, without declarations."""
    return [tuple(s for s in part if not isinstance(s, (S.Alloc, S.DeclBuffer))) for part in launches(body)]


def _used(body: S.Body) -> Iterator[Var]:
    for s in walk_stmts(body):
        if isinstance(s, S.BufferStore):
            yield s.buffer.data
        for root in s.exprs():
            for e in walk_exprs(root):
                if isinstance(e, Var):
                    yield e
                elif isinstance(e, E.BufferLoad):
                    yield e.buffer.data


def _threads(body: S.Body, names: dict[Var, str]) -> dict[str, Size]:
    """The threads of a launch: for each tag the most turns that a loop has."""
    found: dict[str, Size] = {}
    for s in walk_stmts(body):
        if isinstance(s, S.For) and s.kind in S.THREAD_LOOPS:
            size = _size(s.stop, names)
            if s.kind in found and found[s.kind] != size:
                size = max(found[s.kind], size) if isinstance(size, int) and isinstance(found[s.kind], int) else [
                    "max", found[s.kind], size]  # fmt: skip
            found[s.kind] = size
    return found


def _size(e: Expr, names: dict[Var, str]) -> Size:
    if isinstance(e, IntImm):
        return e.value
    if isinstance(e, Var) and e in names:
        return names[e]
    if isinstance(e, Binary):
        return [e.op, _size(e.a, names), _size(e.b, names)]
    if isinstance(e, E.Cast):
        return _size(e.value, names)
    raise NoForm(f"the number of threads {e} is not known before the launch")


def _space(buffer: E.Buffer, names: dict[Var, str]) -> Size:
    """The bytes of a workspace: a number, or known when the kernels are launched."""
    if all(isinstance(extent, IntImm) for extent in buffer.shape):
        return _bytes(buffer)
    (count,) = buffer.shape
    return ["mul", _size(count, names), buffer.dtype.bytes]


def _bytes(buffer: E.Buffer) -> int:
    size = buffer.dtype.bytes
    for extent in buffer.shape:
        assert isinstance(extent, IntImm)
        size *= extent.value
    return size


class GridText(CText):
    """Prints one kernel."""

    def __init__(self, dialect: Dialect, arrays: list[S.Alloc]) -> None:
        super().__init__()
        self.dialect, self.where = dialect, dialect.where
        self.arrays = arrays
        self.depth = 1
        self._exprs |= table(rule(E.FuncCall, lambda e: f"{e.func}({', '.join(map(self.expr, e.args))})"))

    def kernel(self, body: S.Body) -> None:
        for s in self.arrays:
            count = _bytes(s.buffer) // s.buffer.dtype.bytes
            shared = f"{self.dialect.shared} " if s.buffer.scope == "shared" else ""
            self.line(f"{shared}{self.held(s.buffer.dtype)} {self.define(s.buffer.data)}[{count}];")
        self.body(body)

    def eval(self, s: S.Evaluate) -> None:
        if isinstance(s.value, E.Call) and s.value.op == "barrier":
            self.line(self.dialect.barrier)
        elif isinstance(s.value, E.FuncCall):
            self.line(f"{self.expr(s.value)};")
        else:
            super().eval(s)

    def alloc(self, s: S.Alloc) -> None:
        """Arrays are declared at the beginning of a kernel."""

    def loop(self, s: S.For) -> None:
        if s.kind not in S.THREAD_LOOPS:
            if s.kind not in ("serial", "vectorized", "unrolled"):
                raise NoForm(f"a loop of kind {s.kind} has no form on {self.where}")
            if s.kind != "serial":
                self.line("#pragma unroll")
            super().loop(s)
            return
        stop, number = self.expr(s.stop), self.dialect.number(s.kind)
        name = self.define(s.loop_var)
        *before, head = (text.format(name=name, number=number, stop=stop) for text in self.dialect.thread)
        for text in before:
            self.line(text)
        self.block(head, s.body)

    def held(self, kind: DataType) -> str:
        """The type of elements in memory."""
        return self.type(kind) if not kind.is_bool else self.dialect.truth

    def type(self, kind: Type) -> str:
        if isinstance(kind, DataType) and str(kind) in self.dialect.without:
            raise NoForm(f"{kind} has no form on {self.where}", "cast it to float32")
        return super().type(kind)

    def integer(self, e: IntImm) -> str:
        text = super().integer(e)
        return text.replace("LL", self.dialect.long) if e.dtype.bits == 64 else text

    def real(self, e: E.FloatImm) -> str:
        text = super().real(e)
        return text.replace('__builtin_nanf("")', self.dialect.nan).replace("__builtin_inff()", self.dialect.infinity)

    def cast(self, e: E.Cast) -> str:
        """Reals below 0 are 0 in wide types without a sign, as the device has it: C does not say what they are."""
        kind = e.value.data_type
        if kind.is_floating and e.dtype.is_uint and e.dtype.bits >= 32:
            return f"(({e.dtype})max_{kind}({self.expr(e.value)}, 0))"
        return super().cast(e)

    def binary(self, e: Binary) -> str:
        kind = e.a.data_type
        if e.op in _WRAPPING and kind.is_int and kind.bits >= 32 and e.flags & E.F_LOAD:
            wide = DataType(f"uint{kind.bits}")
            a, b = self.expr(e.a), self.expr(e.b)
            return f"(({kind})(({wide}){a} {OPERATORS[e.op].c} ({wide}){b}))"
        return super().binary(e)
