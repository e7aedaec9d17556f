"""Nodes of the IR as programs for the framework see them: bodies with fields, and classes that make nodes of its arguments."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.analysis.conditions import TRUE
from compassc.dsl import script
from compassc.ir import dtypes as D
from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir import tensor_exprs as T
from compassc.ir import tensor_stmts as TS
from compassc.ir.dtypes import DataType
from compassc.ir.exprs import Expr
from compassc.ir.iter_vars import IterVar, Range
from compassc.ir.members import Attributes, GlobalVar, Members
from compassc.ir.node import Node, Statements
from compassc.ir.operators import as_expr, binary, cast, data_type, immediate, kind_of
from compassc.ir.printer import print_body, print_module
from compassc.ir.verify import VerifyError, check_node
from compassc.language.specs import VALUE_ATTRIBUTES
from compassc.relay import declared, operators
from compassc.relay.attributes import PREFIX as RELAY_RECORDS
from compassc.relay.attributes import RECORDS, DictAttrs
from compassc.te import math
from compassc.te.buffers import View
from compassc.te.construct import size_var, var
from compassc.te.external import call_intrin
from compassc.te.intrinsics import OpName
from compassc.te.ir_builder import truth
from compassc.te.opaque import body_of
from compassc.te.schedule.annotation import Annotation
from compassc.te.tensor import Operation
from compassc.tir.roots import RootBlock, allocated, is_root, root_block

from . import statements
from .script_printer import NoScript, script_of
from .statements import ForKind, stored, variable


class _NoField(UsageError, AttributeError):
    """A node has no such field."""


class _WrongValue(UsageError, ValueError):
    """A node cannot be made of such values."""


class _WrongArgument(UsageError, TypeError):
    """A node cannot be made of an argument."""


def _extent(loop: S.For) -> Expr:
    """The number of turns. _NoField for loops with steps, which the framework does not have."""
    if not isinstance(loop.step, E.IntImm) or loop.step.value != 1:
        raise _NoField(
            f"the loop of '{loop.loop_var.name}' goes in steps of {loop.step}, and has no extent",
            code="compat-name",
            help="its fields are min, stop and step",
        )
    if isinstance(loop.min, E.IntImm) and loop.min.value == 0:
        return loop.stop
    return binary("sub", loop.stop, loop.min)


def _buffer_map(function: S.PrimFunc) -> dict[E.Var, E.Buffer]:
    """The buffers of the parameters that are addresses."""
    declared = (s.buffer for s in function.body if isinstance(s, S.DeclBuffer))
    return {buffer.data: buffer for buffer in declared if buffer.data in function.params}


def _alone(body: S.Body) -> S.Stmt | None:
    """The statement that a body is for programs: one that has one, and one that begins with a `Let` or an `Alloc`, is that
    statement, whose `body` is the rest. None for several, or none. Declared buffers do not count."""
    counted = [s for s in body if not isinstance(s, S.DeclBuffer)]
    return counted[0] if len(counted) == 1 or (counted and isinstance(counted[0], _SCOPES)) else None


_SCOPES = (S.Let, S.Alloc, S.AllocConst, S.AssertStmt)
"""What holds for the rest of a body, which is a part of it in the framework."""


def _of_body(body: S.Body, name: str) -> object:
    """A field of the statement that a body is."""
    first = _alone(body)
    if name.startswith("__"):  # asked for by Python itself, which has a fallback
        raise AttributeError(name)
    if is_root(body):
        return getattr(root_block(body), name)
    if first is None:
        raise _NoField(
            f"a body of {len(body)} statements has no '{name}'", code="compat-name", help="take one of them: body[0]"
        )
    if name == "body" and isinstance(first, _SCOPES):
        return Statements(body[body.index(first) + 1 :])
    if not hasattr(first, name):
        raise _NoField(
            f"a body that is one {type(first).__name__} has no '{name}'",
            code="compat-name",
            help=f"a {type(first).__name__} has {', '.join(sorted({*first.fields, *FIELDS.get(type(first), ())}))}",
        )
    return getattr(first, name)


def _iter_vars(block: S.Block) -> tuple[IterVar, ...]:
    rows = zip(block.vars, block.kinds, block.starts, block.extents)
    return tuple(IterVar(Range.from_min_extent(a, n), v, _AXES[kind]) for v, kind, a, n in rows)


_AXES = {"spatial": 0, "reduce": 2, "scan": 3, "opaque": 4}
"""The kinds of axes by their numbers in the framework."""


def _thread(loop: S.For) -> IterVar | None:
    """The thread that the turns of a loop are."""
    tag = loop.kind.replace("_", ".") if loop.kind in (*S.THREAD_LOOPS, *S.VIRTUAL_LOOPS) else ""
    return IterVar(None, "", 1, tag) if tag else None


class _Scope(str):
    """The name of a memory, which programs call for."""

    __slots__ = ()

    def __call__(self) -> str:
        return "local" if self == "private" else str(self)


class _Text(str):
    """A text that is a node, too."""

    __slots__ = ()
    value = property(str)


class _Number(int):
    """A whole number that is a node, too."""

    value = property(int)


class _Attributes(dict[str, object]):
    """Attributes of an operation, whose text is JSON."""

    def __str__(self) -> str:
        return json.dumps(self, default=str)


def _as_node(value: object) -> object:
    """A value of an attribute, as a node where it is a number, a word or a list of these."""
    if isinstance(value, (list, tuple)):
        return [_as_node(v) for v in value]
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        return value
    return _Number(value) if isinstance(value, int) else _Text(value)


def _attributes_of(op: Operation) -> _Attributes:
    return _Attributes((k, _as_node(v)) for k, v in vars(op)["attrs"].items())


def _keep_attributes(op: Operation, attrs: dict[str, object]) -> None:
    vars(op)["attrs"] = attrs


_op = vars(E.Call)["op"]
"""The field of calls."""


def _operation(call: E.Call) -> OpName:
    """The operation of a call."""
    return OpName(_op.__get__(call))


def _operator(op_name: str) -> OpName | operators.Op:
    """The operator of a name: `tir.NAME` of expressions, others of Relay."""
    return OpName(op_name.removeprefix("tir.")) if op_name.startswith("tir.") else operators.get(op_name)


FIELDS: Mapping[type, Mapping[str, Callable[[Any], object]]] = {
    S.For: {"extent": _extent, "thread_binding": _thread},
    S.Block: {
        "block": lambda block: block,
        "iter_vars": _iter_vars,
        "alloc_buffers": lambda block: allocated(block.body),
        "match_buffers": lambda block: (),
    },
    S.Alloc: {
        "buffer_var": lambda s: s.buffer.data,
        "dtype": lambda s: s.buffer.dtype,
        "extents": lambda s: s.buffer.shape,
        "condition": lambda s: TRUE,
    },
    S.AllocConst: {
        "buffer_var": lambda s: s.buffer.data,
        "dtype": lambda s: s.buffer.dtype,
        "extents": lambda s: s.buffer.shape,
    },
    S.PrimFunc: {"buffer_map": _buffer_map},
    E.Buffer: {"scope": lambda buffer: _Scope(buffer.data.pointer_type.scope)},
    Annotation: {
        "pragma_keys": lambda note: tuple(map(_Text, note.pragmas)),
        "pragma_values": lambda note: tuple(map(_as_node, note.pragmas.values())),
    },
    TS.ProducerRealize: {"bounds": lambda s: tuple(map(Range.from_min_extent, s.starts, s.extents))},
    E.BufferRegion: {"region": lambda e: tuple(map(Range.from_min_extent, e.starts, e.extents))},
}
"""Names of fields in the framework, where these are other ones than here."""


def _script(program: S.PrimFunc | S.IRModule, *_: object, **__: object) -> str:
    """The text of a program: the framework's script, or that of the IR where a part has no form there."""
    try:
        return script_of(program)
    except NoScript:
        return print_module(program.module())


