"""The statements of a schedule in the framework's form: tensors are realized, stored and read, threads are attributes of what they
run, and what else the schedule says is an attribute, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from compass_core.namedtuple import NamedTuple
from compassc.analysis.arith import Arith
from compassc.analysis.conditions import TRUE
from compassc.analysis.simplify import Simplifier
from compassc.ir import exprs as E
from compassc.ir.dtypes import INT32, VOID, pointer_type
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.node import Statements
from compassc.ir.operators import as_expr, kind_of
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.tensor_stmts import ProducerRealize, StageAttr
from compassc.ir.visit import substitute
from compassc.te.bound_statements import Parts
from compassc.te.bounds import Bounds, Region, infer_bounds
from compassc.te.buffers import View
from compassc.te.errors import LowerError
from compassc.te.loopnest import Nest, Nests
from compassc.te.machine import Machine
from compassc.te.opaque import ExternOp, Kernels, ScanOp
from compassc.te.schedule import Schedule
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.loops import loops_around
from compassc.te.schedule.stage import Stage
from compassc.te.tensor import Tensor, tensor_of
from compassc.te.tensorised import Place

from .stage_bounds import ByNeed

_ONE = IntImm(INT32, 1)
ANYWHERE = Machine("")
"""What loop nests are made for: nobody has said yet which target they are for."""
_VIRTUAL = ("vthread", "cthread")


def statements(schedule: Schedule, bounds: Bounds, keep_trivial: bool = False) -> Statements:
    """The statements of a normalised schedule with its bounds. `keep_trivial`: loops of one turn, too. LowerError for threads that
    reduce together."""
    nests = _Nests(schedule, _with_threads(bounds, keep_trivial))
    body: list[Stmt] = []
    for stage in reversed(nests.computed):
        if stage.attached is None and stage.origin_op not in nests.parts:
            body = nests.pipeline(stage, body)
    return _without_nested_threads(Statements(body))


def nest_of(stage: Stage) -> Nest:
    """The loops of one stage of a normalised schedule."""
    return _Nests(stage.schedule, infer_bounds(stage.schedule, ByNeed)).nest(stage)


def tuple_of(values: Sequence[Expr]) -> Expr:
    """Several numbers as the value of an attribute."""
    return E.Call("tvm_tuple", tuple(values), VOID)


def _with_threads(bounds: Bounds, keep_trivial: bool) -> Bounds:
    """The bounds with variables for all loops, where these are asked for, and those of threads for the loops that are bound to these."""
    made, changed = Bounds(), dict[Var, Expr]()
    for stage, loops in bounds.loops.items():
        found = made.loops[stage] = dict(loops)
        for leaf, var in loops.items():
            note = stage.annotations.get(leaf)
            if note is not None and note.thread is not None:
                found[leaf] = note.thread.var
            elif keep_trivial and not isinstance(var, Var):
                found[leaf] = Var(leaf.var.name, leaf.dtype, True)
            if found[leaf] is not var and isinstance(var, Var):
                changed[var] = found[leaf]
    for stage, regions in bounds.regions.items():
        made.regions[stage] = {
            a: Region(substitute(r.min, changed), substitute(r.extent, changed), r.whole) for a, r in regions.items()
        }
        made.extents[stage] = {a: substitute(e, changed) for a, e in bounds.extents[stage].items()}
    return made


class BoundBuffer(NamedTuple):
    """A buffer of statements of the user's, and the tensor that it is a part of."""

    buffer: View
    tensor: Tensor


class _Nests(Nests):
    def __init__(self, schedule: Schedule, bounds: Bounds) -> None:
        super().__init__(schedule, bounds, {}, ANYWHERE)
        self.stood_for: dict[Tensor, Tensor] = {}
        """The results of scans for what they are made of."""
        self.tensors: dict[Buffer, Tensor] = {}
        for op in (s.origin_op for s in self.computed):
            if isinstance(op, ScanOp):
                for group in (op.init, op.update, op.state_placeholder):
                    self.stood_for |= dict(zip(group, op.outputs))
        self.parts = {t.op for t in self.stood_for}

    def nest(self, stage: Stage) -> Nest:
        return _Nest(self, stage)

    def tensor(self, given: Tensor) -> Tensor:
        return self.stood_for.get(given, given)

    def place(self, tensor: Tensor) -> Place:
        found = self.tensor(tensor)
        key = (found.op, found.value_index)
        if key not in self.places:
            data = Var(found.name.replace(".", "_"), pointer_type(found.dtype, "global"))
            place = self.places[key] = Place(Buffer(data, found.dtype, found.shape or (_ONE,)), ())
            self.tensors[place.buffer] = found
        return self.places[key]

    def _load(self, e: Expr) -> Expr | None:
        if not isinstance(e, ProducerLoad) or tensor_of(e) not in self.stood_for:
            return None
        return ProducerLoad(self.tensor(tensor_of(e)), tuple(map(self.read, e.indices)))

    def on_memory(self, body: Body, parts: Parts, kernels: Kernels, what: str) -> list[Stmt]:
        """Statements of the user's with attributes that say which parts of tensors their buffers are."""
        self.made.kernels += kernels.values()
        made: Body = Statements(body)
        for view, part in reversed(parts.values()):
            extents: list[Expr] = [_ONE] * len(part.begin)
            for dim, extent in zip(part.dims, view.shape):
                extents[dim] = extent
            region = [e for pair in zip(part.begin, extents) for e in pair]
            tensor = self.tensors[part.buffer]
            made = Statements((StageAttr(BoundBuffer(view, tensor), "buffer_bind_scope", tuple_of(region), made),))
        return list(made)

    def pipeline(self, stage: Stage, consumers: list[Stmt]) -> list[Stmt]:
        """What a stage computes and the statements that read it, in which it is there."""
        made = Statements(self.nest(stage).statements())
        if stage.double_buffered:
            made = Statements((StageAttr(stage.origin_op, "double_buffer_scope", _ONE, made),))
        made = Statements((*made, *consumers))
        if stage.rolling:
            made = Statements((StageAttr(stage.origin_op, "rolling_buffer_scope", TRUE, made),))
        for tensor in reversed(stage.origin_op.outputs):
            made = Statements((self._realized(stage, tensor, made),))
        return list(made)

    def _realized(self, stage: Stage, tensor: Tensor, body: Body) -> Stmt:
        if isinstance(stage.origin_op, (ScanOp, ExternOp)):
            region: list[tuple[Expr, Expr]] = [(IntImm(kind_of(d), 0), d) for d in tensor.shape]
        else:
            found = self.bounds.regions[stage]
            region = [(found[a].min, found[a].extent) for a in stage.axis]
        starts, extents = tuple(a for a, _ in region), tuple(b for _, b in region)
        made: Stmt = ProducerRealize(tensor, starts, extents, TRUE, body, stage.scope)
        for dim, (factor, offset) in stage.alignments.items():
            numbers = tuple_of([IntImm(INT32, n) for n in (dim, factor, offset)])
            made = StageAttr(tensor, "buffer_dim_align", numbers, Statements((made,)))
        return made


