"""The registers of the AIFF: one text table per generation, read when it is first needed."""

from __future__ import annotations

import re
from dataclasses import field
from functools import cache, cached_property
from pathlib import Path

from compass_core import targets
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError

CONTROL, PARAMETER, ACTIVATION = "c", "p", "a"
_FIELD = re.compile(r"(\w+)\[(\d+)(?::(\d+))?\](?:=(\w+))?")
_UNIT = re.compile(r"\[(\w+)(\[\])?\](?: count=(\d+) stride=(\w+))?")
_SETS = {"X2": "X2", "X3P": "X3", "X3S": "X3"}
"""The register set of a target's version."""


class AiffError(UsageError, AssertionError):
    """A register, field or value that does not exist."""


@dataclass(frozen=True)
class Field:
    """Bits `high` to `low` of a register."""

    name: str
    high: int
    low: int
    default: int = 0

    @property
    def most(self) -> int:
        """The greatest value."""
        return (1 << (self.high - self.low + 1)) - 1

    @property
    def mask(self) -> int:
        return self.most << self.low


@dataclass(frozen=True)
class Register:
    """A register of a unit (of sub-unit 0 where there are several). `words`: its place in the parameter or activation
    descriptor, per sub-unit; control registers have none."""

    name: str
    address: int
    kind: str
    words: tuple[int, ...]
    fields: tuple[Field, ...]

    @cached_property
    def by_name(self) -> dict[str, Field]:
        return {f.name: f for f in self.fields}

    @cached_property
    def default(self) -> int:
        return sum(f.default << f.low for f in self.fields)

    @cached_property
    def mask(self) -> int:
        """The bits that belong to a field."""
        return sum(f.mask for f in self.fields)


@dataclass
class Unit:
    """A unit: its own registers, and those of its sub-units, which repeat every `stride` addresses."""

    name: str
    shared: dict[str, Register] = field(default_factory=dict)
    repeated: dict[str, Register] = field(default_factory=dict)
    count: int = 0
    stride: int = 0


@dataclass(frozen=True)
class Generation:
    """The units of a generation, and where the descriptors' words lie."""

    name: str
    units: dict[str, Unit]

    @cached_property
    def lengths(self) -> dict[str, int]:
        """Words of the parameter and of the activation descriptor, in whole blocks of 8."""
        last = {PARAMETER: 0, ACTIVATION: 0}
        for unit in self.units.values():
            for register in (*unit.shared.values(), *unit.repeated.values()):
                if register.kind != CONTROL:
                    last[register.kind] = max(last[register.kind], *register.words)
        return {kind: (index // 8 + 1) * 8 for kind, index in last.items()}

    @cached_property
    def control(self) -> dict[int, tuple[str, int | None, str]]:
        """Control registers by address: unit, sub-unit (None: shared), name."""
        found: dict[int, tuple[str, int | None, str]] = {}
        for unit in self.units.values():
            for r in unit.shared.values():
                found[r.address] = (unit.name, None, r.name)
            for k in range(unit.count):
                for r in unit.repeated.values():
                    found[r.address + k * unit.stride] = (unit.name, k, r.name)
        return found


@cache
def units_of(registers_of: str) -> dict[str, Unit]:
    """The units of a register set, `X2` or `X3`."""
    units: dict[str, Unit] = {}
    registers: dict[str, Register] = {}
    for line in (
        Path(__file__).with_name(f"registers_{registers_of.lower()}.txt").read_text(encoding="ascii").splitlines()
    ):
        if line.startswith("#"):
            continue
        if heading := _UNIT.fullmatch(line):
            unit = units.setdefault(heading[1], Unit(heading[1]))
            registers = unit.repeated if heading[2] else unit.shared
            if heading[3]:
                unit.count, unit.stride = int(heading[3]), int(heading[4], 16)
            continue
        name, address, kind, *fields = line.split()
        words = tuple(int(word) for word in kind[1:].split("/")) if kind != CONTROL else ()
        registers[name] = Register(name, int(address, 16), kind[0], words, tuple(map(_field, fields)))
    return units


def _field(text: str) -> Field:
    match = _FIELD.fullmatch(text)
    assert match is not None, text
    return Field(match[1], int(match[2]), int(match[3] or match[2]), int(match[4] or "0", 0))


@cache
def generation(target: str) -> Generation:
    """The registers of a target's AIFF. UsageError when the target does not exist."""
    name = targets.load(target).version
    return Generation(name, units_of(_SETS[name]))
