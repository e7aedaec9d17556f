"""Operations that programs add, and rules that say what calls of operations become on a target."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any

from compassc.ir import exprs as E
from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.ir.exprs import Expr
from compassc.ir.operators import as_expr
from compassc.ir.stmts import Body
from compassc.ir.visit import Rewriter, rewrites

PREFIX = "tir."
Rule = Callable[[Expr], object]
"""From a call (`call.op.name`, `call.args`, `call.dtype`) to an expression of its type; itself, or None, leaves it."""


class OpName(str):
    """An operation of a call: its name in the IR, and with the prefix of operations as `name`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return PREFIX + self

    def same_as(self, other: object) -> bool:
        """Whether the other one is this operation."""
        return self == other


class CallEffectKind(IntEnum):
    """What calls of an operation do beside giving a value, as the attribute `TCallEffectKind` says it."""

    ExprAnnotation = 0
    Pure = 1
    ReadState = 2
    UpdateState = 3
    Opaque = 3


_ATTRIBUTES: dict[str, dict[str, tuple[int, object]]] = {}
_RULES: dict[tuple[str, str], tuple[int, Rule]] = {}


def _plain(name: str) -> str:
    if not isinstance(name, str) or not name.startswith(PREFIX):
        raise ExpressionError(f"{name!r} is no name of an operation", f"their names begin with '{PREFIX}'")
    return name.removeprefix(PREFIX)


def is_added(name: str) -> bool:
    """Whether a program has added an operation of this name (with or without its prefix)."""
    return name.removeprefix(PREFIX) in _ATTRIBUTES


def register_op_attr(op_name: str, attr_key: str, value: object = None, level: int = 10) -> Any:
    """Gives an operation an attribute; one of a new name exists from then on. Of several values that of the highest `level`
    counts. Without a value it is a decorator."""
    attributes = _ATTRIBUTES.setdefault(_plain(op_name), {})

    def register(given: object) -> Any:
        if level >= attributes.get(attr_key, (level, None))[0]:
            attributes[attr_key] = (level, given)
        return given

    return register if value is None else register(value)


def register_intrin_lowering(op_name: str, target: str, *, f: Rule | None = None, level: int = 10) -> Any:
    """Says what calls of an operation become where kernels are made for a kind of target, `default` for all. Of several
    rules that of the highest `level` counts. Without `f` it is a decorator."""
    key = target, _plain(op_name)

    def register(rule: Rule) -> Rule:
        if level >= _RULES.get(key, (level, None))[0]:
            _RULES[key] = (level, rule)
        return rule

    return register if f is None else register(f)


def with_rules(body: Body, kinds: tuple[str, ...]) -> Body:
    """Statements after the rules for a target that is of these kinds. ExpressionTypeError where a rule gives a value of another
    type."""
    rules = {op: rule for kind in ("default", *kinds) for (of, op), (_, rule) in _RULES.items() if of == kind}
    return _Lowered(rules).body(body) if rules else body


class _Lowered(Rewriter):
    interest = E.F_CALL

    def __init__(self, rules: dict[str, Rule]) -> None:
        super().__init__()
        self.rules = rules

    @rewrites(E.Call)
    def rewrite_call(self, e: E.Call) -> Expr:
        e = self.default(e)
        if e.op not in self.rules:
            return e
        made = self.rules[e.op](e.replace(op=OpName(e.op)))
        if made is None or (isinstance(made, E.Call) and made.op == e.op):
            return e
        found = as_expr(made)
        if found.dtype is not e.dtype:
            raise ExpressionTypeError(f"a rule for '{PREFIX}{e.op}' of {e.dtype} gives {found.dtype}")
        return found
