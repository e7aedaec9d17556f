"""Where data lives, and what code computes it: a device, a target and a kind of memory."""

from __future__ import annotations

from compass_core.dataclass import dataclass
from compass_core.errors import UsageError
from compass_runtime.devices import KINDS, Device, device
from compassc.ir.errors import ExpressionTypeError
from compassc.targets.target import Target

UNCONSTRAINED = -1
"""The kind and the number of a device that nothing is said of."""


class _NoDevice(UsageError, ValueError):
    """What is no device."""


@dataclass(frozen=True)
class VirtualDevice:
    """A device, the target of code that computes there, and the name of a memory. What is left out is not said: it may be any.

    Equal descriptions are equal. TypeError where `device` is no device.
    """

    device: Device | None = None
    target: Target | None = None
    memory_scope: str = ""

    def __post_init__(self) -> None:
        if self.device is not None and not isinstance(self.device, Device):
            raise ExpressionTypeError(f"a device is a Device, not a {type(self.device).__name__}", "give tvm.cpu()")

    @property
    def device_type_int(self) -> int:
        """The code of the kind of device: that of the device, else that of the target, -1 where neither is said."""
        if self.device is not None:
            return self.device.device_type
        return UNCONSTRAINED if self.target is None else KINDS[self.target.kind.device]

    device_type = device_type_int

    @property
    def virtual_device_id(self) -> int:
        """The number of the device among those of its kind, -1 where it is not said."""
        return UNCONSTRAINED if self.device is None else self.device.index

    @staticmethod
    def of(given: object) -> VirtualDevice:
        """What an annotation means: itself, a device, or the name of one. ValueError for anything else."""
        if isinstance(given, VirtualDevice):
            return given
        if isinstance(given, (Device, str)):
            return VirtualDevice(given if isinstance(given, Device) else device(given))
        raise _NoDevice(
            f"expecting a Device or device name, but received a {type(given).__name__}",
            code="input",
            help='give tvm.cpu(), "cuda", or a VirtualDevice',
        )

    def __str__(self) -> str:
        words = [
            f"device_type={self.device_type_int}" if self.device_type_int != UNCONSTRAINED else "",
            f"virtual_device_id={self.virtual_device_id}" if self.device is not None else "",
            f"target={self.target}" if self.target is not None else "",
            f"memory_scope='{self.memory_scope}'" if self.memory_scope else "",
        ]
        return f"VirtualDevice({', '.join(filter(None, words)) or '?'})"

    __repr__ = __str__
