"""Faults of running kernels, described for kernel authors."""

from __future__ import annotations

import signal
from typing import Literal

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_sim.memory_map import describe

FaultKind = Literal[
    "segv", "bus", "illegal", "arithmetic", "timeout", "deadlock", "unsupported", "dma", "memory", "system-call"
]
State = Literal["running", "at a barrier", "finished", "not started", "at the kernel's last barrier", "unknown"]
STATES: tuple[State, ...] = (
    "running",
    "at a barrier",
    "finished",
    "not started",
    "at the kernel's last barrier",
    "unknown",
)

_SIGNAL_KINDS: dict[int, FaultKind] = {
    signal.SIGSEGV: "segv",
    signal.SIGBUS: "bus",
    signal.SIGILL: "illegal",
    signal.SIGTRAP: "illegal",
    signal.SIGFPE: "arithmetic",
}
_KERNEL_SENT = 128
"""The signal code of an access whose address the processor does not tell."""


@dataclass(frozen=True)
class TecLocation:
    """The position of a TEC: `pc` is an offset in the object's `.text`, None when it was not in kernel code."""

    tec: int
    state: State
    pc: int | None


class SimulatorError(CompassError):
    """The simulator refuses a job, or its process ended without a report."""


class KernelFault(CompassError):
    """A kernel did something that ends its run.

    `tec` is the TEC that did it (None: no single one), `address` the address it may not touch (None: it is not about
    an address), `pc` the offset in `.text` of the instruction, `locations` where each TEC stood, `printed` what the
    kernel printed before.
    """

    def __init__(
        self,
        message: str,
        kind: FaultKind,
        tec: int | None,
        address: int | None,
        locations: tuple[TecLocation, ...],
        printed: str,
        *,
        notes: tuple[str, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(message, code=f"kernel-{kind}", notes=notes, help=help)
        self.kind = kind
        self.tec = tec
        self.address = address
        self.locations = locations
        self.printed = printed

    @property
    def pc(self) -> int | None:
        """The offset in `.text` where the faulting TEC stood, else where the first TEC with a known place stood."""
        known = [at for at in self.locations if at.pc is not None]
        return next((at.pc for at in known if at.tec == self.tec), known[0].pc if known else None)


def signal_fault(
    number: int, code: int, address: int, tec: int, locations: tuple[TecLocation, ...], printed: str
) -> KernelFault:
    """The fault for a signal that the kernel's code raised."""
    kind = _SIGNAL_KINDS.get(number, "segv")
    who, help = f"TEC {tec}", ""
    where: int | None = address
    if kind == "illegal":
        message, where = f"{who} reached an instruction that this processor does not have", None
        help = "build the kernel on this machine: host code is compiled for the processor it was built on"
    elif kind == "arithmetic":
        message, where = f"{who} divided an integer by zero, or the smallest integer by -1", None
    elif kind == "bus":
        message = f"{who} touched device memory that the host could not provide (address {address:#x})"
        help = "the host is out of memory"
    elif code == _KERNEL_SENT:
        message, where = f"{who} accessed an address far outside device memory", None
    else:
        message = f"{who} accessed memory it may not touch"
    notes = (describe(address),) if kind == "segv" and where is not None else ()
    return KernelFault(message, kind, tec, where, locations, printed, notes=notes, help=help)


def timeout_fault(limit: float, tec: int | None, locations: tuple[TecLocation, ...], printed: str) -> KernelFault:
    """The fault of a run that did not end in time; `limit` in seconds."""
    message = f"the kernel did not finish within its time limit of {limit:g} s"
    help = "look for an endless loop, or give a longer time limit (--timeout SECONDS)"
    return KernelFault(message, "timeout", tec, None, locations, printed, notes=(_standing(locations),), help=help)


def deadlock_fault(locations: tuple[TecLocation, ...], printed: str) -> KernelFault:
    """The fault of TECs that wait at a barrier which the others will never reach."""
    waiting = [at for at in locations if "barrier" in at.state]
    early = [at for at in waiting if at.state == "at a barrier"]
    where = "at a barrier" if early else "at the barrier at the end of the kernel"
    message = f"{_tecs([at.tec for at in waiting])} for ever {where}: the other TECs have ended"
    help = "every TEC must execute the same number of barriers"
    first = next((at.tec for at in (*early, *waiting)), None)
    return KernelFault(message, "deadlock", first, None, locations, printed, notes=(_standing(locations),), help=help)


def system_call_fault(number: int, tec: int | None, locations: tuple[TecLocation, ...], printed: str) -> KernelFault:
    """The fault of code that calls the host's system; kernels that this toolchain compiled have no such code."""
    who = "a kernel" if tec is None else f"TEC {tec}"
    message = f"{who} made the system call {number} of the host, which code of kernels may not"
    help = "this is no kernel of this toolchain: do not run files from where this one comes from"
    return KernelFault(message, "system-call", tec, None, locations, printed, help=help)


def memory_fault(limit: int, tec: int | None, locations: tuple[TecLocation, ...], printed: str) -> KernelFault:
    """The fault of a kernel that fills more device memory than the host can spare; `limit` in bytes."""
    message = f"the kernel filled more than {limit >> 20} MiB of device memory, which is what this host can give"
    help = "look for writes far outside of the kernel's tensors"
    return KernelFault(message, "memory", tec, None, locations, printed, notes=(_standing(locations),), help=help)


def _tecs(numbers: list[int]) -> str:
    return f"TEC {numbers[0]} waits" if len(numbers) == 1 else f"TECs {', '.join(map(str, numbers))} wait"


def _standing(locations: tuple[TecLocation, ...]) -> str:
    return "; ".join(f"TEC {at.tec} {'is ' if at.state != 'finished' else 'has '}{at.state}" for at in locations)
