"""The standard definitions."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from compassc import relay
from compassc.ir.errors import ExpressionError
from compassc.relay.backend.executors import create_executor
from compassc.relay.interpreter import ConstructorValue
from compassc.relay.std import StaticTensorArrayOps
from compassc.relay.variables import free_vars
from tests.choosing import some

FILES = ["prelude.rly", "nat.rly", "gradient.rly", "core.rly"]


def test_the_prelude_has_its_functions_as_attributes():
    prelude = relay.Prelude()
    assert prelude.map is prelude.mod.get_global_var("map")
    assert [c.name_hint for c in prelude.mod.get_type("List")[1:]] == ["Cons", "Nil"]
    assert relay.Prelude(prelude.mod).map is prelude.map


@pytest.mark.parametrize("name", FILES)
def test_files_are_whole_and_read_back(name):
    module = relay.IRModule()
    module.import_from_std("prelude.rly")
    module.import_from_std(name)
    typed = module.import_from_std(name)
    for v, function in some(module.functions.items()):
        assert free_vars(function) == [], v
    again = relay.parse(typed.astext())
    relay.assert_structural_equal(typed, again)
    assert all(f.checked_type_ is not None for f in some(typed.functions.values()))


def test_unknown_files_are_refused():
    with pytest.raises(ExpressionError, match=r"no standard file 'prelud.rly'"):
        relay.IRModule().import_from_std("prelud.rly")


def listed(value) -> list[np.ndarray]:
    """The tensors of a list, or the one of a value."""
    if not isinstance(value, ConstructorValue):
        return [value.numpy()]
    name = value.constructor.name_hint
    if name == "Cons":
        return [*listed(value.fields[0]), *listed(value.fields[1])]
    return [] if name == "Nil" else [np.zeros(0)] if "nil" in name else [value.fields[0].numpy()]


ROWS = np.arange(12, dtype="float32").reshape(3, 4)
v, places = relay.var("v"), relay.var("places")
ARRAYS = {
    "of nothing": (lambda f, t: f("tensor_array")(relay.const(2)), [], [np.zeros(0)] * 2),
    "unstacked": (lambda f, t: f("tensor_array_unstack_tensor2")(v), [], list(ROWS)),
    "stacked": (lambda f, t: f("tensor_array_stack")(f("tensor_array_unstack_tensor2")(v)), [], [ROWS]),
    "joined": (lambda f, t: f("tensor_array_concat")(f("tensor_array_unstack_tensor2")(v)), [], [ROWS.reshape(-1)]),
    "gathered": (
        lambda f, t: f("tensor_array_gather")(f("tensor_array_unstack_tensor2")(v), places), [2, 0], [ROWS[[2, 0]]],
    ),
    "split": (
        lambda f, t: f("tensor_array_split")(f("tensor_array")(relay.const(2)), t(v), places), [2, 1], [ROWS[:2], ROWS[2:]],
    ),
    "scattered": (
        lambda f, t: f("tensor_array_scatter")(f("tensor_array")(relay.const(4)), places, f("tensor_array_unstack_tensor2")(v)),
        [2, 0, 1], [ROWS[1], ROWS[2], ROWS[0], np.zeros(0)],
    ),
    "written and read": (
        lambda f, t: f("tensor_array_read")(
            f("tensor_array_write")(f("tensor_array")(relay.const(3)), relay.const(1), t(v)), relay.const(1)
        ), [], [ROWS],
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["debug", "vm"])
def test_arrays_of_tensors(kind):
    prelude = relay.Prelude()
    for made, indices, expected in ARRAYS.values():
        body = made(lambda name: prelude.get_global_var(name, "float32"), prelude.get_tensor_ctor("tensor2", "float32"))
        params = [p for p in (v, places) if p in free_vars(body)]
        prelude.mod["main"] = relay.Function(params, body)
        given = {"v": ROWS, "places": np.asarray(indices, "int32")}
        found = listed(create_executor(kind, prelude.mod).evaluate()(*(given[p.name_hint] for p in params)))
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("length", [3, relay.Any()], ids=["fixed", "open"])
def test_functions_of_arrays_of_tensors_of_one_shape(length):
    prelude = relay.Prelude()
    StaticTensorArrayOps(prelude, "float32", (length, 4)).register()
    StaticTensorArrayOps(prelude, "float32", (4,)).register()
    rows, whole = (partial(prelude.get_global_var_static, dtype="float32", shape=s) for s in ((4,), (length, 4)))
    made = prelude.get_tensor_ctor_static("tensor_constructor", "float32", (length, 4))
    parts = whole("tensor_array_unstack")(v)
    pair = whole("tensor_array")(relay.const(2))
    for n in range(2):
        pair = whole("tensor_array_write")(pair, relay.const(n), made(v))
    programs = [
        (parts, [], list(ROWS)),
        (rows("tensor_array_stack")(parts), [], [ROWS]),
        (rows("tensor_array_concat")(parts), [], [ROWS.reshape(-1)]),
        (rows("tensor_array_gather")(parts, places), [2, 0], [ROWS[[2, 0]]]),
        (whole("tensor_array_stack")(pair), [], [np.stack([ROWS, ROWS])]),
        (whole("tensor_array_concat")(pair), [], [np.concatenate([ROWS, ROWS])]),
        (whole("tensor_concatenate")(made(v), made(v)), [], [np.concatenate([ROWS, ROWS])]),
    ]
    for body, indices, expected in programs:
        prelude.mod["main"] = relay.Function([p for p in (v, places) if p in free_vars(body)], body)
        given = {"v": ROWS, "places": np.asarray(indices, "int32")}
        arguments = [given[p.name_hint] for p in prelude.mod["main"].params]
        for kind in ("debug", "vm"):
            found = listed(create_executor(kind, prelude.mod).evaluate()(*arguments))
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
    relay.assert_structural_equal(relay.parse(prelude.mod.astext()), relay.transform.InferType()(prelude.mod))


def test_arrays_of_tensors_of_one_shape():
    prelude = relay.Prelude()
    for shape, ending in (((2, relay.Any()), "2_any"), ((), "scalar")):
        StaticTensorArrayOps(prelude, "int32", shape).register()
        StaticTensorArrayOps(prelude, "int32", shape).register()
        of = partial(prelude.get_global_var_static, dtype="int32", shape=shape)
        tensor = prelude.get_tensor_ctor_static("tensor_constructor", "int32", shape)
        assert tensor.name_hint == f"tensor_constructor_int32_{ending}"
        written = of("tensor_array_write")(of("tensor_array")(relay.const(2)), relay.const(0), tensor(v))
        body = of("tensor_get_data")(of("tensor_array_read")(written, relay.const(0)))
        prelude.mod["main"] = relay.Function([v], body)
        value = np.full([2, 3][: len(shape)], 7, "int32")
        np.testing.assert_array_equal(create_executor("debug", prelude.mod).evaluate()(value).numpy(), value)
    with pytest.raises(ExpressionError, match="no constructor 'tensor9_int8'"):
        prelude.get_tensor_ctor("tensor9", "int8")
