"""Compute with whole numbers what stands between numbers that are dequantised and their quantisation.

Before: a typed module.
After: of each `qnn.quantize` whose argument consists of operators with rules, constants and `qnn.dequantize`, the same in
whole numbers, within a step of the result where calls between round. What does not suit stays; with `hard_fail` it is refused.
With `use_qat` also operators on numbers that are dequantised (`ALONE`), without a quantisation behind them, are the same on whole
numbers, which are dequantised after them.
"""

from __future__ import annotations

from collections.abc import Iterator

from compassc.relay.builders import call
from compassc.relay.expr import Call, Constant, Expr, Function, Tuple, TupleGetItem
from compassc.relay.infer import infer_local
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, op_name
from compassc.relay.passes import infer_type
from compassc.relay.passes._functions import on_functions, rewritten
from compassc.relay.qnn.affine import KEEP_ORDER, AffineType, TensorAffineType, TupleAffineType, TypeMap, Unsuited
from compassc.relay.visit import children, is_primitive, post_order, with_children

NAME = "FakeQuantizationToInteger"
LEVEL = 0
REQUIRED = ("InferType",)
_KEY = "FTVMFakeQuantizationToInteger"


ALONE = frozenset(
    "broadcast_to clip expand_dims max maximum min minimum nn.avg_pool2d nn.batch_flatten nn.batch_matmul nn.bias_add nn.conv2d "
    "nn.conv2d_transpose nn.dense nn.depth_to_space nn.global_avg_pool2d nn.max_pool2d nn.pad nn.relu reshape split squeeze "
    "strided_slice transpose".split()
)
"""Operators that compute with whole numbers without a quantisation behind them."""


def run(module: IRModule, hard_fail: bool = False, use_qat: bool = False) -> IRModule:
    made = on_functions(module, lambda f, m: _function(f, m, hard_fail))
    return on_functions(made, _each_alone) if use_qat else made


def _function(f: Function, module: IRModule, hard_fail: bool) -> Function:
    made: dict[int, Expr] = {}
    for e in post_order(f, is_primitive):
        after = e if is_primitive(e) and e is not f else with_children(e, [made[id(c)] for c in children(e)])
        if op_name(e) == "qnn.quantize" and isinstance(e, Call):
            try:
                after = _Region(e, made, module).result()
            except Unsuited as error:
                if hard_fail:
                    raise
                del error
        if after is not e and e.checked_type_ is not None and not isinstance(after, Function):
            after.typed(e.checked_type_)
        made[id(e)] = after
    found = made[id(f)]
    assert isinstance(found, Function), "a function stays one"
    return found


def _each_alone(f: Function, module: IRModule) -> Function:
    """A function whose operators on dequantised numbers compute with whole ones."""
    definitions = infer_type.ModuleDefinitions(module)

    def alone(before: Expr, after: Expr) -> Expr:
        if op_name(before) not in ALONE or not isinstance(before, Call) or not isinstance(after, Call):
            return after
        try:
            return _alone(before, after, definitions)
        except Unsuited:
            return after

    return rewritten(f, alone)


def _alone(before: Call, after: Call, definitions: infer_type.ModuleDefinitions) -> Expr:
    """A call on whole numbers, dequantised. `before`: the call as it was, typed. Unsuited where it has to stay."""
    types, args = TypeMap(), list(after.args)
    for i, a in enumerate(args):
        if op_name(a) == "qnn.dequantize" and isinstance(a, Call):
            _infer(a, definitions)
            args[i], kind = a.op.get_attr(_KEY)(a, types)  # type: ignore[attr-defined]  # an operator
            types[args[i]] = kind
        elif not isinstance(a, Constant):
            raise Unsuited("an operand is not quantised")
    known = [types.tensor(a) for a in args if a in types]
    if not known or not isinstance(before.op, Op):
        raise Unsuited("nothing is dequantised")
    given = after.replace(args=tuple(args))
    given.typed(before.checked_type)
    if len(known) == len(args) and all(known[0].means_as(t) and known[0].dtype == t.dtype for t in known):
        types[given] = known[0]
    made, t = before.op.get_attr(_KEY)(given, types)
    _infer(made, definitions)
    if isinstance(t, TupleAffineType):
        fields: list[Expr] = [_reals(TupleGetItem(made, i), own) for i, own in enumerate(t.types)]
        real: Expr = Tuple(fields)
    else:
        real = _reals(made, t)
    _infer(real, definitions)
    return real


