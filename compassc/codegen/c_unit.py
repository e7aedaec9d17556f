"""Statements, functions and the whole translation unit of the C dialect, with the source place of each line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import cached_property

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Note, Span, flat, together
from compass_core.hostcc.arrays import Array
from compass_core.hostcc.promises import ONLY_READ, UNCLIPPED

from ..analysis.copies import readers
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.names import NamePool
from ..ir.rules import method, table
from .c_calls import FORMS
from .c_expr import ExprPrinter, c_name
from .c_places import Part
from .c_types import c_type, codegen_error, in_memory, qualifier
from .names import RESERVED

BARRIER = "barrier(CLK_LOCAL_MEM_FENCE);"
STORAGE = "_buf"
"""Part of the name of `S.alloc`'s storage, which kernels see only through a pointer."""
BASE_STACK = 64 * 1024
"""Stack bytes of a TEC besides the arrays of its kernel."""
TABLE_ALIGN = 32
_ROW = 16


@dataclass
class Line:
    """A line of the text, the place of the kernel it comes from, and the parts of it that come from other lines."""

    text: str
    span: Span | None = None
    parts: tuple[Part, ...] = ()


@dataclass
class Unit:
    """The printed module: its lines, its arrays, the stack they need, and whether it uses printf."""

    lines: list[Line] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    stack_size: int = BASE_STACK
    uses_printf: bool = False


