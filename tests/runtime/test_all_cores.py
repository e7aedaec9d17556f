"""Kernels that ask for their group run on every core: built, in PySim, checked, profiled, in any order."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from compass_core import targets
from compass_core.errors import CompassError
from compass_runtime import Program
from compassc.driver.build import Request, run_build
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.pysim.checks import checking


@S.prim_func
def worker() -> S.i32:
    return S.get_group_id() * S.get_local_size() + S.get_local_id()


@S.prim_func
def shared_out(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    """y = x + number of the worker; rows of 8 go round among all TECs of all cores."""
    mine = worker()
    for i in range(mine * 8, n, S.get_num_groups() * S.get_local_size() * 8):
        S.vstore(S.vload(x + i) + mine, y + i)


@S.prim_func
def met(y: S.ptr("i32", "global")):
    """Each group adds up the numbers of its own TECs, in its core's shared memory."""
    sh = S.alloc_buffer((4,), "int32", "shared")
    sh[S.get_local_id()] = S.get_local_id() + 10 * S.get_group_id()
    S.barrier()
    if S.get_local_id() == 0:
        y[S.get_group_id()] = sh[0] + sh[1] + sh[2] + sh[3]


@S.prim_func
def alone(y: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        y[0] = y[0] + 1


N = 8 * 50


def expected(name):
    target = targets.load(name)
    x = np.arange(N, dtype="int32")
    return x, x + np.arange(N, dtype="int32") // 8 % (target.cores * target.tecs)


@pytest.mark.parametrize("name", ["X2_1204MP3", "X3P_1304MP2", "X3S_1304MP4", "X2_1204"])
def test_all_ways_of_running_agree(name, monkeypatch):
    x, wanted = expected(name)
    built = BuildManager(name).build(shared_out)
    runs = {
        "simulator": lambda y: built(x, y, N),
        "PySim": lambda y: shared_out(x, y, N),
        "checked": lambda y: built.check(x, y, N),
        "profile": lambda y: built.profile(x, y, N),
        "orders": lambda y: built.schedule(x, y, N, explore=3),
    }
    monkeypatch.setenv("COMPASS_TARGET", name)
    for how, run in runs.items():
        y = np.zeros(N, "int32")
        run(y)
        assert np.array_equal(y, wanted), how
    cores, tecs = targets.load(name).cores, targets.load(name).tecs
    assert len(built.program.content.subgraphs) == cores
    assert set(built.latest_profile.tecs) == set(range(cores * tecs))


def test_more_cores_take_fewer_cycles():
    cycles = []
    for name in ("X2_1204", "X2_1204MP3"):
        built, (x, _) = BuildManager(name).build(shared_out), expected(name)
        x = np.tile(x, 40)
        built.profile(x, np.zeros_like(x), len(x))
        cycles.append(built.latest_profile.cycles)
    assert cycles[1] < 0.5 * cycles[0]


@pytest.mark.parametrize("name", ["X2_1204MP3", "X3S_1304MP4"])
def test_barriers_and_shared_memory_are_a_groups_own(name, monkeypatch):
    cores = targets.load(name).cores
    y, z = np.zeros(cores, "int32"), np.zeros(cores, "int32")
    BuildManager(name).build(met)(y)
    monkeypatch.setenv("COMPASS_TARGET", name)
    met(z)
    assert y.tolist() == z.tolist() == [6 + 40 * group for group in range(cores)]


def test_a_kernel_that_does_not_ask_runs_on_one_core(monkeypatch):
    built, y, z = BuildManager("X2_1204MP3").build(alone), np.zeros(1, "int32"), np.zeros(1, "int32")
    built(y)
    monkeypatch.setenv("COMPASS_TARGET", "X2_1204MP3")
    alone(z)
    assert y[0] == z[0] == 1 and len(built.program.content.subgraphs) == 1


ALONE = """from compassc.dsl import script as S

@S.prim_func
def alone(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    y[S.get_local_id()] = x[S.get_local_id()]
"""


@pytest.mark.parametrize(
    ("target", "cores"),
    [("X2_1204MP3", "3 of 3"), ("X2_1204MP3", "1 of 3"), ("X2_1204", "")],
)
def test_what_is_said_of_cores(tmp_path, compassc, target, cores):
    """A build notes the cores that stay idle, `inspect` those that run a kernel."""
    (tmp_path / "kernel.py").write_text(KERNEL if cores == "3 of 3" else ALONE)
    done = compassc(*f"build kernel.py -t {target} --shape x=12 --shape y=12 -o k.bin".split())
    assert done.status == 0, done.err
    idle = cores == "1 of 3"
    assert ("runs on one of the 3 cores of X2_1204MP3" in done.err) == idle
    (params,) = tmp_path.rglob("*.params.json")
    assert re.findall(r"runs on +(.+) cores", compassc("inspect", str(params)).out) == ([cores] if cores else [])


KERNEL = """from compassc.dsl import script as S

@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    i = S.get_group_id() * 4 + S.get_local_id()
    y[i] = x[i] + S.get_num_groups()
"""


def test_the_stages_keep_the_groups(tmp_path, compassc):
    (tmp_path / "kernel.py").write_text(KERNEL)
    for command in (
        "parse kernel.py -o k.ir.txt",
        "lower k.ir.txt -o k.lowered.txt",
        "legalize k.lowered.txt -o k.legal.txt",
        "codegen k.legal.txt -o k.cl",
        "cc k.cl -o k.o",
        "gbuild k.o --shape x=12 --shape y=12 -o k.bin",
    ):
        done = compassc(*command.split(), *(["-t", "X2_1204MP3"] if command.startswith("parse") else []))
        assert done.status == 0, done.err
    program = Program.load(tmp_path / "k.bin")
    y = np.zeros(12, "int32")
    program.call([np.arange(12, dtype="int32"), y])
    assert y.tolist() == list(range(3, 15)) and len(program.content.subgraphs) == 3


def test_the_vendors_builder_is_not_asked_for_what_it_cannot(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPASS_VENDOR_TOOLS", str(Path(sys.executable).parent))  # ours, by the vendor's names
    (tmp_path / "kernel.py").write_text(KERNEL)
    request = Request(
        target="X2_1204MP3",
        kernel=tmp_path / "kernel.py",
        output=tmp_path / "b.bin",
        toolchain="vendor",
        shapes={"x": (12,), "y": (12,)},
    )
    with pytest.raises(CompassError, match="launches a kernel on one"):
        run_build(request)


# ------------------------------------------------------------------------------------------------------ races between groups


@S.prim_func
def all_write(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        y[0] = S.get_group_id() + x[0]


@S.prim_func
def one_reads(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() == 1:
        y[8 + S.get_group_id()] = y[8 + (S.get_group_id() + 1) % S.get_num_groups()] + 1


@S.prim_func
def transfers(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    t = S.alloc(16, "i32", scope="lsram")
    if S.get_local_id() == 2:
        S.dma_copy(t, x, 16)
        t[0] = 5 + S.get_group_id()
        S.dma_copy(y + 8 * S.get_group_id(), t, 16)


@S.prim_func
def one_is_not_atomic(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_group_id() == 0 and S.get_local_id() == 0:
        y[0] = 5
    if S.get_group_id() == 1:
        S.atomic_add(y, x[0])


@S.prim_func
def behind_a_barrier(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        y[S.get_group_id()] = x[0]
    S.barrier()
    if S.get_local_id() == 1:
        y[8 + S.get_group_id()] = y[0] + y[1]


@S.prim_func
def apart(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    """The same values, atomic operations, what nobody writes, and parts of their own."""
    mine = worker()
    y[40] = 7
    S.atomic_max(y + 41, mine)
    y[mine] = x[0] + y[60]
    y[20 + S.get_group_id()] = 1
    S.barrier()
    if S.get_local_id() == 3:
        y[20 + S.get_group_id()] = y[20 + S.get_group_id()] + y[40]


@pytest.mark.parametrize("target", ["X2_1204MP3", "X3P_1304MP2"])
@pytest.mark.parametrize("kernel", [all_write, one_reads, transfers, one_is_not_atomic, behind_a_barrier, apart])
def test_races_between_groups(monkeypatch, kernel, target):
    monkeypatch.setenv("COMPASS_TARGET", target)
    built, said = BuildManager(target).build(kernel), []
    for run in (lambda *a: built.check(*a, modes="race"), kernel):
        x, y = np.arange(1, 65, dtype="int32"), np.zeros(64, "int32")
        try:
            with checking("race"):
                run(x, y)
            said.append(None)
        except CompassError as error:
            words = re.fullmatch(r"data race: (group \d) (\w+) .*, which (group \d) (\w+), and .*", error.message)
            said.append((error.span.line, *words.groups()))
            assert error.notes and "part of its own" in error.help
    assert said[0] == said[1]
    assert (said[0] is None) == (kernel is apart)
