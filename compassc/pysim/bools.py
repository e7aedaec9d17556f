"""Scalar bools as operands of arithmetic in PySim.

They are Python's, so that conditions cost nothing, but Python calculates with them as ints where a kernel stays with
bools: `(a < b) + 1` is True. Operators with an operand that may be a bool are therefore replaced by `calculate`. What
may be a bool is decided by the text of the kernel, so that all other operators stay what they are.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable

from compass_core.reading import pyast
from compassc.ir.dtypes import BOOL, DataType
from compassc.ops.numeric import np_dtype

from ..language.functions import Macro, PyPrimFunc
from ..language.python_operators import PREFIX
from .values import PyVar

OPERATORS: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_ALWAYS = frozenset("vceq vcneq vcge vcgt vcle vclt vall vany isnan isinf isfinite const_mask tail_mask".split())
"""Operations that give bools or masks of other operands too."""
_NEVER = frozenset("addr_of as_ptr alloc alloc_buffer alloc_const match_buffer meta_var".split())
"""Calls that give pointers, buffers, and values that are no run-time values."""


_INVERT, _NEGATE = PREFIX["~"], PREFIX["-"]


def _typed(x: bool) -> PyVar:
    return PyVar(np_dtype(BOOL).type(x), BOOL)


def calculate(op: type[ast.operator]) -> Callable[[object, object], object]:
    """The function for `a op b` of which an operand may be a bool."""
    function = OPERATORS[op]

    def run(a: object, b: object) -> object:
        if type(a) is bool and type(b) in (bool, int, float):
            return function(_typed(a), b)
        if type(b) is bool and type(a) in (int, float):
            return function(a, _typed(b))
        return function(a, b)

    return run


def invert(a: object) -> object:
    """`~a`: of a bool never 0, as C inverts an int."""
    return True if type(a) is bool else _INVERT(a)


def negate(a: object) -> object:
    """`-a`, of a bool an int32."""
    return calculate(ast.Mult)(a, -1) if type(a) is bool else _NEGATE(a)


PREFIXES: dict[type[ast.unaryop], Callable[[object], object]] = {ast.Invert: invert, ast.USub: negate}


class Bools:
    """Which expressions of a kernel function may be bools or masks: `names` are such variables.

    `known` gives the object that an expression is sure to mean, else None.
    """

    def __init__(self, known: Callable[[ast.expr], object], names: set[str]) -> None:
        self.known = known
        self.names = names

    def learn(self, body: list[ast.stmt], params: Iterable[str] = ()) -> None:
        """Find the variables of a block; `params` are parameters that are bools."""
        self.names |= set(params)
        assigned = [n for n in pyast.walk(body) if isinstance(n, (ast.Assign, ast.AugAssign))]
        before = -1
        while before != len(self.names):
            before = len(self.names)
            for node in assigned:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for i, item in enumerate(target.elts):
                parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
                self._assign(item, value if parts is None else parts[i])
        elif isinstance(target, ast.Starred):
            self._assign(target.value, value)
        elif isinstance(target, ast.Name) and self.may_be(value):
            self.names.add(target.id)

    def may_be(self, e: ast.expr) -> bool:
        """Whether an expression may be a run-time bool or a mask."""
        if isinstance(e, ast.Name):
            return e.id in self.names
        if isinstance(e, ast.Constant):
            return type(e.value) is bool
        if isinstance(e, (ast.Compare, ast.BoolOp)):
            return True
        if isinstance(e, ast.UnaryOp):
            return isinstance(e.op, ast.Not) or self.may_be(e.operand)
        if isinstance(e, ast.Attribute):
            return e.attr == "is_nullptr"
        if isinstance(e, ast.Call):
            return self._call(e)
        if isinstance(e, ast.Subscript):
            return self.may_be(e.value)
        if isinstance(e, ast.IfExp):
            return self.may_be(e.body) or self.may_be(e.orelse)
        return any(self.may_be(n) for n in ast.iter_child_nodes(e) if isinstance(n, ast.expr))

    def _call(self, e: ast.Call) -> bool:
        called = self.known(e.func)
        if isinstance(called, PyPrimFunc):
            return isinstance(called.ret_type, DataType) and called.ret_type.is_bool
        if hasattr(called, "dtype") or (isinstance(e.func, ast.Attribute) and e.func.attr in _NEVER):
            return False  # `hasattr`: the name of a type
        if (op := getattr(called, "op", None)) is not None:
            operands = [*e.args, *(k.value for k in e.keywords if k.arg not in ("mask", "r"))]
            return op.name in _ALWAYS or any(map(self.may_be, operands))
        return not isinstance(called, Macro)
