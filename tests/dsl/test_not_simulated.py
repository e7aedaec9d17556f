"""What neither the simulator nor PySim has a model of: inline assembly, and most of what the AIFF can be asked for. Kernels
with it are built; both ways of running them end where it is reached, with the same words."""

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import Aiff, BuildManager
from compassc.dsl import script as S
from tests.choosing import some

CODE = "kernel-unsupported"


def chains():
    aiff = Aiff()
    aiff.mtp[0].ctrl.op_mode = 3
    aiff.wrb.region0_oact_addr = np.zeros(64, np.int8)
    return aiff.gen_descriptor()


CTRL, PARAM, _ACT = (chain.count_of_u32 for chain in chains())


@S.prim_func
def writes_descriptors(d: S.ptr("uint32", "global"), out: S.ptr("uint32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        out[0] = d[9]
        d[9] = n
        moved = d + 4
        moved[6] = S.u32(n + 1)
        out[1] = d[9]
        out[2] = d[10]
        out[3] = d[3]
    if n < 0:
        S.aiff(d, d + CTRL, d + CTRL + PARAM)


def runs_of(kernel):
    return {"simulator": BuildManager().build(kernel), "PySim": kernel}


def test_a_kernel_sets_words_of_descriptors_for_its_run():
    given = chains()
    before = [list(map(str, descriptor)) for chain in given for descriptor in chain]
    own, words = before[0], CTRL // 8
    for run in [*runs_of(writes_descriptors).values()] * 2:
        run(given, out := np.zeros(4, np.uint32), 7)
        assert out.tolist() == [int(own[9]), 7, 8, words]
    assert [list(map(str, descriptor)) for chain in given for descriptor in chain] == before


@S.prim_func
def starts_later(d: S.ptr("int32", "global"), out: S.ptr("int32", "global")):
    e = S.alloc_events(1)
    S.async_aiff(d, d + CTRL, d + CTRL + PARAM, e)
    S.wait_events(e)
    S.free_events(e)
    out[0] = 1


@S.prim_func
def assembles(a: S.ptr("int32", "global"), out: S.ptr("int32", "global"), n: S.i32):
    x = a[0]
    y = a[1]
    v = S.vload(a)
    m = S.tail_mask(n, 8)
    if n > 3:
        S.asm(
            '{add %[y], %[x], %[i];\n (mov) "%[y]"; // )\n}',
            outputs={"y": ("=&r", y), "v": ("+&t", v)},
            inputs={"x": ("r", x), "i": ("rt", n), "m": ("p", m)},
            clobbers=("t0", "memory"),
            qualifiers="volatile",
        )
        S.asm("nop;", qualifiers="inline")
    S.asm("nop;") if False else None
    out[0] = y + n


ASSEMBLY = r"""    __asm__ volatile (
      "{add %[y], %[x], %[i];\n (mov) \"%[y]\"; // )\n}"
      : [y] "=&r"(y), [v] "+&t"(v)
      : [x] "r"(x), [i] "rt"(n), [m] "p"(m)
      : "t0", "memory"
    );
    __asm__ inline (
      "nop;"
      : 
      : 
      : 
    );
"""


def test_assembly_is_in_the_text_as_it_is_given():
    assert ASSEMBLY in BuildManager().build(assembles).c_code


@pytest.mark.parametrize("how", ["simulator", "PySim"])
def test_a_run_that_does_not_come_to_it_goes_well(how):
    a = np.arange(5, 13, dtype=np.int32)
    runs_of(assembles)[how](a, out := np.zeros(1, np.int32), 3)
    assert out[0] == 9


WORDS = {
    "AIFF node 0: mtp.twin_ctrl.twin_output = 0 is not modelled": (
        writes_descriptors,
        lambda: (chains(), np.zeros(4, np.uint32), -1),
        16,
    ),
    "AIFF node 0: mtp.twin_ctrl.twin_output = 0 is not modelled ": (
        starts_later,
        lambda: (chains(), np.zeros(1, np.int32)),
        4,
    ),
    "the kernel runs inline assembly of the NPU, which is not simulated": (
        assembles,
        lambda: (np.zeros(8, np.int32), np.zeros(1, np.int32), 4),
        7,
    ),
}


@pytest.mark.parametrize("what", WORDS)
def test_both_ways_of_running_say_the_same(what):
    kernel, arguments, line = WORDS[what]
    for run in some(runs_of(kernel).values()):
        with pytest.raises(CompassError) as caught:
            run(*arguments())
        error = caught.value
        assert (error.message, error.code) == (what.strip(), CODE)
        assert error.span.file == __file__ and error.span.line - kernel.span.line in range(line - 6, line + 8)


@S.prim_func
def starts_inside(d: S.ptr("uint32", "global"), out: S.ptr("uint32", "global"), n: S.i32):
    S.aiff(d + n, d, d)
    out[0] = 1


@pytest.mark.parametrize(("n", "message"), [(8, "no descriptor chain begins at word 8"), (9999, "behind the last")])
def test_pysim_checks_the_descriptors_first(n, message):
    with pytest.raises(CompassError, match=message):
        starts_inside(chains(), np.zeros(1, np.uint32), n)


@pytest.mark.parametrize(
    "wrong",
    [
        {"clobbers": "memory"},
        {"clobbers": (1,)},
        {"qualifiers": "fast"},
        {"outputs": {"o": ("=&r", 5)}},
        {"inputs": {"i": "r"}},
    ],
)
def test_what_is_no_assembly_is_refused(wrong):
    @S.prim_func
    def k(out: S.ptr("int32", "global")):
        S.asm("nop;", **wrong)
        out[0] = 1

    with pytest.raises(CompassError, match=r"S\.asm: "):
        BuildManager().build(k)


def test_targets_without_a_unit_are_asserted():
    for make in (Aiff, BuildManager):
        with pytest.raises(AssertionError, match="no generation X1"):
            make("X1_1204")
    with pytest.raises(AssertionError, match="no unit 'sys'"):
        Aiff("X3P_1304").sys  # noqa: B018
