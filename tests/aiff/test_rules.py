"""What the model knows of each field, and what it says where it knows nothing: every field is modelled, ignored with a
reason, or refused by name, register and value."""

from fnmatch import fnmatchcase

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.aiff import GENERATIONS
from compass_core.aiff.registers import CONTROL, units_of
from compass_core.aiff.rules import ASSUMPTIONS, DEFAULT, groups
from compass_core.aiff.weights import pack, unpack
from compass_core.errors import CompassError
from compass_sim.aiff_tables import headers
from compass_sim.engine import source_folder
from compassc.dsl import BuildManager
from tests.aiff.programs import Convolution, Pool, Table
from tests.aiff.test_model import starts
from tests.choosing import some

NEVER_ENABLED = {"X3": "ptp"}
"""Units whose work is not modelled at all: what they are set to counts only when they are enabled, which is refused."""


@pytest.mark.parametrize("generation", GENERATIONS)
def test_every_control_register_has_rules(generation):
    covered = {(g.unit, g.repeated, r.name) for g in groups() for r, _, _ in g.fields(generation)}
    wanted = {
        (unit.name, repeated, register.name)
        for unit in units_of(generation).values()
        for repeated, registers in ((False, unit.shared), (True, unit.repeated))
        for register in registers.values()
        if register.kind == CONTROL and register.fields and NEVER_ENABLED.get(generation) != unit.name
    }
    assert wanted and wanted <= covered


def test_every_line_of_the_table_is_about_a_field():
    for group in some(groups()):
        names = {f"{r.name}.{f.name}" for g in group.generations for r, f, _ in group.fields(g)}
        for glob, rule in some(group.lines):
            assert any(fnmatchcase(name, glob) for name in names), (group.name, glob)
            assert rule.meaning and rule.mark != DEFAULT


def test_the_headers_are_those_of_the_tables():
    for name, text in some(headers().items()):
        assert (source_folder() / name).read_text() == text, f"{name}: run python -m compass_sim.aiff_tables"


def error_of(aiff, output):
    """What the model says of a configuration, before anything is written; None when it runs."""
    output[...] = 99
    chains = aiff.gen_descriptor()
    try:
        starts(chains)(chains)
    except CompassError as error:
        assert (output == 99).all()
        return error
    return None


def programs():
    rng = np.random.default_rng(1)
    data, table = rng.integers(0, 256, 8192).astype(np.uint8), rng.integers(-128, 128, 257).astype(np.int16)
    return {
        "pool": (lambda: Pool(4, 4), {"twin-ptp", "ptp-pool", "wrb", "wrb-region1"}, 0),
        "table": (lambda: Table(data, table, "X2_1204", 64), {"twin-mtp", "mtp-pass", "itp-lut", "itp-e", "itp"}, 1),
        "table-x3": (lambda: Table(data, table, "X3P_1304", 64), {"itp-shared", "mtp-pass", "wrb-region0", "itp"}, 1),
        "convolution": (lambda: Convolution(2, 2, 32, (8, 8)), {"mtp-convolution", "itp-m0", "itp-shared"}, 1),
    }


STAGES = ("byp",)
"""Fields whose other value leaves out a stage, which is modelled as well."""
ENABLE = ("mtp_0_disen", "mtp_1_disen", "mode", "op_mode")
"""Fields that say which units work: another value is refused as what it makes of them."""


def refused_values():
    """Each field of a group that a program enables, with a value that its rule does not take."""
    for name, (make, wanted, sub) in programs().items():
        generation = "X3" if name.endswith("x3") else "X2"
        for group in groups():
            if group.name not in wanted:
                continue
            for register, field, rule in group.fields(generation):
                value = next((v for v in range(min(field.most, 40) + 1) if not rule.allows(v, field.default)), None)
                if value is not None and field.name not in STAGES:
                    id_ = f"{name}-{register.name}.{field.name}"
                    yield pytest.param(make, group, sub, register.name, field.name, value, id=id_)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("make", "group", "sub", "register", "field", "value"), list(refused_values()))
