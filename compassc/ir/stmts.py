"""Immutable statements, functions and modules of the IR.

A function body is a tuple of statements. `Let` defines a variable for the rest of its block, `Assign` gives it a new
value; nothing else changes a scalar or vector variable except `SetElement`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

from compass_core.errors import Span, UsageError

from .dtypes import Type
from .exprs import F_CHANGES, F_JUMP, Buffer, BufferRegion, Expr, Mapping, Var
from .members import Attributes, FunctionAttributes, Functions, GraphMember, Members
from .node import Flagged, Node, Statements, field, node

if TYPE_CHECKING:
    from typing_extensions import Self

Body = tuple["Stmt", ...]
Notes = tuple[tuple[str, object], ...]
"""Annotations: names with numbers, words, lists and dictionaries of these."""
AXIS_KINDS = ("spatial", "reduce", "scan", "opaque")
"""What an axis of a block may be."""


@node(abstract=True)
class Stmt(Flagged):
    """A statement, with the place in the kernel it came from."""

    span: Span | None = field(default=None, kw_only=True, compare=False)

    def map(self, fn: Mapping, body: Callable[[Body], Body]) -> Self:
        """The statement with `fn` applied to its expressions and `body` to its nested bodies."""
        return self

    def at(self, span: Span | None) -> Self:
        """The same statement at another place."""
        raise NotImplementedError  # generated

    def exprs(self) -> tuple[Expr, ...]:
        return ()

    def bodies(self) -> tuple[Body, ...]:
        return ()


@node()
class Let(Stmt):
    """Define `var` for the rest of the block."""

    var: Var = field(defines=True)
    value: Expr


@node(flags=F_CHANGES)
class Assign(Stmt):
    """Give a defined variable or parameter a new value."""

    var: Var = field(defines=True)
    value: Expr


@node(flags=F_CHANGES, text="T.set_element(var, index, value)")
class SetElement(Stmt):
    """`var[index] = value` on a vector variable."""

    var: Var = field(defines=True)
    index: Expr
    value: Expr


@node()
class BufferStore(Stmt):
    """Write an element, or a vector where the last index is a Ramp."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None


@node()
class Evaluate(Stmt):
    """Evaluate an expression for its effect."""

    value: Expr


OPEN_MEMORY = "open_memory"
"""The attribute of functions for hosts whose arrays may have sizes of their parameters."""


EXPRESSIONS = "expressions"
"""The attribute of functions that were made of expressions: what is not shared out over the TECs is run by one of them, not by
each. While a schedule is lowered its functions have it with another value, too: false for blocks that the user wrote, and
`STAGES` for the loops of stages (te), which never read what another turn of theirs computes."""
STAGES = "stages"
SCALAR_LOOPS = "scalar_loops"
"""The attribute of a function of loops over scalars, of which the passes of the stage `loops` make transfers, vectors and
accumulators. Its value: the names of arrays that are to be filled and emptied beside the work."""


@node()
class Alloc(Stmt):
    """Storage for `buffer`, uninitialised; of a constant shape, but in functions with the attribute `OPEN_MEMORY`."""

    buffer: Buffer = field(defines=True)


@node()
class AllocConst(Stmt):
    """A constant table: `data` is its little-endian bytes."""

    buffer: Buffer = field(defines=True)
    data: bytes


@node()
class DeclBuffer(Stmt):
    """Name a shaped view of a pointer."""

    buffer: Buffer


@node()
class AttrStmt(Stmt):
    """What a program says of the statements in it: `attr_key` of `node` (a variable, an address, a text or a number) is `value`.
    Building knows no keys; programs' own passes do."""

    node: Expr
    attr_key: str
    value: Expr
    body: Body


@node(text="T.assert_stmt(condition, message)")
class AssertStmt(Stmt):
    """What holds from here on; `message` is a text."""

    condition: Expr
    message: Expr


def _none_of_nothing(else_case: Body | None) -> Body | None:
    return Statements(else_case) if else_case else None


@node()
class IfThenElse(Stmt):
    """Conditional; `else_case` None: nothing is done otherwise."""

    condition: Expr
    then_case: Body
    else_case: Body | None = field(normalise=_none_of_nothing)


THREAD_LOOPS = tuple(f"{unit}_{dim}" for unit in ("blockIdx", "threadIdx") for dim in "xyz")
"""Loops whose turns are the threads of a grid."""
VIRTUAL_LOOPS = tuple(f"vthread_{dim}" for dim in "xyz")
"""Loops around blocks whose turns are threads that no machine has."""
LOOP_KINDS = ("serial", "vectorized", "unrolled", "tec", "pipelined", "parallel", *THREAD_LOOPS, *VIRTUAL_LOOPS)


def _named_notes(attrs: tuple[tuple[str, object], ...]) -> Attributes:
    return attrs if type(attrs) is Attributes else Attributes(attrs)


def _notes(annotations: Notes) -> Attributes:
    return annotations if type(annotations) is Attributes else Attributes(annotations)


@node()
class For(Stmt):
    """`for loop_var in range(min, stop, step)`; kind is one of LOOP_KINDS.

    NPU kernels have the first five. Turns of a `parallel` loop may run side by side.
    Pipelined loops have the annotation `stages`; loops around blocks may have others.
    """

    loop_var: Var = field(defines=True)
    kind: str
    min: Expr
    stop: Expr
    step: Expr
    body: Body
    annotations: Notes = field(default=(), normalise=_notes)