def _show(program: S.PrimFunc | S.IRModule, *_: object, **__: object) -> None:
    """Print the text."""
    print(_script(program))


def _text(body: Statements, *_: object, **__: object) -> str:
    """The text of statements."""
    return print_body(body)


def _member(module: S.IRModule, name: str | GlobalVar) -> S.PrimFunc:
    """The function of a name; `main` is that of a module of one, too, as schedules of functions have it there."""
    if str(name) == "main" and len(module.functions) == 1:
        return module.functions[0]
    return Members.__getitem__(module, name)


def _same_as(stmt: S.Stmt, other: object) -> bool:
    """Whether the other one is this statement, or the body that it is alone."""
    return (_alone(other) if isinstance(other, Statements) else other) is stmt


def _added() -> Iterator[tuple[type, str, object]]:
    for cls, fields in FIELDS.items():
        for name, get in fields.items():
            yield cls, name, property(get)
    for cls in (S.PrimFunc, S.IRModule):
        yield from ((cls, "script", _script), (cls, "__str__", _script), (cls, "show", _show))
    yield S.IRModule, "__getitem__", _member
    yield Statements, "__getattr__", _of_body
    yield Statements, "seq", property(tuple)
    yield Statements, "script", _text
    yield Statements, "__str__", _text
    yield S.Stmt, "same_as", _same_as
    yield E.Call, "op", property(_operation)
    yield Operation, "attrs", property(_attributes_of, _keep_attributes)
    yield operators.Op, "get", staticmethod(_operator)


