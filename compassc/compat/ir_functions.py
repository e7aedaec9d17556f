"""Functions of the framework about IR: walking, substituting, saving."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from compass_core.errors import UsageError

from ..ir import IRModule, PrimFunc, parse_module
from ..ir import exprs as E
from ..ir import stmts as S
from ..ir.node import Node
from ..ir.visit import substitute as substituted
from ..ir.visit import substitute_body
from .names import IR_NODES

FORMAT = "compassc-ir/1"


def save_json(node: IRModule | PrimFunc) -> str:
    """A module or function as JSON text, which `load_json` reads."""
    if not isinstance(node, (IRModule, PrimFunc)):
        raise UsageError(f"modules and functions are saved, not {type(node).__name__}", code="compat-name")
    kind = "module" if isinstance(node, IRModule) else "function"
    return json.dumps({"format": FORMAT, "kind": kind, "text": node.script()})


def load_json(text: str) -> IRModule | PrimFunc:
    """What `save_json` wrote. UsageError for other text."""
    try:
        read = json.loads(text)
        kind, script = read["kind"], read["text"]
        if read["format"] != FORMAT or kind not in ("module", "function"):
            raise ValueError(read["format"])
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"this is no saved IR ({FORMAT}): {error}", code="compat-name") from None
    module = parse_module(script, "<saved IR>")
    return module if kind == "module" else module.entry_func


def _children(node: Any) -> Iterator[Node]:
    if isinstance(node, PrimFunc):
        yield from node.body
    elif isinstance(node, S.Stmt):
        yield from node.exprs()
        for body in node.bodies():
            yield from body
    elif isinstance(node, E.Expr):
        yield from node.children()
    elif isinstance(node, tuple):
        yield from node


def pre_order_visit(node: Any, fvisit: Callable[[Any], bool]) -> None:
    """Call `fvisit` with a node and all in it, parents first; where it gives False nothing below is visited."""
    if fvisit(node) is False:
        return
    for child in _children(node):
        pre_order_visit(child, fvisit)


def post_order_visit(node: Any, fvisit: Callable[[Any], object]) -> None:
    """Call `fvisit` with all in a node and the node, parents last."""
    for child in _children(node):
        post_order_visit(child, fvisit)
    fvisit(node)


_Visit = Callable[[Any], Any]


def ir_transform(
    stmt: Any, preorder: _Visit | None, postorder: _Visit | None, only_enable: Sequence[str] | None = None
) -> Any:
    """A function, statement or expression with nodes replaced: `preorder` gets a node first and gives what stands for all of
    it, or None; `postorder` gets a node whose parts were replaced and gives another one, or None. `only_enable`: the kinds
    of nodes that both get (`tir.For`, `tir.BufferStore`, ...), by default all. UsageError for kinds that there are not."""
    kinds = None if only_enable is None else tuple(_kind(name) for name in only_enable)

    def asked(visit: _Visit | None, node: Any) -> Any:
        return None if visit is None or (kinds is not None and not isinstance(node, kinds)) else visit(node)

    def changed(node: Any) -> Any:
        found = asked(preorder, node)
        if found is not None:
            return found
        inner = node.map(changed, body) if isinstance(node, S.Stmt) else node.map(changed)
        found = asked(postorder, inner)
        return inner if found is None else found

    def body(statements: S.Body) -> S.Body:
        return tuple(changed(s) for s in statements)

    if isinstance(stmt, PrimFunc):
        return stmt.replace(body=body(stmt.body))
    return changed(stmt if isinstance(stmt, S.Stmt) else _expression(stmt))


def _expression(value: Any) -> E.Expr:
    from ..te.values import as_expr

    return as_expr(value)


def _kind(name: str) -> type[Node]:
    """The class of nodes of a name of the framework."""
    short = name.rpartition(".")[2]
    home, _, there = IR_NODES.get(short, f":{short}").partition(":")
    for module in {"exprs": (E,), "stmts": (S,)}.get(home, (S, E)):
        found = getattr(module, there, None)
        if isinstance(found, type) and issubclass(found, Node):
            return found
    raise UsageError(f"there are no nodes of kind '{name}'", code="compat-name")


def substitute(node: Any, vmap: Mapping[E.Var, Any]) -> Any:
    """An expression, statement or function with variables replaced."""
    from ..te.values import as_expr

    mapping = {var: as_expr(value) for var, value in vmap.items()}
    if isinstance(node, PrimFunc):
        return node.replace(body=substitute_body(node.body, mapping))
    if isinstance(node, S.Stmt):
        return substitute_body((node,), mapping)[0]
    return substituted(as_expr(node), mapping)


def verify_well_formed(obj: IRModule | PrimFunc, assert_mode: bool = True) -> bool:
    """Whether a module or function is well formed; VerifyError instead of False with `assert_mode`."""
    from ..ir.verify import VerifyError, verify

    try:
        verify(obj.module())
    except VerifyError:
        if assert_mode:
            raise
        return False
    return True


def expr_deep_equal(lhs: Any, rhs: Any) -> bool:
    """Whether two expressions have the same structure, with the same variables."""
    from ..analysis.structure import Interner
    from ..te.values import as_expr

    return Interner().same(as_expr(lhs), as_expr(rhs))


def get_block_access_region(block: S.Block, buffer_var_map: Any = None) -> list[list[Any]]:
    """What a block reads, writes, and touches by address (always empty: that is in both of the others)."""
    return [list(block.reads), list(block.writes), []]
