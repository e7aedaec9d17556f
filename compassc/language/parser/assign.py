"""Assignment: definition, reassignment, stores, compile-time bindings, storage and constant tables."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, DataType, dtype, pointer_type
from ...ops.args import refuse_constant
from ...ops.core import convert
from ...ops.typing import is_literal
from ..axis import AxisSpec
from ..specs import AllocSpec, ConstSpec, MatchSpec, MetaVar
from ..tiles.tile import FIXED, Tile
from .access import resolve
from .context import FunctionContext
from .errors import language_error
from .operators import convert_to
from .texts import RuntimeText
from .tiles import assign_tile
from .values import ZERO, BufferValue, Constant, PointerValue, Value, element_index, index_expr, kind_name, literal_expr

_ONE_TYPE = "a variable has one type, as in C: the type of the first value it is given"


def _conversion(kind: DataType) -> str:
    return f'S.cast(value, "{kind}")' if kind.is_vector else f"S.{kind}(value)"


def assign(fp: FunctionContext, target: ast.expr, value: object) -> None:
    """`target = value` for a name or a subscript."""
    if isinstance(target, ast.Name):
        assign_name(fp, target.id, value)
    elif isinstance(target, ast.Subscript):
        owner, index = fp.eval(target.value), fp.eval(target.slice)
        assign_item(fp, owner, index, value.value if isinstance(value, MetaVar) else value)
    else:
        raise language_error(
            "assign-target", "only names, tuples of names and subscripts can be assigned", "use a plain name"
        )


def assign_item(fp: FunctionContext, owner: object, index: object, value: object) -> None:
    if isinstance(owner, (PointerValue, BufferValue)):
        refuse_constant(owner.scope)
        fp.append(resolve(owner, index).store(value))
        return
    if not isinstance(owner, Value):
        raise language_error(
            "assign-target",
            f"cannot assign to an item of {kind_name(owner)}",
            FIXED if isinstance(owner, Tile) else "Python objects are constants here; use S.alloc_buffer for storage",
        )
    if type(owner.expr) is not E.Var:
        raise language_error(
            "assign-target", "only elements of a vector variable can be assigned", "bind the vector to a name first"
        )
    position = element_index(owner.dtype, index)
    elem = owner.dtype.element_of
    is_float = type(value) is float or (isinstance(value, Value) and value.dtype.is_floating)
    if is_float and elem.is_integer:
        raise language_error(
            "element-store",
            f"an element of {owner.dtype} cannot take a floating-point value",
            f"convert the value: S.{elem}(value)",
        )
    if isinstance(value, Value) and value.dtype.is_vector:
        raise language_error(
            "element-store", f"an element of {owner.dtype} cannot take {value.dtype}", f"give it a scalar {elem}"
        )
    fp.emit(S.SetElement, owner.expr, position, convert_to(value, elem))


def assign_name(fp: FunctionContext, name: str, value: Any) -> None:
    """`name = value`, by the kind of the value."""
    if name in fp.scope.loop_names:
        raise language_error(
            "loop-variable", f"the loop variable {name!r} cannot be assigned", "copy it to another variable"
        )
    handler = _HANDLERS.get(type(value))
    if isinstance(value, Tile):
        assign_tile(fp, name, value)
    elif handler is not None:
        handler(fp, name, value)
    elif is_literal(value):
        assign_value(fp, name, Value(literal_expr(value)))
    elif type(value).__module__ == "numpy" and hasattr(value, "tobytes"):
        define_table(fp, name, ConstSpec(value.shape, dtype(str(value.dtype)), value))
    elif isinstance(value, str):
        raise language_error(
            "string-value", "a string cannot be assigned in a kernel", "define it outside of the kernel"
        )
    elif isinstance(value, RuntimeText):
        raise language_error(
            "string-value",
            "text made of run-time values cannot be assigned in a kernel",
            "write it where it is used, as in print(f'...')",
        )
    else:
        raise language_error(
            "no-variable",
            f"{kind_name(value)} cannot be a variable of a kernel",
            "use S.meta_var for compile-time values",
        )


def assign_value(fp: FunctionContext, name: str, value: Value) -> None:
    """A scalar, vector or mask: define the variable, or give it a new value of the same type."""
    old = fp.scope.local(name)
    if old is None:
        var = E.Var(name, value.dtype)
        fp.emit(S.Let, var, value.expr)
        fp.define(name, Value(var))
        return
    if not isinstance(old, Value) or type(old.expr) is not E.Var:
        pointer = isinstance(old, PointerValue)
        was = f"{old.elem}*" if isinstance(old, PointerValue) else "a compile-time value"
        raise language_error(
            "type-change",
            f"{name!r} is {was} and cannot become {value.dtype}",
            f"to store what it points to, write {name}[0] = ...; else use another name"
            if pointer
            else "use another name",
            *fp.scope.defined_here(name),
        )
    if old.dtype is not value.dtype:
        raise language_error(
            "type-change",
            f"{name!r} is {old.dtype} and cannot take a value of type {value.dtype}",
            f"use another name, or convert the value: {_conversion(old.dtype)}",
            *fp.scope.defined_here(name),
            _ONE_TYPE,
        )
    fp.emit(S.Assign, old.expr, value.expr)


def assign_pointer(fp: FunctionContext, name: str, value: PointerValue) -> None:
    """A pointer: define a pointer variable, or move an existing one of the same pointee type."""
    old = fp.scope.local(name)
    if old is None:
        var = E.Var(name, pointer_type(value.elem, value.scope))
        fp.emit(S.Let, var, value.expr)
        fp.define(name, PointerValue(value.elem, var, ZERO))
        return
    if not isinstance(old, PointerValue):
        was = old.dtype if isinstance(old, Value) else "a compile-time value"
        raise language_error(
            "type-change",
            f"{name!r} is {was} and cannot become a pointer ({value.elem}*)",
            "use another name",
            *fp.scope.defined_here(name),
        )
    if not old.is_variable:
        raise language_error(
            "type-change",
            f"{name!r} is the argument of a macro, an address that is no variable of the caller",
            "pass a variable, or assign to a new name in the macro",
        )
    if old.elem is not value.elem:
        raise language_error(
            "type-change",
            f"{name!r} is {old.elem}* and cannot take {value.elem}*",
            f'convert it explicitly: as_ptr("{old.elem}")',
            *fp.scope.defined_here(name),
        )
    if _memory(old.scope) != _memory(value.scope):
        raise language_error(
            "type-change",
            f"{name!r} points to {old.scope} memory and cannot point to {value.scope} memory",
            "use another name",
            *fp.scope.defined_here(name),
        )
    fp.emit(S.Assign, old.base, value.expr)


def _memory(scope: str) -> str:
    """The part of a scope that belongs to a pointer's type in C, where all regions of DDR are one memory."""
    return scope.partition(".")[0]


