"""Inner loops of a stage as an intrinsic, and where the elements of a tensor are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from compass_core.dataclass import dataclass
from compassc.analysis.conditions import nested
from compassc.analysis.structure import variables
from compassc.ir.dtypes import INT32
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import binary
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import Reduce
from compassc.ir.visit import substitute, substitute_body
from compassc.te.bound_statements import Match, Parts
from compassc.te.bound_statements import Target as Part
from compassc.te.errors import LowerError
from compassc.te.rolling_buffers import Circular
from compassc.te.schedule.loops import full_extent
from compassc.te.tensor_calls import bind_sizes

if TYPE_CHECKING:
    from compassc.te.loopnest import Nest

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)


@dataclass(frozen=True)
class Place:
    """Where the elements of a tensor are: a buffer, the index of the tensor that is its element 0, and how it is circular."""

    buffer: Buffer
    start: tuple[Expr, ...]
    rolling: Circular | None = None


def indices_in(place: Place, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    if not indices:
        return (_ZERO,)
    if not place.start:
        return tuple(indices)
    made = [binary("sub", i, start) for i, start in zip(indices, place.start)]
    if place.rolling is not None:
        made[place.rolling.dim] = place.rolling.place(indices[place.rolling.dim])
    return tuple(made)


def begin_in(what: str, place: Place, indices: Sequence[Expr]) -> tuple[Expr, ...]:
    """The indices in a buffer from where on statements of the user's reach its elements. LowerError where they do not
    lie one after another."""
    if place.rolling is not None:
        raise LowerError(f"{what}: '{place.buffer.data.name}' is circular, its elements do not lie one after another")
    return indices_in(place, indices)


class Tensorised:
    """The inner loops of a stage as an intrinsic. `loops`: the values of the loops outside."""

    def __init__(self, nest: Nest, depth: int, loops: dict[IterVar, Expr]) -> None:
        self.nest, self.stage = nest, nest.stage
        leaves = self.stage.leaf_iter_vars
        inside = leaves[depth:]
        intrin = self.stage.annotations[leaves[depth]].intrin
        assert intrin is not None
        ordered = [*(a for a in inside if not a.is_reduction), *(a for a in inside if a.is_reduction)]
        sizes: dict[Var, Expr] = {}
        declared = [full_extent(a) for a in (*intrin.op.axis, *intrin.op.reduce_axis)]
        bind_sizes(sizes, declared, [nest.extents[a] for a in ordered])
        self.intrin = intrin = intrin.sized(sizes)
        self.what = f"tensorize of '{self.stage.label}'"
        tile = [Var(a.name, INT32, True) for a in inside]
        self.loops = {**{a: v for a, v in nest.loops.items() if a not in inside}, **dict(zip(inside, tile))}
        self.loops |= {a: v for a, v in loops.items() if a not in inside}
        self._check_extents(inside)
        self._check_attached(inside)
        axes = [*intrin.op.axis, *intrin.op.reduce_axis]
        self.match = Match(intrin, {a.var: self.loops[b] for a, b in zip(axes, ordered)}, self.what)
        self.tile = set(tile)
        for axis, var in self.loops.items():
            if isinstance(var, Var) and axis in nest.extents:
                self.match.facts.bind_loop(var, _ZERO, nest.extents[axis], _ONE)
        values = nest.values(self.loops)
        mapping: dict[Var, Expr] = {a.as_expr(): v for a, v in values.items()}
        for mine, theirs in zip(self.stage.body, intrin.op.body, strict=True):
            self.match.expression(_substituted(mine, mapping), _substituted(theirs, mapping))
        self.values, self.mapping = values, mapping

    def _check_attached(self, inside: list[IterVar]) -> None:
        for other in self.nest.nests.computed:
            if other.attached is not None and any(other.attached[1] is a for a in inside):
                raise LowerError(
                    f"{self.what}: '{other.label}' is computed at '{other.attached[1].name}', inside of it"
                )

    def _check_extents(self, inside: list[IterVar]) -> None:
        op = self.intrin.op
        for kind, theirs in ((False, op.axis), (True, op.reduce_axis)):
            mine = [self.nest.extents[a] for a in inside if a.is_reduction is kind]
            wanted = [a.dom.extent for a in theirs if a.dom is not None]
            numbers = [[e.value if isinstance(e, IntImm) else str(e) for e in side] for side in (mine, wanted)]
            if numbers[0] != numbers[1]:
                raise LowerError(
                    f"{self.what}: '{self.intrin.name}' has loops of {numbers[1]} turns, the stage has {numbers[0]}"
                )

    def _conditions(self, reductions: bool) -> list[Expr]:
        """The conditions that the loops outside decide. LowerError where one is about what the intrinsic does."""
        found = []
        for what, condition in self.nest.conditions(self.loops, reductions):
            simple = self.match.simplify(condition)
            if any(v in self.tile for v in variables(simple)):
                raise LowerError(f"{self.what}: {what}")
            found.append(simple)
        return found

    def _parts(self) -> Parts:
        zero: dict[Var, Expr] = dict.fromkeys(self.tile, _ZERO)
        parts = {}
        for view, tensor in zip(self.intrin.input_views, self.intrin.inputs):
            mine, begin, dims = self.match.found[tensor]
            place = self.nest.nests.place(mine)
            parts[view.buffer.data] = (
                view,
                Part(place.buffer, begin_in(self.what, place, [substitute(b, zero) for b in begin]), dims),
            )
        for i, (view, output) in enumerate(zip(self.intrin.output_views, self.intrin.op.outputs)):
            place = self.nest.nests.place(self.stage.origin_op.output(i))
            theirs = tuple(a.as_expr() for a in self.intrin.op.axis)
            begin, dims = self.match.place(
                self.stage.label, tuple(self.values[a] for a in self.stage.axis), output.name, theirs
            )
            parts[view.buffer.data] = (
                view,
                Part(place.buffer, begin_in(self.what, place, [substitute(b, zero) for b in begin]), dims),
            )
        return parts

    def reset(self) -> list[Stmt]:
        """The statements that begin the outputs."""
        return self._made(self.intrin.reset, reductions=False)

    def statements(self, whole: bool) -> list[Stmt]:
        """The statements. `whole`: nothing is reduced over outside of the intrinsic."""
        if not self.intrin.op.reduce_axis:
            return self._made(self.intrin.body)
        if not whole:
            return self._made(self.intrin.update)
        if self.intrin.body is not None:
            return self._made(self.intrin.body)
        return [*self.reset(), *self._made(self.intrin.update)]

    def _made(self, body: Body | None, reductions: bool = True) -> list[Stmt]:
        if body is None:
            raise LowerError(f"{self.what}: '{self.intrin.name}' makes whole sums, and loops outside of it reduce, too")
        body = substitute_body(body, self.mapping)
        made = self.nest.nests.on_memory(body, self._parts(), self.intrin.kernels, self.what)
        return nested(self._conditions(reductions), made)


def _substituted(e: Expr, mapping: dict[Var, Expr]) -> Expr:
    """An expression of a stage by its loops; sources of a reduction, too."""
    if isinstance(e, Reduce):
        return e.replace(source=tuple(substitute(s, mapping) for s in e.source))
    return substitute(e, mapping)