class FunctionPrinter(ExprPrinter):
    """Prints one function; its lines gather in `lines`, its constant tables in `tables`, mistakes in `errors`."""

    def __init__(self, function: S.PrimFunc, is_entry: bool, taken: frozenset[str]) -> None:
        super().__init__(FORMS)
        self.function, self.is_entry = function, is_entry
        self.pool = NamePool(taken)
        self.lines: list[Line] = []
        self.tables: list[Line] = []
        self.arrays: dict[E.Var, Array] = {}
        self.errors: list[CompassError] = []
        self.stack_size = 0
        self.depth = 1

    @cached_property
    def readers(self) -> AbstractSet[E.Var]:
        return readers(self.function)

    def define(self, var: E.Var) -> str:
        """Give a variable the C name it has from here on."""
        name = c_name(self.pool.take(var.name))
        self.names[var] = name
        return name

    def line(self, text: str, span: Span | None) -> None:
        indent = "  " * self.depth
        for row in text.split("\n"):
            self.lines.append(Line(*self._parts(indent + row, span)) if "\x01" in row else Line(indent + row, span))

    def _parts(self, row: str, span: Span | None) -> tuple[str, Span | None, tuple[Part, ...]]:
        text, parts = self.places.parts(row)
        return text, span, parts

    # -- functions

    def signature(self) -> str:
        f = self.function
        inline = f.attr("is_inline")
        words = "__kernel " if self.is_entry else ""
        words += "" if inline is None else "_CLC_INLINE " if inline else "_CLC_NOINLINE "
        params = ", ".join([f"{c_type(p.dtype)} {self.define(p)}" for p in f.params])
        return f"{words}{c_type(f.ret_type)} {f.name}({params})"

    def print(self) -> str:
        """Print the definition; returns the signature."""
        signature = self.signature()
        self.lines.append(Line(signature + " {", self.function.span))
        self.body(self.function.body)
        if self.errors:
            raise together(self.errors)
        if self.is_entry:
            self.line(BARRIER, self.function.span)
        self.lines.append(Line("}", self.function.span))
        return signature

    def body(self, body: S.Body) -> None:
        for s in body:
            self.here = s.span
            try:
                if block := _BLOCKS.get(type(s)):
                    block(self, s)
                elif text := _STATEMENTS.get(type(s), _no_form)(self, s):
                    self.line(text, s.span)
            except CompassError as e:
                if e.span is None:
                    e.span = s.span
                    e.notes = (*e.notes, Note(f"in function {self.function.name}"))
                self.errors += flat(e)

    # -- simple statements

    def _let(self, s: S.Let) -> str:
        # C declares the name before the value: unspecified inactive lanes take the variable itself.
        name = self.defining = self.define(s.var)
        self._name_array(s.value, name)
        return f"{c_type(s.var.dtype)} {name} = {self.value(s.value)};"

    def _assign(self, s: S.Assign) -> str:
        return f"{self._var(s.var)} = {self.value(s.value)};"

    def _set_element(self, s: S.SetElement) -> str:
        return f"{self._var(s.var)}[{self.expr(s.index)}] = {self.value(s.value)};"

    def _break(self, s: S.Break) -> str:
        return "break;"

    def _continue(self, s: S.Continue) -> str:
        return "continue;"

    def _name_array(self, value: E.Expr, pointer: str) -> None:
        """An array is called by the pointer that `S.alloc` and tables have in the kernel: the first one to it."""
        starts = isinstance(value, E.Pointer) and isinstance(value.offset, E.IntImm) and value.offset.value == 0
        data = value.base if isinstance(value, E.Pointer) and starts else value
        if not isinstance(data, E.Var) or data not in self.arrays:
            return
        array = self.arrays[data]
        if array.name == array.symbol and (array.scope == "constant" or STORAGE in data.name):
            dtype = str(value.elem) if isinstance(value, E.Pointer) else array.dtype
            self.arrays[data] = array._replace(name=pointer, dtype=dtype)

    def _store(self, s: S.BufferStore) -> str:
        if s.mask is not None:
            raise codegen_error(
                "a masked store has no C form as a subscript", "keep the pass LowerVectorOperators enabled"
            )
        return f"{self.reference(s.buffer, s.indices)} = {self.value(s.value)};"

    def _eval(self, s: S.Evaluate) -> str:
        return "" if type(s.value) is E.IntImm else f"{self.expr(s.value)};"

    def _alloc(self, s: S.Alloc) -> str:
        buffer = s.buffer
        count = 1
        for extent in buffer.shape:
            if type(extent) is not E.IntImm or extent.value <= 0:
                raise codegen_error(f"array {buffer.data.name!r} has no constant positive size")
            count *= extent.value
        if buffer.scope in ("private", "lsram"):
            self.stack_size += count * buffer.dtype.total_bytes
        name = self.define(buffer.data)
        self.arrays[buffer.data] = Array(name, name, buffer.scope, str(buffer.dtype))
        return f"{qualifier(buffer.scope)}{c_type(in_memory(buffer.dtype))} {name}[{count}];"

    def _alloc_const(self, s: S.AllocConst) -> str:
        """The table goes to the top of the file, so it needs no line here."""
        name = self.define(s.buffer.data)
        self.arrays[s.buffer.data] = Array(name, name, "constant", str(s.buffer.dtype))
        add = self.tables.append
        add(Line("", s.span))
        add(Line(f"__constant uchar __attribute__((aligned({TABLE_ALIGN}))) {name}[{len(s.data)}] = {{", s.span))
        for start in range(0, len(s.data), _ROW):
            row = ", ".join([f"0x{byte:02x}" for byte in s.data[start : start + _ROW]])
            add(Line(f"    {row}{', ' if start + _ROW < len(s.data) else ''}", s.span))
        add(Line("};", s.span))
        add(Line("", s.span))
        return ""

    def _return(self, s: S.Return) -> str:
        if self.is_entry:
            return BARRIER + "return;"
        return "return;" if s.value is None else f"return {self.value(s.value)};"

    # -- blocks

    def block(self, body: S.Body) -> None:
        self.depth += 1
        self.body(body)
        self.depth -= 1

    def _if(self, s: S.IfThenElse) -> None:
        cond = self.expr(s.condition)
        self.line(f"if {cond if is_parenthesised(cond) else f'({cond})'} {{", s.span)
        self.block(s.then_case)
        if s.else_case:
            self.line("} else {", s.span)
            self.block(s.else_case)
        self.line("}", s.span)

    def _while(self, s: S.While) -> None:
        self.line(f"while ({self.expr(s.condition)}){{", s.span)
        self.block(s.body)
        self.line("}", s.span)

    def _for(self, s: S.For) -> None:
        if s.kind not in ("serial", "tec"):
            raise codegen_error(f"a loop of kind {s.kind!r} has no C form", "run the lowering pipeline first")
        start, step = self.expr(s.min), self.expr(s.step)
        test = self._loop_test(s, start)
        name = self.define(s.loop_var)
        head = f"for ({c_type(s.loop_var.dtype)} {name} = {start}; {test.format(name)}; {name} += {step}) {{"
        self.line(head, s.span)
        self.block(s.body)
        self.line("}", s.span)

    def _loop_test(self, s: S.For, start: str) -> str:
        """The condition of a loop, with `{}` for its variable. A constant negative step counts down."""
        if type(s.step) is E.IntImm and s.step.value < 0:
            return f"{self.expr(s.stop)} < {{}}"
        if type(s.min) is E.IntImm and s.min.value == 0:
            return f"{{}} < {self.expr(s.stop)}"
        return f"{{}} < {start}+{self.expr(extent(s.min, s.stop))}"