def _reals(made: Expr, t: TensorAffineType) -> Expr:
    """What whole numbers mean."""
    return call("qnn.dequantize", made, t.scale, t.zero_point, axis=t.axis, out_dtype="float32")


def _infer(root: Expr, definitions: infer_type.ModuleDefinitions) -> None:
    """Note the types of an expression's parts that have none."""
    for e in post_order(root, lambda e: e.checked_type_ is not None):
        if e.checked_type_ is None and not isinstance(e, Op):
            infer_local(e, definitions)


def _operands(e: Expr) -> tuple[Expr, ...]:
    return () if op_name(e) == "qnn.dequantize" else tuple(c for c in children(e) if not isinstance(c, Op))


class _Region:
    """What one `qnn.quantize` is made of, back to dequantisation."""

    def __init__(self, root: Call, made: dict[int, Expr], module: IRModule) -> None:
        self.root, self.made, self.types = root, made, TypeMap()
        self.definitions = infer_type.ModuleDefinitions(module)
        self.nodes = list(self._within())
        self.whole: dict[int, Expr] = {}
        a = root.attrs
        assert a is not None
        self.out = TensorAffineType(root.args[1], root.args[2], a.out_dtype, a.axis)

    def _within(self) -> Iterator[Expr]:
        """The region's nodes, operands first. Unsuited where one has no rule."""
        seen = {id(self.root)}
        stack = [(self.root, iter(self.root.args[:1]))]
        while stack:
            e, rest = stack[-1]
            for child in rest:
                if id(child) not in seen:
                    seen.add(id(child))
                    _suits(child)
                    stack.append((child, iter(_operands(child))))  # type: ignore[arg-type]  # any expression
                    break
            else:
                stack.pop()
                yield e

    def result(self) -> Expr:
        """The region in whole numbers. Unsuited where a rule says so, or nothing in it is quantised."""
        if not any(op_name(e) == "qnn.dequantize" for e in self.nodes):
            raise Unsuited("nothing is dequantised")
        ordered = self._ordered()
        for e in self.nodes:
            self.whole[id(e)] = self._node(e, id(e) in ordered)
        return self.whole[id(self.root)]

    def _ordered(self) -> set[int]:
        """The nodes that only operators which keep the order of values follow."""
        ordered = {id(e) for e in self.nodes}
        for e in reversed(self.nodes):
            keeps = e is self.root or isinstance(e, (Tuple, TupleGetItem)) or op_name(e) in KEEP_ORDER
            if id(e) not in ordered or not keeps:
                ordered -= {id(c) for c in _operands(e)}
        return ordered

    def _node(self, e: Expr, ordered: bool) -> Expr:
        if isinstance(e, Constant):
            return e
        if isinstance(e, Tuple):
            return self._tuple(e)
        if isinstance(e, TupleGetItem):
            made: Expr = TupleGetItem(self.whole[id(e.tuple_value)], e.index)
            kinds = self.types[self.whole[id(e.tuple_value)]]
            assert isinstance(kinds, TupleAffineType)
            return self._typed(made, kinds.types[e.index])
        assert isinstance(e, Call) and isinstance(e.op, Op)
        given = e.replace(args=tuple([self._argument(e, n) for n in range(len(e.args))]))
        given.typed(e.checked_type)
        if ordered:
            self.types[given] = self.out
        made, t = e.op.get_attr(_KEY)(given, self.types)
        return self._typed(made, t)

    def _argument(self, e: Call, place: int) -> Expr:
        """An argument in whole numbers; of both ends parameters, and of dequantisation the data, as they are outside."""
        c = e.args[place]
        outside = op_name(e) == "qnn.dequantize" or e is self.root and place
        return self.made[id(c)] if outside else self.whole[id(c)]

    def _tuple(self, e: Tuple) -> Expr:
        fields = [self.whole[id(f)] for f in e.fields]
        if not all(f in self.types for f in fields):
            raise Unsuited("a field of a tuple is not quantised")
        return self._typed(Tuple(fields), TupleAffineType([self.types.tensor(f) for f in fields]))

    def _typed(self, made: Expr, t: AffineType) -> Expr:
        _infer(made, self.definitions)
        self.types[made] = t
        return made


def _suits(e: Expr) -> None:
    known = isinstance(e, Call) and isinstance(e.op, Op) and e.op.get_attr(_KEY) is not None
    if not known and not isinstance(e, (Constant, Tuple, TupleGetItem)):
        raise Unsuited(f"{op_name(e) or type(e).__name__} has no rule for whole numbers")
