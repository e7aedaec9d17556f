"""Programs with devices, built for one target: all of it is on its device, so annotations and copies are dropped."""

from __future__ import annotations

from compassc.pass_manager.context import PassContext
from compassc.relay.analysis.wellformed import ON_DEVICE
from compassc.relay.attributes import PARAM_DEVICES, RESULT_DEVICE, Attrs
from compassc.relay.expr import Call, Expr, Function
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._device_domains import DEVICE_COPY
from compassc.relay.passes._functions import changed
from compassc.relay.visit import rewrite
from compassc.targets import Target
from compassc.targets.compilation import CompilationConfig, make_compilation_config
from compassc.targets.virtual_device import VirtualDevice


def on_one_device(module: IRModule, target: Target) -> IRModule:
    """The module without annotations of devices. UsageError for one that is neither the target's nor its host's."""
    config = make_compilation_config(PassContext(), target)
    made = {v: _plain(f, config) if isinstance(f, Function) else f for v, f in module.functions.items()}
    return module if all(made[v] is f for v, f in module.functions.items()) else changed(module, made)


def _plain(f: Function, config: CompilationConfig) -> Function:
    def fn(before: Expr, after: Expr) -> Expr:
        if isinstance(after, Function) and (PARAM_DEVICES in after.attrs or RESULT_DEVICE in after.attrs):
            for device in (*after.attrs.get(PARAM_DEVICES, ()), after.attrs.get(RESULT_DEVICE, VirtualDevice())):
                _check(device, config)
            return after.without_attr(PARAM_DEVICES).without_attr(RESULT_DEVICE)
        if op_name(after) not in (ON_DEVICE, DEVICE_COPY):
            return after
        assert isinstance(after, Call) and isinstance(after.attrs, Attrs), "these operators have attributes"
        for device in after.attrs.values():
            _check(device, config)
        return after.args[0]

    made = rewrite(f, fn)
    assert isinstance(made, Function), "a function stays one"
    return made


def _check(device: object, config: CompilationConfig) -> None:
    if isinstance(device, VirtualDevice) and device.device_type_int != config.host_virtual_device.device_type_int:
        config.canonical(device)
