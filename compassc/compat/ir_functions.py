"""Functions of the framework about IR: walking, substituting, saving."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import is_
from types import ModuleType
from typing import Any

from compass_core.errors import UsageError
from compassc.graph.graph import Graph

from .. import relay
from ..analysis.statements import fresh_copy
from ..analysis.structure import Interner
from ..graph import read
from ..ir import IRModule, PrimFunc, equal, parse_module
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.dtypes import DataType, PointerType, dtype, pointer_type
from ..ir.node import Node, Statements
from ..ir.operators import as_expr
from ..ir.printer import print_module
from ..ir.verify import VerifyError, verify
from ..ir.visit import rename_vars, substitute_body
from ..ir.visit import substitute as substituted
from ..relay.attributes import Attrs, DictAttrs
from ..relay.expr import Clause, Pattern
from ..relay.operators import FIRST_LEVEL
from ..te import intrinsics
from ..te.opaque import body_of
from ..tir.roots import RootBlock, is_root, root_block
from . import nodes, relay_saving, te_saving
from .statements import variable

FORMAT = "compassc-ir/2"
_Relay = relay.Expr | relay.Type | Pattern | Clause | relay.IRModule | Attrs | DictAttrs


def _equality(lhs: object) -> ModuleType:
    """The module that compares such things."""
    return relay.equal if isinstance(lhs, _Relay) else equal


def _numbers(lhs: object, rhs: object) -> tuple[object, object]:
    """Two things to compare: numbers of Python beside expressions are those that they stand for."""
    if isinstance(rhs, E.Expr) and isinstance(lhs, (int, float)):
        return as_expr(lhs), rhs
    return lhs, as_expr(rhs) if isinstance(lhs, E.Expr) and isinstance(rhs, (int, float)) else rhs


def structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> bool:
    """Whether two things of the IR or of Relay are the same program."""
    lhs, rhs = _numbers(lhs, rhs)
    return bool(_equality(lhs).structural_equal(lhs, rhs, map_free_vars))


def assert_structural_equal(lhs: object, rhs: object, map_free_vars: bool = False) -> None:
    """ValueError with the place unless two things are the same program."""
    lhs, rhs = _numbers(lhs, rhs)
    _equality(lhs).assert_structural_equal(lhs, rhs, map_free_vars)


def structural_hash(node: object, map_free_vars: bool = False) -> int:
    """A number that equal programs share."""
    return int(_equality(node).structural_hash(node, map_free_vars))


def get_first_structural_mismatch(lhs: object, rhs: object, map_free_vars: bool = False) -> tuple[str, str] | None:
    """The place in each of two programs where they differ first; None where they do not."""
    found: tuple[str, str] | None = _equality(lhs).get_first_structural_mismatch(lhs, rhs, map_free_vars)
    return found


def save_json(node: object) -> str:
    """Anything of the IR as JSON text, which `load_json` reads: a module or function as its text, other nodes by their
    fields, each once, tensors and schedules of them with all that they are made of. UsageError for what has no such form, as Python functions among annotations."""
    if isinstance(node, (relay.IRModule, relay.Expr)):
        kind = "relay module" if isinstance(node, relay.IRModule) else "relay expression"
        return json.dumps({"format": FORMAT, "kind": kind, "text": node.astext()})
    if isinstance(node, (IRModule, PrimFunc)):
        kind = "module" if isinstance(node, IRModule) else "function"
        return json.dumps({"format": FORMAT, "kind": kind, "text": print_module(node.module())})
    if isinstance(node, relay_saving.SAVED):
        parts = relay_saving.Packed()
        whole = parts.value(node)
        return json.dumps({"format": FORMAT, "kind": "relay parts", "root": whole, "nodes": parts.rows})
    if te_saving.is_of_tensors(node):
        return json.dumps({"format": FORMAT, "kind": "tensors", "text": te_saving.packed(node)})
    packed = _Packed()
    root = packed.value(node)
    return json.dumps({"format": FORMAT, "kind": "nodes", "root": root, "nodes": packed.nodes})


def load_json(text: str) -> Any:
    """What `save_json` wrote. UsageError for other text, and for types of nodes that there are not."""
    try:
        read = json.loads(text)
        if read["format"] != FORMAT or read["kind"] not in _KINDS:
            raise ValueError(read["format"])
        if read["kind"] == "tensors":
            return te_saving.unpacked(read["text"])
        if read["kind"] in _READERS:
            return _READERS[read["kind"]](read["text"], "<saved IR>")
        if read["kind"] == "relay parts":
            return relay_saving.unpacked(read["root"], read["nodes"])
        if read["kind"] == "nodes":
            return _unpacked(read["root"], read["nodes"])
        module = parse_module(read["text"], "<saved IR>", _graph)
        return module if read["kind"] == "module" else module.entry_func
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise UsageError(f"this is no saved IR ({FORMAT}): {error}", code="compat-name") from None


_READERS: dict[str, Callable[[str, str], object]] = {"relay module": relay.parse, "relay expression": relay.parse_expr}
_KINDS = ("module", "function", "nodes", "relay parts", "tensors", *_READERS)


def _graph(text: str, constants: bytes, path: str) -> Graph:
    return read(text, constants, path)


class _Packed:
    """Nodes as rows of their type and fields, which name other rows."""

    def __init__(self) -> None:
        self.nodes: list[list[object]] = []
        self.known: dict[int, int] = {}

    def value(self, value: object) -> object:
        """A value as JSON has it: what is no number, text or None is a list of its kind and parts."""
        if isinstance(value, Node):
            return ["node", self._row(value)]
        if isinstance(value, DataType):
            return ["dtype", str(value)]
        if isinstance(value, PointerType):
            return ["pointer", str(value.elem), value.scope]
        if isinstance(value, bytes):
            return ["bytes", value.hex()]
        if isinstance(value, (tuple, list)):
            return ["list" if isinstance(value, list) else "tuple", *map(self.value, value)]
        if isinstance(value, dict):
            return ["dict", *([k, self.value(v)] for k, v in value.items())]
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise UsageError(f"a {type(value).__name__} cannot be saved", code="compat-name")

    def _row(self, node: Node) -> int:
        if id(node) not in self.known:
            row: list[object] = [type(node).__name__, {name: self.value(getattr(node, name)) for name in node.fields}]
            self.known[id(node)] = len(self.nodes)
            self.nodes.append(row)
        return self.known[id(node)]


_VALUES: Mapping[str, Callable[..., object]] = {
    "dtype": dtype,
    "pointer": lambda elem, scope: pointer_type(dtype(elem), scope),
    "bytes": bytes.fromhex,
}
_LISTS: Mapping[str, Callable[[Iterable[object]], object]] = {"tuple": tuple, "list": list}


def _unpacked(root: object, rows: Sequence[tuple[str, Mapping[str, object]]]) -> object:
    made: list[object] = []

    def value(given: object) -> object:
        if not isinstance(given, list):
            return given
        kind, *parts = given
        if kind == "node":
            return made[parts[0]]
        if kind in _VALUES:
            return _VALUES[kind](*parts)
        if kind == "dict":
            return {k: value(v) for k, v in parts}
        return _LISTS[kind](map(value, parts))

    for name, fields in rows:
        cls = getattr(E, name, None) or getattr(S, name, None)
        if not (isinstance(cls, type) and issubclass(cls, Node)):
            raise UsageError(f"there is no node of the type '{name}'", code="compat-name")
        made.append(cls(**{k: value(v) for k, v in fields.items()}))
    return value(root)


def _children(node: object) -> Iterator[Node | RootBlock | S.Body]:
    if isinstance(node, IRModule):
        yield from node.functions
    elif isinstance(node, PrimFunc):
        yield from (node.body,) if is_root(node.body) else node.body
    elif isinstance(node, S.Stmt):
        yield from node.exprs()
        for body in node.bodies():
            yield from body
    elif isinstance(node, E.Expr):
        yield from node.children()
    elif isinstance(node, RootBlock):
        yield from node.whole
    elif isinstance(node, tuple):
        yield from node


def _visited(node: object) -> object:
    """The block that the body of a function of blocks is; anything else itself."""
    return root_block(node) if isinstance(node, tuple) and is_root(node) else node


def pre_order_visit(node: object, fvisit: Callable[[object], bool]) -> None:
    """Call `fvisit` with a node and all in it, parents first; where it gives False nothing below is visited."""
    node = _visited(node)
    if fvisit(node) is False:
        return
    for child in _children(node):
        pre_order_visit(child, fvisit)


def post_order_visit(node: object, fvisit: Callable[[object], object]) -> None:
    """Call `fvisit` with all in a node and the node, parents last."""
    node = _visited(node)
    for child in _children(node):
        post_order_visit(child, fvisit)
    fvisit(node)


_Visit = Callable[[Any], object]


def ir_transform(
    stmt: object, preorder: _Visit | None, postorder: _Visit | None, only_enable: Sequence[str] | None = None
) -> object:
    """A function, statement, body or expression with nodes replaced: `preorder` gets a node first and gives what stands for
    all of it, or None; `postorder` gets a node whose parts were replaced (itself where none was) and gives another one, or
    None. In the place of a statement there may be several. `only_enable`: the kinds of nodes that both get (`tir.For`,
    `tir.BufferStore`, ...), by default all. UsageError for kinds that there are not."""
    kinds = None if only_enable is None else tuple(_kind(name) for name in only_enable)

    def asked(visit: _Visit | None, node: object) -> object:
        found = None if visit is None or (kinds is not None and not isinstance(node, kinds)) else visit(node)
        return _expression(found) if isinstance(node, E.Expr) and found is not None else found

    def changed(node: S.Stmt | E.Expr) -> Any:
        found = asked(preorder, node)
        if found is not None:
            return found
        inner = node.map(changed, body) if isinstance(node, S.Stmt) else node.map(changed)
        found = asked(postorder, inner)
        return inner if found is None else found

    def body(statements: S.Body) -> S.Body:
        found = type(statements)(body_of([changed(s) for s in statements], "ir_transform"))
        return statements if len(found) == len(statements) and all(map(is_, found, statements)) else found

    if isinstance(stmt, PrimFunc):
        return stmt.replace(body=body(stmt.body))
    if isinstance(stmt, tuple):
        return body(stmt)
    return changed(stmt if isinstance(stmt, S.Stmt) else _expression(stmt))


def _expression(value: object) -> E.Expr:
    return as_expr(value)


def _kind(name: str) -> type:
    """The class of nodes of a name of the framework."""
    short = name.rpartition(".")[2]
    if short in nodes.TYPES:
        return nodes.TYPES[short]
    for module in (S, E):
        found = getattr(module, short, None)
        if isinstance(found, type) and issubclass(found, Node):
            return found
    raise UsageError(f"there are no nodes of kind '{name}'", code="compat-name")


def substitute(node: object, vmap: Mapping[E.Var, object]) -> PrimFunc | S.Stmt | Statements | E.Expr:
    """An expression, statement, body or function with variables replaced. TypeError where one of these is no variable."""
    mapping = {variable(var): as_expr(value) for var, value in vmap.items()}
    if isinstance(node, PrimFunc):
        return node.replace(body=substitute_body(node.body, mapping))
    if isinstance(node, S.Stmt):
        return substitute_body((node,), mapping)[0]
    if isinstance(node, tuple):
        return Statements(substitute_body(node, mapping))
    return substituted(as_expr(node), mapping)


def renew_defs(func: PrimFunc) -> PrimFunc:
    """An equal function with parameters, loops and memory of its own."""
    params = {v: E.Var(v.name, v.dtype, v.nonneg) for v in func.params}
    body = rename_vars(fresh_copy(func.body), params)
    return func.replace(params=tuple(params.values()), body=body)


def verify_well_formed(obj: IRModule | PrimFunc, assert_mode: bool = True) -> bool:
    """Whether a module or function is well formed; VerifyError instead of False with `assert_mode`."""
    try:
        verify(obj.module())
    except VerifyError:
        if assert_mode:
            raise
        return False
    return True


def expr_deep_equal(lhs: object, rhs: object) -> bool:
    """Whether two expressions have the same structure, with the same variables."""
    return Interner().same(as_expr(lhs), as_expr(rhs))


def get_block_access_region(block: S.Block, buffer_var_map: object = None) -> list[list[object]]:
    """What a block reads, writes, and touches by address (always empty: that is in both of the others)."""
    return [list(block.reads), list(block.writes), []]


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = FIRST_LEVEL) -> object:
    """Give an operator of Relay an attribute (`relay.op.register_op_attr`), or an operation of kernels, whose names begin with
    `tir.` (`te.intrinsics.register_op_attr`). Without a value a decorator."""
    register = intrinsics.register_op_attr if op_name.startswith(intrinsics.PREFIX) else relay.op.register_op_attr
    return register(op_name, attr_key, value, level)
