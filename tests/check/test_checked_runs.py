"""Checked runs from the command line and from Python: status, output, what stays as it was."""

import json
import mmap
from pathlib import Path

import numpy as np
import pytest
from check_data import ints, zeros

from compass_core.errors import CompassError, ErrorGroup, UsageError, flat
from compass_runtime.checks import Modes, area
from compass_runtime.checks.build import checked_programs
from compass_runtime.checks.diagnostics import Diagnostics
from compass_runtime.cli import main
from compass_sim import memory_map
from compassc.dsl import BuildManager
from compassc.dsl import script as S


@S.prim_func
def mirror(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32, meet: S.i32):
    sh = S.alloc_buffer((32,), "int32", "shared")
    tid = S.get_local_id()
    for i in range(tid, n, S.get_local_size()):
        sh[i] = a[i] + 1
    if meet > 0:
        S.barrier()
    for i in range(tid, n, S.get_local_size()):
        b[i] = sh[n - 1 - i]


@S.prim_func
def uses_constant(a: S.ptr("i32", "global"), w: S.ptr("i16", "global.1"), b: S.ptr("i32", "global")):
    tid = S.get_local_id()
    for i in range(tid, 20, 4):
        b[i] = a[i] + S.i32(w[i])


@S.prim_func
def fills(p: S.ptr("i32", "lsram"), n: S.i32):
    for i in range(n + 1):
        p[i] = 1


@S.prim_func
def breaks_its_stack(b: S.ptr("i32", "global")):
    buf = S.alloc(16, "int32", "lsram")
    fills(buf, 16)
    S.dma_copy(b, buf, 16)


