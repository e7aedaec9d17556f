"""Programs whose values are on several devices: planned, printed, read again, and built where there is one."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError, UsageError
from compass_runtime.devices import Device
from compassc import relay
from compassc.pass_manager.context import PassContext
from compassc.relay.attributes import PARAM_DEVICES, RESULT_DEVICE
from compassc.relay.backend.executors import create_executor
from compassc.relay.builders import build
from compassc.relay.expr import Call, Function, Let, Var
from compassc.relay.operators import Op, op_name
from compassc.relay.passes import make
from compassc.relay.visit import children, post_order, rewrite, with_children
from compassc.targets import Target
from compassc.targets.compilation import make_compilation_config
from compassc.targets.virtual_device import VirtualDevice
from tests.relay.relay_values import SHAPE, evaluate, functions

LLVM, CUDA = Target("llvm"), Target("cuda")
CPU, GPU = VirtualDevice(Device(1), LLVM), VirtualDevice(Device(2), CUDA)
TABLE = {"VirtualDevice": [CPU, GPU]}
CONFIG = make_compilation_config(PassContext(config={"relay.fallback_device_type": 2}), [LLVM, CUDA])
T = "Tensor[(5, 7), float32]"
C, G = "{virtual_device=meta[VirtualDevice][0]}", "{virtual_device=meta[VirtualDevice][1]}"
ON_C = "virtual_device=meta[VirtualDevice][0]"
ON_G = "virtual_device=meta[VirtualDevice][1]"
FIXED_C, FIXED_G = f"{ON_C}, constrain_result=True", f"{ON_G}, constrain_result=True"
UP = "src_virtual_device=meta[VirtualDevice][0], dst_virtual_device=meta[VirtualDevice][1]"


def read(text):
    return relay.parse(f'#[version = "0.0.5"]\n{text}', init_meta_table=TABLE)


def plan(module, config=CONFIG):
    return make("PlanDevices", config)(make("InferType")(module))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            f"def @main(%a: {T}, %b: {T}) {{ add(%a, %b) }}",
            f"def @main(%a {G}: {T}, %b {G}: {T}, {ON_G}) {{ add(%a, %b) }}",
        ),
        (
            f"def @main(%a: {T}, %b: {T}) {{ %0 = exp(%a); %1 = on_device(%0, {ON_C}); add(%1, %b) }}",
            f"""def @main(%a {C}: {T}, %b {G}: {T}, {ON_G}) {{ %0 = exp(%a); %1 = on_device(%0, {FIXED_C});
                %2 = device_copy(%1, {UP}); add(%2, %b) }}""",
        ),
        (
            f"def @main(%a: {T}, %b: {T}) {{ %0 = exp(%a); %1 = device_copy(%0, {UP}); add(%1, %b) }}",
            f"""def @main(%a {C}: {T}, %b {G}: {T}, {ON_G}) {{ %0 = exp(%a); %1 = on_device(%0, {FIXED_C});
                %2 = device_copy(%1, {UP}); add(%2, %b) }}""",
        ),
        (
            f"def @main(%a: {T}, %b: {T}) {{ let %l = exp(%a); let %r = exp(%b); %0 = on_device(%l, {ON_C}); add(%0, %r) }}",
            f"""def @main(%a {C}: {T}, %b {G}: {T}, {ON_G}) {{ %0 = exp(%a); let %l = on_device(%0, {FIXED_C}); %1 = exp(%b);
                let %r = on_device(%1, {FIXED_G}); %2 = device_copy(%l, {UP}); add(%2, %r) }}""",
        ),
        (
            f"def @main(%a: {T}) {{ let %f = fn (%x: {T}) {{ %0 = exp(%x); on_device(%0, {ON_C}) }}; %f(%a) }}",
            f"def @main(%a {C}: {T}, {ON_C}) {{ let %f = fn (%x {C}: {T}, {ON_C}) {{ exp(%x) }}; %f(%a) }}",
        ),
        (
            f"def @main(%a: bool, %b: {T}) {{ %0 = if (%a) {{ %b }} else {{ %b }}; %1 = on_device(%0, {ON_C}); exp(%1) }}",
            f"""def @main(%a {C}: bool, %b {C}: {T}, {ON_G}) {{ %0 = if (%a) {{ %b }} else {{ %b }};
                %1 = on_device(%0, {FIXED_C}); %2 = device_copy(%1, {UP}); exp(%2) }}""",
        ),
        (
            f"""def @main(%x: Tensor[(3, 4), float32]) {{ let %t = split(%x, indices_or_sections=3); %0 = on_device(%t, {ON_C});
                %1 = %0.0; exp(%1) }}""",
            f"""def @main(%x {C}: Tensor[(3, 4), float32], {ON_G}) {{ %0 = split(%x, indices_or_sections=3);
                let %t = on_device(%0, {FIXED_C}); %1 = %t.0; %2 = on_device(%1, {FIXED_C}); %3 = device_copy(%2, {UP});
                exp(%3) }}""",
        ),
        (
            f"""def @f(%x: {T}) {{ exp(%x) }}
                def @main(%a: {T}) {{ %0 = @f(%a); %1 = on_device(%0, {ON_C}); exp(%1) }}""",
            f"""def @f(%x {C}: {T}, {ON_C}) {{ exp(%x) }}
                def @main(%a {C}: {T}, {ON_G}) {{ %0 = @f(%a); %1 = on_device(%0, {FIXED_C}); %2 = device_copy(%1, {UP});
                exp(%2) }}""",
        ),
    ],
)
def test_values_are_copied_where_devices_meet(before, after):
    found = plan(read(before))
    relay.assert_structural_equal(found, read(after), map_free_vars=True)
    relay.assert_structural_equal(plan(found), found, map_free_vars=True)
    relay.assert_structural_equal(relay.parse(found.astext()), found)


def noted(f, places):
    """The function with notes of devices around what calls and tuples take, the same for all uses of a value."""
    rest, chosen = cycle(places), {}

    def note(before, after):
        if isinstance(after, Function):
            return after
        parts = [
            p if isinstance(p, Op) else build("annotation.on_device", p, chosen.setdefault(id(b), next(rest)))
            for b, p in zip(children(before), children(after), strict=True)
        ]
        return with_children(after, parts)

    return rewrite(f, note)


def device_of(e, around, variables):
    """Where a value of a planned program is."""
    if isinstance(e, Var):
        return variables[id(e)]
    if op_name(e) == "on_device":
        return e.attrs.virtual_device
    return e.attrs.dst_virtual_device if op_name(e) == "device_copy" else around


@settings(max_examples=40, deadline=None)
@given(f=functions(), places=st.lists(st.sampled_from([CPU, GPU]), min_size=2, max_size=7))
def test_what_a_call_takes_is_where_the_call_is(f, places):
    planned = plan(relay.IRModule.from_expr(noted(f, places)))
    relay.assert_structural_equal(plan(planned), planned, map_free_vars=True)
    f_planned = planned["main"]
    variables = dict(zip(map(id, f_planned.params), f_planned.attrs[PARAM_DEVICES], strict=True))
    for e in post_order(f_planned):
        if isinstance(e, Let):
            variables[id(e.var)] = device_of(e.value, None, variables)
    todo, seen = [(f_planned.body, f_planned.attrs[RESULT_DEVICE])], 0
    while todo:
        e, around = todo.pop()
        seen += 1
        if isinstance(e, Let):
            todo += [(e.value, device_of(e.value, None, variables)), (e.body, around)]
        elif isinstance(e, Call) and op_name(e) == "on_device":
            todo.append((e.args[0], e.attrs.virtual_device))
        elif isinstance(e, Call) and op_name(e) == "device_copy":
            assert device_of(e.args[0], around, variables) == e.attrs.src_virtual_device != e.attrs.dst_virtual_device
            todo.append((e.args[0], around))
        elif isinstance(e, Call):
            assert [device_of(a, around, variables) for a in e.args] == [around] * len(e.args)
            todo += [(a, around) for a in e.args]
    assert seen
    arrays = [np.arange(6, dtype="float32").reshape(SHAPE) - i for i in range(len(f.params))]
    found, expected = evaluate(planned, *arrays), evaluate(relay.IRModule.from_expr(f), *arrays)
    assert [a.tolist() for a in found] == [a.tolist() for a in expected]


def test_devices_that_contradict_each_other_are_refused():
    x = relay.var("x", shape=SHAPE)
    one = build("annotation.on_device", x, "cpu", constrain_result=True)
    other = build("annotation.on_device", x, "cuda", constrain_result=True)
    with pytest.raises(CompassError, match="Incompatible virtual devices"):
        plan(relay.IRModule.from_expr(relay.Function([x], one + other)))
    with pytest.raises(UsageError, match="No target is specified for device type 8"):
        plan(relay.IRModule.from_expr(relay.Function([x], build("annotation.on_device", x, "metal"))))
    with pytest.raises(ValueError, match="expecting a Device or device name, but received a int"):
        build("annotation.on_device", x, 3)
    with pytest.raises(CompassError, match="there are 2 devices for 1 parameters"):
        build("annotation.function_on_device", relay.Function([x], x), ["cpu", "cpu"], "cpu")


def test_hosts_and_defaults_of_targets():
    host = Target("llvm -mcpu=x86-64-v3")
    made = make_compilation_config(PassContext(), [CUDA, LLVM.with_host(host)])
    assert made.host_target == host and all(t.host == host for t in made.primitive_targets)
    assert made.optional_homogeneous_target is None and made.default_primitive_virtual_device.device_type_int == 1
    alone = make_compilation_config(PassContext(), "cuda")
    assert alone.host_target == LLVM and alone.optional_homogeneous_target == CUDA
    assert alone.default_primitive_virtual_device == GPU and alone.host_virtual_device == CPU
    with pytest.raises(UsageError, match="Multiple targets"):
        make_compilation_config(PassContext(), ["llvm", "llvm -mcpu=x86-64-v3"])


@pytest.mark.parametrize("kind", ["graph", "vm", "debug"])
def test_one_target_computes_what_is_on_its_device(kind):
    x, y = relay.var("x", shape=SHAPE), relay.var("y", shape=SHAPE)
    inner = build("annotation.on_device", x + x, "cpu")
    f = relay.Function([x, y], build("device_copy", inner, "cpu", "cpu:1") * y)
    a = np.arange(6, dtype="float32").reshape(SHAPE)
    for module in (
        relay.IRModule.from_expr(f),
        plan(relay.IRModule.from_expr(f), make_compilation_config(PassContext(), "llvm")),
    ):
        np.testing.assert_array_equal(create_executor(kind, module).evaluate()(a, a).numpy(), 2 * a * a)


@pytest.mark.parametrize("kind", ["graph", "vm"])
def test_other_devices_are_refused(kind):
    x = relay.var("x", shape=SHAPE)
    module = relay.IRModule.from_expr(relay.Function([x], build("annotation.on_device", relay.exp(x), "cuda")))
    with pytest.raises(UsageError, match="No target is specified for device type 2"):
        create_executor(kind, module).evaluate()(np.zeros(SHAPE, "float32"))


def test_places_say_the_order_of_a_function():
    x = relay.var("x", shape=SHAPE)
    e = relay.exp(x)
    module = make("CapturePostDfsIndexInSpans")(relay.IRModule.from_expr(relay.Function([x], e + e)))
    f = module["main"]
    assert isinstance(f, Function) and isinstance(f.body, Call)
    order = list(post_order(f))
    places = {id(e): int(e.span.file.split(":")[1]) for e in order if getattr(e, "span", None) is not None}
    assert places and all(places[id(e)] == i for i, e in enumerate(order) if id(e) in places)
    assert f.body.args[0].span.file == f"index:{order.index(f.body.args[0])}:{order.index(f.body)}"
