"""What each primitive of a program takes when the virtual machine runs it."""

from __future__ import annotations

import time
from collections.abc import Sequence

from compass_core.errors import UsageError
from compass_runtime.devices import Device
from compass_runtime.ndarray import NDArray
from compass_runtime.profile.calls import Call, Count, Duration, Percent, Report
from compassc.relay.backend.vm.executable import Executable, ExecutableModule
from compassc.relay.backend.vm.machine import VirtualMachine
from compassc.relay.backend.vm.primitives import flat
from compassc.relay.interpreter import Value

WARM_UPS = 3


class VirtualMachineProfiler(VirtualMachine):
    """A virtual machine that measures its primitives in `profile`."""

    def __init__(
        self, exe: Executable | ExecutableModule, device: Device | Sequence[Device], memory_cfg: object = None
    ) -> None:
        super().__init__(exe, device, memory_cfg)
        first = device if isinstance(device, Device) else next(iter(device))
        self._device = f"{first.kind}{first.index}"
        self._calls: list[tuple[str, float, str]] | None = None

    @staticmethod
    def enabled() -> bool:
        """Whether there are profiles: always."""
        return True

    def profile(
        self, *args: object, func_name: str = "main", collectors: Sequence[object] | None = None, **kwargs: object
    ) -> Report:
        """What each primitive takes in one run of a function, after three others; inputs as in `invoke`. UsageError for `collectors`:
        there are none."""
        if collectors:
            raise UsageError("there are no collectors of metrics here", code="profile", help="leave it out")
        for _ in range(WARM_UPS):
            self.invoke(func_name, *args, **kwargs)
        self._calls = []
        begun = time.perf_counter()
        try:
            self.invoke(func_name, *args, **kwargs)
            total = (time.perf_counter() - begun) * 1e6
            calls = [self._told(name, took, shapes, total) for name, took, shapes in self._calls]
        finally:
            self._calls = None
        whole: Call = {"Duration (us)": Duration(total), "Percent": Percent(100.0), "Count": Count(1)}
        return Report(calls, {self._device: whole}, {"Executor": "VM"})

    def _told(self, name: str, took: float, shapes: str, total: float) -> Call:
        return {
            "Name": name, "Duration (us)": Duration(took), "Percent": Percent(took / total * 100),
            "Device": self._device, "Count": Count(1), "Argument Shapes": shapes,
        }  # fmt: skip

    def computed(self, primitive: int, args: Sequence[Value]) -> Value:
        """What a primitive gives of values; while a profile is taken, how long it takes is kept."""
        begun = time.perf_counter()
        found = super().computed(primitive, args)
        if self._calls is not None:
            took = (time.perf_counter() - begun) * 1e6
            shapes = ", ".join(map(_shown, flat([*args, found])))
            self._calls.append((self.exe.primitives[primitive].name, took, shapes))
        return found


def _shown(tensor: NDArray) -> str:
    return f"{tensor.dtype}[{', '.join(map(str, tensor.shape))}]"
