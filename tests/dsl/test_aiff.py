"""AIFF registers and descriptors: what is generated reads back equal, and what is repeated is merged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.aiff.registers import ACTIVATION, PARAMETER, generation
from compassc.dsl.aiff import Aiff, AiffError
from compassc.dsl.aiff.encode import enabled_itps

TARGETS = ["X2_1204", "X3P_1304", "X3S_1304MP2"]


def control_words(aiff):
    return np.array([word for d in aiff.gen_descriptor()[0] for word in d], np.uint32)


@pytest.mark.parametrize(
    ("target", "counts"),
    [
        ("X2_1204", {"unb": 4, "wrb": 22, "mtp": 36, "itp": 49, "ptp": 40}),
        ("X3P_1304", {"unb": 5, "wrb": 38, "mtp": 60, "itp": 68, "ptp": 55}),
    ],
)
def test_the_tables_are_complete_and_without_overlap(target, counts):
    found = generation(target)
    sizes = {name: len(unit.repeated or unit.shared) for name, unit in found.units.items()}
    assert {name: sizes[name] for name in counts} == counts
    words = {PARAMETER: [], ACTIVATION: []}
    for unit in found.units.values():
        for register in (*unit.shared.values(), *unit.repeated.values()):
            assert sum(f.mask for f in register.fields) <= 0xFFFFFFFF
            assert all(f.high >= f.low for f in register.fields)
            assert register.mask.bit_count() == sum(f.high - f.low + 1 for f in register.fields)
            if register.kind != "c":
                assert len(register.words) == (unit.count if register.name in unit.repeated else 1)
                words[register.kind] += register.words
    for indices in words.values():
        assert len(set(indices)) == len(indices)
    total = sum(len(u.shared) + u.count * len(u.repeated) for u in found.units.values())
    assert len(found.control) == total


@st.composite
def configurations(draw):
    aiff = Aiff(draw(st.sampled_from(TARGETS)))
    for number in range(draw(st.integers(1, 3))):
        if number:
            copied = draw(st.none() | st.just(number - 1))
            aiff.add_new_register_config(copy_idx=copied)
        for address in draw(st.lists(st.sampled_from(sorted(aiff._generation.control)), max_size=12)):
            unit, sub, name = aiff._generation.control[address]
            part = getattr(aiff, unit) if sub is None else getattr(aiff, unit)[sub]
            if getattr(part, name)._register.kind == "c" and name not in ("lut_dcfg0", "lut_dcfg1"):
                setattr(part, name, draw(st.integers(0, 0xFFFFFFFF)))
        twin = aiff.mtp.twin_ctrl
        twin.mtp_0_disen, twin.mtp_1_disen = draw(st.integers(0, 1)), draw(st.integers(0, 1))
        aiff.itp.mode_ccfg.loop_en = draw(st.integers(0, 1))
        aiff.itp.mode_ccfg.lin_int_en = draw(st.integers(0, 1))
    return aiff


@given(configurations())
@settings(max_examples=80, deadline=None)
def test_what_is_generated_reads_back_to_the_same_words(aiff):
    words = control_words(aiff)
    assert len(words) % 8 == 0
    again = Aiff("X2_1204" if aiff._generation.name == "X2" else "X3P_1304", words)
    assert len(again.reg_cfgs) == len(aiff.reg_cfgs)
    np.testing.assert_array_equal(control_words(again), words)


@given(configurations(), st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_chains_are_refused_or_read_but_never_crash(aiff, data):
    words = control_words(aiff)
    words[data.draw(st.integers(0, len(words) - 1))] = data.draw(st.integers(0, 0xFFFF))
    try:
        Aiff("X2_1204", words[: data.draw(st.integers(0, len(words)))])
    except AiffError as error:
        assert "word" in str(error)


def test_fields_pack_and_reject():
    aiff = Aiff()
    ctrl = aiff.mtp[1].ctrl
    ctrl.op_mode, ctrl.op_fmt = 5, 0xF
    assert (ctrl.all_fields, aiff.mtp[1].ctrl.op_fmt, aiff.mtp[0].ctrl.all_fields) == (0xF05, 15, 0)
    aiff.mtp[0].unb_ctrl = 0xFFFFFFFF
    assert aiff.mtp[0].unb_ctrl.all_fields == 0b1101
    assert aiff.wrb.mode_ctrl.region_bypass == 3
    assert aiff.mtp.get_register(0x1A0).all_fields == 0xF05
    for wrong, message in (
        (lambda: setattr(ctrl, "op_mode", 8), r"op_mode\[2:0\] is 8; valid: integers from 0 to 7"),
        (lambda: setattr(ctrl, "nothing", 1), "no field 'nothing'"),
        (lambda: aiff.mtp[2], "no sub-unit 2"),
        (lambda: aiff.wrb.region0_oct_addr, "no register"),
        (lambda: setattr(aiff.wrb, "region0_oact_addr", 5), "0 or a non-empty NumPy array"),
        (lambda: setattr(aiff.wrb, "region0_oact_addr", np.zeros((2, 3)).T), "transposed"),
        (lambda: Aiff("X3P_1304").sys, "no unit 'sys'"),
        (lambda: aiff.add_new_register_config(copy_idx=1), "copy_idx is 1"),
    ):
        with pytest.raises(AiffError, match=message):
            wrong()


def test_arrays_stand_for_addresses():
    data, out, weights = np.zeros(64, np.int8), np.zeros(64, np.int8), np.zeros(32, np.int8)
    aiff = Aiff()
    aiff.mtp[0].iact_addr = data[8:]
    aiff.mtp[1].iact_addr = data
    aiff.wrb.region0_oact_addr = out
    aiff.mtp[0].weight_addr = weights
    chains = aiff.gen_descriptor()
    assert [chain.kind for chain in chains] == ["ctrl", "param", "act"]
    act, param = chains.act[0], chains.param[0]
    assert [a is data for a in act.inputs] == [True] and act.outputs[0] is out and param.constants[0] is weights
    assert np.shares_memory(act[0], data) and act[40] is out and act.count_of_u32 == 48
    assert chains.nbytes == 4 * sum(chain.count_of_u32 for chain in chains)
    assert [c.kind for c in chains.param + chains.act + chains.ctrl] == ["param", "act", "ctrl"]


def test_equal_starts_are_merged():
    aiff, weights = Aiff(), np.zeros(32, np.int8)
    aiff.add_new_register_config(copy_idx=0)
    aiff.add_new_register_config(copy_idx=0)
    ctrl, param, act = aiff.gen_descriptor()
    assert (len(ctrl), len(param), len(act), ctrl[0], ctrl[4]) == (1, 1, 3, 0x81, 2)
    aiff.mtp[0].weight_addr = weights
    ctrl, param, _ = aiff.gen_descriptor()
    assert (len(ctrl), len(param), ctrl[4]) == (1, 3, 2 | 1 << 16)
    aiff.ptp.mode.relu_en = 1
    ctrl, param, _ = aiff.gen_descriptor()
    assert (len(ctrl), len(param), [d[0] for d in ctrl]) == (2, 2, [0x18, 0x81])
    assert [d[2] for d in ctrl] == [len(list(ctrl)[1]) // 8, 0] and all(d[3] * 8 == len(d) for d in ctrl)


@pytest.mark.parametrize(
    ("settings_", "x2", "x3"),
    [
        ((1, 1, 0, 0), (), ()),
        ((1, 1, 0, 1), (0,), (0, 1)),
        ((0, 1, 1, 0), (0, 2), (0, 1)),
        ((0, 0, 1, 0), (0, 1, 2), (0, 1, 2, 3)),
        ((0, 0, 0, 0), (0, 1), (0, 1)),
        ((0, 1, 0, 0), (0,), (0,)),
        ((0, 0, 0, 1), (0,), (0,)),
    ],
)
def test_which_sub_units_take_part(settings_, x2, x3):
    for target, expected in (("X2_1204", x2), ("X3P_1304", x3)):
        aiff = Aiff(target)
        twin, mode = aiff.mtp.twin_ctrl, aiff.itp.mode_ccfg
        twin.mtp_0_disen, twin.mtp_1_disen, mode.loop_en, mode.lin_int_en = settings_
        assert enabled_itps(aiff.reg_cfgs[0]) == expected
    aiff = Aiff("X3P_1304")
    aiff.itp.mode_ccfg.loop_en, aiff.mtp.twin_ctrl.twin_output = 1, 2
    assert enabled_itps(aiff.reg_cfgs[0]) == (0, 1, 3)


def test_what_is_no_register_is_not_set_without_a_word():
    aiff = Aiff("X2_1204")
    for config in (aiff, aiff.reg_cfgs[0]):
        with pytest.raises(AiffError, match="mtp is a unit"):
            config.mtp = 1
        with pytest.raises(AiffError, match="has no unit 'typo'"):
            config.typo = 1
    with pytest.raises(AiffError, match="mtp is a unit"):
        aiff.mtp = 1
    with pytest.raises(AiffError, match="mpt"):
        aiff.mpt = 1
    with pytest.raises(AiffError, match="region0_oact_addr takes 0 or a non-empty NumPy array, not an empty one"):
        aiff.wrb.region0_oact_addr = np.zeros(0, "int8")