_NOTHING = object()
_own: dict[tuple[type, str], object] = {}
"""What stood under the names that were added, or `_NOTHING`."""


def add_fields() -> None:
    """Nodes have their fields under the framework's names, too."""
    for cls, name, value in _added():
        _own.setdefault((cls, name), vars(cls).get(name, _NOTHING))
        setattr(cls, name, value)


def remove_fields() -> None:
    """Undo `add_fields`, if it was called."""
    for (cls, name), value in _own.items():
        if value is _NOTHING:
            delattr(cls, name)
        else:
            setattr(cls, name, value)
    _own.clear()


Maker = Callable[..., object]
"""What makes a node of a program's arguments."""
Classes = type | tuple[type, ...]
"""A class of nodes, or several."""


class NodeType(type):
    """A name that stands for some nodes of the class `node`, and makes them of the framework's arguments."""

    node: Classes
    holds: Callable[[Any], bool]
    make: Maker

    def __instancecheck__(cls, value: object) -> bool:
        seen_as: tuple[object, ...] = (value,)
        if isinstance(value, Statements):
            seen_as = (root_block(value),) if is_root(value) else (value, _alone(value))
        return any(isinstance(found, cls.node) and cls.holds(found) for found in seen_as)

    def __call__(cls, *args: object, **options: object) -> Any:
        return cls.make(*args, **options)


def _indices(given: Iterable[object]) -> tuple[Expr, ...]:
    return tuple(map(as_expr, given))


def _else(given: object) -> S.Body | None:
    return None if given is None else Statements(body_of(given, "else_case"))


_CONVERTED: Mapping[str, Callable[[Any], object]] = {
    "Expr": as_expr,
    "Var": variable,
    "Buffer": stored,
    "DataType": data_type,
    "Type": data_type,
    "Body": lambda given: Statements(body_of(given, "body")),
    "Body | None": _else,
    "tuple[Expr, ...]": _indices,
}
"""What arguments become, by the annotation of the field that they are for; others stay what they are."""


