"""The modes of checked runs."""

from __future__ import annotations

from enum import IntFlag

from compass_core.errors import UsageError


class Modes(IntFlag):
    """The checks, numbered as sim/engine/check_area.h has them.

    `BOUNDS`: accesses outside of every buffer; `RACE`: TECs that touch the same memory without a barrier in between,
    or memory of an asynchronous transfer on its way; `UNINIT`: values that were never written decide something or are
    stored in an output; `DMA`: misuse of events, transfers without meaning; `ALIGN`: addresses that are no multiple of
    the element's size; `DIVISION`: integers divided by zero, of vectors the lanes that are not 0 themselves; `ASSERT`:
    what the kernel states by S.assert_ and S.assume; `OVERFLOW`: 32-bit whole numbers of a graph that do not fit (the host
    looks for them, in the tensors of a plain run).
    """

    BOUNDS = 1
    RACE = 2
    UNINIT = 4
    DMA = 8
    ALIGN = 16
    DIVISION = 32
    ASSERT = 64
    OVERFLOW = 128
    ALL = 255

    @classmethod
    def parse(cls, text: str) -> Modes:
        """Names separated by commas; UsageError for a name that is none, or no name at all."""
        found = cls(0)
        for name in filter(None, (part.strip() for part in text.split(","))):
            if name.upper() not in cls.__members__:
                raise _unknown(f"there is no check '{name}'")
            found |= cls[name.upper()]
        if not found:
            raise _unknown("no check is named")
        return found

    def names(self) -> list[str]:
        """The names of the checks in it."""
        return [name.lower() for name, mode in type(self).__members__.items() if name != "ALL" and mode in self]


def _unknown(message: str) -> UsageError:
    names = ", ".join(name.lower() for name in Modes.__members__)
    return UsageError(message, code="bad-check", help=f"one or more of {names}: --check bounds,race")