def assign_buffer(fp: FunctionContext, name: str, value: BufferValue) -> None:
    raise language_error(
        "buffer-alias", "a buffer cannot be reassigned or given a second name", "use a pointer: buf.addr_of(0)"
    )


def assign_container(fp: FunctionContext, name: str, value: object) -> None:
    """A compile-time value: the name stands for it, there is no variable."""
    old = fp.scope.local(name)
    if isinstance(old, (Value, PointerValue, BufferValue)):
        raise language_error(
            "type-change",
            f"{name!r} is a run-time variable and cannot become a compile-time value",
            "use another name",
            *fp.scope.defined_here(name),
        )
    value = fp.keep(value.value if isinstance(value, MetaVar) else value, name)
    fp.scope.rebind(name, value, fp.evaluator.place(fp.current))


def define_storage(fp: FunctionContext, name: str, spec: AllocSpec) -> None:
    """`S.alloc` and `S.alloc_buffer`. A pointer that there is already moves to the new storage."""
    moves = spec.kind == "pointer" and isinstance(fp.scope.local(name), PointerValue)
    if not moves:
        _new_name(fp, name)
    buffer = fp.storage(f"{name}_buf" if spec.kind == "pointer" else name, spec)
    data = buffer.data
    if moves:
        assign_pointer(fp, name, PointerValue(spec.dtype, data, ZERO))
        fp.hoist(S.Alloc, buffer)  # the pointer may outlive the block
        return
    fp.emit(S.Alloc, buffer)
    if spec.kind == "pointer":
        var = E.Var(name, data.dtype)
        fp.emit(S.Let, var, E.Pointer(spec.dtype, data, ZERO))
        fp.define(name, PointerValue(spec.dtype, var, ZERO))
    else:
        fp.define(name, BufferValue(buffer, spec.shape, name))


def _new_name(fp: FunctionContext, name: str) -> None:
    if fp.scope.local(name) is not None:
        raise language_error(
            "redefined",
            f"{name!r} is already defined; storage needs a name of its own",
            "use another name",
            *fp.scope.defined_here(name),
        )