def _maker(name: str, node: type[Node], arguments: str, build: Maker) -> Maker:
    """The constructor that takes `arguments`, names of fields; an ending `?` stands for None where it is left out."""
    annotations = {f.name: f.annotation for f in node.declared}
    kinds = {a.rstrip("?"): inspect.Parameter.empty if a[-1] != "?" else None for a in arguments.split()}
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [inspect.Parameter(a, place, default=default) for a, default in {**kinds, "span": None}.items()]
    )

    def make(*args: object, **options: object) -> object:
        try:
            given = signature.bind(*args, **options)
        except TypeError as error:
            raise _WrongArgument(f"{name}{signature}: {error}", code="input", help="its fields in order") from None
        given.apply_defaults()
        del given.arguments["span"]
        found = {a: _CONVERTED.get(annotations[a], _same)(value) for a, value in given.arguments.items()}
        made = build(**found)
        if isinstance(made, Expr):
            try:
                check_node(made)
            except VerifyError as error:
                raise _WrongArgument(f"{name}: {error}", code="input", help="cast one of them") from None
        return made

    return make


def _same(given: object) -> object:
    return given


def _any(node: object) -> bool:
    return True


def _int_imm(dtype: DataType, value: int) -> Expr:
    """ExpressionError for what the type does not hold, TypeError for types of other numbers."""
    return _number(dtype, value, "whole numbers", dtype.is_integer)


def _float_imm(dtype: DataType, value: float) -> Expr:
    return _number(dtype, value, "real numbers", dtype.is_floating)


def _number(kind: DataType, value: float, what: str, fits: bool) -> Expr:
    if not kind.is_scalar or not fits:
        raise _WrongArgument(f"{kind} is no type of {what}", code="input", help="tvm.tir.const(value, dtype) takes any")
    return immediate(value, kind)


def _cast(dtype: object, value: object) -> object:
    """A value by the rules of C: an expression, or in kernels what `S.cast` gives. TypeError for vectors of expressions."""
    kind = data_type(dtype)
    if getattr(type(value), "attributes", None) is VALUE_ATTRIBUTES:  # of a kernel that is called or built
        return script.cast(value, kind)  # type: ignore[arg-type]  # a value of a kernel
    given = as_expr(value)
    if not kind.is_scalar or not kind_of(given).is_scalar:
        raise _WrongArgument(f"a cast of {given.dtype} to {kind}", code="input", help="expressions are made of scalars")
    return cast(given, kind)


def _ramp(base: Expr, stride: Expr, lanes: int) -> Expr:
    return E.Ramp(base, cast(stride, kind_of(base)), lanes)


def _load(buffer: E.Buffer, indices: tuple[Expr, ...]) -> Expr:
    return View(buffer)[indices]


def _store(buffer: E.Buffer, value: Expr, indices: tuple[Expr, ...]) -> S.Stmt:
    """A number takes the elements' type. ExpressionTypeError for values of other types."""
    return View(buffer).store(value, *indices)


def _if(condition: Expr, then_case: S.Body, else_case: S.Body | None) -> S.Stmt:
    return S.IfThenElse(truth(condition), then_case, else_case)


def _while(condition: Expr, body: S.Body) -> S.Stmt:
    return S.While(truth(condition), body)


def _function(
    params: Sequence[object],
    body: object,
    ret_type: DataType | None = None,
    buffer_map: Mapping[E.Var, E.Buffer | View] | None = None,
    attrs: Mapping[str, object] | None = None,
    span: None = None,
) -> S.PrimFunc:
    """A function: parameters are variables, buffers, or variables that stand for those of `buffer_map`."""
    buffers = {variable(v): stored(buffer) for v, buffer in (buffer_map or {}).items()}
    taken: list[E.Var] = []
    declared: list[S.Stmt] = []
    for given in params:
        buffer = (
            buffers.get(given) if isinstance(given, E.Var) else given if isinstance(given, (View, E.Buffer)) else None
        )
        if buffer is not None:
            declared.append(S.DeclBuffer(stored(buffer)))
        taken.append(variable(given) if buffer is None else stored(buffer).data)
    notes = dict(attrs or {})
    name = str(notes.pop("global_symbol", "main"))
    kind = D.VOID if ret_type is None else ret_type
    return S.PrimFunc(name, tuple(taken), (*declared, *body_of(body, name)), kind, tuple(notes.items()))


