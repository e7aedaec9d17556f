"""Put calls that become one kernel into functions of their own (`Primitive`).

Before: a typed module in basic-block normal form.
After: each call of an operator lies in a function with the attribute `Primitive`, which is called where its result is asked.
`fuse_opt_level` 0: a function for each call; -1: the level of the context. `annotation.stop_fusion` is gone. Functions that are
kernels already, and functions of other compilers, are left alone.
"""

from __future__ import annotations

from compassc.pass_manager.context import PassContext
from compassc.relay.attributes import DictAttrs
from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem, Var
from compassc.relay.module import IRModule
from compassc.relay.operators import Op
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._fusion import Group, Node, fuse, graph_of, is_closed
from compassc.relay.types import TensorType
from compassc.relay.visit import children, post_order, with_children

NAME = "FuseOps"
LEVEL = 0
REQUIRED = ("InferType",)
MAX_DEPTH = "relay.FuseOps.max_depth"
LINK_PARAMS = "relay.FuseOps.link_params"


def run(module: IRModule, fuse_opt_level: int = -1) -> IRModule:
    context = PassContext.current()
    level = context.opt_level if fuse_opt_level == -1 else fuse_opt_level
    depth = context.config.get(MAX_DEPTH, 256) if level else 0
    link = bool(context.config.get(LINK_PARAMS, False))
    return on_functions(module, lambda f, _: f if is_closed(f) else _Kernels(f, depth, link).function())


class _Kernels:
    """A function whose groups become functions. What a group takes from outside is a parameter, by the order of use."""

    def __init__(self, f: Function, max_depth: int, link_params: bool) -> None:
        self.f, self.link_params = f, link_params
        nodes = graph_of(f)
        if max_depth:
            fuse(nodes, max_depth)
        self.nodes = {id(node.e): node for node in nodes}
        self._taken: dict[int, dict[int, tuple[Expr, Var]]] = {}
        self._made: dict[int, Expr] = {}

    def function(self) -> Function:
        """The function after fusion."""
        for e in post_order(self.f, is_closed):
            self._made[id(e)] = self._one(e)
        made = self._made[id(self.f)]
        assert isinstance(made, Function), "a function stays one"
        return made

    def _one(self, e: Expr) -> Expr:
        if is_closed(e):
            return e
        plain = isinstance(e, Call) and (not isinstance(e.op, Op) or _is_no_computation(e.op))
        if plain or not isinstance(e, (Call, Tuple, TupleGetItem)):
            return with_children(e, [self._made[id(c)] for c in children(e)])
        if isinstance(e, Call) and isinstance(e.op, Op) and e.op.name == "annotation.stop_fusion":
            return self._made[id(e.args[0])]
        node = self.nodes[id(e)]
        group = node.group.find()
        is_root = group.root is node
        if is_root and (
            isinstance(e, Tuple)
            or (isinstance(e, TupleGetItem) and self.nodes[id(e.tuple_value)].group.find() is not group)
        ):
            return with_children(e, [self._made[id(c)] for c in children(e)])
        made = with_children(e, [self._argument(c, group) for c in children(e)])
        return self._kernel(node, group, made) if is_root else made

    def _argument(self, e: Expr, group: Group) -> Expr:
        """What stands for a value in a kernel: itself, or a parameter where it comes from outside."""
        made = self._made[id(e)]
        if isinstance(e, Op) or self.nodes[id(e)].group.find() is group:
            return made
        if self.link_params and isinstance(made, Constant):
            return made
        taken = self._taken.setdefault(id(group), {})
        if id(made) not in taken:
            taken[id(made)] = (made, Var(f"p{len(taken)}", e.checked_type).typed(e.checked_type))  # type: ignore[assignment]  # a Var
        return taken[id(made)][1]

    def _kernel(self, node: Node, group: Group, body: Expr) -> Expr:
        taken = self._taken.get(id(group), {}).values()
        params = [v for _, v in taken]
        calls = [e for e in post_order(body) if isinstance(e, Call)]
        attrs = {"Primitive": int(bool(calls))}
        reshapes = all(isinstance(c.op, Op) and c.op.get_attr("TReshapeOp") for c in calls)
        if calls and reshapes and all(isinstance(v.type_annotation, TensorType) for v in params):
            attrs["relay.reshape_only"] = 1
        function = Function(params, body, node.e.checked_type, (), DictAttrs(attrs))
        return Call(function, [e for e, _ in taken], None, (), getattr(node.e, "span", None))


def _is_no_computation(op: Op) -> bool:
    return bool(op.get_attr("TNonComputational")) and op.get_attr("FTVMQnnCanonicalize") is None
