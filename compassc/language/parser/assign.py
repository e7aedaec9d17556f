"""Assignment: definition, reassignment, stores, compile-time bindings, storage and constant tables."""

from __future__ import annotations

import ast
from typing import Any

from ...ir import exprs as E
from ...ir import stmts as S
from ...ir.dtypes import INT32, DataType, dtype, pointer_type
from ...ir.visit import walk_exprs
from ...ops.args import refuse_constant
from ...ops.core import convert
from ...ops.typing import is_literal
from ..axis import AxisSpec
from ..specs import AllocSpec, ConstSpec, MatchSpec, MetaVar
from ..tiles.tile import Stored, Tile, copied
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


def assign(fp: FunctionContext, target: ast.expr, value: Any) -> None:
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


def assign_item(fp: FunctionContext, owner: Any, index: Any, value: Any) -> None:
    if isinstance(owner, (PointerValue, BufferValue)):
        refuse_constant(owner.scope)
        fp.append(resolve(owner, index).store(value))
        return
    if not isinstance(owner, Value):
        raise language_error(
            "assign-target",
            f"cannot assign to an item of {kind_name(owner)}",
            "Python objects are constants here; use S.alloc_buffer for storage",
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
        was = f"{old.elem}*" if pointer else "a compile-time value"
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


def assign_container(fp: FunctionContext, name: str, value: Any) -> None:
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
    data_name = f"{name}_buf" if spec.kind == "pointer" else name
    data = E.Var(data_name, pointer_type(spec.dtype, spec.scope))
    shape = tuple(E.IntImm(INT32, n) for n in spec.shape)
    buffer = E.Buffer(data, spec.dtype, shape)
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
    if not isinstance(pointer, PointerValue) or pointer.base not in fp.params:
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


def assign_chain(fp: FunctionContext, targets: list[ast.expr], node: ast.expr) -> None:
    """`a = b[i] = e`: e is computed once and assigned to the targets from left to right."""
    first = targets[0]
    value = fp.evaluator.eval_named(node)
    if isinstance(value, (AllocSpec, ConstSpec, MatchSpec)):
        if not isinstance(first, ast.Name):
            raise language_error("chained-assign", "storage needs a name of its own", "write one assignment per line")
        assign_name(fp, first.id, value)
        value, targets = fp.scope.look_up(first.id), targets[1:]
    elif isinstance(value, (Value, PointerValue)):
        value = fp.keep(value)
    for target in targets:
        if isinstance(target, (ast.Tuple, ast.List)):
            _unpack(fp, target, value)
        else:
            assign(fp, target, value)


def assign_tuple(fp: FunctionContext, target: ast.Tuple | ast.List, node: ast.expr) -> None:
    """`a, b[i] = ...`: elements are assigned left to right; with a tuple display they are all read first."""
    names = [n.id for t in target.elts for n in ast.walk(t) if isinstance(n, ast.Name) and _stored(n)]
    if len(set(names)) != len(names):
        raise language_error("tuple-assign", "the same name is assigned twice in one tuple", "use different names")
    value = fp.evaluator.eval_named(node)
    if isinstance(value, (tuple, list)):
        values = list(value)
        if any(isinstance(n, ast.Subscript) and _stored(n) for n in ast.walk(target)):
            value = _all_kept(fp, target, values)
        elif all(isinstance(t, ast.Name) for t in target.elts):
            value = _saved(fp, names, values) + values[len(names) :]
        else:
            value = _kept_where_changed(fp, names, values)
    _unpack(fp, target, value)


def _stored(node: ast.Name | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Store)


def _all_kept(fp: FunctionContext, target: ast.Tuple | ast.List, values: list[Any]) -> list[Any]:
    """The values of an assignment to elements; none but the first may depend on what is assigned before it."""
    simple = len(values) == len(target.elts) and not isinstance(target.elts[0], (ast.Tuple, ast.List, ast.Starred))
    simple = simple and not any(isinstance(v, Value) and v.expr.flags & (E.F_FUNC | E.F_CALL) for v in values)
    return [value if i == 0 and simple else fp.keep(value) for i, value in enumerate(values)]


def _kept_where_changed(fp: FunctionContext, names: list[str], value: Any) -> Any:
    """Values, in containers too, of which those are kept that mention a variable among `names`."""
    if isinstance(value, (tuple, list)):
        return [_kept_where_changed(fp, names, item) for item in value]
    if isinstance(value, Tile):
        return fp.keep(value)
    old = [fp.scope.local(name) for name in names]
    changed = [v.expr for v in old if isinstance(v, Value) and type(v.expr) is E.Var]
    read = isinstance(value, (Value, PointerValue)) and any(_reads(fp, value.expr, var) for var in changed)
    return fp.keep(value) if read else value


def _reads(fp: FunctionContext, expr: E.Expr, var: E.Var) -> bool:
    """Whether a value uses a variable, by its name or by a pointer to it."""
    if var in fp.addressed and expr.flags & (E.F_LOAD | E.F_POINTER | E.F_FUNC):
        return True
    return any(e is var for e in walk_exprs(expr))


def _saved(fp: FunctionContext, names: list[str], values: list[Any]) -> list[Any]:
    """Values that mention an earlier target of the same tuple are copied before it changes."""
    changed: dict[E.Var, str] = {}
    tiles: list[object] = []
    out = []
    for name, value in zip(names, values):
        expr = value.expr if isinstance(value, (Value, PointerValue)) else None
        hits = [] if expr is None else [v for v in changed if _reads(fp, expr, v)]
        if hits and isinstance(value, Value):
            var = E.Var(f"tmp_{changed[hits[0]]}", value.dtype)
            fp.emit(S.Let, var, value.expr)
            value = Value(var)
        old = fp.scope.local(name)
        if isinstance(value, Tile) and any(value.uses(base) for base in tiles):
            value = copied(value)
        if isinstance(old, Stored):
            tiles.append(old.storage.base)
        if isinstance(old, Value) and type(old.expr) is E.Var:
            changed[old.expr] = name
        out.append(value)
    return out


def _unpack(fp: FunctionContext, target: ast.expr, value: Any) -> None:
    if not isinstance(target, (ast.Tuple, ast.List)):
        assign(fp, target, value)
        return
    known = isinstance(value, MetaVar)
    value = value.value if known else value
    if isinstance(value, (Value, PointerValue, BufferValue)) or not hasattr(value, "__iter__"):
        raise language_error("tuple-assign", f"cannot unpack {kind_name(value)}", "give one value per name")
    items, targets = [MetaVar(item) for item in value] if known else list(value), target.elts
    starred = [i for i, t in enumerate(targets) if isinstance(t, ast.Starred)]
    if len(starred) > 1 or (len(items) != len(targets) if not starred else len(items) < len(targets) - 1):
        raise language_error(
            "tuple-assign", f"{len(targets)} targets for {len(items)} values", "give one value per name"
        )
    if starred:
        first, extra = starred[0], len(items) - len(targets) + 1
        items[first : first + extra] = [items[first : first + extra]]
    for t, item in zip(targets, items):
        _unpack(fp, t.value if isinstance(t, ast.Starred) else t, item)


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