@S.prim_func
def same_work(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    for i in range(4):
        S.vstore(S.vload(a + i * 8) * 3, b + i * 8)
    for i in range(4):
        S.vstore(S.vload(b + i * 8) + 1, b + i * 8 + 32)


@S.prim_func
def says_hello(b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        b[0] = 7
        S.printf("hello %d\n", b[0])


@S.prim_func
def unset(b: S.ptr("i32", "global")):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    S.vstore(S.vload(buf), b)


@S.prim_func
def ends_at_null(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    b[40] = 1
    b[0] = a[0]


@S.prim_func
def some_lanes(a: S.ptr("fp32", "global"), b: S.ptr("fp32", "global")):
    buf = S.alloc_buffer((8,), "float32", "lsram")
    for i in range(5):
        buf[i] = a[i]
    mask = S.tail_mask(5, 8)
    x = S.vload(buf)
    y = S.exp(S.vsel(x, x * 2.0, x > 1.0)) + S.cast(S.cast(x, "int32") << 1, "fp32")
    S.vstore(S.vcompt(y + S.rsqrt(x), mask), b)
    S.vstore(S.cast(S.cast(y, "fp16"), "fp32"), b + 8, mask)
    if S.vany(S.vand(x > 3.0, mask)):
        b[16] = 1.0


def codes(error: CompassError) -> list[str]:
    return [e.code for e in flat(error)]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory):
    """`mirror` as an executor; its aipu.bin stays."""
    return BuildManager(output_dir=tmp_path_factory.mktemp("mirror")).build(mirror)


def run(capfd, *words: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main([str(word) for word in words])
    out, err = capfd.readouterr()
    return caught.value.code, out, err


def test_without_mistakes_the_run_goes_on(built, tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", ints(32))
    status, out, err = run(capfd, built.path, "--inputs", "a.npy", "--set", "n=32", "--set", "meet=1", "--check", "all")
    assert status == 0 and err.startswith("checked: no mistake found (bounds, race, ") and err.count("\n") == 1
    assert "output0.npy" in out
    assert np.array_equal(np.load("output0.npy"), ints(32)[::-1] + 1)


def test_mistakes_are_errors_and_nothing_is_written(built, tmp_path: Path, capfd, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("a.npy", ints(32))
    words = (built.path, "--inputs", "a.npy", "--set", "n=32", "--set", "meet=0", "--check", "race,bounds")
    status, out, err = run(capfd, *words, "--error-format", "json")
    report = json.loads(err)
    assert (status, out, report["code"]) == (1, "", "check-race") and not Path("output0.npy").exists()
    assert report["file"] == __file__ and "S.barrier" in report["help"]
    lines = Path(__file__).read_text().splitlines()
    other = next(note for note in report["notes"] if note["line"])
    assert {lines[report["line"] - 1].strip(), lines[other["line"] - 1].strip()} == {
        "sh[i] = a[i] + 1",
        "b[i] = sh[n - 1 - i]",
    }


def test_the_same_run_finds_the_same(built) -> None:
    found = []
    for _ in range(3):
        with pytest.raises(CompassError) as caught:
            built.check(ints(40), zeros(40), 40, 0)
        found.append([(e.code, str(e), [str(n) for n in e.notes]) for e in flat(caught.value)])
    assert found[0] == found[1] == found[2]
    assert {code for code, _, _ in found[0]} == {"check-bounds", "check-race"}


def test_modes_select(built) -> None:
    with pytest.raises(CompassError) as caught:
        built.check(ints(40), zeros(40), 40, 1, modes="bounds")
    assert set(codes(caught.value)) == {"check-bounds"}
    b = zeros(40)
    assert built.check(ints(40), b, 40, 1, modes="dma,align") == []
    with pytest.raises(UsageError, match="no check 'bound'"):
        built.check(ints(40), b, 40, 1, modes="bound")
    with pytest.raises(UsageError):
        BuildManager(check="")


def test_outputs_change_only_when_nothing_is_wrong(built) -> None:
    b = zeros(32)
    with pytest.raises(CompassError):
        built.check(ints(32), b, 32, 0)
    assert not b.any()
    assert built.check(ints(32), b, 32, 1) == []
    assert np.array_equal(b, ints(32)[::-1] + 1)


def test_a_build_manager_can_check_every_call() -> None:
    executor = BuildManager(check="race").build(mirror)
    b = zeros(32)
    executor(ints(32), b, 32, 1)
    assert b[0] == 32
    with pytest.raises(CompassError, match="with no barrier between"):
        executor(ints(32), b, 32, 0)


@pytest.mark.parametrize("target", ["X2_1204MP3", "X3P_1304", "X3P_1304MP2"])
def test_other_targets(target: str) -> None:
    executor = BuildManager(target).build(mirror)
    b = zeros(32)
    assert executor.check(ints(32), b, 32, 1) == [] and b[0] == 32
    with pytest.raises(CompassError) as caught:
        executor.check(ints(32), b, 32, 0, modes="race,bounds")
    assert codes(caught.value) == ["check-race"]


def test_tecs_that_write_the_same_do_not_race() -> None:
    b = zeros(64)
    assert BuildManager().build(same_work).check(ints(32), b) == []
    assert np.array_equal(b[:32] + 1, b[32:])


def test_unset_lanes_that_nothing_depends_on_are_fine() -> None:
    executor = BuildManager().build(some_lanes)
    a, b, plain = np.arange(1, 9, dtype=np.float32), np.zeros(24, np.float32), np.zeros(24, np.float32)
    assert executor.check(a, b) == []
    executor(a, plain)
    assert np.array_equal(b, plain) and b[16] == 1


def test_values_of_one_job_are_not_those_of_the_next() -> None:
    executor, work = BuildManager().build(unset), BuildManager().build(same_work)
    for _ in range(2):
        with pytest.raises(CompassError) as caught:
            executor.check(zeros(64), modes="uninit")
        assert set(codes(caught.value)) == {"check-uninit"}
        assert work.check(ints(32), zeros(64)) == []


def test_findings_outlive_a_fault() -> None:
    executor = BuildManager().build(ends_at_null)
    with pytest.raises(ErrorGroup) as caught:
        executor.check(None, zeros(40))
    assert codes(caught.value).count("kernel-segv") == 1
    assert any("'b[40]', which is out of bounds" in e.message for e in flat(caught.value))
    b = zeros(64)
    assert BuildManager().build(same_work).check(ints(32), b) == [] and b[1] == 3


def test_what_a_kernel_prints_is_printed_once(capsys) -> None:
    BuildManager().build(says_hello).check(zeros(4))
    assert capsys.readouterr().out == "hello 7\n"


def test_constants_are_buffers_of_their_own() -> None:
    executor = BuildManager().build(uses_constant)
    w, b = np.arange(20, dtype=np.int16), zeros(20)
    assert executor.check(ints(20), w, b) == [] and b[19] == 38
    with pytest.raises(CompassError, match=r"TEC 2 reads 'w\[18\]'") as caught:
        executor.check(ints(20), w[:18].copy(), b)
    assert "the constant 'w' has 18 elements of int16" in [n.message for n in caught.value.notes]


def test_no_more_is_run_after_a_write_that_is_out_of_bounds() -> None:
    with pytest.raises(CompassError, match=r"'buf\[16\]'") as caught:
        BuildManager().build(breaks_its_stack).check(zeros(16))
    assert codes(caught.value) == ["check-bounds"]


def test_a_damaged_report_is_no_internal_error(built) -> None:
    program = checked_programs(built.program, Modes.RACE)[0]
    memory = mmap.mmap(-1, memory_map.CODE_HIGH)
    random = np.random.default_rng(0)
    for _ in range(20):
        memory[memory_map.ENGINE_LOW : memory_map.ENGINE_LOW + 0x60000] = random.bytes(0x60000)
        for at in range(memory_map.ENGINE_LOW + 16 + 12 * 16384, memory_map.ENGINE_LOW + 0x40000, 240):
            memory[at : at + 4] = int(random.integers(1, 14)).to_bytes(4, "little")
        found, dropped = area.findings(memory)
        assert len(found) > 100 and all(str(e) for e in Diagnostics(program, []).errors(found, dropped))


def test_the_bounds_of_a_view_are_those_of_its_elements() -> None:
    executor = BuildManager().build(same_work)
    base, b = ints(8, 8), zeros(64)
    assert executor.check(base[:, :4], b) == [] and b[4] == 3 * base[1, 0]
    with pytest.raises(CompassError, match=r"'a\[24:32\]'") as caught:
        executor.check(base[:, :3], b)
    assert codes(caught.value) == ["check-bounds"]