_STATEMENTS: Mapping[type, Callable[[FunctionPrinter, S.Stmt], str]] = table(
    method(S.Let, FunctionPrinter._let),
    method(S.Assign, FunctionPrinter._assign),
    method(S.SetElement, FunctionPrinter._set_element),
    method(S.BufferStore, FunctionPrinter._store),
    method(S.Evaluate, FunctionPrinter._eval),
    method(S.Alloc, FunctionPrinter._alloc),
    method(S.AllocConst, FunctionPrinter._alloc_const),
    method(S.Break, FunctionPrinter._break),
    method(S.Continue, FunctionPrinter._continue),
    method(S.Return, FunctionPrinter._return),
)
_BLOCKS: Mapping[type, Callable[[FunctionPrinter, S.Stmt], None]] = table(
    method(S.IfThenElse, FunctionPrinter._if),
    method(S.For, FunctionPrinter._for),
    method(S.While, FunctionPrinter._while),
)


def extent(start: E.Expr, stop: E.Expr) -> E.Expr:
    """`stop - start`, simplified where that is easy to see."""
    if type(start) is E.IntImm and type(stop) is E.IntImm:
        return E.IntImm(stop.dtype, stop.value - start.value)
    if type(stop) is E.Binary and stop.op == "add":
        if stop.a is start:
            return stop.b
        if stop.b is start:
            return stop.a
    return E.Binary("sub", stop, start)


def is_parenthesised(text: str) -> bool:
    """Whether the first parenthesis of a text closes at its end."""
    if not text.startswith("(") or not text.endswith(")"):
        return False
    depth = 0
    for i, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return i == len(text) - 1
    return False


ASSERTION = (
    "#ifndef __compass_assert",
    "#define __compass_assert(condition, text)",
    "#endif",
    "",
)
"""What the text says of assertions, for compilers whose headers know none."""

UNCLIPPED_SUMS = (f"#ifndef {UNCLIPPED}", f"#define {UNCLIPPED}()", "#endif", "")
"""The same of the promise that no sum is clipped."""

ONLY_READ_COPIES = (f"#ifndef {ONLY_READ}", f"#define {ONLY_READ}(copy) (int)copy", "#endif", "")
"""The same of the promise that a copy is only read."""


def _no_form(printer: FunctionPrinter, s: S.Stmt) -> str:
    raise codegen_error(f"the statement {type(s).__name__} has no C form", "run the whole lowering pipeline first")


def print_unit(module: S.IRModule) -> Unit:
    """The C text of a legalised module.

    CompassError when the entry has a name that means something else in C: other code asks for it by this name.
    """
    if module.entry in RESERVED:
        raise CompassError(
            f"a kernel cannot be called '{module.entry}': the name has a meaning in the C dialect",
            module.entry_func.span,
            code="kernel-name",
            help=f"call it {module.entry}_op",
        )
    taken = RESERVED | {f.name for f in module.functions if f.name != module.entry}
    unit = Unit([Line("#include <compass/dsl.h>"), Line("")])
    printers = [FunctionPrinter(f, f.name == module.entry, taken) for f in module.functions]
    dma: dict[str, None] = {}
    used: set[str] = set()
    declarations = []
    for p in printers:
        p.dma, p.used = dma, used
        declarations.append(Line(p.print() + ";", p.function.span))
        unit.lines += p.tables
        unit.stack_size += p.stack_size
        unit.arrays += p.arrays.values()
    if "assertion" in used:
        unit.lines += [Line(text) for text in ASSERTION]
    if "unclipped" in used:
        unit.lines += [Line(text) for text in UNCLIPPED_SUMS]
    if "only_read" in used:
        unit.lines += [Line(text) for text in ONLY_READ_COPIES]
    if dma:
        unit.lines += [Line(text) for text in dma]
        unit.lines.append(Line(""))
    unit.lines += declarations
    for p in printers:
        unit.lines.append(Line(""))
        unit.lines += p.lines
    unit.uses_printf = "printf" in used
    return unit
