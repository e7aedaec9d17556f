"""Operations of hybrid scripts: statements whose loops are axes that a schedule can split, fuse, order and mark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.node import Statements
from compassc.ir.operators import binary, kind_of
from compassc.ir.stmts import Body
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.tensor_stmts import ProducerStore
from compassc.ir.visit import all_exprs, rewrite, substitute_body, walk_exprs, walk_stmts
from compassc.te.errors import LowerError
from compassc.te.opaque import ExternOp
from compassc.te.packed import call_packed
from compassc.te.schedule.relations import leaf_extents, predicates, root_values, roots_of
from compassc.te.tensor import Tensor

if TYPE_CHECKING:
    from compassc.te.schedule.stage import Stage


class HybridOp(ExternOp):
    """Statements with loops (`axis`, outer before inner): `statements` on buffers that stand for inputs and outputs, `body` on these
    themselves."""

    kind = "hybrid"

    def __init__(
        self, name: str, inputs: Sequence[Tensor], buffers: Sequence[Buffer], outputs: Sequence[Buffer], body: Body,
        axis: Sequence[IterVar], attrs: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(name, inputs, buffers, outputs, Statements(body), {}, attrs=attrs)
        self.axis, self.statements = tuple(axis), self.body
        given = {b.data: t for b, t in zip(self.input_placeholders, self.inputs)}
        self.body = _on_tensors(self.statements, given | {b.data: t for b, t in zip(outputs, self.outputs)})


def _on_tensors(body: Body, tensors: Mapping[Var, Tensor]) -> Statements:
    """Statements on the tensors that buffers stand for."""

    def load(e: Expr) -> Expr | None:
        if not isinstance(e, E.BufferLoad) or e.buffer.data not in tensors:
            return None
        return ProducerLoad(tensors[e.buffer.data], tuple(rewrite(i, load) for i in e.indices))

    def on_tensors(inner: Body) -> Statements:
        made: list[S.Stmt] = []
        for s in inner:
            new = s.map(lambda e: rewrite(e, load), on_tensors)
            if isinstance(new, S.BufferStore) and new.buffer.data in tensors:
                new = ProducerStore(tensors[new.buffer.data], new.value, new.indices, span=new.span)
            made.append(new)
        return Statements(made)

    return on_tensors(body)


ASSERTION = "runtime.assertion"
"""The function that raises the text that it is given."""


def scheduled(stage: Stage, op: HybridOp) -> Body:
    """The statements of an operation with the loops that the steps on its stage make of its own. LowerError where these
    would not compute the same."""
    if not stage.relations and [a for a in stage.leaf_iter_vars if a in op.axis] == [*op.axis]:
        return _plain(op.statements)
    nest = _Nest(stage, op)
    return _plain(nest.made())


def _plain(body: Body) -> Body:
    """The statements with loops that run in order: what may run at the same time may run so."""
    return tuple(_serial(s) for s in body)


def _serial(s: S.Stmt) -> S.Stmt:
    if isinstance(s, S.AssertStmt):
        assert isinstance(s.message, E.StringImm)
        failed = S.Evaluate(call_packed(ASSERTION, f"{s.span}: {s.message.value}"))
        return S.IfThenElse(E.Unary("not", s.condition), (failed,), (), span=s.span)
    new = s.map(lambda e: e, _plain)
    return new.replace(kind="serial") if isinstance(new, S.For) and new.kind != "unrolled" else new


class _Nest:
    """The loops of an operation that are nested without other statements between, and what schedules make of them."""

    def __init__(self, stage: Stage, op: HybridOp) -> None:
        self.stage, self.op = stage, op
        loops = {s.loop_var: s for s in walk_stmts(op.statements) if isinstance(s, S.For)}
        self.touched = self._touched()
        first = next((a for a in op.axis if a in self.touched), None)
        if first is None:
            raise LowerError(f"'{stage.label}': no loop of its own was scheduled")
        self.chain = [loops[first.as_expr()]]
        while len(self.chain[-1].body) == 1 and isinstance(self.chain[-1].body[0], S.For):
            self.chain.append(self.chain[-1].body[0])
        inside = {s.loop_var for s in self.chain}
        self.own = [a for a in op.axis if a.as_expr() in inside]
        apart = [a.name for a in self.touched if a not in self.own]
        if apart:
            raise LowerError(
                f"'{stage.label}': the loop '{apart[0]}' has other statements around than the loop '{first.name}' alone",
                "take steps on loops that are nested without other statements between",
            )

    def _touched(self) -> list[IterVar]:
        """The loops that steps were taken on: those that were split or fused, and those at other places."""
        gone = [a for a in self.op.axis if a not in self.stage.leaf_iter_vars]
        left = [a for a in self.stage.leaf_iter_vars if a in self.op.axis]
        moved = [a for a, b in zip(left, (x for x in self.op.axis if x in left)) if a is not b]
        return [a for a in self.op.axis if a in gone or a in moved]

    def made(self) -> Body:
        """All statements, with the new loops in the place of the old ones."""
        stage = self.stage
        self._check_sizes()
        extents = leaf_extents(stage)
        leaves = [a for a in stage.leaf_iter_vars if self._is_mine(a)]
        if self._order_of_roots(leaves) != self.own:
            self._check_order()
        counters = {a: Var(a.name.replace(".", "_"), a.dtype, True) for a in leaves}
        values = root_values(stage, extents, dict(counters), counted=True)
        mapping: dict[Var, Expr] = {}
        for axis in self.own:
            assert axis.dom is not None
            mapping[axis.as_expr()] = binary("add", values[axis], axis.dom.min)
        body = substitute_body(self.chain[len(self.own) - 1].body, mapping)
        for _, condition in predicates(stage, extents, dict(counters)):
            body = (S.IfThenElse(condition, body, ()),)
        for axis in reversed(leaves):
            counter = counters[axis]
            zero, one = IntImm(kind_of(counter), 0), IntImm(kind_of(counter), 1)
            body = (S.For(counter, "serial", zero, extents[axis], one, body),)
        return _replaced(self.op.statements, self.chain[0], body)

    def _check_sizes(self) -> None:
        """LowerError where the turns of a loop depend on the turn of a loop around it that is no longer there."""
        gone = {a.as_expr() for a in self.touched}
        for a in self.own:
            assert a.dom is not None
            for e in (*walk_exprs(a.dom.min), *walk_exprs(a.dom.extent)):
                if e in gone:
                    raise LowerError(
                        f"'{self.stage.label}': the turns of the loop '{a.name}' depend on '{e}', which steps have changed",
                        "leave the loops around it as they are",
                    )

    def _is_mine(self, axis: IterVar) -> bool:
        roots = roots_of(self.stage, axis)
        return axis in self.own or bool(roots & set(self.own)) or not roots & set(self.op.axis)

    def _order_of_roots(self, leaves: list[IterVar]) -> list[IterVar]:
        """The own loops in the order of what became of them, where that is an order of them at all."""
        found: list[IterVar] = []
        for leaf in leaves:
            for root in (a for a in self.own if a in roots_of(self.stage, leaf)):
                if root in found and found[-1] is not root:
                    return []
                if root not in found:
                    found.append(root)
        return found

    def _check_order(self) -> None:
        """LowerError where turns in another order might compute something else: each turn may write elements that no other
        one touches."""
        loops = {a.as_expr() for a in self.own}
        inner = self.chain[len(self.own) - 1].body
        stores = [s for s in walk_stmts(inner) if isinstance(s, S.BufferStore)]
        own = {s.buffer.data for s in walk_stmts(inner) if isinstance(s, S.Alloc)}
        places: dict[Var, list[tuple[Expr, ...]]] = {}
        for s in stores:
            places.setdefault(s.buffer.data, []).append(s.indices)
        for e in all_exprs(inner):
            if isinstance(e, E.BufferLoad) and e.buffer.data in places:
                places[e.buffer.data].append(e.indices)
        for data, found in places.items():
            same = all(all(a is b for a, b in zip(indices, found[0])) for indices in found)
            named = {i for i in found[0] if isinstance(i, Var)}
            if data not in own and not (same and loops <= named):
                raise LowerError(
                    f"reorder of '{self.stage.label}': turns of its loops write elements of '{data.name}' that others touch",
                    "leave the loops in their order",
                )


def _replaced(body: Body, old: S.Stmt, new: Body) -> Body:
    made: list[S.Stmt] = []
    for s in body:
        made += new if s is old else [s.map(lambda e: e, lambda inner: _replaced(inner, old, new))]
    return tuple(made)
