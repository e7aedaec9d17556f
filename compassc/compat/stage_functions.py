"""Functions of statements on tensors (`stage_statements`): tensors become buffers, attributes of threads loops over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compassc.ir import exprs as E
from compassc.ir import stmts as S
from compassc.ir.dtypes import INT32, pointer_type
from compassc.ir.exprs import Buffer, Expr, IntImm, Var
from compassc.ir.iter_vars import IterVar
from compassc.ir.operators import kind_of
from compassc.ir.stmts import Body, PrimFunc, Stmt
from compassc.ir.tensor_exprs import ProducerLoad
from compassc.ir.tensor_stmts import ProducerRealize, ProducerStore, StageAttr
from compassc.ir.visit import rewrite
from compassc.te.bound_statements import Target, bound
from compassc.te.buffers import View
from compassc.te.errors import LowerError
from compassc.te.loopnest import LoopNest
from compassc.te.lowering import as_function, parameters_of
from compassc.te.pragmas import applied
from compassc.te.tensor import Tensor, tensor_of
from compassc.te.tensorised import Place, indices_in

from .stage_statements import ANYWHERE, BoundBuffer

_SCOPES = {"shared": "shared", "lsram": "lsram"}
"""The scopes of tensors whose memory is a function's own there, too."""
_THREADS = ("thread_extent", "virtual_thread")


def function_of(args: Sequence[object], body: Body, binds: Mapping[Tensor, View], name: str = "main") -> PrimFunc:
    """The function of statements with tensors and variables as parameters. LowerError for tensors that are neither parameters nor
    realized around where they are used."""
    given = parameters_of(args, ANYWHERE, binds)
    made = _Buffers({t: Place(b, ()) for t, b in given[0].items()}).body(body)
    return as_function(made, given, name, ANYWHERE, LoopNest()).entry_func


class _Buffers:
    def __init__(self, memory: Mapping[Tensor, Place]) -> None:
        self.memory = dict(memory)

    def body(self, body: Body) -> Body:
        return tuple(made for s in body for made in self._statement(s))

    def _statement(self, s: Stmt) -> Sequence[Stmt]:
        match s:
            case ProducerRealize():
                return self._realized(s)
            case ProducerStore():
                place = self._place(tensor_of(s))
                indices = tuple(map(self._expr, s.indices))
                return [S.BufferStore(place.buffer, indices_in(place, indices), self._expr(s.value), None)]
            case StageAttr():
                return self._bound(s) if isinstance(s.node, BoundBuffer) else self._said(s)
        return [s.map(self._expr, self.body)]

    def _place(self, tensor: Tensor) -> Place:
        found = self.memory.get(tensor)
        if found is None:
            raise LowerError(f"'{tensor.name}' is neither a parameter nor realized", "add it to the arguments")
        return found

    def _expr(self, e: Expr) -> Expr:
        def load(x: Expr) -> Expr | None:
            if not isinstance(x, ProducerLoad):
                return None
            place = self._place(tensor_of(x))
            return E.BufferLoad(place.buffer, indices_in(place, [self._expr(i) for i in x.indices]))

        return rewrite(e, load)

    def _realized(self, s: ProducerRealize) -> Sequence[Stmt]:
        tensor = tensor_of(s)
        if tensor in self.memory:
            return self.body(s.body)
        data = Var(tensor.name.replace(".", "_"), pointer_type(tensor.dtype, _SCOPES.get(s.storage_scope, "private")))
        shape = tuple(self._expr(e) for e in s.extents) or (IntImm(INT32, 1),)
        self.memory[tensor] = Place(Buffer(data, tensor.dtype, shape), tuple(self._expr(e) for e in s.starts))
        made = [S.Alloc(self.memory[tensor].buffer), *self.body(s.body)]
        del self.memory[tensor]
        return made

    def _said(self, s: StageAttr) -> Sequence[Stmt]:
        """What an attribute makes of its statements: a loop over threads, what a pragma does, else nothing."""
        made = self.body(s.body)
        if s.attr_key in _THREADS and isinstance(s.node, IterVar):
            var, tag = s.node.var, s.node.thread_tag.replace(".", "_")
            kind = tag if tag in S.LOOP_KINDS else "vthread_x" if s.attr_key == "virtual_thread" else "serial"
            zero, one = IntImm(kind_of(var), 0), IntImm(kind_of(var), 1)
            return [S.For(var, kind, zero, self._expr(s.value), one, made)]
        if s.attr_key.startswith("pragma_"):
            value = s.value.value if isinstance(s.value, (IntImm, E.StringImm)) else None
            return applied({s.attr_key.removeprefix("pragma_"): value}, made)
        return made

    def _bound(self, s: StageAttr) -> Sequence[Stmt]:
        """The statements on buffers of the user's on the memory of the tensors that these stand for."""
        parts: dict[Var, tuple[View, Target]] = {}
        body: Body = (s,)
        while len(body) == 1 and isinstance(inner := body[0], StageAttr) and isinstance(inner.node, BoundBuffer):
            view, tensor = inner.node
            place, region = self._place(tensor), inner.value
            assert isinstance(region, E.Call)
            starts, extents = map(self._expr, region.args[::2]), region.args[1::2]
            apart = len(extents) - len(view.shape)
            parts[view.buffer.data] = (
                view,
                Target(place.buffer, indices_in(place, [*starts]), tuple(range(apart, len(extents)))),
            )
            body = inner.body
        return bound(self.body(body), parts, {}, "a call of an intrinsic")