def _variable(name: str, dtype: object = "int32", span: None = None) -> E.Var:
    """A variable; `dtype` may be a `PointerType`."""
    made = E.Var(name, dtype) if isinstance(dtype, D.PointerType) else var(name, dtype)
    assert isinstance(made, E.Var)
    return made


def _call(dtype: object, op: str, args: Sequence[object], span: None = None) -> Expr:
    """The call of an operation, `tir.NAME`."""
    made: Expr = call_intrin(dtype, op, *args)
    return made


def _comm_reducer(
    lhs: Iterable[object], rhs: Iterable[object], result: Iterable[object], identity_element: Iterable[object], span: None = None
) -> T.CommReducer:  # fmt: skip
    """How two values are joined; TypeError unless there are as many of each."""
    sides = [tuple(map(variable, side)) for side in (lhs, rhs)]
    joined, start = _indices(result), _indices(identity_element)
    if len({len(x) for x in (*sides, joined, start)}) != 1:
        raise _WrongValue("a reducer has as many results and identities as values", code="input", help="give one each")
    return T.CommReducer("reduce", sides[0], sides[1], joined, start)


def pointer_to(element_type: object, storage_scope: str = "") -> D.PointerType:
    """The type of addresses of elements in a memory, by default the global one."""
    return D.pointer_type(data_type(element_type), storage_scope or "global")


def make_node(type_key: str, **fields: object) -> Any:
    """A node by its name in the framework and its fields. TypeError for names and fields that there are not."""
    if type_key.startswith(RELAY_RECORDS):
        declared.load()
        if type_key in RECORDS:
            return RECORDS[type_key](**fields)
    if type_key == "DictAttrs":
        return DictAttrs(fields)
    name = type_key.removeprefix("tir.")
    if name not in TYPES:
        raise _WrongArgument(
            f"there are no nodes of kind '{type_key}'", code="input", help=help_for(name, [*TYPES], "nodes")
        )
    return TYPES[name](**fields)


def stmt_seq(*args: object) -> S.Stmt | Statements:
    """Statements one after another; expressions are evaluated. One alone is itself."""
    made = body_of(args, "stmt_seq")
    return made[0] if len(made) == 1 else Statements(made)


def stmt_list(stmt: object) -> list[S.Stmt]:
    """The statements of a body, declared buffers left out."""
    return [s for s in (stmt if isinstance(stmt, tuple) else (stmt,)) if not isinstance(s, S.DeclBuffer)]


