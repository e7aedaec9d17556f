"""The statements of `extern` and of tensor intrinsics on the buffers that their tensors have."""

from __future__ import annotations

from compass_core.dataclass import dataclass
from compassc.analysis.arith import Arith
from compassc.analysis.buffers import position
from compassc.analysis.simplify import Simplifier
from compassc.analysis.statements import fresh_copy
from compassc.analysis.structure import Interner, variables
from compassc.ir import exprs as E
from compassc.ir.accesses import Accesses, Element
from compassc.ir.dtypes import INT32, PointerType, Type
from compassc.ir.exprs import Binary, Buffer, Expr, IntImm, Var
from compassc.ir.operators import binary
from compassc.ir.stmts import Body, Stmt
from compassc.ir.tensor_exprs import ProducerLoad, Reduce
from compassc.ir.visit import rewrites, substitute
from compassc.te.buffers import View, compact_strides
from compassc.te.errors import LowerError
from compassc.te.opaque import Kernels, TensorIntrin
from compassc.te.tensor import Tensor, tensor_of

_ZERO, _ONE = IntImm(INT32, 0), IntImm(INT32, 1)


@dataclass(frozen=True)
class Target:
    """A part of a buffer: where it begins, and which of the buffer's dimensions the part's are."""

    buffer: Buffer
    begin: tuple[Expr, ...]
    dims: tuple[int, ...]

    def indices(self, inner: tuple[Expr, ...]) -> tuple[Expr, ...]:
        found = list(self.begin)
        for dim, index in zip(self.dims, inner):
            found[dim] = binary("add", found[dim], index)
        return tuple(found)

    def strides(self) -> list[Expr]:
        """Elements between neighbours in each dimension of the part."""
        steps = compact_strides(self.buffer.shape or (_ONE,))  # flat memory has one dimension
        return [steps[dim] for dim in self.dims]


Parts = dict[Var, tuple[View, Target]]
"""By the storage of the buffers that statements are on: these, and what they stand for."""


def bound(body: Body, parts: Parts, kernels: Kernels, what: str) -> list[Stmt]:
    """Statements on declared buffers as statements on what these stand for."""
    return list(fresh_copy(_Bound(parts, kernels, what).body(body)))


class _Bound(Accesses):
    def __init__(self, parts: Parts, kernels: Kernels, what: str) -> None:
        super().__init__()
        self.parts, self.kernels, self.what = parts, kernels, what
        self.same = Interner().same
        self.strides = {
            own: found
            for view, part in parts.values()
            for own, found in zip(view.declared_strides, part.strides())
            if isinstance(own, Var)
        }

    @rewrites(Var)
    def rewrite_var(self, e: Var) -> Expr:
        return self.strides.get(e, e)

    def element(self, buffer: Buffer, indices: tuple[Expr, ...]) -> Element | None:
        found = self.parts.get(buffer.data)
        return None if found is None else (found[1].buffer, found[1].indices(indices))

    def region(self, e: E.BufferRegion) -> Expr:
        return self.default(e)

    @rewrites(E.Pointer)
    def rewrite_pointer(self, e: E.Pointer) -> Expr:
        found = self.parts.get(e.base) if isinstance(e.base, Var) else None
        if found is None:
            return self.default(e)
        view, part = found
        self._check_strides(view, part)
        start = position(part.buffer.shape, part.begin)
        return E.Pointer(e.elem, part.buffer.data, Binary("add", start, self.expr(e.offset)))

    def _check_strides(self, view: View, part: Target) -> None:
        """LowerError where the elements of a part are not where an address in its buffer says."""
        expected = view.declared_strides or compact_strides(view.shape)
        for dim, (size, own, found) in enumerate(zip(view.shape, expected, part.strides())):
            single = isinstance(size, IntImm) and size.value <= 1
            if not (single or isinstance(own, Var) and own in self.strides or self.same(own, found)):
                place = "in one piece" if not view.declared_strides else "with the strides that are declared"
                raise LowerError(
                    f"{self.what}: '{view.name}' is expected {place}, but dimension {dim} of '{part.buffer.data.name}' has "
                    f"stride {found}, not {own}",
                    "copy the part with cache_read first, or declare the buffer with variables for strides (te.decl_buffer)",
                )

    @rewrites(E.FuncCall)
    def rewrite_func_call(self, e: E.FuncCall) -> Expr:
        e = self.default(e)
        kernel = self.kernels.get(e.func)
        for param, arg in zip(kernel.params if kernel is not None else (), e.args):
            if arg.dtype is not param.type:
                raise LowerError(
                    f"{self.what}: the parameter '{param.name}' of '{e.func}' is {_kind(param.type)}, it is given "
                    f"{_kind(arg.dtype)}",
                    "set the scope of the stage, or change the parameter's",
                )
        return e


