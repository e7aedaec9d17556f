"""libaipu_simulator_*.so under a driver in C that knows nothing but the interface (tests/runtime/driver)."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from runtime_kernels import ADD, pointer, scalar

from compass_core import targets
from compass_core.hostcc.clang import find_clang
from compass_runtime import clibrary, sim_plugin
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.writer import GraphWriter

ALL = ["X2_1204", "X2_1204MP3", "X3P_1304", "X3P_1304MP4", "X3S_1304MP2"]
FAMILIES = ["X2_1204", "X3P_1304"]


@pytest.fixture
def add(build):
    """b = a + 1 over 1000 elements."""
    ends = pointer("a", "input", shape=(1000,)), pointer("b", "output", shape=(1000,)), scalar("n", value=1000)
    return lambda target: build(ADD, *ends, target=target)


A = np.arange(1000, dtype=np.int32)


@pytest.mark.parametrize("target", ALL)
def test_registers_say_what_the_device_has(run, add, target):
    done = run(add(target), target, [], "registers")
    wanted = targets.load(target)
    enabled = f"enabled {wanted.isa == 6:d}"
    has = f"partitions 1 pools 2 present 1 cores {wanted.cores} tecs {wanted.tecs} {enabled} version compassc "
    assert done.lines[0].startswith(has) and done.lines[0].endswith(wanted.version)
    assert done.errors == "compass simulator: error: the command 0x4 cannot be done now\n"


def test_null_pointers_are_survived(run, add):
    done = run(add("X2_1204"), "X2_1204", [A], "null", "run")
    assert done.lines[0] == "end 1 wrong 0" and "has no read, write or get_info" in done.errors


@pytest.mark.parametrize("target", FAMILIES)
def test_children_of_the_driver_have_a_worker_of_their_own(run, add, target):
    done = run(add(target), target, [A], "fork")
    assert done.lines == [done.lines[0]] * 5 + ["wrong 0"] and done.lines[0].startswith("end 1 ")
    np.testing.assert_array_equal(done.output(), A + 1)


def test_all_clusters_of_an_x3_are_enabled(run, add):
    done = run(add("X3P_1304MP4"), "X3P_1304MP4", [A], "clusters=3", "registers", "run")
    assert "cores 4 tecs 4 enabled 1" in done.lines[0] and done.lines[1] == "end 1 grid 7 wrong 0"
    np.testing.assert_array_equal(done.output(), A + 1)


@pytest.mark.parametrize("target", ALL)
def test_a_job_and_the_same_again(run, add, target):
    done = run(add(target), target, [A], "run", "clear", "run")
    grid = " grid 7" if targets.load(target).isa == 6 else ""
    assert done.lines == [f"end 1{grid} wrong 0"] * 2 + ["wrong 0"]
    np.testing.assert_array_equal(done.output(), A + 1)
    assert done.errors == ""
    assert not (done.folder / "compass_simulator.log").exists()


@pytest.mark.parametrize("target", [t for t in ALL if targets.load(t).isa == 5])
def test_chains_that_the_driver_has_freed_are_not_asked_for(run, add, target):
    done = run(add(target), target, [A], "release")
    assert done.lines == ["unknown 0", "wrong 0"]
    np.testing.assert_array_equal(done.output(), A + 1)


@pytest.mark.parametrize("target", ALL)
def test_constants_lie_in_an_asid_of_their_own(run, build, target):
    text = """
    __kernel void k(__global int* a, __constant int* w, __global int* sum, int s, __constant int* v) {
      for (int i = get_local_id(0); i < 100; i += get_local_size(0)) sum[i] = a[i] * w[i & 3] + v[i & 7] * s;
    }
    """
    w, v = np.array([3, 1, 4, 1], np.int32), np.arange(8, dtype=np.int32) * 10
    path = build(
        text,
        pointer("a", "input", shape=(100,)),
        pointer("w", "const", shape=(4,)),
        pointer("sum", "output", shape=(100,)),
        scalar("s", value=4096),
        pointer("v", "const", 1, shape=(8,)),
        target=target,
        consts={"w": w.tobytes(), "v": v.tobytes()},
    )
    i = np.arange(100)
    done = run(path, target, [A[:100]], "run")
    np.testing.assert_array_equal(done.output(), A[:100] * w[i & 3] + v[i & 7] * 4096)


@pytest.mark.parametrize("base", ["0x20000000", "0x70000000", "0x300000000"])
def test_asid_0_begins_where_the_driver_says(run, add, base):
    done = run(add("X2_1204"), "X2_1204", [A], f"base={base}", "run")
    assert done.lines[0] == "end 1 wrong 0"
    np.testing.assert_array_equal(done.output(), A + 1)


@pytest.mark.parametrize("target", ALL)
def test_a_graph_of_several_launches(run, tmp_path, target):
    graph, shape = GraphWriter(), (2, 30)
    x = graph.input("x", shape, "float32")
    y = graph.layer("Activation", [x], shape, "float32", method="RELU")
    z = graph.layer("Eltwise", [x, y], shape, "float32", method="ADD", with_activation="NONE")
    top = graph.layer("Softmax", [z], shape, "float32", axis=1)
    text = graph.write(tmp_path, [top])
    path = build_model(
        text, tmp_path / "weight.bin", tmp_path / "aipu.bin", target, GraphOptions(work_dir=tmp_path / "kernels")
    ).path
    a = np.linspace(-3, 3, 60, dtype=np.float32).reshape(shape)
    found = run(path, target, [a], "run").output(dtype=np.float32).reshape(shape)
    e = np.exp(a + np.maximum(a, 0))
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("target", FAMILIES)
def test_what_kernels_print_goes_to_the_debugger_or_the_console(run, build, target):
    text = """
    __kernel void k(__global int* a, __global int* b) {
      if (get_local_id(0) == 2) printf("a is %d\\n", a[0]);
    }
    """
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,))
    path = build(text, *ends, target=target, uses_printf=True)
    done = run(path, target, [A[5:6]], "run", "printer", "run")
    assert [line for line in done.lines if "a is" in line] == ["a is 5", "printed a is 5"]


FAULT = """
__kernel void k(__global int* a, __global int* b) {
  if (a[0] == 1) b[-(1 << 29)] = 1;
  b[0] = a[0] + 1;
}
"""


@pytest.mark.parametrize("target", FAMILIES)
@pytest.mark.parametrize("setting", ["level=0", "blocked=1"])
def test_a_fault_is_reported_and_the_next_job_runs(run, build, target, setting, tmp_path):
    path = build(FAULT, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,)), target=target)
    done = run(path, target, [np.array([1], np.int32)], setting, "run", "run")
    assert [re.sub(" grid 7", "", line) for line in done.lines] == ["end 4 wrong 0"] * 2 + ["wrong 0"]
    assert len(re.findall(r"failed: k\.cl:5: TEC \d faulted \(signal 11, ", done.errors)) == 2
    assert "error: the chain" in (tmp_path / "compass_simulator.log").read_text()
    assert done.output()[0] == 0
    assert run(path, target, [np.array([2], np.int32)], "run").output()[0] == 3


LEAVES = """
#define STACK ((volatile __global int*)0x70080000)
#define MEMORY ((volatile __global int*)0x5f000000)
__kernel void k(__global int* a, __global int* b) {
  if (get_local_id(0)) return;
  b[0] = *STACK; b[1] = *MEMORY;
  *STACK = a[0] + %d; *MEMORY = a[0] + 8;
}
"""


@pytest.mark.parametrize("target", FAMILIES)
def test_programs_that_differ_share_neither_worker_nor_memory(run, build, target, tmp_path):
    """What a kernel leaves on its stack and in device memory is there for the same program's next job alone."""
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(2,))
    first, other = (build(LEAVES % number, *ends, target=target) for number in (7, 6))
    assert run(first, target, [A[:1]], "run", "run").output().tolist() == [7, 8]
    (tmp_path / "other0").write_bytes(other.read_bytes())
    done = run(first, target, [A[:1]], "run", "other", "run")
    assert done.output().tolist() == [0, 0]
    assert [line.split()[:2] for line in done.lines] == [["end", "1"]] * 2 + [["wrong", "0"]]
    (tmp_path / "other0").write_bytes(first.read_bytes())
    assert run(first, target, [A[:1]], "run", "other", "run").output().tolist() == [7, 8]