def test_a_field_that_is_not_modelled_is_refused_by_name_and_value(make, group, sub, register, field, value):
    program = make()
    aiff = program.aiff()
    unit = getattr(aiff, group.unit)
    path = f"{group.unit}[{sub}]" if group.repeated else group.unit
    setattr(getattr(unit[sub] if group.repeated else unit, register), field, value)
    error = error_of(aiff, program.output)
    assert error is not None and error.code == "kernel-unsupported"
    assert error.message.startswith("AIFF node 0: ") and "not modelled" in error.message
    assert f"{path}.{register}.{field} = {value}" in error.message or field in ENABLE


def test_unlisted_values_of_the_seen_programs_by_hand():
    program = Convolution(2, 2, 32, (8, 8))
    aiff = program.aiff()
    aiff.mtp[0].pad_size.pad_left = 1
    assert error_of(aiff, program.output).message == "AIFF node 0: mtp[0].pad_size.pad_left = 1 is not modelled"
    aiff = program.aiff()
    aiff.add_new_register_config(copy_idx=0)
    aiff.mtp[1].kernel_ctrl.kernel_w = 3
    assert "AIFF node 1: mtp[1].kernel_ctrl.kernel_w = 3 is not" in error_of(aiff, program.output).message


WRONG = {
    "one MTP alone": (Convolution, lambda a: setattr(a.mtp.twin_ctrl, "mtp_1_disen", 1), "one MTP alone"),
    "inputs differ": (Convolution, lambda a: setattr(a.mtp[1], "iact_s_stride", 8), "differ"),
    "regions": (Convolution, lambda a: setattr(a.wrb.mode_ctrl, "region_en", 1), "region_en = 1"),
    "layout": (Convolution, lambda a: setattr(a.wrb.mode_ctrl, "region_bypass", 3), "region_bypass = 3"),
    "shape": (Convolution, lambda a: setattr(a.itp[1].act_ccfg1, "act_chan", 4), "of the MTP"),
    "region": (Convolution, lambda a: setattr(a.mtp[0].ctrl, "w_region_id", 1), "w_region_id = 1"),
    "factor": (Convolution, lambda a: setattr(a.itp[0], "m0_mul_pcfg", 1 << 15), "whether such a factor has a sign"),
    "window": (Pool, lambda a: setattr(a.ptp.act_w_ctrl, "oact_width", 3), "all windows lie in the input"),
    "no step": (Pool, lambda a: setattr(a.ptp.kernel, "stride_w", 0), "window"),
    "channels": (Pool, lambda a: setattr(a.ptp.act_c_ctrl, "oact_chan", 31), "oact_chan = 31"),
    "outside": (Pool, lambda a: setattr(a.ptp, "iact_surf_stride", 1 << 20), None),
    "in place": (Pool, lambda a: setattr(a.wrb, "region1_oact_addr", a.ptp.iact_addr.all_fields), "comes first"),
    "rows meet": (Pool, lambda a: setattr(a.ptp, "iact_w_stride", 64), "meet each other"),
    "no input": (Pool, lambda a: setattr(a.ptp, "iact_addr", 0), "does not lie in memory"),
    "too many": (Pool, lambda a: setattr(a.ptp.act_h_ctrl, "iact_height", 4000), "all windows"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_does_not_go_together_is_refused(what):
    make, damage, message = WRONG[what]
    program = make(2, 2, 32, (8, 8)) if make is Convolution else make(4, 4)
    aiff = program.aiff()
    damage(aiff)
    error = error_of(aiff, program.output)
    if message is None:  # of one surface only the first begins where the stride says
        assert error is None
    else:
        assert message in error.message


# ---------------------------------------------------------------------------------------------------------- assumptions


def test_ties_and_overflows_are_refused_unless_they_are_assumed(monkeypatch, caplog):
    program = Convolution(1, 1, 32, (8, 8))
    program.image[...] = program.surfaces[...] = 0
    program.FACTOR = 1
    for bias in program.biases:
        bias[:] = [1 << 14, -(1 << 14), 100, 0, 0, 0, 0, 0]
    error = error_of(program.aiff(), program.output)
    assert "COMPASS_AIFF_ASSUME=half-up" in error.message
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "half-up")
    assert error_of(program.aiff(), program.output) is None
    assert "half-up" in caplog.text
    np.testing.assert_array_equal(program.output[0, 0, :3], [1, 0, 0])
    program.FACTOR = 20000
    for bias in program.biases:
        bias[:] = [300, -300, 1, 2, 3, 4, 5, 6]
    with pytest.raises(CompassError, match="does not fit int8.*COMPASS_AIFF_ASSUME=clamp"):
        chains = program.aiff().gen_descriptor()
        starts(chains)(chains)
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "half-up, clamp")
    assert error_of(program.aiff(), program.output) is None
    np.testing.assert_array_equal(program.output[0, 0, :2], [127, -128])


