"""What a program is compiled for when devices may differ: its targets, their host, and where what is not annotated is computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_runtime.devices import KINDS, Device
from compassc.pass_manager.context import FALLBACK_DEVICE, PassContext
from compassc.targets.target import Target
from compassc.targets.virtual_device import UNCONSTRAINED, VirtualDevice

_CPU = KINDS["cpu"]


@dataclass(frozen=True)
class CompilationConfig:
    """Targets of primitives (each with the host), their host, the devices of what nothing is said of, and the one target where there
    is one only."""

    host_target: Target
    primitive_targets: tuple[Target, ...]
    default_primitive_virtual_device: VirtualDevice
    host_virtual_device: VirtualDevice

    @property
    def optional_homogeneous_target(self) -> Target | None:
        """The target of primitives, where there is one."""
        return self.primitive_targets[0] if len(self.primitive_targets) == 1 else None

    def canonical(self, device: VirtualDevice) -> VirtualDevice:
        """The device with its number, and the target that computes there. UsageError where there is none for its kind; of a device
        of which nothing is said nothing is known."""
        code = device.device_type_int
        if code == UNCONSTRAINED:
            return device
        target = device.target or self.target_of(code)
        return VirtualDevice(device.device or Device(code, 0), target, device.memory_scope)

    def target_of(self, code: int) -> Target:
        """The first target for a kind of device. UsageError, with those that there are, where there is none."""
        for target in self.primitive_targets:
            if target.get_target_device_type() == code:
                return target
        known = ", ".join(f"{t.get_target_device_type()}: {t}" for t in self.primitive_targets)
        raise UsageError(
            f"No target is specified for device type {code}. The available device types and targets are: {known}",
            code="relay-target",
            help="give a target for it, or leave out the annotation",
        )


def targets_of(given: object) -> list[Target]:
    """The targets of what is given: one, a list, or a mapping whose keys mean nothing."""
    if isinstance(given, Mapping) and "kind" not in given:
        given = list(given.values())
    return [Target.of(t) for t in given] if isinstance(given, (list, tuple)) else [Target.of(given)]


def make_compilation_config(ctxt: PassContext, target: object, target_host: object = None) -> CompilationConfig:
    """The configuration of targets in a context of passes. UsageError for two targets of a kind, and for a default device (of
    `relay.fallback_device_type`) without a target."""
    raw = targets_of(target)
    host = _host(raw, target_host)
    names = [t.kind.name for t in raw]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UsageError(
            f"Multiple targets have been given for the same device kind {twice}",
            code="relay-target",
            help="give one for each kind",
        )
    targets = tuple([t.with_host(host) for t in raw])
    made = CompilationConfig(host, targets, VirtualDevice(), VirtualDevice(Device(_CPU, 0), host))
    return CompilationConfig(host, targets, _default(ctxt, made), made.host_virtual_device)


def _host(raw: Sequence[Target], given: object) -> Target:
    """The host of the first target that has one, else the first target for the CPU, else llvm."""
    if given is not None and raw[0].host is None:
        return Target.of(given)
    hosts = [t.host for t in raw if t.host is not None]
    processors = [t for t in raw if t.get_target_device_type() == _CPU]
    return Target(str([*hosts, *processors, "llvm"][0]))


def _default(ctxt: PassContext, config: CompilationConfig) -> VirtualDevice:
    """Where what is not annotated is computed: as the context says, else on the only kind of device, else on the CPU."""
    codes = {t.get_target_device_type() for t in config.primitive_targets}
    code = int(ctxt.config.get(FALLBACK_DEVICE, UNCONSTRAINED))
    if code == UNCONSTRAINED:
        code = codes.pop() if len(codes) == 1 else _CPU
    elif code <= 0:
        raise UsageError(
            f"{FALLBACK_DEVICE} is {code}", code="relay-target", help="give the code of a kind of device: 1 for cpu"
        )
    return config.canonical(VirtualDevice(Device(code, 0)))