SPIN = """
__kernel void k(__global int* a, __global int* b) {
  volatile int i = 0;
  while (i < a[0]) i = i + (a[0] < 2147483647);
  if (get_local_id(0) == 0) b[0] = b[0] + 1;
}
"""


@pytest.mark.parametrize("target", FAMILIES)
def test_destroy_ends_a_kernel_that_does_not(run, build, target):
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,), read=True)
    path = build(SPIN, *ends, target=target)
    done = run(path, target, [np.array([2**31 - 1], np.int32)], "abandon")
    assert done.lines == ["busy 1", "wrong 0"] and done.errors == ""


@pytest.mark.parametrize("target", FAMILIES)
def test_jobs_wait_for_one_another(run, build, target):
    ends = pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,), read=True)
    done = run(build(SPIN, *ends, target=target), target, [np.array([1000], np.int32)], "queue")
    assert done.lines[0] == "end 1 grids 5" and done.output()[0] == 5


def workers(folder):
    """The processes that run the engine of this folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found += [process.name] * ((process / "exe").readlink() == folder / "compass-worker")
    return found


def test_a_worker_ends_with_its_driver(run, build, plugin_folder):
    path = build(SPIN, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,), read=True))
    run(path, "X2_1204", [np.array([2**31 - 1], np.int32)], "die")
    end = time.monotonic() + 10
    while workers(plugin_folder) and time.monotonic() < end:
        time.sleep(0.02)
    assert workers(plugin_folder) == []


@pytest.mark.parametrize("target", FAMILIES)
def test_a_time_limit_finds_where_a_kernel_hangs(run, build, target, monkeypatch):
    path = build(SPIN, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,), read=True), target=target)
    monkeypatch.setenv("COMPASS_TIMEOUT", "0.2")
    done = run(path, target, [np.array([2**31 - 1], np.int32)], "run")
    assert done.lines[0].startswith("end 4")
    assert re.search(r"k\.cl:[56]: the kernel did not finish within its time limit", done.errors)
    monkeypatch.setenv("COMPASS_TIMEOUT", "soon")
    assert run(path, target, [np.array([1], np.int32)], "level=1", "run").lines[0].startswith("end 1")
    log = (done.folder / "compass_simulator.log").read_text()
    assert "COMPASS_TIMEOUT='soon' is no number of seconds: 60 are used" in log


@pytest.mark.parametrize("turns", [1, 10**8])
def test_a_chain_is_made_longer_while_it_runs_and_when_it_has_ended(run, build, turns):
    path = build(SPIN, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(1,), read=True))
    done = run(path, "X2_1204", [np.array([turns], np.int32)], "lengthen")
    assert done.lines == ["end 1", "wrong 0"]
    assert done.output()[0] == 2


STORM = """
__kernel void k(__global int* a, __global int* b) {
  if (a[0] < 0) b[-(1 << 29)] = 1;
  for (int i = get_local_id(0); i < 16; i += get_local_size(0)) b[i] = a[i] + 1;
}
"""


@pytest.mark.parametrize("target", FAMILIES)
def test_jobs_of_many_threads_and_contexts_end_with_their_own_results(run, build, target):
    """The vendor's driver as several threads use it, with random delays; `make storm` plays 10,000 jobs per family."""
    path = build(STORM, pointer("a", "input", shape=(16,)), pointer("b", "output", shape=(16,)), target=target)
    rounds = int(os.environ.get("STORM_ROUNDS", "50"))
    done = run(path, target, [], "contexts=2", "threads=5", f"rounds={rounds}", "storm")
    words = done.lines[0].split()
    got = dict(zip(words[1::2], map(int, words[2::2]), strict=True))
    assert (got["jobs"], got["wrong"]) == (10 * rounds, 0)
    assert len(re.findall(r"failed: k\.cl:5: TEC \d faulted", done.errors)) == got["faults"] > 0
    if target == "X2_1204":  # a chain with several faults tells of them once
        assert got["linked"] > got["jobs"] // 10 and 0 < got["seen"] <= got["faults"]