@pytest.mark.parametrize("how", ["PySim", "simulator"])
def test_an_assumption_is_said_when_it_is_made_use_of(how, monkeypatch, caplog):
    program = Pool(4, 4, dtype="int8")
    chains = program.aiff().gen_descriptor()
    kernel = starts(chains) if how == "PySim" else BuildManager().build(starts(chains))
    with pytest.raises(CompassError, match="op_fmt = 4 is not modelled; COMPASS_AIFF_ASSUME=signed-pool"):
        kernel(chains)
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", ",".join(ASSUMPTIONS))
    kernel = starts(chains) if how == "PySim" else BuildManager().build(starts(chains))
    kernel(chains)
    np.testing.assert_array_equal(program.result(), program.expected())
    assert "the results of the AIFF rest on assumptions: signed-pool" in caplog.text


def test_a_name_that_is_no_assumption_is_refused(monkeypatch):
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "everything")
    program = Pool(4, 4)
    assert "there is no everything" in error_of(program.aiff(), program.output).message


# ------------------------------------------------------------------------------------------------------------ weights


@given(st.integers(1, 9), st.integers(1, 70), st.integers(0, 3), st.sampled_from([5, 6]))
@settings(max_examples=40, deadline=None)
def test_packed_weights_unpack_to_the_same(groups_, outputs, seed, bits):
    rng = np.random.default_rng(seed)
    weights = (rng.integers(-128, 128, (32 * groups_, outputs)) >> rng.integers(0, 7)).astype(np.int8)
    stream = pack(weights, bits)
    assert len(stream) % 32 == 0
    np.testing.assert_array_equal(unpack(stream, *weights.shape, bits), weights)


def test_the_codes_of_a_known_stream():
    assert unpack(bytes([0x20, 0xF8, 0x00]) + bytes(800), 32, 32)[0, :2].tolist() == [-32, 0]


def test_damaged_streams_are_refused():
    for stream in (bytes(31), b"\xff" * 100, bytes([0x20, 0xF8, 0xFF]) + bytes(800)):
        with pytest.raises(CompassError, match="stream"):
            unpack(stream, 32, 32)
    with pytest.raises(CompassError, match="multiple of 32"):
        pack(np.zeros((31, 4), np.int8))


OUTSIDE = {
    "mtp[0].iact_addr": lambda a: [setattr(mtp, "iact_s_stride", 1 << 30) for mtp in (a.mtp[0], a.mtp[1])],
    "mtp[1].weight_addr": lambda a: setattr(a.mtp[1].wt_compress, "wt_size", (1 << 28) - 1),
    "itp[0].m0_alu_mcfg": lambda a: setattr(a.itp[0], "m0_alu_mcfg", 0),
    "wrb.region1_oact_addr": lambda a: setattr(a.wrb, "region1_oact_s_stride", (1 << 31) - 8),
}


