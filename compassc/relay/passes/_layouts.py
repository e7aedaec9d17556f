"""Programs in other layouts: calls are replaced by those in another layout, and what follows them takes it over as far as it can.

Each value is known with the layout that it had and the one that it has now. Where a call cannot be in the layouts of its inputs,
these are brought back (`layout_transform`, once per value and layout).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compass_core.dataclass import dataclass
from compassc.relay.builders import call
from compassc.relay.expr import Call, Expr, Function, Tuple, TupleGetItem
from compassc.relay.layouts import layout
from compassc.relay.operators import Op
from compassc.relay.passes._layout_rules import Asked, Inferred, Name, rule_of
from compassc.relay.types import TensorType, TupleType
from compassc.relay.visit import children, is_primitive, post_order, with_children

Altered = Callable[[Call, Sequence[Expr]], Call]
"""The call that takes the place of another one, with the arguments that this one has now."""


@dataclass(frozen=True)
class Value:
    """An expression, and the layout of its tensor: `old` in the program as it was, `new` now."""

    e: Expr
    old: Name = None
    new: Name = None


@dataclass(frozen=True)
class Several:
    """The fields of a tuple, and the tuple where no field is in another layout."""

    fields: Sequence[Value | Several]
    whole: Expr


class Layouts:
    """A function whose calls are altered."""

    def __init__(self, f: Function, altered: Altered) -> None:
        self.f, self.altered = f, altered
        self.made: dict[int, Value | Several] = {}
        self._transformed: dict[tuple[int, str, str], tuple[Expr, Expr]] = {}

    def function(self) -> Function:
        """The function after all calls are altered."""
        for e in post_order(self.f, is_primitive):
            closed = e is not self.f and is_primitive(e)
            self.made[id(e)] = Value(e) if closed else self._one(e)
        made = self.made[id(self.f)]
        assert isinstance(made, Value) and isinstance(made.e, Function), "a function stays one"
        return made.e

    def _one(self, e: Expr) -> Value | Several:
        given = [self.made[id(c)] for c in children(e)]
        if isinstance(e, TupleGetItem) and isinstance(given[0], Several):
            return given[0].fields[e.index]
        if isinstance(e, Tuple):
            return Several(given, with_children(e, [self._back(v) for v in given]))
        if isinstance(e, Call) and isinstance(e.op, Op):
            found = self._call(e, e.op, given[1:])
            if found is not None:
                return found
        return Value(with_children(e, [self._back(v) for v in given]))

    def _back(self, value: Value | Several) -> Expr:
        """An expression in the layout that it had."""
        if isinstance(value, Value):
            return self._in(value.e, value.new, value.old)
        return value.whole

    def _in(self, e: Expr, source: Name, to: Name) -> Expr:
        """A tensor in another layout; lower ranks are filled up in front."""
        if source == to or not source or not to:
            return e
        key = (id(e), source, to)
        if key not in self._transformed:
            before, made = e, e
            missing = [p for p in layout(to).primals if p not in layout(source).primals]
            if missing:
                made = call("expand_dims", made, axis=0, num_newaxis=len(missing))
                source = "".join(missing) + source
            if source != to:
                made = call("layout_transform", made, src_layout=source, dst_layout=to)
            self._transformed[key] = before, made
        return self._transformed[key][1]

    def _call(self, e: Call, op: Op, given: Sequence[Value | Several]) -> Value | Several | None:
        """A call in the layouts of its inputs, None where they are not known or it cannot be."""
        rule = rule_of(op)
        flat = [_fields(v, a) for v, a in zip(given, e.args)]
        if rule is None or any(f is None for f in flat):
            return None
        inputs = [v for fields in flat for v in fields or ()]
        types = [a.checked_type for a in e.args]
        before = rule(Asked(e.attrs, None, [v.old for v in inputs], types))
        if before is None or _unknown(before):
            return None
        now = [old if v.new is None else v.new for v, old in zip(inputs, before.inputs)]
        new = self.altered(e, [_argument(v, a) for v, a in zip(given, e.args)])
        if not isinstance(new.op, Op) or (new_rule := rule_of(new.op)) is None:
            return None
        after = new_rule(Asked(new.attrs, now, before.inputs, types))
        if after is None or _unknown(after) or len(after.inputs) != len(now):
            return None
        steps = list(zip(now, after.inputs))
        args: list[Expr] = []
        for a in new.args:
            if isinstance(a, Tuple):
                fields = [self._in(f, *steps.pop(0)) for f in a.fields]
                args.append(with_children(a, fields))
            else:
                args.append(self._in(a, *steps.pop(0)))
        made = _call_of(e, new, args, after)
        if not isinstance(e.checked_type, TupleType):
            return Value(made, before.outputs[0], after.outputs[0])
        results = [
            Value(TupleGetItem(made, i), old, new) for i, (old, new) in enumerate(zip(before.outputs, after.outputs))
        ]
        same = all(v.old == v.new for v in results)
        return Several(results, made if same else Tuple([self._back(v) for v in results]))


def _call_of(e: Call, new: Call, args: Sequence[Expr], after: Inferred) -> Call:
    """The call of an operator on arguments; the one that there was where nothing is another."""
    if new.op is e.op and after.attrs == e.attrs and all(a is b for a, b in zip(args, e.args)):
        return e
    return Call(new.op, args, after.attrs, new.type_args, new.span or e.span)


def _fields(value: Value | Several, e: Expr) -> list[Value] | None:
    """The tensors of an argument; None for a tuple that is not made of known fields."""
    if isinstance(value, Several):
        return [f for f in value.fields if isinstance(f, Value)] if isinstance(e, Tuple) else None
    return [value] if isinstance(e.checked_type_, TensorType) else None


def _argument(value: Value | Several, e: Expr) -> Expr:
    """An argument as it is now, in whatever layout."""
    if isinstance(value, Value):
        return value.e
    return with_children(e, [f.e if isinstance(f, Value) else f.whole for f in value.fields])


def _unknown(found: Inferred) -> bool:
    return any(n is None for n in (*found.inputs, *found.outputs))
