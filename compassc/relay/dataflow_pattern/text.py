"""The text of dataflow patterns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compassc.ir.rules import rule, table
from compassc.relay.dataflow_pattern.patterns import (
    AltPattern,
    AttrPattern,
    CallPattern,
    ConstantPattern,
    DataTypePattern,
    DFPattern,
    DominatorPattern,
    ExprPattern,
    FunctionPattern,
    IfPattern,
    LetPattern,
    ShapePattern,
    TupleGetItemPattern,
    TuplePattern,
    TypePattern,
    VarPattern,
    WildcardPattern,
    parts,
    pattern_order,
)
from compassc.relay.operators import Op


def text(root: DFPattern) -> str:
    """The text of a pattern. One of parts that stands at several places is written once, `(id n): ...`, then `(id n)`."""
    order = list(pattern_order(root))
    uses: dict[DFPattern, int] = {}
    for p in order:
        for q in parts(p):
            uses[q] = uses.get(q, 0) + 1
    numbers = {p: i for i, p in enumerate(p for p in order if parts(p) and uses.get(p, 0) > 1)}
    pieces: list[str] = []
    written: set[DFPattern] = set()
    todo: list[DFPattern | str] = [root]
    while todo:
        piece = todo.pop()
        if isinstance(piece, str):
            pieces.append(piece)
            continue
        if piece in numbers:
            pieces.append(f"(id {numbers[piece]})" if piece in written else f"(id {numbers[piece]}): ")
            if piece in written:
                continue
            written.add(piece)
        todo += reversed(_TEXTS[type(piece)](piece))
    return "".join(pieces)


Pieces = Sequence[DFPattern | str]


def _list(given: Sequence[DFPattern] | None) -> Pieces:
    if given is None:
        return ["*"]
    pieces: list[DFPattern | str] = ["["]
    for i, p in enumerate(given):
        pieces += [", ", p] if i else [p]
    return [*pieces, "]"]


def _expression(p: ExprPattern) -> Pieces:
    return [f"Op({p.expr.name})" if isinstance(p.expr, Op) else f"ExprPattern({p.expr})"]


_TEXTS: Mapping[type, Callable[[DFPattern], Pieces]] = table(
    rule(AltPattern, lambda p: ["AltPattern(", p.left, " | ", p.right, ")"]),
    rule(AttrPattern, lambda p: ["AttrPattern(", p.pattern, f" has attributes {dict(p.attrs)})"]),
    rule(CallPattern, lambda p: ["CallPatternNode(", p.op, ", ", *_list(p.args), ")"]),
    rule(ConstantPattern, lambda p: ["ConstantPattern()"]),
    rule(DataTypePattern, lambda p: ["DataTypePattern(", p.pattern, f" has dtype {p.dtype})"]),
    rule(DominatorPattern, lambda p: ["DominatorPattern(", p.parent, ", ", p.path, ", ", p.child, ")"]),
    rule(ExprPattern, _expression),
    rule(FunctionPattern, lambda p: ["FunctionPattern(", *_list(p.params), ", ", p.body, ")"]),
    rule(IfPattern, lambda p: ["IfPattern(", p.cond, ", ", p.true_branch, ", ", p.false_branch, ")"]),
    rule(LetPattern, lambda p: ["LetPattern(let ", p.var, " = ", p.value, " in ", p.body, ")"]),
    rule(ShapePattern, lambda p: ["ShapePattern(", p.pattern, f" has shape {list(p.shape)})"]),
    rule(
        TupleGetItemPattern,
        lambda p: ["TupleGetItemPatternNode(", p.tuple, f", {'*' if p.index is None else p.index})"],
    ),
    rule(TuplePattern, lambda p: ["TuplePattern(", *_list(p.fields), ")"]),
    rule(TypePattern, lambda p: ["TypePattern(", p.pattern, f" has type {p.type})"]),
    rule(VarPattern, lambda p: [f"VarPattern({p.name_hint})"]),
    rule(WildcardPattern, lambda p: ["*"] if p.target is None else ["*(", p.target, ")"]),
)