def define_table(fp: FunctionContext, name: str, spec: ConstSpec) -> None:
    """A NumPy array or `S.alloc_const`: a constant table."""
    _new_name(fp, name)
    elem: DataType = spec.dtype
    data = E.Var(name, pointer_type(elem, "constant"))
    buffer = E.Buffer(data, elem, tuple(E.IntImm(INT32, int(n)) for n in spec.shape))
    fp.emit(S.AllocConst, buffer, spec.data.tobytes())
    fp.define(name, BufferValue(buffer, tuple(int(n) for n in spec.shape), name))


def define_match(fp: FunctionContext, name: str, spec: MatchSpec) -> None:
    """`S.match_buffer`: an N-D view of a parameter, which takes the buffer's name in C."""
    pointer = spec.pointer
    if not isinstance(pointer, PointerValue) or type(pointer.base) is not E.Var or pointer.base not in fp.params:
        raise language_error(
            "match-buffer", "S.match_buffer needs a pointer parameter of this function", "pass the parameter itself"
        )
    if not (type(pointer.offset) is E.IntImm and pointer.offset.value == 0):
        raise language_error(
            "match-buffer",
            "S.match_buffer of a moved pointer is not supported",
            "pass the plain parameter and index from there",
        )
    if pointer.elem.is_void:
        raise language_error("void-pointer", "a void pointer cannot be matched", "give the parameter a type")
    _new_name(fp, name) if name != pointer.base.name else None
    var = pointer.base
    fp.renamed[var] = E.Var(name, var.dtype, var.nonneg)
    shape = tuple(convert(index_expr(s, "shape"), INT32) for s in spec.shape)
    buffer = E.Buffer(var, pointer.elem, shape)
    fp.emit(S.DeclBuffer, buffer)
    dims = tuple(s if type(s) is int else Value(e) for s, e in zip(spec.shape, shape))
    fp.shapes[var] = [_dimension(fp, e) for e in shape]
    fp.scope.rebind(name, BufferValue(buffer, dims, name), fp.evaluator.place(fp.current))


def _dimension(fp: FunctionContext, e: E.Expr) -> int | str | None:
    """A dimension as a number or the name of a scalar parameter; None for anything else."""
    if type(e) is E.IntImm:
        return e.value
    return e.name if type(e) is E.Var and e in fp.params else None


def bind_axis(fp: FunctionContext, name: str, value: AxisSpec) -> None:
    """A block axis: the name stands for the loop variable (or expression) the axis is bound to; where blocks are kept,
    for a variable of the block."""
    if is_literal(value.binding):
        binding = Value(literal_expr(value.binding))
    elif isinstance(value.binding, Value) and value.binding.dtype.is_integer and value.binding.dtype.is_scalar:
        binding = value.binding
    else:
        raise language_error("axis", "a block axis is bound to an integer", "bind it to a loop variable")
    if fp.keeps_blocks and fp.axes:
        binding = _kept_axis(fp, name, value, binding)
    fp.scope.bind(name, binding)


def _kept_axis(fp: FunctionContext, name: str, value: AxisSpec, binding: Value) -> Value:
    """The variable of an axis of the block around."""
    e, kind = binding.expr, binding.expr.data_type
    if value.dom is None:
        found = fp.ranges.get(e) if isinstance(e, E.Var) else None
        if found is None:
            raise language_error("axis", "S.axis.remap binds loop variables", "give the domain: S.axis.spatial(n, ...)")
        start, stop = found
        from_zero = isinstance(start, E.IntImm) and not start.value
        extent: E.Expr = stop if from_zero else E.Binary("sub", stop, start)
    else:
        pair = value.dom if isinstance(value.dom, (tuple, list)) else (0, value.dom)
        start, extent = (convert(index_expr(x, "axis"), kind) for x in pair)
    var = E.Var(name, kind)
    fp.axes[-1].append((var, {"S": "spatial", "R": "reduce"}[value.kind], start, extent, e))
    return Value(var)


_HANDLERS: dict[type, Any] = {
    AxisSpec: bind_axis,
    Value: assign_value,
    Constant: assign_value,
    PointerValue: assign_pointer,
    BufferValue: assign_buffer,
    AllocSpec: define_storage,
    ConstSpec: define_table,
    MatchSpec: define_match,
    MetaVar: assign_container,
    list: assign_container,
    tuple: assign_container,
}
