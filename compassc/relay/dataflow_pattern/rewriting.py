"""Programs with their matches replaced: by what callbacks give, or by calls of functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import DictAttrs
from compassc.relay.dataflow_pattern.groups import PARTITIONED, Group, groups, name, reaches_in
from compassc.relay.dataflow_pattern.matcher import NodeMap
from compassc.relay.dataflow_pattern.patterns import DFPattern, FunctionPattern
from compassc.relay.equal import structural_equal
from compassc.relay.expr import Call, Expr, Function, Var, as_expr
from compassc.relay.infer import infer_functions
from compassc.relay.module import IRModule
from compassc.relay.passes.infer_type import ModuleDefinitions
from compassc.relay.visit import rewrite as rebuilt

ROUNDS = 100
"""So many rounds of callbacks may change a program."""


class NoFixedPoint(ExpressionError, RuntimeError):
    """Callbacks that change a program again and again."""


class DFPatternCallback:
    """What to put in the place of matches. Subclasses set `pattern` and define `callback`. `require_type`: types are inferred
    before each round; `rewrite_once`: the first round that changes the program is the last."""

    pattern: DFPattern

    def __init__(self, require_type: bool = False, rewrite_once: bool = False) -> None:
        self.require_type, self.rewrite_once = require_type, rewrite_once

    def callback(self, pre: Expr, post: Expr, node_map: NodeMap) -> Expr:
        """What takes the place of a match `pre`; `post` is it with its parts rewritten, `node_map` what each pattern stands
        for, rewritten too."""
        raise ExpressionError(
            f"{type(self).__name__} does not say what to put in the place of matches",
            "define callback(pre, post, node_map)",
        )

    def rewrite(self, expr: Expr) -> Expr:
        """The program with matches replaced until nothing changes."""
        return rewrite(self, expr)


def rewrite(
    callbacks: DFPatternCallback | Sequence[DFPatternCallback], expr: Expr, mod: IRModule | None = None
) -> Expr:
    """The program with matches replaced by what callbacks give, in rounds of all callbacks until nothing changes. `mod` knows
    the global names. NoFixedPoint where 100 rounds do not suffice."""
    left = [callbacks] if isinstance(callbacks, DFPatternCallback) else list(callbacks)
    for c in left:
        if not isinstance(getattr(c, "pattern", None), DFPattern):
            raise ExpressionError(f"{type(c).__name__} has no pattern", "set self.pattern")
    module = IRModule() if mod is None else mod
    expr = as_expr(expr)
    for _ in range(ROUNDS):
        before = expr
        for c in list(left):
            if c.require_type:
                expr = _typed(expr, module)
            after = _once(c, expr, module)
            if c.rewrite_once and _changed(expr, after):
                left.remove(c)
            expr = after
        if not _changed(before, expr):
            return expr
    raise NoFixedPoint(
        f"Observed {ROUNDS} rewrite passes, possible conflicting passes?",
        "callbacks must give what they do not match again; rewrite_once=True stops one after its first change",
    )


def _changed(before: Expr, after: Expr) -> bool:
    return before is not after and not structural_equal(before, after)


def _typed(expr: Expr, module: IRModule) -> Expr:
    """The program with types on all expressions."""
    definitions = ModuleDefinitions(module)
    if isinstance(expr, Function):
        return infer_functions({"": expr}, definitions)[""]
    return infer_functions({"": Function([], expr)}, definitions)[""].body


def _once(c: DFPatternCallback, root: Expr, module: IRModule) -> Expr:
    """One round of one callback."""
    found = groups(c.pattern, root, module)
    if not found:
        return root
    made: dict[Expr, Expr] = {}

    def replaced(before: Expr, after: Expr) -> Expr:
        made[before] = after
        group = found.get(id(before))
        if group is not None:
            node_map = {p: [made.get(e, e) for e in matched] for p, matched in group.found.items()}
            made[before] = _placed(as_expr(c.callback(before, after, node_map)), before)
        return made[before]

    return rebuilt(root, replaced)


def _placed(made: Expr, before: Expr) -> Expr:
    """What a callback gave; without a place in a file it has that of what it replaces."""
    span = getattr(before, "span", None)
    if span is not None and getattr(made, "span", span) is None:
        made._keep(span=span)
    return made


def partition(
    pattern: DFPattern,
    expr: Expr,
    attrs: Mapping[str, object] | None = None,
    check: Callable[[Expr], bool] = lambda e: True,
) -> Expr:
    """The program with each match as a call of a function: what leaves of the pattern stand for are its arguments, constants
    that the pattern asks for stay inside. Functions have `attrs` and the attribute `PartitionedFromPattern`, which names the
    operators. Matches that `check` refuses stay as they are, and so does what has no meaning outside of a let."""
    expr = as_expr(expr)
    if isinstance(pattern, FunctionPattern):
        return expr  # a function that is not called
    found = groups(pattern, expr, IRModule())
    made: dict[Expr, Expr] = {}

    def replaced(before: Expr, after: Expr) -> Expr:
        made[before] = after
        group = found.get(id(before))
        if group is not None and len(group.inside) > 1 and not reaches_in(group) and check(before):
            function = _function(group).with_attr(dict(attrs or {}))
            made[before] = Call(function, [made[e] for e in group.inputs], span=getattr(before, "span", None))
        return made[before]

    return rebuilt(expr, replaced)


def _function(group: Group) -> Function:
    """A match as a function of its inputs."""
    params = {id(e): Var(f"FunctionVar_{group.number}_{i}") for i, e in enumerate(group.inputs)}
    body = rebuilt(group.root, lambda before, after: params.get(id(before), after), lambda e: id(e) in params)
    return Function(list(params.values()), body, attrs=DictAttrs({PARTITIONED: name(group)}))