def _kind(t: Type) -> str:
    return f"{t.elem} in {t.scope} memory" if isinstance(t, PointerType) else str(t)


# ---------------------------------------------------------------------------------------------------- intrinsics


class Match:
    """An intrinsic held against the inner loops of a stage: `begins` says where the parts of its tensors begin."""

    def __init__(self, intrin: TensorIntrin, tile: dict[Var, Expr], what: str) -> None:
        self.intrin, self.what = intrin, what
        self.tile = tile
        """The variables of the intrinsic's axes and the loops that they are."""
        self.found: dict[Tensor, tuple[Tensor, tuple[Expr, ...], tuple[int, ...]]] = {}
        self.facts = Arith()
        self.simplify = Simplifier(self.facts).expr
        self.same = Interner().same

    def expression(self, mine: Expr, theirs: Expr) -> None:
        """LowerError where an expression is not what the intrinsic computes. `mine`: of the stage, by its loops."""
        if isinstance(theirs, Reduce) and isinstance(mine, Reduce):
            self._reducer(mine, theirs)
            for a, b in zip((*mine.source, mine.condition), (*theirs.source, theirs.condition)):
                self.expression(a, b)
            return
        if isinstance(theirs, ProducerLoad) and isinstance(mine, ProducerLoad):
            self._read(mine, theirs)
            return
        parts = mine.children(), theirs.children()
        named = (getattr(mine, "op", None), mine.dtype) == (getattr(theirs, "op", None), theirs.dtype)
        if type(mine) is not type(theirs) or not named or len(parts[0]) != len(parts[1]):
            raise self.error(f"it computes {theirs}, the stage {mine}")
        if not parts[0] and not self.same(mine, substitute(theirs, dict(self.tile))):
            raise self.error(f"it has {theirs}, the stage {mine}")
        for a, b in zip(*parts):
            self.expression(a, b)

    def _reducer(self, mine: Reduce, theirs: Reduce) -> None:
        """LowerError where two reductions join in another way, or begin with other values."""
        kinds = [[e.dtype for e in r.source] for r in (mine, theirs)]
        values = [tuple(Var(f"v{i}", k) for i, k in enumerate(kinds[0])) for _ in range(2)]
        if kinds[0] != kinds[1] or not all(
            map(self.same, mine.combiner.combine(*values), theirs.combiner.combine(*values))
        ):
            raise self.error(f"it reduces by '{theirs.combiner.name}', the stage by '{mine.combiner.name}'")
        starts = [r.init or r.combiner.identity_element for r in (mine, theirs)]
        if not all(map(self.same, *starts)):
            shown = [", ".join(map(str, s)) for s in starts]
            raise self.error(f"its reduction begins with {shown[1]}, the stage's with {shown[0]}")

    def _read(self, mine: ProducerLoad, theirs: ProducerLoad) -> None:
        if mine.dtype is not theirs.dtype:
            raise self.error(f"'{theirs.producer.name}' is {theirs.dtype}, '{mine.producer.name}' is {mine.dtype}")
        place = self.place(mine.producer.name, mine.indices, theirs.producer.name, theirs.indices)
        known = self.found.setdefault(tensor_of(theirs), (tensor_of(mine), *place))
        if known[0] != tensor_of(mine) or known[2] != place[1] or not all(map(self.same, known[1], place[0])):
            raise self.error(f"'{theirs.producer.name}' would stand for two parts of tensors")

    def place(
        self, name: str, mine: tuple[Expr, ...], their_name: str, theirs: tuple[Expr, ...]
    ) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
        """Where a part begins, and which dimensions it has, by the indices of one element on both sides."""
        loops = {v for e in self.tile.values() for v in variables(e)}
        inner = [self.simplify(substitute(i, dict(self.tile))) for i in theirs]
        begin: list[Expr] = []
        dims: list[int] = []
        for dim, index in enumerate(mine):
            index = self.simplify(index)
            if not variables(index) & loops:
                begin.append(index)
                continue
            if len(dims) == len(inner):
                raise self.error(f"'{name}' is walked through in more dimensions than '{their_name}' has")
            rest = self.simplify(Binary("sub", index, inner[len(dims)]))
            if variables(rest) & loops:
                raise self.error(f"dimension {dim} of '{name}' is walked through by {index}")
            dims.append(dim)
            begin.append(rest)
        fixed = [i for i in inner if not variables(i) & loops]
        if len(dims) != len(inner) and len(dims) + len(fixed) != len(inner):
            raise self.error(f"'{name}' is walked through in {len(dims)} dimensions, '{their_name}' has {len(inner)}")
        if len(dims) != len(inner):
            raise self.error(f"'{their_name}' has dimensions of one element, which '{name}' has no loops for")
        return tuple(begin), tuple(dims)

    def error(self, why: str) -> LowerError:
        return LowerError(f"{self.what}: the intrinsic '{self.intrin.name}' is something else: {why}")