@pytest.mark.parametrize("register", OUTSIDE)
def test_what_points_outside_is_refused_by_its_register(register):
    program = Convolution(2, 2, 64, (8, 8))
    aiff = program.aiff()
    OUTSIDE[register](aiff)
    assert error_of(aiff, program.output).message.startswith(f"AIFF node 0: {register}: it ")


CHAINS = {
    "no last node": ({0: 0x18}, "AIFF node 1: its control descriptor, 8 words"),
    "no length": ({3: 0}, "its control descriptor is 0 blocks"),
    "a length without end": ({3: 0xFFFFFFFF}, "its control descriptor is 4294967295 blocks"),
    "another place": ({0: 0x18, 1: 0x1000}, "said to lie at 0x1000"),
    "repetitions": ({4: 0x1FFFF}, "COMPASS_AIFF_ASSUME=repeat"),
    "a word that nobody knows": ({6: 1}, "word 6 of its control descriptor is 0x1"),
}


@pytest.mark.parametrize("what", CHAINS)
def test_damaged_chains_are_refused(what):
    program = Pool(4, 4)
    chains = program.aiff().gen_descriptor()
    damage, message = CHAINS[what]
    for at, word in damage.items():
        chains[0][at] = word
    with pytest.raises(CompassError) as caught:
        starts(chains)(chains)
    assert message in caught.value.message
    assert not program.output.any()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_damaged_words_run_or_are_refused_but_touch_nothing_else(data):
    program = data.draw(st.sampled_from([Pool(4, 4), Convolution(2, 2, 32, (8, 8))]))
    chains = program.aiff().gen_descriptor()
    for _ in range(data.draw(st.integers(1, 3))):
        chain = chains[data.draw(st.integers(0, 2))]
        chain[data.draw(st.integers(0, chain.count_of_u32 - 1))] = data.draw(
            st.integers(0, 0xFFFFFFFF) | st.sampled_from([1 << n for n in range(32)])
        )
    try:
        starts(chains)(chains)
    except CompassError as error:
        assert "AIFF" in error.message


# -------------------------------------------------------------------------------------------------------------- tables


@pytest.mark.parametrize("name", programs())
def test_the_table_of_a_program_that_runs_refuses_nothing(name):
    program = programs()[name][0]()
    text = str(program.aiff())
    assert text.startswith("node 0 (X") and "refused" not in text
    aiff = program.aiff()
    aiff.wrb.mode_ctrl.region_ppen = 1
    line = next(line for line in str(aiff).splitlines() if "region_ppen" in line)
    assert "refused" in line


def test_inspect_shows_a_chain_of_control_descriptors(compassc, tmp_path):
    words = [word for d in Convolution(2, 2, 32, (8, 8)).aiff().gen_descriptor()[0] for word in d]
    for name in ("chain.bin", "chain"):
        np.array(words, np.uint32).tofile(tmp_path / name)
        shown = compassc("inspect", tmp_path / name)
        assert shown.status == 0 and "mtp[1].ctrl" in shown.out and "int8 times int8" in shown.out
    np.array(words[:20], np.uint32).tofile(tmp_path / "cut.bin")
    cut = compassc("inspect", tmp_path / "cut.bin")
    assert cut.status == 1 and "no control descriptor" in cut.err


def test_tables_show_places_in_arrays_and_strides_in_bytes():
    """The second region writes behind the first one's 64 channels; its rows are those of the whole array."""
    lines = str(Convolution(2, 3, 64, (64, 32)).aiff()).splitlines()
    (place,) = [line for line in lines if line.startswith("wrb.region1_oact_addr")]
    (stride,) = [line for line in lines if line.startswith("wrb.region1_oact_s_stride")]
    assert "array of int8 (2, 3, 96) + 64 bytes" in place
    assert stride.split()[3] == "36"
    assert stride.endswith(": 288")
