"""Addresses of the simulated device (sim/engine/ranges.h has the same numbers).

Device memory is two ranges, WINDOW_LOW..ENGINE_LOW and ENGINE_HIGH..WINDOW_HIGH. The range between them holds the
loaded kernel code and the stacks of the TECs, which the parent process cannot see.
"""

from __future__ import annotations

PAGE = 4096
WINDOW_LOW = 0x0001_0000
WINDOW_HIGH = 0xFFFF_F000
ENGINE_LOW = 0x1000_0000
CODE_HIGH = 0x2000_0000
STACKS_LOW = 0x2000_0000
STACK_SIZE = 0x0020_0000
ENGINE_HIGH = 0x3000_0000
MAX_TECS = 16


def file_size(limit: int, checks: bool) -> int:
    """How long the file of device memory is of which `limit` bytes may be in use (0: any number): what lies behind its
    end does not exist. `checks`: what is found lies in the engine's range, and the limit is looked after while jobs run.
    """
    if limit <= 0 or checks:
        return WINDOW_HIGH
    whole = -(-limit // PAGE) * PAGE
    return min(whole if whole <= ENGINE_LOW else whole + ENGINE_HIGH - ENGINE_LOW, WINDOW_HIGH)


def describe(address: int) -> str:
    """A description, for kernel authors, of an address that a kernel must not access."""
    if address < WINDOW_LOW:
        return f"address {address:#x}: a null pointer, or an index from one"
    if address >= 1 << 32:
        return f"address {address:#x}: not a device address; an index or pointer sum went far out of range"
    if STACKS_LOW <= address < STACKS_LOW + MAX_TECS * STACK_SIZE:
        tec, offset = divmod(address - STACKS_LOW, STACK_SIZE)
        if offset < PAGE:
            return (
                f"address {address:#x}: the stack of TEC {tec} is full; lsram and private arrays need more than 2 MiB"
            )
        return f"address {address:#x}: inside the stack of TEC {tec}"
    if ENGINE_LOW <= address < ENGINE_HIGH:
        return f"address {address:#x}: the kernel's code and constants, which are read-only, or nothing at all"
    return f"address {address:#x}: not part of device memory"
