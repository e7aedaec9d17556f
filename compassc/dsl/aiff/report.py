"""Register configurations as tables: what is set, what it means, and whether the model of the unit knows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from compass_core.aiff.registers import CONTROL, Field
from compass_core.aiff.rules import IGNORED, Group, Rule, groups
from compass_core.arrays import Array, base_of

from .config import RegisterConfig, RegisterView, UnitView

COLUMNS = ("register", "address", "field", "value", "model", "meaning")
Row = tuple[str, str, str, str, str, str]


_STAGES = {"m0": "m0_ccfg", "m1": "m1_ccfg", "e": "e_ccfg", "lut": "lut_ocfg"}
"""Stages of an ITP, and the register whose `byp` leaves a stage out."""


def rows(config: RegisterConfig) -> Iterator[Row]:
    """The fields of a configuration that do not have their defaults, and the arrays, by unit and address."""
    for name, unit in config.generation.units.items():
        view = getattr(config, name)
        for sub in (None, *range(unit.count)):
            part = view if sub is None else view[sub]
            enabled = _groups(config, name, part, sub)
            for register in part.views():
                yield from _rows(config, part, register, enabled)


def _groups(config: RegisterConfig, unit: str, part: UnitView, sub: int | None) -> list[Group]:
    """The groups of rules that hold for a unit, or for a sub-unit, as the configuration enables it."""
    twin = config.mtp.twin_ctrl
    pools = bool(twin.mtp_0_disen and twin.mtp_1_disen)
    names = {"system", "buffers", "wrb", "wrb-region1"}
    if pools:
        names |= {"twin-ptp", "ptp-pool", "itp-off"}
    else:
        names |= {"twin-mtp", "ptp-off", "itp-shared", "wrb-region0"}
    if sub is not None and not pools and unit == "mtp":
        names.add("mtp-pass" if part.ctrl.op_mode == 2 else "mtp-convolution")
    if unit == "itp" and sub in (0, 1) and not pools:
        names |= {"itp", *(f"itp-{stage}" for stage, register in _STAGES.items() if not getattr(part, register).byp)}
    return [g for g in groups() if g.name in names and (g.unit, g.repeated) == (unit, sub is not None)]


def _rows(config: RegisterConfig, part: UnitView, register: RegisterView, enabled: list[Group]) -> Iterator[Row]:
    declared = register._register
    path, address = f"{part._where}.{declared.name}", f"{register.address:#05x}"
    if declared.kind != CONTROL:
        word = register.all_fields
        if isinstance(word, np.ndarray):
            yield path, address, "", _described(word), "", "an address"
        return
    generation = "X2" if config.generation.name == "X2" else "X3"
    group = next((g for g in enabled if generation in g.generations and g.covers(declared)), None)
    for field in declared.fields:
        value = register.all_fields >> field.low & field.most
        if value != field.default:
            rule = None if group is None else group.rule(declared, field)
            model, meaning = _known(rule, value, field)
            if field.low and len(declared.fields) == 1:  # of a stride the word is the bytes
                meaning += f": {value << field.low}"
            yield path, address, field.name, str(value), model, meaning


def _described(word: Array) -> str:
    """An array whose address is passed, or the place in one."""
    array = base_of(word)
    start, at = (a.__array_interface__["data"][0] for a in (array, word))
    return f"array of {array.dtype} {array.shape}" + (f" + {at - start} bytes" if at != start else "")


def _known(rule: Rule | None, value: int, field: Field) -> tuple[str, str]:
    """Whether the model takes a value, and its meaning."""
    if rule is None:
        return "ignored", "left out"
    if rule.allows(value, field.default):
        return ("ignored" if rule.mark == IGNORED else "modelled"), rule.meaning
    return (f"with {rule.assumption(value)}" if rule.assumption(value) else "refused"), rule.meaning


def text(configs: Sequence[RegisterConfig]) -> str:
    """The tables of consecutive configurations as aligned text."""
    parts = []
    for number, config in enumerate(configs):
        lines = [COLUMNS, *rows(config)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(COLUMNS))]
        parts.append(f"node {number} ({config.generation.name})")
        parts += ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join(parts)
