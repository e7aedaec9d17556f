"""Which memory values of a graph share, planned without kernels, and single functions that are lowered once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc import relay
from compassc.relay.backend.storage import plan, size_of, values_of
from compassc.relay.backend.te_compiler import CCacheKey, TECompiler, get, lower_call, lower_to_primfunc
from compassc.relay.builders import call
from compassc.relay.expr import Call
from compassc.relay.passes import make
from compassc.relay.types import TensorType
from compassc.targets import Target
from compassc.targets.virtual_device import VirtualDevice
from tests.relay.relay_values import functions


def fused(f, level=0):
    module = make("InferType")(relay.IRModule.from_expr(f))
    return make("FuseOps", fuse_opt_level=level)(make("ToGraphNormalForm")(module))["main"]


def chain(size, more):
    x, y = relay.var("x", shape=(size,)), relay.var("y", shape=(1,))
    e = x + relay.exp(y)
    for _ in range(more):
        e = relay.exp(e)
    return relay.Function([x, y], e)


@pytest.mark.parametrize("more", [1, 2, 5])
def test_a_chain_needs_two_storages_besides_those_of_its_inputs(more):
    found = plan(fused(chain(10, more)))
    assert len(found.sizes) == 4 and sorted(found.sizes) == [4, 40, 40, 40]
    small = {n: s for i in found.expr_to_storage_info.values() for n, s in zip(i.storage_ids, i.storage_sizes)}
    assert small == {0: 40, 1: 4, 2: 4, 3: 40}
    assert {d for i in found.expr_to_storage_info.values() for d in i.device_types} == {1}


@settings(max_examples=25, deadline=None)
@given(f=functions(), level=st.sampled_from([0, 3]))
def test_no_value_is_overwritten_before_it_was_read(f, level):
    """Run by numbers of values instead of tensors: each storage has what its reader expects."""
    f = fused(f, level)
    found = plan(f)
    memory, made = {}, []

    def written(e, types):
        info = found.expr_to_storage_info[e]
        assert len(types) == len(info.storage_ids)
        assert all(size_of(t) <= found.sizes[n] for t, n in zip(types, info.storage_ids, strict=True))
        new = []
        for n in info.storage_ids:
            made.append(e)
            memory[n] = len(made)
            new.append((n, len(made)))
        return new

    def called(e, inputs, types):
        assert all(memory[n] == value for n, value in inputs)
        if e.op.attrs.get("relay.reshape_only"):
            assert found.expr_to_storage_info[e].storage_ids == (inputs[0][0],)
            return inputs
        outputs = written(e, types)
        assert all(memory[n] == value for n, value in inputs), "a kernel does not write what it reads"
        return outputs

    heads = values_of(f, written, called)[-1][1]
    assert [memory[n] for n, _ in heads] == [value for _, value in heads] and made


def test_what_has_no_plan_is_refused():
    x, c = relay.var("x", shape=(2,)), relay.var("c", shape=(), dtype="bool")
    with pytest.raises(CompassError, match="does not support control flow"):
        plan(make("InferType")(relay.IRModule.from_expr(relay.Function([x, c], relay.If(c, x, x))))["main"])
    y = relay.var("y", shape=(relay.Any(),))
    with pytest.raises(CompassError, match="only supports static graphs"):
        plan(fused(relay.Function([y], relay.exp(y))))


def thrice(shape):
    x = relay.var("x", shape=shape)
    return relay.Function([x], (x + x) + x)


def test_equal_functions_are_lowered_once():
    compiler = get()
    compiler.clear()
    one, again, other = (compiler.lower(thrice(s), "llvm") for s in ((10,), (10,), (5,)))
    assert one.same_as(again) and not one.same_as(other) and get() is compiler
    assert compiler.lower(thrice((10,)), "c") is not one
    assert [value.use_count for _, value in compiler.items()] == [2, 1, 1]
    assert {key for key, _ in compiler.items()} >= {CCacheKey(make_typed((10,)), Target("llvm"))}
    assert one.prim_fn_var.name_hint != other.prim_fn_var.name_hint
    assert one.prim_func.name == one.prim_fn_var.name_hint == "tvmgen_default_fused_add_add"
    compiler.clear()
    assert compiler.items() == []
    with pytest.raises(RuntimeError, match="Cannot construct"):
        TECompiler()


def make_typed(shape):
    return make("InferType")(relay.IRModule.from_expr(thrice(shape)))["main"]


def test_a_function_is_compiled_alone():
    x = np.arange(10, dtype="float32")
    found = np.zeros(10, "float32")
    get().jit(thrice((10,)), "llvm")(x, found)
    np.testing.assert_array_equal(found, 3 * x)


def test_a_function_that_is_not_lowered_is_shown_with_the_cause():
    data = relay.var("data", shape=(relay.Any(),))
    with pytest.raises(RuntimeError, match=r"(?s)Traceback.*Error during compile func.*fn \(%data"):
        get().lower(relay.Function([data], relay.exp(data)), "llvm")


def test_one_call_as_tensor_expressions_and_a_function_as_blocks():
    function = make_typed((4,))
    body = function.body
    assert isinstance(body, Call)
    lowered = get().lower(function, "llvm")
    made = lower_call(body, [lowered.inputs[0], lowered.inputs[0]], "llvm")
    assert [tuple(t.shape) for t in made.outputs] == [(4,)] and made.implementation is None
    blocks = lower_to_primfunc(function, "llvm")
    assert len(blocks.params) == 2
    other = lower_call(call("add", *body.args), [lowered.inputs[0]] * 2, "llvm", TensorType((4,), "float32"))
    assert [str(t.dtype) for t in other.outputs] == ["float32"]


def test_devices_are_described():
    from compass_runtime.devices import Device

    assert VirtualDevice(target=Target("llvm")).device_type_int == 1
    assert (VirtualDevice().device_type_int, VirtualDevice().virtual_device_id) == (-1, -1)
    assert VirtualDevice(Device(2, 3)) == VirtualDevice(Device(2, 3)) != VirtualDevice(Device(2, 0))
    with pytest.raises(TypeError, match="a device is a Device"):
        VirtualDevice("cuda")
