"""Jobs with AIFF descriptors under a driver that knows nothing but the interface: addresses in descriptors count from the
bases of its ASIDs, and buffers are its own."""

import numpy as np
import pytest

from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.dsl.aiff import probes
from compassc.dsl.descriptors import expand
from compassc.layers.declare import evaluate
from tests.aiff.programs import Convolution, Pool, Table
from tests.aiff.test_layers import built, convolution
from tests.aiff.test_model import some_table, starts


def passed(kernel, chains, folder, target):
    """The aipu.bin of a kernel, and its inputs in their order."""
    executor = BuildManager(target, output_dir=folder).build(kernel)
    executor.program_for(chains)
    call = expand(executor.name, executor.params, (chains,))
    params = [param for param in call.params if param["role"] != "descriptor"]
    inputs = [array for param, array in zip(params, call.args, strict=True) if param["role"] == "input"]
    return folder / "gbuilder" / "aipu.bin", inputs


@pytest.mark.parametrize("steps", [("run", "clear", "run"), ("base=0x300000000", "run", "run")])
def test_constants_and_tensors_of_descriptors(run, tmp_path, steps):
    """Weights lie in ASID 1. What runs again finds the driver's addresses again."""
    program = Convolution(5, 6, 288, (64, 64, 96, 80))
    chains = program.aiff().gen_descriptor()
    path, inputs = passed(starts(chains), chains, tmp_path, "X2_1204")
    done = run(path, "X2_1204", inputs, *steps)
    assert (done.lines, done.errors) == (["end 1 wrong 0"] * 2 + ["wrong 0"], "")
    np.testing.assert_array_equal(done.output(dtype=np.int8), program.expected().reshape(-1))


def test_two_units_of_x3(run, tmp_path):
    program = Table(*some_table(), "X3P_1304", 64)
    chains = program.aiff().gen_descriptor()
    path, inputs = passed(starts(chains, "X3P_1304"), chains, tmp_path, "X3P_1304")
    done = run(path, "X3P_1304", inputs, "run", "run")
    np.testing.assert_array_equal(done.output(dtype=np.int8), program.expected())


def test_words_that_a_kernel_sets_are_addresses_of_the_device(run, tmp_path):
    """Each run works on the next two rows of the input: the kernel moves the address on, which the driver keeps as its own."""
    program = Pool(6, 8)
    chains = program.aiff().gen_descriptor()
    at_param = chains[0].count_of_u32
    at_act = at_param + chains[1].count_of_u32
    source, step = at_act + 32, 2 * 8 * 32
    height = list(chains[0].descriptors[0]).index(program.aiff().ptp.act_h_ctrl.all_fields)
    chains[0].descriptors[0][height] = 2 | 1 << 16

    @S.prim_func
    def next_rows(d: S.ptr("uint32", "global")):
        if S.get_local_id() == 0:
            d[source] = d[source] + S.u32(step)
            S.aiff(d, d + at_param, d + at_act)

    path, inputs = passed(next_rows, chains, tmp_path, "X2_1204")
    for runs in (1, 2):
        done = run(path, "X2_1204", inputs, "base=0x300000000", *["run"] * runs)
        assert done.errors == ""
        found = done.output(dtype=np.uint8).reshape(program.output.shape)
        np.testing.assert_array_equal(found[0, 0], program.expected()[runs])


@pytest.mark.parametrize("target", ["X2_1204", "X2_1204MP3"])
def test_a_layer_on_the_aiff(run, tmp_path, target):
    g, made, data = convolution((1, 20, 16, 64))
    graph, found = built(g, made, tmp_path, target)
    assert [where.nodes for where in found.on_aiff] == [2]
    done = run(found.path, target, [data], "run", "clear", "run")
    (layer,) = graph.computing()
    np.testing.assert_array_equal(done.output(dtype=np.int8), evaluate(layer, [data])[0].reshape(-1))


def test_assumptions_are_those_of_the_environment(run, tmp_path, monkeypatch):
    probes.write("half-up", tmp_path / "probe", "X2_1204")
    path, inputs = tmp_path / "probe" / "gbuilder" / "aipu.bin", sorted((tmp_path / "probe").glob("input*.npy"))
    arrays = [np.load(file) for file in inputs]
    done = run(path, "X2_1204", arrays, "run")
    assert done.lines[0] == "end 4 wrong 0"
    assert "COMPASS_AIFF_ASSUME=half-up takes it on trust" in done.errors
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "clamp, Half-Up")
    done = run(path, "X2_1204", arrays, "run")
    assert "warning: the results of the AIFF rest on assumptions: half-up" in done.errors
    want = np.load(tmp_path / "probe" / "output-assumed.npy")
    np.testing.assert_array_equal(done.output(dtype=want.dtype), want.reshape(-1))
    monkeypatch.setenv("COMPASS_AIFF_ASSUME", "half")
    assert "there is no reading half" in run(path, "X2_1204", arrays, "run").errors
