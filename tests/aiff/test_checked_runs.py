"""Checked runs see what the AIFF reads and writes: bounds, races, use before the event."""

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.pysim.checks import checking
from tests.aiff.programs import Pool

HOWS = ("checked run", "PySim")


def findings(program, kernel, how="checked run"):
    """The codes and lines of what a checked run finds, lines counted from the kernel's head."""
    chains = program.aiff().gen_descriptor()
    try:
        if how == "PySim":
            with checking("race", "uninit"):
                kernel(chains, program.output)
        else:
            BuildManager(check="all").build(kernel)(chains, program.output)
    except CompassError as errors:
        return {(e.code.removeprefix("check-"), e.span.line - kernel.span.line) for e in flat(errors)}
    return set()


SAMPLE = Pool(4, 4).aiff().gen_descriptor()
PARAM = SAMPLE[0].count_of_u32
ACT = PARAM + SAMPLE[1].count_of_u32


@S.prim_func
def waits(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        e = S.alloc_events(1)
        S.async_aiff(d, d + PARAM, d + ACT, e)
        S.wait_events(e)
        S.free_events(e)
        out[0] = out[0] + S.u8(1)


@S.prim_func
def reads_before_the_event(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        e = S.alloc_events(1)
        S.async_aiff(d, d + PARAM, d + ACT, e)
        out[0] = out[0] + S.u8(1)
        S.wait_events(e)
        S.free_events(e)


@S.prim_func
def all_write(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        S.aiff(d, d + PARAM, d + ACT)
    if S.get_local_id() == 1:
        out[0] = S.u8(1)


@S.prim_func
def event_of_nobody(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        e = S.alloc_events(1)
        S.free_events(e)
        S.async_aiff(d, d + PARAM, d + ACT, e)
        S.wait_events(e)


@S.prim_func
def two_starts(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        e0, e1 = S.alloc_events(2)
        S.async_aiff(d, d + PARAM, d + ACT, e0)
        S.async_aiff(d, d + PARAM, d + ACT, e1)
        S.wait_events(e0, e1)
        S.free_events(e0, e1)
        out[0] = S.u8(1)


@S.prim_func
def starts_on_every_tec(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    S.aiff(d, d + PARAM, d + ACT)
    S.barrier()
    if S.get_local_id() == 0:
        out[0] = S.u8(1)


@S.prim_func
def one_after_another(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global")):
    if S.get_local_id() == 0:
        S.aiff(d, d + PARAM, d + ACT)
    S.barrier()
    if S.get_local_id() == 1:
        out[0] = out[0] + S.u8(1)


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kernel", [waits, one_after_another], ids=lambda k: k.__name__)
def test_a_run_without_mistakes_is_clean(kernel, how):
    program = Pool(4, 4)
    assert findings(program, kernel, how) == set()
    assert program.output.reshape(-1)[0] == np.uint8(program.expected()[0, 0, 0] + 1)


MEETINGS = {reads_before_the_event: 5, all_write: 5, two_starts: None}


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("kernel", MEETINGS, ids=lambda k: k.__name__)
def test_what_meets_the_unit_is_found(kernel, how):
    found = findings(Pool(4, 4), kernel, how)
    assert "race" in {code for code, _ in found}
    assert MEETINGS[kernel] is None or ("race", MEETINGS[kernel]) in found


@pytest.mark.parametrize("how", HOWS)
def test_starts_of_several_tecs_that_write_the_same_do_no_harm(how):
    """The same bits, written again: as of stores of TECs."""
    assert findings(Pool(4, 4), starts_on_every_tec, how) == set()


def test_what_nobody_wrote_is_found_in_what_the_unit_reads():
    """The kernel gives the unit memory of its own, before and after writing it."""
    word = ACT + 32

    @S.prim_func
    def own_input(d: S.ptr("uint32", "global"), out: S.ptr("uint8", "global"), fills: S.i32):
        own = S.alloc(16 * 32, "uint8", scope="shared")
        if S.get_local_id() == 0:
            if fills:
                S.dma_memset(own, 3, 16 * 32)
            d[word] = own
            S.aiff(d, d + PARAM, d + ACT)

    program = Pool(4, 4)
    with checking("uninit"):
        own_input(program.aiff().gen_descriptor(), program.output, 1)
        assert (program.output == 3).all()
        with pytest.raises(CompassError, match="ever written"):
            own_input(program.aiff().gen_descriptor(), program.output, 0)


def test_an_event_that_is_not_allocated_is_found():
    assert findings(Pool(4, 4), event_of_nobody)


@pytest.mark.parametrize(("how", "code"), [("checked run", "bounds"), ("PySim", "kernel-unsupported")])
def test_what_leaves_its_buffer_is_found(how, code):
    """The stride from row to row of the output is twice as long as it should be."""
    program = Pool(4, 4)
    make = program.aiff

    def wider():
        aiff = make()
        aiff.wrb.region1_oact_l_stride = 4096
        return aiff

    program.aiff = wider
    assert code in {found for found, _ in findings(program, waits, how)}


def test_profiles_show_what_the_unit_moves():
    """Sixteen pixels of 32 bytes in, four out, while the event is on its way."""
    program = Pool(4, 4)
    executor = BuildManager().build(waits)
    executor.profile(program.aiff().gen_descriptor(), program.output)
    (moved,) = [span for span in executor.latest_profile.timeline.spans if span.kind == "transfer"]
    assert (moved.detail, moved.channel) == ((16 + 4) * 32, 0)
