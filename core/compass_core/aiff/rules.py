"""What the model of the AIFF knows of each field of each control register, as data (`rules.txt`).

A field is modelled (its value takes part in what is computed), ignored (it has no effect on results, for the reason that
its rule gives), or has to have its default: a start that sets it to anything else is refused.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from compass_core.dataclass import dataclass

from .registers import CONTROL, Field, Register, Unit, units_of

ASSUMPTIONS = {
    "repeat": "a control descriptor whose header asks for repetitions runs again with the next activation descriptor",
    "half-up": "the rounding shift of ITP m0 rounds ties up",
    "clamp": "results that int8 does not hold are clamped to -128..127",
    "relu": "ITP m0 with relu_byp 0 makes negative values 0",
    "signed-pool": "op_fmt 4 and 5 of the PTP are int8 and int16",
    "format5": "compression_format 5 packs weights in codes of five bits, escape -16",
    "raw-weights": "compression_format 0 are weights of one byte, in the order of packed ones",
    "interpolate": "a table gives a value between two entries in proportion, rounded down",
    "partial-channels": "of a surface with fewer channels than it has room for the first ones count",
}
"""Readings that no program has confirmed: off by default, allowed one by one by COMPASS_AIFF_ASSUME. The model says at
run time which ones it made use of. Their order is that of the bits in the model."""


def assumption_bits(names: frozenset[str]) -> int:
    """The assumptions as the model wants them."""
    return sum(1 << bit for bit, name in enumerate(ASSUMPTIONS) if name in names)


MODELLED, IGNORED, DEFAULT = "modelled", "ignored", "default"
_MARKS = {"V": MODELLED, "N": IGNORED}


@dataclass(frozen=True)
class Rule:
    """Which values of a field a start may have. `values`: None is any. An ignored field may have its default, too.

    `assumed`: assumptions, and the values that each allows besides.
    """

    mark: str
    values: frozenset[int] | None
    meaning: str
    assumed: tuple[tuple[str, frozenset[int]], ...] = ()

    def allows(self, value: int, default: int, assumptions: frozenset[str] = frozenset()) -> bool:
        """Whether the model takes the value."""
        if self.values is None or value in self.values or (self.mark != MODELLED and value == default):
            return True
        return self.assumption(value) in assumptions

    def assumption(self, value: int) -> str:
        """The assumption that allows a value; empty where none does."""
        return next((name for name, values in self.assumed if value in values), "")


_MUST_BE_DEFAULT = Rule(DEFAULT, frozenset(), "not modelled: it has to have its default")


@dataclass(frozen=True)
class Group:
    """Rules that hold together in one situation, and the registers whose fields they are about."""

    name: str
    generations: tuple[str, ...]
    unit: str
    repeated: bool
    registers: tuple[str, ...]
    lines: tuple[tuple[str, Rule], ...]

    def covers(self, register: Register) -> bool:
        """Whether the group is about the register."""
        return register.kind == CONTROL and any(fnmatchcase(register.name, glob) for glob in self.registers)

    def rule(self, register: Register, field: Field) -> Rule:
        """The rule of a field of a covered register."""
        name = f"{register.name}.{field.name}"
        return next((rule for glob, rule in self.lines if fnmatchcase(name, glob)), _MUST_BE_DEFAULT)

    def fields(self, generation: str) -> list[tuple[Register, Field, Rule]]:
        """The fields that the group is about in a generation (`X2` or `X3`), by address."""
        if generation not in self.generations:
            return []
        unit: Unit = units_of(generation)[self.unit]
        registers = unit.repeated if self.repeated else unit.shared
        covered = sorted(filter(self.covers, registers.values()), key=lambda register: register.address)
        return [(register, f, self.rule(register, f)) for register in covered for f in register.fields]


def _values(text: str) -> frozenset[int] | None:
    return None if text == "*" else frozenset(int(item, 0) for item in text.split(","))


def _line(text: str) -> tuple[str, Rule]:
    left, _, meaning = text.partition(" | ")
    name, mark, values, *assumed = left.split()
    pairs = [item.split(":") for item in assumed]
    assert all(assumption in ASSUMPTIONS for assumption, _ in pairs), text
    also = tuple((assumption, _values(allowed) or frozenset()) for assumption, allowed in pairs)
    return name, Rule(_MARKS[mark], _values(values), meaning.strip(), also)


@cache
def groups() -> tuple[Group, ...]:
    """All groups, in the order of the table."""
    found: list[Group] = []
    for block in Path(__file__).with_name("rules.txt").read_text(encoding="ascii").split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith("#")]
        if not lines:
            continue
        heading, *rest = lines
        name, generations, unit, *registers = heading.replace("[", "", 1).replace("]", "", 1).split()
        found.append(
            Group(
                name,
                tuple(generations.split(",")),
                unit.removesuffix("[]"),
                unit.endswith("[]"),
                tuple(registers),
                tuple(map(_line, rest)),
            )
        )
    return tuple(found)
