"""Register configurations to descriptors and back."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from compass_core.aiff.registers import ACTIVATION, CONTROL, PARAMETER, AiffError, Generation

from .chain import Descriptor, same_word
from .config import RegisterConfig, RegisterView, UnitView

BLOCK = 8
"""Descriptors and their items are made of blocks of so many words."""
MORE, LAST = 0x18, 0x81
HEADER_WORDS = 8
KIND, NEXT_LENGTH, LENGTH, REPEAT = 0, 2, 3, 4
ADVANCE_PARAMETERS = 1 << 16
MAX_RUN = 63
_DEPRECATED = ("lut_dcfg0", "lut_dcfg1")


def _padded(words: Descriptor) -> Descriptor:
    return [*words, *[0] * (-len(words) % BLOCK)]


def enabled_itps(config: RegisterConfig) -> tuple[int, ...]:
    """The sub-units of the ITP that take part, as twin_ctrl and mode_ccfg say."""
    twin, mode = config.mtp.twin_ctrl, config.itp.mode_ccfg
    x2, loop, interpolate = config.generation.name == "X2", bool(mode.loop_en), bool(mode.lin_int_en)
    none = twin.mtp_0_disen and twin.mtp_1_disen
    single = not twin.mtp_0_disen and twin.mtp_1_disen
    split = twin.twin_op_mode == 0 and twin.twin_output == 2
    rows = (
        (none and not interpolate, (), ()),
        (none, (0,), (0, 1)),
        (single and loop, (0, 2), (0, 1)),
        (loop and split, (0, 1, 2), (0, 1, 3)),
        (loop, (0, 1, 2), (0, 1, 2, 3)),
        (not single and not interpolate, (0, 1), (0, 1)),
        (True, (0,), (0,)),
    )
    return next(of_x2 if x2 else of_x3 for holds, of_x2, of_x3 in rows if holds)


def _active_units(config: RegisterConfig) -> Iterator[UnitView]:
    if "sys" in config.generation.units:
        yield config.sys
    yield config.mtp
    for k in range(len(config.mtp)):
        if not getattr(config.mtp.twin_ctrl, f"mtp_{k}_disen"):
            yield config.mtp[k]
    yield config.itp
    for k in enabled_itps(config):
        yield config.itp[k]
    yield from (config.ptp, config.wrb, config.unb)


def _active_registers(config: RegisterConfig) -> Iterator[RegisterView]:
    x2 = config.generation.name == "X2"
    for unit in _active_units(config):
        for view in unit.views():
            if view._register.kind != CONTROL:
                continue
            if x2 and view._register.name in _DEPRECATED:
                if view.all_fields:
                    logging.getLogger("Compass").warning(
                        "AIFF register itp.%s is deprecated: it has no effect", view._register.name
                    )
                continue
            yield view


def control_descriptor(config: RegisterConfig) -> Descriptor:
    """The control words of the active registers; of the header, what concerns this descriptor alone."""
    runs: list[list[RegisterView]] = []
    for view in _active_registers(config):
        if not runs or runs[-1][-1].address + 1 != view.address or len(runs[-1]) == MAX_RUN:
            runs.append([])
        runs[-1].append(view)
    words: Descriptor = [0] * HEADER_WORDS
    for run in runs:
        words += _padded([len(run) << 16 | run[0].address, *(view.all_fields for view in run)])
    words[LENGTH] = len(words) // BLOCK
    return words


def address_descriptor(config: RegisterConfig, kind: str) -> Descriptor:
    """The parameter or activation descriptor: arrays of all registers of the kind, active or not."""
    words: Descriptor = [0] * config.generation.lengths[kind]
    for unit in config.generation.units.values():
        for register in unit.shared.values():
            if register.kind == kind:
                words[register.words[0]] = config.values.get(register.address, 0)
        for k in range(unit.count):
            for register in unit.repeated.values():
                if register.kind == kind:
                    words[register.words[k]] = config.values.get(register.address + k * unit.stride, 0)
    return words


def compress(
    configs: Sequence[RegisterConfig], repeats: bool = True
) -> tuple[list[Descriptor], list[Descriptor], list[Descriptor]]:
    """Control, parameter and activation descriptors of consecutive starts; equal control descriptors become one that
    `repeats`."""
    controls = [control_descriptor(config) for config in configs]
    params = [address_descriptor(config, PARAMETER) for config in configs]
    acts = [address_descriptor(config, ACTIVATION) for config in configs]
    kept: list[Descriptor] = []
    kept_params: list[Descriptor] = []
    at = 0
    while at < len(configs):
        end = at + 1
        while repeats and end < len(configs) and controls[end] == controls[at] and end - at < 0xFFFF:
            end += 1
        group = params[at:end]
        equal = all(all(map(same_word, group[0], other)) for other in group[1:])
        control = controls[at]
        control[REPEAT] = (end - at - 1) | (0 if equal else ADVANCE_PARAMETERS)
        kept.append(control)
        kept_params += group[:1] if equal else group
        at = end
    for control, following in zip(kept, [*kept[1:], None], strict=True):
        control[KIND] = LAST if following is None else MORE
        control[NEXT_LENGTH] = 0 if following is None else len(following) // BLOCK
    return kept, kept_params, acts


def read_control(words: Sequence[int], generation: Generation) -> list[RegisterConfig]:
    """The configurations of a control chain. AiffError when the words are none."""
    configs: list[RegisterConfig] = []
    start = 0
    while True:
        if start + HEADER_WORDS > len(words):
            raise AiffError(
                f"the control chain ends at word {len(words)}, before its last descriptor", code="aiff-descriptor"
            )
        kind, length = words[start + KIND], words[start + LENGTH] * BLOCK
        if kind not in (MORE, LAST) or length < HEADER_WORDS or start + length > len(words):
            raise AiffError(
                f"there is no control descriptor at word {start}: its first word is {kind:#x}, "
                f"its length {length} of {len(words) - start} words",
                code="aiff-descriptor",
            )
        config = RegisterConfig(generation)
        _read_items(words[start + HEADER_WORDS : start + length], start + HEADER_WORDS, config)
        configs.append(config)
        configs += [config.copy() for _ in range(words[start + REPEAT] & 0xFFFF)]
        if kind == LAST:
            return configs
        start += length


def _read_items(words: Sequence[int], base: int, config: RegisterConfig) -> None:
    known: dict[int, Any] = config.generation.control
    at = 0
    while at < len(words):
        count, address = words[at] >> 16 & MAX_RUN, words[at] & 0x7FF
        if at + 1 + count > len(words):
            raise AiffError(
                f"the item at word {base + at} has {count} registers, more than the descriptor", code="aiff-descriptor"
            )
        for i in range(count):
            if address + i not in known:
                raise AiffError(
                    f"word {base + at}: the AIFF of {config.generation.name} has no register at {address + i:#x}",
                    code="aiff-descriptor",
                )
            unit, sub, name = known[address + i]
            view = getattr(config, unit) if sub is None else getattr(config, unit)[sub]
            setattr(view, name, words[at + 1 + i])
        at += (count + 1 + BLOCK - 1) // BLOCK * BLOCK
