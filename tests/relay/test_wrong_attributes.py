"""What attributes and types may be: whatever is given, an operator has a type without negative extents, or says why not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.operators import OPERATORS, Op, get
from compassc.relay.passes import infer_type
from compassc.relay.types import Related, TensorType, TupleType, Type
from tests.choosing import some
from tests.relay.trying_operators import Case

VALUES = (-100, 0, "zz", None, 1.5, [], [-1], [0, 0], (1, 2, 3, 4, 5), float("nan"))
SHAPES = ((), (0,), (7,), (1, 1, 1, 1, 1, 1))


def tried(op: Op) -> Iterator[tuple[str, dict[str, Any], list[Type]]]:
    """A call of each operator with one attribute, or the type of one argument, another."""
    case = Case(op, op.samples[0], op.types[0])
    given = case.sample.options
    types = [
        TupleType([TensorType(x.shape, str(x.dtype)) for x in a])
        if isinstance(a, list)
        else TensorType(np.shape(a), str(a.dtype))
        for a in case.arrays
    ]
    for field in op.record.fields if op.record else ():
        for value in VALUES:
            yield f"{field}={value!r}", {**given, field: value}, types
    for place in range(len(types)):
        for shape in SHAPES:
            yield (
                f"{place}: {shape}",
                given,
                [TensorType(shape, "float32") if n == place else t for n, t in enumerate(types)],
            )


def extents(t: Type | None) -> list[int]:
    if isinstance(t, TupleType):
        return [d for field in t.fields for d in extents(field)]
    return [d for d in t.shape if isinstance(d, int)] if isinstance(t, TensorType) else []


def test_rules_give_types_or_reasons():
    assert get("add").samples, "all are declared by now"
    wrong = []
    for op in some([op for op in OPERATORS.values() if op.samples and op.relation]):
        for what, options, types in tried(op):
            try:
                found = op.relation(types, op.record(**options) if op.record else None)
                negative = [d for d in extents(found.result if isinstance(found, Related) else found) if d < 0]
                wrong += [f"{op.name} {what}: {found}"] if negative else []
            except CompassError:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is no reason
                wrong.append(f"{op.name} {what}: {error!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"groups": 0}, "groups 0 must be a whole number above 0"),
        ({"strides": "no"}, "strides .* must be 1 or 2 whole numbers above 0"),
        ({"padding": -1}, "padding -1 must be whole numbers that are not below 0"),
    ],
)
def test_windows_are_refused_with_the_reason(options, message):
    x, w = relay.var("x", shape=(1, 3, 8, 8)), relay.var("w", shape=(4, 3, 3, 3))
    with pytest.raises(CompassError, match=message):
        infer_type.run(relay.module.IRModule({"main": relay.Function([x, w], relay.nn.conv2d(x, w, **options))}))