@pytest.mark.parametrize("target", FAMILIES)
def test_damage_is_an_error_of_the_job(run, add, target):
    done = run(add(target), target, [A], "damage", "heads", "clear", "run")
    *tried, last, _ = done.lines
    assert len(tried) >= 18
    for line in tried:
        assert " end 16" in line, (line, done.errors)
    assert last.startswith("end 1 ")
    np.testing.assert_array_equal(done.output(), A + 1)


@pytest.mark.parametrize("target", FAMILIES)
def test_random_damage_does_no_harm(run, add, target):
    done = run(add(target), target, [A], "fuzz", "run")
    assert re.fullmatch(r"fuzz done [1-9]\d* error [1-9]\d+", done.lines[0])
    np.testing.assert_array_equal(done.output(), A + 1)


def test_the_log_has_what_its_level_says(run, add, tmp_path):
    assert run(add("X2_1204"), "X2_1204", [A], "level=2", "run").errors == ""
    (line,) = (tmp_path / "compass_simulator.log").read_text().splitlines()
    assert re.fullmatch("compass simulator: info: pool 0: a chain begins at 0x[0-9a-f]+", line)


def test_many_jobs_leave_nothing_open(run, add):
    done = run(add("X2_1204"), "X2_1204", [A], "many")
    assert done.lines == ["good 400 files left 0", "wrong 0"]
    np.testing.assert_array_equal(done.output(), A + 1)