@node()
class Block(Stmt):
    """What is computed for one point of the block's axes; schedules move it as a whole. It ends in `LowerOpaqueBlock`.

    Axis `vars[i]` of kind `kinds[i]` (spatial, reduce, scan, opaque) runs over `extents[i]` values from `starts[i]` on and
    is `iter_values[i]` here; nothing happens where `predicate` does not hold. These and `predicate` are expressions of the
    surroundings. `init` is done first at the first point of the reduction axes.
    """

    name_hint: str
    vars: tuple[Var, ...] = field(defines=True)
    kinds: tuple[str, ...]
    starts: tuple[Expr, ...]
    extents: tuple[Expr, ...]
    iter_values: tuple[Expr, ...]
    predicate: Expr
    reads: tuple[BufferRegion, ...]
    writes: tuple[BufferRegion, ...]
    init: Body
    body: Body
    annotations: Notes = field(default=(), normalise=_notes)


@node()
class While(Stmt):
    """Loop while the scalar condition holds."""

    condition: Expr
    body: Body


@node(flags=F_JUMP)
class Break(Stmt):
    """Leave the innermost loop."""


@node(flags=F_JUMP)
class Continue(Stmt):
    """Go on with the next turn of the innermost loop."""


@node(flags=F_JUMP)
class Return(Stmt):
    """Leave the function; value None in void functions."""

    value: Expr | None


def defined(s: Node) -> tuple[Var, ...]:
    """The variables that a statement defines, storage included."""
    if isinstance(s, Let):
        return (s.var,)
    if isinstance(s, For):
        return (s.loop_var,)
    if isinstance(s, Block):
        return s.vars
    return (s.buffer.data,) if isinstance(s, (Alloc, AllocConst)) else ()


class _Program(Node):
    """A node that is shown as program text."""

    __slots__ = ()

    def module(self) -> IRModule:
        """The module to show."""
        raise NotImplementedError

    def script(self) -> str:
        """The text form, which `parse_module` reads."""
        from .printer import print_module

        return print_module(self.module())

    __str__ = script

    def show(self) -> None:
        """Print the text form."""
        print(self.script())


def _of_function(name: str, attrs: tuple[tuple[str, object], ...]) -> FunctionAttributes:
    return FunctionAttributes.of(name, attrs)


@node()
class PrimFunc(_Program):
    """A function: parameters, body, return type (`void`, a DataType or PointerType) and attributes."""

    name: str
    params: tuple[Var, ...]
    body: Body
    ret_type: Type
    attrs: Notes = field(default=(), normalise=_of_function)
    span: Span | None = field(default=None, compare=False)

    def module(self) -> IRModule:
        return IRModule((self,), self.name, "")

    def attr(self, name: str, default: object = None) -> Any:
        """The value of an attribute."""
        return FunctionAttributes.of(self.name, self.attrs).get(name, default)

    def with_body(self, new_body: Stmt | Sequence[Stmt]) -> PrimFunc:
        """The function with another body: a statement, or several. UsageError for anything else."""
        body = (new_body,) if isinstance(new_body, Stmt) else new_body
        if not isinstance(body, (list, tuple)) or not all(isinstance(s, Stmt) for s in body):
            raise UsageError(f"the body of '{self.name}' is no statements", code="input", help="give one, or a tuple")
        return self.replace(body=body if isinstance(body, tuple) else tuple(body))

    def with_attr(self, name: str, value: object) -> PrimFunc:
        """The function with one more attribute; its name is `global_symbol`."""
        return (
            self.replace(name=value)
            if name == "global_symbol"
            else self.replace(attrs=Attributes(self.attrs).changed({name: value}))
        )

    def without_attr(self, name: str) -> PrimFunc:
        """The function without an attribute."""
        return self.replace(attrs=Attributes(self.attrs).without(name))


def _by_name(functions: tuple[PrimFunc, ...]) -> tuple[PrimFunc, ...]:
    return Functions(sorted(functions, key=lambda f: f.name))


@node()
class IRModule(Members, _Program):
    """Functions in symbol order, exactly one of them the entry, and the target they are compiled for ("": any).

    `graphs`: graphs of layers beside them, by name. `attrs`: notes of the program about it, which are not in its text.
    """

    functions: tuple[PrimFunc, ...] = field(normalise=_by_name)
    entry: str
    target: str
    graphs: tuple[GraphMember, ...] = ()
    attrs: Notes = field(default=(), compare=False, normalise=_named_notes)

    def module(self) -> IRModule:
        return self

    @property
    def entry_func(self) -> PrimFunc:
        return self[self.entry]

    def map_functions(self, fn: Callable[[PrimFunc], PrimFunc]) -> IRModule:
        functions = tuple([fn(f) for f in self.functions])
        if all(map(is_, functions, self.functions)):
            return self
        return self.replace(functions=functions)


def as_kernels(given: object) -> Any:
    """The module of kernels of what holds them (`kernels()`), as modules of graphs do; anything else as it is."""
    found = getattr(given, "kernels", None)
    return found() if callable(found) else given
