"""Operators that only note something: devices, fusion, compilers, memory."""

from __future__ import annotations

from collections.abc import Iterable

from compassc.ir.errors import ExpressionError
from compassc.relay.attributes import PARAM_DEVICES, RESULT_DEVICE, Record
from compassc.relay.builders import builder, call
from compassc.relay.expr import Expr, Function
from compassc.relay.operators import Op
from compassc.relay.ops.declare import OPAQUE, declare, record
from compassc.relay.types import Type
from compassc.targets.virtual_device import VirtualDevice


def _as_is(a: object, x: Type) -> Type:
    return x


def _same(
    name: str, signature: str = "data", record: Record | None = None, *, build: bool = True, stateful: bool = False
) -> Op:  # fmt: skip
    """An operator whose result is its argument, of any type."""
    return declare(
        name, signature, _as_is, OPAQUE, anything=True, reference=lambda a, t, x: x, level=10, record=record, build=build,
        stateful=stateful,
    )  # fmt: skip


_same(
    "on_device", "body, virtual_device, constrain_result, constrain_body", build=False,
    record=record("OnDeviceAttrs", virtual_device=VirtualDevice(), constrain_result=False, constrain_body=True),
).set_attr("TNonComputational", True)  # fmt: skip


@builder("annotation.on_device")
def on_device(body: Expr, device: object, constrain_result: bool = False, constrain_body: bool = True) -> Expr:
    """That an expression, or its result, lies on a device: a Device, the name of one, or a VirtualDevice."""
    return call(
        "on_device",
        body,
        virtual_device=VirtualDevice.of(device),
        constrain_result=constrain_result,
        constrain_body=constrain_body,
    )


@builder("annotation.function_on_device")
def function_on_device(function: Function, param_devices: Iterable[object], result_device: object) -> Function:
    """That the parameters and the result of a function lie on devices. ExpressionError unless each parameter has one."""
    devices = tuple([VirtualDevice.of(d) for d in param_devices])
    if len(devices) != len(function.params):
        raise ExpressionError(
            f"there are {len(devices)} devices for {len(function.params)} parameters", "give one for each"
        )
    return function.with_attr({PARAM_DEVICES: devices, RESULT_DEVICE: VirtualDevice.of(result_device)})


_same(
    "device_copy", "data, src_virtual_device, dst_virtual_device", build=False,
    record=record("DeviceCopyAttrs", src_virtual_device=..., dst_virtual_device=...),
)  # fmt: skip


@builder("device_copy")
def device_copy(data: Expr, src_device: object, dst_device: object) -> Expr:
    """The same value on another device."""
    return call(
        "device_copy",
        data,
        src_virtual_device=VirtualDevice.of(src_device),
        dst_virtual_device=VirtualDevice.of(dst_device),
    )


for _name in ("stop_fusion", "checkpoint", "bitpack_start", "bitpack_end"):
    _same(f"annotation.{_name}")
_compiler = record("CompilerAttrs", compiler=...)
for _name in ("compiler_begin", "compiler_end", "with_funcid"):
    _same(f"annotation.{_name}", "data, compiler" if _name != "with_funcid" else "data", record=_compiler if _name != "with_funcid" else None)  # fmt: skip
_same("annotation.cast_hint", "data, dtype", record=record("CastHintAttrs", dtype=...))
_same("debug", "expr, debug_func=None", record=record("DebugAttrs", debug_func=...), stateful=True)


def _later(a: object, *types: Type) -> None:
    """The type is known by the pass that makes the call."""


for _name, _signature, _record in (
    (
        "memory.alloc_storage",
        "size, shape, alignment",
        record("AllocStorageAttrs", dtype="float32", virtual_device=...),
    ),
    (
        "memory.alloc_tensor",
        "storage, offset, shape",
        record("AllocTensorAttrs", dtype="float32", const_shape=..., assert_shape=...),
    ),
    ("memory.kill", "value", None),
    ("vm.invoke_tvm_op", "function, inputs, outputs", None),
    ("vm.shape_func", "function, inputs, outputs", record("ShapeFuncAttrs", is_input=...)),
    ("vm.reshape_tensor", "data, shape", record("ReshapeTensorAttrs", newshape=...)),
):
    declare(
        _name,
        _signature,
        _later,
        OPAQUE,
        record=_record,
        build=False,
        stateful=True,
        anything=True,
        TNonComputational=True,
    )