def test_profiles_are_written_where_the_configuration_says(run, build, tmp_path):
    text = """
    __kernel void k(__global int* a, __global int* b) {
      __perf_record_tick_begin(3);
      b[get_local_id(0)] = a[0];
      __perf_record_tick_end(3);
    }
    """
    path = build(text, pointer("a", "input", shape=(1,)), pointer("b", "output", shape=(4,)))
    run(path, "X2_1204", [A[:1]], "run", "profile")
    assert len((tmp_path / "report.csv").read_text().splitlines()) == 1
    run(path, "X2_1204", [A[:1]], "profiling", "run", "profile", "run", "profile")
    head, *rows = (line.split(",") for line in (tmp_path / "report.csv").read_text().splitlines())
    marks = [dict(zip(head, row, strict=True)) for row in rows]
    for job in ("0", "1"):
        sections = [(m["tec"], m["event"]) for m in marks if m["job"] == job and m["id"] == "3"]
        assert sorted(s for s in sections if s[1] in ("begin", "end")) == sorted(
            (str(tec), event) for tec in range(4) for event in ("begin", "end")
        )
    assert [m["grid"] for m in marks if m["event"] == "job"] == ["7", "7"]


@pytest.mark.parametrize(("target", "other"), [("X2_1204", "X3P_1304"), ("X3P_1304", "X2_1204")])
def test_a_library_simulates_its_family_alone(driver, plugin_folder, add, tmp_path, target, other):
    library = plugin_folder / sim_plugin.library_name(targets.load(other).version)
    done = subprocess.run([driver, library, add(target), tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stdout == "no simulator\n"
    assert f"is no target of {targets.load(other).version}" in done.stderr


def test_the_header_is_cpp_too(tmp_path):
    (tmp_path / "h.cpp").write_text(
        "#include <sim_aipu.h>\n"
        "uint32_t f(const config_t &config, const mem_interface_t &memory) {\n"
        "  const sim_aipu_api_t *api = sim_aipu_api_init();\n"
        "  uint32_t status = 0;\n"
        "  api->read_register(api->create(&config, &memory), SIM_AIPU_POOL_STATUS, &status);\n"
        "  return SIM_AIPU_POOL_END(status) + SIM_AIPU_X3_CODE(4, 2, 1, 1);\n"
        "}\n"
    )
    command = [
        find_clang().path,
        "-fsyntax-only",
        "-Wall",
        "-Werror",
        "-nostdlibinc",
        "-ffreestanding",
        f"-I{clibrary.include_folder()}",
        tmp_path / "h.cpp",
    ]
    subprocess.run(command, check=True)


def test_the_command_writes_what_the_driver_looks_for(tmp_path):
    def run(*args):
        command = [sys.executable, "-m", "compassc", "sim-plugin", *args]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("simulators", "-t", "X3P_1304MP2")
    assert (done.returncode, done.stdout) == (0, "")
    names = ["libaipu_simulator_x3p.so", "aipu_simulator_x3p", "compass-worker"]
    assert done.stderr.splitlines() == [
        *(f"simulators/{name}" for name in names),
        "the driver finds them with LD_LIBRARY_PATH=simulators, its front end with simulators on PATH",
    ]
    assert sorted(path.name for path in (tmp_path / "simulators").iterdir()) == sorted(names)
    done = run("simulators/compass-worker/x")
    error = "error: cannot write 'simulators/compass-worker/x/libaipu_simulator_x2.so': Not a directory [unwritable]\n"
    assert (done.returncode, done.stderr) == (1, error)
