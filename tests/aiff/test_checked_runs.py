"""Checked runs see what the AIFF reads and writes: bounds, races, use before the event."""

import numpy as np
import pytest

from compass_core.errors import CompassError, flat
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from tests.aiff.programs import Pool


def findings(program, kernel):
    """The codes and lines of what a checked run finds, lines counted from the kernel's head."""
    chains = program.aiff().gen_descriptor()
    executor = BuildManager(check="all").build(kernel)
    try:
        executor(chains, program.output)
    except CompassError as errors:
        return {(e.code, e.span.line - kernel.span.line) for e in flat(errors)}
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


def test_a_run_without_mistakes_is_clean():
    program = Pool(4, 4)
    assert findings(program, waits) == set()
    assert program.output.reshape(-1)[0] == np.uint8(program.expected()[0, 0, 0] + 1)


@pytest.mark.parametrize(("kernel", "code"), [(reads_before_the_event, "race"), (all_write, "race")])
def test_what_meets_the_unit_is_found(kernel, code):
    assert code in {found.removeprefix("check-") for found, _ in findings(Pool(4, 4), kernel)}


def test_an_event_that_is_not_allocated_is_found():
    assert findings(Pool(4, 4), event_of_nobody)


def test_what_leaves_its_buffer_is_found():
    """The stride from row to row of the output is twice as long as it should be."""
    program = Pool(4, 4)
    make = program.aiff

    def wider():
        aiff = make()
        aiff.wrb.region1_oact_l_stride = 4096
        return aiff

    program.aiff = wider
    assert "bounds" in {found.removeprefix("check-") for found, _ in findings(program, waits)}


def test_profiles_show_what_the_unit_moves():
    """Sixteen pixels of 32 bytes in, four out, while the event is on its way."""
    program = Pool(4, 4)
    executor = BuildManager().build(waits)
    executor.profile(program.aiff().gen_descriptor(), program.output)
    (moved,) = [span for span in executor.latest_profile.timeline.spans if span.kind == "transfer"]
    assert (moved.detail, moved.channel) == ((16 + 4) * 32, 0)
