"""Calls made while a kernel is parsed: operations, sub-functions and macros."""

from __future__ import annotations

import inspect

from compass_core.errors import CompassError, Note

from ...ir import exprs as E
from ...ir.dtypes import PointerType
from ...ops.core import Built, Op, convert
from ...ops.typing import is_literal
from ..functions import Macro, Param, PyPrimFunc, mentioned_names
from ..source import definition, file_of
from ..tiles.tile import Tile, apply
from .arguments import ArgumentError, bare
from .context import ModuleContext
from .expressions import Evaluator
from .helpers import calls
from .scope import Poison, Scope
from .values import BufferValue, PointerValue, Value, kind_name, unwrap, wrap


def build_op(module: ModuleContext, op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """The IR of an operation called in a kernel."""
    if any(isinstance(x, Tile) for x in (*args, *kwargs.values())):
        return apply(op, args, kwargs)
    try:
        op.given(args, kwargs)
    except TypeError as e:
        raise CompassError(
            f"S.{op.name}: {e}", code="arguments", help=f"its signature is S.{op.name}{bare(op.signature)}"
        ) from None
    try:
        given = [unwrap(a) for a in args], {k: unwrap(v) for k, v in kwargs.items()}
        found = op.build(*given[0], **given[1])
        if isinstance(found, tuple) and any(getattr(e, "flags", 0) & E.F_FUNC for e in found):  # each part has them
            found = _build_again(module, op, args, kwargs)
        return wrap(found)
    except CompassError as e:
        if f"S.{op.name}" not in e.message:
            e.message = f"S.{op.name}: {e.message}"
        e.help = e.help or f"`compassc ops {op.name}` shows what it takes"
        raise


def _build_again(module: ModuleContext, op: Op, args: tuple[object, ...], kwargs: dict[str, object]) -> Built:
    """The operation on operands without calls, which are made before it."""
    keep = module.functions[-1].keep
    plain = [keep(x) if calls(x) else x for x in (*args, *kwargs.values())]
    return op.build(*map(unwrap, plain[: len(args)]), **dict(zip(kwargs, map(unwrap, plain[len(args) :]))))


def call_function(
    module: ModuleContext, func: PyPrimFunc, args: tuple[object, ...], kwargs: dict[str, object]
) -> Value:
    """A call of a sub-function: checks the arguments, parses the function once, gives the call expression."""
    symbol = module.require(func)
    exprs = tuple(
        _argument(func, position, param, value)
        for position, (param, value) in enumerate(zip(func.params, _bind(func, args, kwargs)), 1)
    )
    made: Value = wrap(E.FuncCall(symbol, exprs, func.ret_type))
    return made


def _bind(func: PyPrimFunc, args: tuple[object, ...], kwargs: dict[str, object]) -> list[object]:
    """Arguments in parameter order; defaults filled in."""
    parameters = [
        inspect.Parameter(p.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=p.default) for p in func.params
    ]
    try:
        bound = inspect.Signature(parameters).bind(*args, **kwargs)
    except TypeError as e:
        required = sum(p.required for p in func.params)
        expected = f"{required} to {len(func.params)}" if required < len(func.params) else str(required)
        given = len(args) + len(kwargs)
        raise CompassError(
            f"{func.__name__}() takes {expected} arguments, {given} given: {e}",
            code="arguments",
            help=f"its parameters are {', '.join(p.name for p in func.params)}",
        ) from None
    bound.apply_defaults()
    return [bound.arguments[p.name] for p in func.params]


def _argument(func: PyPrimFunc, position: int, param: Param, value: object) -> E.Expr:
    """One argument converted to its parameter's type."""

    def mismatch(expected: str, help: str = "") -> CompassError:
        got = value.dtype if isinstance(value, Value) else kind_name(value)
        message = f"argument {position} ({param.name}) of {func.__name__}() must be {expected}, got {got}"
        declared = Note(f"{param.name!r} is declared here", func.place_of(param.name))
        return ArgumentError(message, param.name, position, declared, help)

    kind = param.type
    if isinstance(kind, PointerType):
        pointer = value.addr_of(0) if isinstance(value, BufferValue) else value
        if not isinstance(pointer, PointerValue):
            raise mismatch(f"a pointer ({kind})", "pass a pointer, e.g. p + i for the element p[i]")
        if pointer.scope != kind.scope:
            raise mismatch(
                f"a pointer in {kind.scope}",
                f"this one is in {pointer.scope}; declare the parameter with that scope, or copy the data",
            )
        pointer = pointer.as_ptr(kind.elem)
        plain = type(pointer.offset) is E.IntImm and pointer.offset.value == 0 and type(pointer.base) is E.Var
        return pointer.base if plain and pointer.base.dtype is kind else pointer.expr
    if kind.is_scalar:
        if is_literal(value):
            return convert(value, kind)
        if not isinstance(value, Value) or value.dtype.is_vector:
            raise mismatch(f"a scalar ({kind})", "pass one element, e.g. p[i]")
        return convert(value.expr, kind)
    if not isinstance(value, Value) or value.dtype is not kind:
        raise mismatch(str(kind), "convert it explicitly")
    return value.expr


def _refuse_new_arguments(macro: Macro, names: dict[str, object], given: dict[str, object]) -> None:
    """CompassError where a macro lets a parameter stand for another value, which the caller's name would not."""
    for name, value in given.items():
        if names[name] is not value and names[name] is not Poison:
            raise CompassError(
                f"macro {macro.__name__}() gives its parameter {name!r} another value while the kernel is compiled, "
                "which the caller would not see",
                code="macro-argument",
                help="use another name in the macro, or give it a variable: x = S.i32(...)",
            )


def expand_macro(module: ModuleContext, macro: Macro, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """Paste the body of a macro at the call."""
    fp = module.functions[-1]
    try:
        bound = inspect.signature(macro.py_func).bind(*args, **kwargs)
    except TypeError as e:
        raise CompassError(
            f"macro {macro.__name__}(): {e}",
            code="arguments",
            help=f"its signature is {macro.__name__}{inspect.signature(macro.py_func)}",
        ) from None
    bound.apply_defaults()
    node, file = definition(macro.py_func), file_of(macro.py_func)
    outer = fp.scope, fp.evaluator, fp.eval, fp.file
    if macro.hygienic:
        fp.scope = Scope(macro.captured, mentioned_names(macro.py_func))
        if outer[0].depends_on_run:
            fp.scope.runs_often()
    fp.scope.push()
    for name, value in bound.arguments.items():
        fp.scope.bind(name, value)
    fp.file = file
    fp.evaluator = Evaluator(fp.scope, file, fp.chain, fp)
    fp.eval = fp.evaluator.eval
    try:
        with fp.helpers.run(False):
            fp.block(node.body)
        _refuse_new_arguments(macro, fp.scope.frames[-1], bound.arguments)
    finally:
        fp.scope.pop()
        fp.scope, fp.evaluator, fp.eval, fp.file = outer