class _Nest(Nest):
    nests: _Nests

    def _with_attached(self, leaf: IterVar, statements: list[Stmt]) -> list[Stmt]:
        for other in reversed(self._attached(leaf)):
            if other.origin_op in self.nests.parts:
                statements = [*self.nests.nest(other).statements(), *statements]
            else:
                statements = self.nests.pipeline(other, statements)
        return statements

    def statements(self) -> Body:
        op = self.stage.origin_op
        if not isinstance(op, ScanOp):
            return super().statements()
        first = [self.nests.schedule[t] for t in op.init]
        begin = [s for stage in dict.fromkeys(first) for s in self.nests.nest(stage).statements()]
        return (*begin, *super().statements())

    def _loop(self, leaf: IterVar, var: Expr, body: Body) -> list[Stmt]:
        note = self.stage.annotations.get(leaf, Annotation())
        made: Sequence[Stmt] = self._turns(leaf, note, var, body)
        for key, value in note.pragmas.items():
            said = E.StringImm(value) if isinstance(value, str) else as_expr(0 if value is None else value)
            made = (StageAttr(leaf, f"pragma_{key}", said, Statements(made)),)
        return list(made)

    def _turns(self, leaf: IterVar, note: Annotation, var: Expr, body: Body) -> list[Stmt]:
        if note.thread is None:
            return super()._turns(leaf, note, var, body)
        if leaf.is_reduction:
            raise LowerError(
                f"threads reduce '{self.stage.label}' together, which has no statements before it is known for which machine",
                "tvm.lower and tvm.build do it for their target",
            )
        tag = note.thread.thread_tag
        key = "virtual_thread" if tag.startswith(_VIRTUAL) else "pipeline_exec_scope" if tag == "pipeline" else ""
        return [StageAttr(note.thread, key or "thread_extent", self.extents[leaf], Statements(body))]

    def conditions(self, loops: dict[IterVar, Expr], reductions: bool) -> list[tuple[str, Expr]]:
        """Those of them that loops do not decide."""
        facts, around = Arith(), [(self.stage, a) for a in loops if a in self.extents] + loops_around(self.stage)
        for stage, leaf in around:
            var = loops[leaf] if stage is self.stage else self.nests.bounds.loops[stage][leaf]
            if isinstance(var, Var):
                facts.bind_loop(var, IntImm(INT32, 0), self.nests.bounds.extents[stage][leaf], _ONE)
        simplify, found = Simplifier(facts).expr, dict[str, tuple[str, Expr]]()
        for what, condition in super().conditions(loops, reductions):
            known = simplify(condition)
            if not isinstance(known, IntImm) or not known.value:
                found.setdefault(str(known), (what, condition))
        return [*found.values()]

    def _counter_of_begin(self, axis: IterVar, var: Var) -> Var:
        note = self.stage.annotations.get(axis)
        return var if note is not None and note.thread is not None else super()._counter_of_begin(axis, var)

    def _elements(self, values: dict[IterVar, Expr]) -> list[ProducerLoad]:
        at = tuple(values[a] for a in self.stage.axis)
        return [ProducerLoad(self.nests.tensor(t), at) for t in self.stage.origin_op.outputs]


def _without_nested_threads(body: Body, known: Mapping[object, Expr] | None = None) -> Statements:
    """Statements without the attributes of threads that they are inside of already. LowerError where these are other ones."""
    made: list[Stmt] = []
    for s in body:
        inner = known or {}
        if isinstance(s, StageAttr) and s.attr_key in ("thread_extent", "virtual_thread"):
            if s.node in inner:
                assert isinstance(s.node, IterVar), "such attributes are of threads"
                _check_extent(s.node, inner[s.node], s.value)
                made += _without_nested_threads(s.body, inner)
                continue
            inner = {**inner, s.node: s.value}
        made.append(s.map(lambda e: e, partial(_without_nested_threads, known=inner)))
    return Statements(made)


def _check_extent(thread: IterVar, outer: Expr, own: Expr) -> None:
    same = outer is own or (isinstance(outer, IntImm) and isinstance(own, IntImm) and outer.value == own.value)
    if not same:
        raise LowerError(
            f"{thread.thread_tag} has {outer} threads, and loops inside of them have {own} turns",
            "give the loops of one thread the same number of turns",
        )