_BINARY = {
    name: name.lower() for name in "Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or".split()
}
"""The framework's classes of operators, each a `Binary` of one operator."""
_NODES: tuple[tuple[str, type[Node], str, Maker], ...] = (
    ("IntImm", E.IntImm, "dtype value", _int_imm),
    ("FloatImm", E.FloatImm, "dtype value", _float_imm),
    ("StringImm", E.StringImm, "value", E.StringImm),
    ("Ramp", E.Ramp, "base stride lanes", _ramp),
    ("Broadcast", E.Broadcast, "value lanes", E.Broadcast),
    ("BufferLoad", E.BufferLoad, "buffer indices", _load),
    ("BufferStore", S.BufferStore, "buffer value indices", _store),
    ("Evaluate", S.Evaluate, "value", S.Evaluate),
    ("ProducerLoad", T.ProducerLoad, "producer indices", T.ProducerLoad),
    ("ProducerStore", TS.ProducerStore, "producer value indices", TS.ProducerStore),
    ("IfThenElse", S.IfThenElse, "condition then_case else_case?", _if),
    ("While", S.While, "condition body", _while),
)
"""Names of nodes with the fields that programs give, in order, and what is made of these."""
_MADE: Mapping[str, tuple[Classes, Maker]] = {
    "Var": (E.Var, _variable),
    "SizeVar": (E.Var, size_var),
    "Cast": (E.Cast, _cast),
    "Select": (E.Select, math.Select),
    "For": (S.For, statements.for_loop),
    "LetStmt": (S.Let, statements.let),
    "SeqStmt": (Statements, statements.sequence),
    "Call": (E.Call, _call),
    "PrimFunc": (S.PrimFunc, _function),
    "Allocate": (S.Alloc, statements.allocate),
    "AllocateConst": (S.AllocConst, statements.allocate_const),
    "AssertStmt": (S.AssertStmt, statements.assert_stmt),
    "AttrStmt": ((S.AttrStmt, TS.StageAttr), statements.attr_stmt),
    "ProducerRealize": (TS.ProducerRealize, statements.producer_realize),
    "Block": ((S.Block, RootBlock), statements.block),
    "BlockRealize": ((S.Block, RootBlock), statements.block_realize),
    "BufferRegion": (E.BufferRegion, statements.buffer_region),
    "DeclBuffer": (S.DeclBuffer, statements.decl_buffer),
    "CommReducer": (T.CommReducer, _comm_reducer),
    "PrimType": (DataType, data_type),
    "PointerType": (D.PointerType, pointer_to),
}
"""Nodes that are made by functions of their own."""
_KNOWN: Mapping[str, Classes] = {
    "ConstExpr": (E.IntImm, E.FloatImm, E.StringImm),
    "PrimExpr": Expr,
    "Stmt": S.Stmt,
    "Buffer": (E.Buffer, View),
    "Reduce": T.Reduce,
    "Array": (tuple, list),
    "Map": (dict, Attributes),
}
"""Nodes that programs ask for, and do not make."""
_OPERATORS = {
    "BinaryOpExpr": "add sub mul div mod floordiv floormod min max",
    "CmpExpr": "eq ne lt le gt ge",
    "LogicalExpr": "and or not",
}
"""Classes of the framework by the operators of their nodes."""


def _unmade(name: str) -> Maker:
    def make(*args: object, **options: object) -> NoReturn:
        raise _WrongArgument(f"programs make no {name}", code="input", help="its subclasses, or schedules, are made")

    return make


def _types() -> dict[str, NodeType]:
    """The names of nodes."""

    def named(name: str, node: Classes, make: Maker, holds: Callable[[object], bool] = _any) -> None:
        made[name] = NodeType(name, (), {"node": node, "make": staticmethod(make), "holds": staticmethod(holds)})

    made: dict[str, NodeType] = {}
    for name, node, arguments, build in _NODES:
        named(name, node, _maker(name, node, arguments, build))
    for name, (classes, make) in _MADE.items():
        named(name, classes, make)
    made["SizeVar"].holds = lambda e: e.nonneg
    made["SeqStmt"].holds = lambda body: _alone(body) is None and len(body) > 1
    for name, known in _KNOWN.items():
        named(name, known, _unmade(name))
    made["Stmt"].node = (S.Stmt, Statements)
    for name, op in _BINARY.items():
        named(name, E.Binary, _maker(name, E.Binary, "a b", partial(E.Binary, op)), partial(_is_one_of, (op,)))
    named("Not", E.Unary, _maker("Not", E.Unary, "a", partial(E.Unary, "not")), partial(_is_one_of, ("not",)))
    for name, ops in _OPERATORS.items():
        named(name, (E.Binary, E.Unary), _unmade(name), partial(_is_one_of, tuple(ops.split())))
    return made


def _is_one_of(ops: tuple[str, ...], e: E.Binary | E.Unary) -> bool:
    return e.op in ops


TYPES = _types()
__all__ = ["ForKind", "stmt_list", "stmt_seq"]
__all__.extend(TYPES)


def __getattr__(name: str) -> NodeType:
    if name not in TYPES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return TYPES[name]
