"""The model of the AIFF: what open programs prove, in PySim and on the simulator, against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from tests.aiff.programs import Convolution, Pool, Table

HOWS = ("PySim", "simulator")


def starts(chains, target="X2_1204"):
    """A kernel whose first TEC starts the chains, control, parameters and activations."""
    at_param, at_act = chains[0].count_of_u32, chains[0].count_of_u32 + chains[1].count_of_u32

    @S.prim_func
    def starts_aiff(d: S.ptr("uint32", "global")):
        if S.get_local_id() == 0:
            S.aiff(d, d + at_param, d + at_act)

    return starts_aiff


def run(program, how, target="X2_1204"):
    program.output[...] = 99
    chains = program.aiff().gen_descriptor()
    kernel = starts(chains)
    (kernel if how == "PySim" else BuildManager(target).build(kernel))(chains)


POOLS = [
    Pool(9, 7, 64),
    Pool(149, 149, kernel=(1, 1), row=150),
    Pool(150, 150, tile_rows=50),
    Pool(12, 10, 48, dtype="uint16", nhwc=True),
    Pool(8, 9, kernel=(3, 2), stride=(1, 3)),
]


@pytest.mark.parametrize("program", POOLS, ids=lambda p: f"{p.height}x{p.width}-{p.dtype}")
@pytest.mark.parametrize("how", HOWS)
def test_pooling(program, how):
    run(program, how)
    np.testing.assert_array_equal(program.result(), program.expected())


@pytest.mark.parametrize("how", HOWS)
def test_two_nodes_of_convolutions_share_an_image(how):
    program = Convolution(5, 6, 288, (64, 64, 96, 80))
    assert not (program.sums() * program.FACTOR % (1 << program.SHIFT) == 1 << program.SHIFT - 1).any()
    run(program, how)
    np.testing.assert_array_equal(program.output, program.expected())


def some_table():
    rng = np.random.default_rng(3)
    return rng.integers(0, 256, 8192).astype(np.uint8), rng.integers(-128, 128, 257).astype(np.int16)


@pytest.mark.parametrize("how", HOWS)
def test_a_table(how):
    program = Table(*some_table(), "X2_1204", 64)
    run(program, how)
    np.testing.assert_array_equal(program.output, program.expected())


@pytest.mark.parametrize("how", HOWS)
def test_two_units_of_x3_run_two_chains(how):
    program = Table(*some_table(), "X3P_1304", 32)
    first, second = program.aiff(), program.aiff()
    program.add_to(second, 4096)
    chains = first.gen_descriptor() + second.gen_descriptor()
    sizes = [chain.count_of_u32 for chain in chains]
    param, act, other = sizes[0], sizes[0] + sizes[1], sum(sizes[:3])

    @S.prim_func
    def starts_both(d: S.ptr("uint32", "global"), done: S.ptr("int32", "global")):
        if S.get_local_id() == 0:
            e0, e1 = S.alloc_events(2)
            S.async_aiff(d, d + param, d + act, e0)
            S.async_aiff(d + other, d + (other + param), d + (other + act), e1)
            S.wait_events(e0, e1)
            S.free_events(e0, e1)
            done[0] = 1

    program.output[...] = 99
    done = np.zeros(1, np.int32)
    (starts_both if how == "PySim" else BuildManager("X3P_1304").build(starts_both))(chains, done)
    np.testing.assert_array_equal(program.output, program.expected())
    assert done[0] == 1


@pytest.mark.parametrize("how", HOWS)
def test_words_that_a_kernel_sets_count(how):
    """Only the second half of the image: the kernel sets address and height."""
    program = Pool(8, 6, dtype="uint16")
    chains = program.aiff().gen_descriptor()
    words = list(chains[0].descriptors[0])
    height = words.index(program.aiff().ptp.act_h_ctrl.all_fields)
    at_param, at_act = chains[0].count_of_u32, chains[0].count_of_u32 + chains[1].count_of_u32
    value = 4 | 2 << 16

    @S.prim_func
    def halves(d: S.ptr("uint32", "global")):
        if S.get_local_id() == 0:
            d[height] = S.u32(value)
            S.aiff(d, d + at_param, d + at_act)

    (halves if how == "PySim" else BuildManager().build(halves))(chains)
    np.testing.assert_array_equal(program.result()[:2], program.expected()[:2])
    assert not program.result()[2:].any()


@pytest.mark.parametrize("how", HOWS)
def test_nodes_run_one_after_another(how):
    """Four pixels to two to one."""
    first = Pool(4, 4)
    second = Pool(2, 2)
    second.input = first.output
    aiff = first.aiff()
    aiff.reg_cfgs += second.aiff().reg_cfgs
    chains = aiff.gen_descriptor()
    (starts(chains) if how == "PySim" else BuildManager().build(starts(chains)))(chains)
    np.testing.assert_array_equal(second.result()[0, 0], first.image.max(axis=(0, 1)))


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_pooling_is_right(data):
    kernel, stride = (data.draw(st.tuples(st.integers(1, 5), st.integers(1, 5))) for _ in range(2))
    height, width = data.draw(st.integers(kernel[0], 9)), data.draw(st.integers(kernel[1], 9))
    dtype = data.draw(st.sampled_from(["uint8", "uint16"]))
    program = Pool(
        height, width, 64, kernel, stride, dtype, width + data.draw(st.integers(0, 2)), data.draw(st.booleans())
    )
    run(program, "PySim")
    np.testing.assert_array_equal(program.result(), program.expected())


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 9), st.lists(st.integers(1, 9).map(lambda n: 8 * n), min_size=2, max_size=2), st.integers(0, 99))
def test_any_convolution_is_right(groups, outputs, seed):
    program = Convolution(2, 3, 32 * groups, tuple(outputs), seed)
    product = program.sums() * program.FACTOR
    ties = (product % (1 << program.SHIFT) == 1 << program.SHIFT - 1).any()
    scaled = product + (1 << program.SHIFT - 1) >> program.SHIFT
    if ties or abs(scaled).max() > 127:
        with pytest.raises(CompassError, match="not modelled"):
            run(program, "PySim")
    else:
        run(program, "PySim")
        np.testing.assert_array_equal(program.output, program.expected())
