"""Profiles: laws of counts and bytes, the model of time, and what is shown."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from runtime_kernels import pointer, scalar

from compass_core import targets
from compass_core.errors import CompassError
from compass_runtime import Program
from compass_runtime.calls import run_loaded
from compass_runtime.profile.collect import Step, Task, counting
from compass_runtime.profile.costs import class_of, cost_model, op_classes
from compass_runtime.profile.data import as_data
from compass_runtime.profile.page import page
from compass_runtime.profile.regions import Op, Region, cost, schedule
from compass_runtime.profile.result import profile_of
from compass_runtime.profile.run import profiled_call
from compass_runtime.profile.table import text
from compass_runtime.profile.timeline import Simulation
from compass_runtime.profile.trace import as_trace
from compass_sim import RecordKind, RunResult
from compass_sim.records import RECORD

X2 = cost_model("X2_1204")
TILE = (
    """
GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);
__kernel void k(__global half* a, __global half* b, int n) {
  __lsram half t[4096];
  int share = n / get_local_size(0), at = get_local_id(0) * share;
  DmaDirect_kGlobal_to_kLsram((int)t, (int)(a + at), share * 2, share * 2, share * 2, share * 2);
  __perf_record_tick_begin(5);
  for (int i = 0; i < share; i += 16)
    __vstore(__vload(t + i, ALL_TRUE_h) + __vload(t + i, ALL_TRUE_h), t + i, ALL_TRUE_h);
  __perf_record_tick_end(5);
  int e = alloc_event();
  AsyncDmaDirect_kLsram_to_kGlobal((int)(b + at), (int)t, share * 2, share * 2, share * 2, share * 2, e);
  wait_events(1 << e);
  free_events(1 << e);
  barrier(CLK_LOCAL_MEM_FENCE);
}
""".replace("__vload(t", "__vload((__lsram half16*)(t")
    .replace("+ i, ALL", "+ i), ALL")
    .replace(", t + i)", ", (__lsram half16*)(t + i)")
)
MASKED = """
__kernel void k(__global int* a, __global int* out, int n) {
  if (get_local_id(0)) return;
  for (int i = 0; i < n; i += 8) {
    bool8 m = __vclt((int8)i + (int8){0, 1, 2, 3, 4, 5, 6, 7}, (int8)n, ALL_TRUE_w);
    int8 v = __vload((__global int8*)(a + i), m);
    __vstore(__vadd(v, v, v, m), (__global int8*)(out + i), m);
  }
}
"""


@pytest.fixture(scope="module")
def tiles(build):
    """A function from the number of elements to a profile of a kernel that moves and doubles them in LSRAM."""
    path = build(TILE, pointer("a", "input", dtype="float16"), pointer("b", "output", dtype="float16"), scalar("n"))
    program = Program.load(path)
    known = {}

    def run(n):
        if n not in known:
            a, b = np.arange(n, dtype="float16"), np.zeros(n, "float16")
            known[n] = profiled_call(program, [a, b, n])
            assert (b == a + a).all()
        return known[n]

    return run


def counts(cost):
    return {kind: tally.count for kind, tally in cost.classes.items()}


def test_counts_and_bytes_are_those_of_the_text(tiles):
    n = 2048
    total = tiles(n).total
    vectors = n // 16
    assert counts(total) | {"load": 2 * vectors, "alu": vectors, "store": vectors, "dma": 8, "barrier": 4} == counts(
        total
    )
    assert total.dma_bytes == 2 * n * 2 and total.classes["load"].bytes == 2 * n * 2
    assert total.classes["alu"].arithmetic == n and total.lane_use == 1.0
    assert total.external_bytes == total.dma_bytes + 4 * 3 * 4  # and each TEC reads three arguments


def test_counts_grow_with_the_size(tiles):
    small, large = (tiles(n).total for n in (1024, 4096))
    for kind in ("load", "alu", "store"):
        assert large.classes[kind].count == 4 * small.classes[kind].count
    assert large.dma_bytes == 4 * small.dma_bytes and large.classes["dma"].count == small.classes["dma"].count


def test_tecs_and_lines_add_up_to_the_total(tiles):
    profile = tiles(2048)
    for parts in (profile.tecs.values(), profile.lines.values()):
        summed = {}
        for part in parts:
            for kind, number in counts(part).items():
                summed[kind] = summed.get(kind, 0) + number
        assert summed == counts(profile.total)
        assert sum(p.cycles for p in parts) == pytest.approx(profile.total.cycles)
        assert sum(p.dma_bytes for p in parts) == profile.total.dma_bytes
    assert max(c.cycles for c in profile.tecs.values()) + X2.launch_cycles == pytest.approx(profile.cycles, abs=1)


def test_the_same_run_gives_the_same_estimate(tiles, build):
    program = tiles(1024).program
    again = profiled_call(program, [np.arange(1024, dtype="float16"), np.zeros(1024, "float16"), 1024])
    assert as_data(again) == as_data(tiles(1024)) and again.timeline == tiles(1024).timeline


def test_costs_stand_on_their_lines(tiles):
    lines = {place[1]: cost for place, cost in tiles(2048).lines.items()}
    start = next(n for n, line in enumerate(("\n\n" + TILE).splitlines(), 1) if "DmaDirect" in line and "int" in line)
    assert counts(lines[start])["dma"] == 4 and lines[start].waits["dma"] > 4 * X2.dma["startup"]
    assert "load" in counts(lines[start + 3]) and lines[start + 3].cycles == lines[start + 3].work
    assert lines[start + 7].waits["event"] > 4 * X2.dma["startup"] and not lines[start + 7].dma_bytes


def test_sections_by_number(tiles):
    (section,) = tiles(2048).sections
    work = sum(
        tiles(2048).lines[place].work for place in tiles(2048).lines if "load" in tiles(2048).lines[place].classes
    )
    assert (section.id, section.runs, sorted(section.cycles)) == (5, 4, [0, 1, 2, 3])
    assert sum(section.cycles.values()) >= work


def test_masks_count_active_lanes(build):
    n = 20
    path = build(MASKED, pointer("a", "input", shape=(24,)), pointer("out", "output", shape=(24,)), scalar("n"))
    out = np.zeros(24, "int32")
    profile = profiled_call(Program.load(path), [np.arange(24, dtype="int32"), out, n])
    total = profile.total.classes
    assert (total["load"].active, total["load"].lanes, total["load"].bytes) == (n, 24, 4 * n)
    assert total["store"].active == n and total["store"].external_bytes == 4 * n
    assert total["alu"].active == n + 24 + 24  # __vadd, and the sum and the comparison that make the mask


def test_every_builtin_has_a_class():
    """The functions of the C headers that kernels name; helpers of the headers that only other functions call need none."""
    import re

    from compass_core.hostcc.command import include_folder

    headers = "".join(
        p.read_text() for p in sorted((include_folder() / "compass").glob("*.h")) if p.name != "profile.h"
    )
    heads = set(re.findall(r"__COMPASS_FN \w+ (__v\w+|v[a-z]\w*|[a-z]\w*)\(", headers.replace("\\\n", " ")))
    heads -= {"name", "prefix"}
    assert len(heads) > 60 and [name for name in sorted(heads) if class_of(name) is None] == []


@pytest.mark.parametrize("name", targets.names())
def test_every_target_has_a_complete_cost_model(name):
    model = cost_model(name)
    assert set(model.units) == {kind.unit for kind in op_classes().values()}
    assert all(set(costs) == {"latency", "interval"} for costs in model.classes.values())
    assert model.peak(1) > model.peak(4) > 0 and model.dma["startup"] > 0
    assert (model.issue_width == 3) == (model.target.version == "X2")  # X3 says so on top of what it is based on


def ops(*kinds):
    """Operations each of which uses the result of the one before."""
    return [Op(kind, ("k", 1), (i - 1,) if i else ()) for i, kind in enumerate(kinds)]


def test_a_chain_takes_its_latencies():
    chain = Region(0, ops("load", "mul", "alu", "store"))
    latencies = sum(X2.latency(kind, False) for kind in ("load", "mul", "alu"))
    assert cost(chain, X2) == latencies + X2.interval("store", False)


def test_independent_operations_share_units():
    many = Region(0, [Op("alu", ("k", 1)) for _ in range(12)])
    assert cost(many, X2) == 12 // X2.units["vector"]
    mixed = Region(0, [Op(kind, ("k", 1)) for kind in ("alu", "load", "scalar", "scalar") * 4])
    assert cost(mixed, X2) == -(-16 // X2.issue_width)


def test_loops_overlap_unless_a_value_goes_round():
    body = Region(0, ops("load", "mul"), whole_loop=True)
    assert cost(body, X2) < schedule(body, X2, 1)
    carried = [Op("mul", ("k", 1), (-1,))]
    ring = Region(0, carried, [("x", "")], {("x", ""): (0,)}, whole_loop=True)
    free = Region(0, carried, [("x", "")], {}, whole_loop=True)
    assert schedule(ring, X2, 4) == 3 * X2.latency("mul", False) + 1 and schedule(free, X2, 4) == 4


READ, BOTH = 1 << 16, 3 << 16


def transfer(cycles, size, channel=0xFF, flags=READ):
    return Step(cycles, RecordKind.TRANSFER, channel | flags, size, ("k", 2))


def line_of(*tasks, model=X2, waits=()):
    return Simulation(model, tasks, waits).run()


def task(number, cycles, *steps, group=0):
    return Task(group, number, number, list(steps), cycles)


def test_a_transfer_takes_start_up_and_bytes():
    moved = 3200
    own = X2.dma["startup"] + moved / X2.dma["bytes_per_cycle"]
    assert line_of(task(0, 50, transfer(10, moved))).cycles == pytest.approx(X2.launch_cycles + 50 + own)
    assert line_of(task(0, 50, transfer(10, 0))).cycles == pytest.approx(X2.launch_cycles + 50 + X2.dma["startup"])


def test_device_memory_is_shared():
    moved = 32000
    several = line_of(*(task(i, 0, transfer(0, moved)) for i in range(4))).cycles
    port = 4 * moved / X2.device_memory_bytes_per_cycle
    assert several == pytest.approx(X2.launch_cycles + X2.dma["startup"] + port)
    twice = line_of(*(task(i, 0, transfer(0, moved, flags=BOTH)) for i in range(4))).cycles
    assert twice - X2.launch_cycles - X2.dma["startup"] == pytest.approx(2 * port)
    inside = line_of(*(task(i, 0, transfer(0, moved, flags=0)) for i in range(4))).cycles
    assert inside == pytest.approx(X2.launch_cycles + X2.dma["startup"] + moved / X2.dma["bytes_per_cycle"])


def test_asynchronous_transfers_hide_behind_work():
    wait = Step(5000, RecordKind.WAIT, 1 << 2, 0, ("k", 3))
    hidden = line_of(task(0, 5000, transfer(0, 3200, 2), wait))
    assert hidden.cycles == X2.launch_cycles + 5000 and not [s for s in hidden.spans if s.kind == "event"]
    early = line_of(task(0, 5000, transfer(0, 3200, 2), Step(10, RecordKind.WAIT, 1 << 2, 0, ("k", 3))))
    (span,) = (s for s in early.spans if s.kind == "event")
    assert early.cycles == pytest.approx(hidden.cycles + span.cycles) and span.place == ("k", 3)


def test_an_event_in_use_makes_the_next_transfer_wait():
    line = line_of(task(0, 0, transfer(0, 320, 1), transfer(0, 320, 1)))
    assert line.cycles == pytest.approx(X2.launch_cycles + 2 * (X2.dma["startup"] + 10))
    assert [s.kind for s in line.spans if s.kind in ("event", "dma")] == ["event", "dma"]


def test_barriers_wait_for_the_last():
    barrier = [Step(c, RecordKind.BARRIER, 0, 0, ("k", 4)) for c in (10, 300, 100, 20)]
    line = line_of(*(task(i, 400, step) for i, step in enumerate(barrier)))
    assert line.cycles == X2.launch_cycles + 300 + X2.barrier_cycles + 390
    waits = {s.tec: s.cycles for s in line.spans if s.kind == "barrier"}
    assert waits == {i: 300 - c + X2.barrier_cycles for i, c in enumerate((10, 300, 100, 20))}


def test_groups_wait_for_what_they_depend_on():
    x3 = cost_model("X3P_1304MP4")
    groups = [task(i, 1000, group=g) for g in range(3) for i in range(4)]
    side_by_side = line_of(*groups, model=x3, waits=[(), (), ()]).cycles
    chain = line_of(*groups, model=x3, waits=[None, None, None]).cycles
    assert (side_by_side, chain) == (x3.launch_cycles + 1000, 3 * (x3.launch_cycles + 1000))
    assert line_of(*groups, model=x3, waits=[(), (), (0,)]).cycles == 2 * (x3.launch_cycles + 1000)
    assert line_of(*groups, waits=[(), (), ()]).cycles == 3 * (X2.launch_cycles + 1000)  # one core


def test_a_graph_of_several_objects_on_several_cores(tmp_path):
    """Which core of an X3 runs a group is the engine's choice of the moment; the profile's is always the same."""
    from compassc.gbuilder.build import GraphOptions, build_model
    from compassc.gbuilder.writer import GraphWriter

    graph = GraphWriter()
    x = graph.input("x", (3, 40), "float32")
    made = [graph.layer("Activation", [x], (3, 40), "float32", method=m) for m in ("SOFTPLUS", "TANH")]
    options = GraphOptions(work_dir=tmp_path / "kernels")
    path = build_model(graph.write(tmp_path, made), tmp_path / "weight.bin", tmp_path / "g.bin", "X3P_1304MP2", options)
    program = Program.load(path.path)
    arrays = [np.zeros((3, 40), "float32") for _ in range(3)]
    first, second = (profiled_call(program, arrays) for _ in range(2))
    assert as_data(first) == as_data(second) and sorted(first.tecs) == list(range(8))
    kernels = [(kernel, run.core, run.start) for kernel, run in first.launches]
    assert [core for _, core, _ in kernels] == [0, 1] and {start for _, _, start in kernels} == {0.0}
    assert kernels[0][0] != kernels[1][0] and all(kernel in text(first) for kernel, _, _ in kernels)
    # each TEC clears the end of its tile and stores its share of the elements, a pass of 32 lanes each
    assert first.total.classes["store"].active == 2 * 4 * (32 + 32)


def test_events_that_found_no_room_are_told(tiles):
    whole = tiles(1024)
    some = replace(whole, tasks=(*whole.tasks, Task(0, 4, 0, lost=3)))
    assert "3 events found no room" in text(some) and "3 events found no room" in page(some)
    assert "no room" not in text(whole) + page(whole)


def test_tables_show_totals_tecs_lines_and_sections(tiles):
    shown = text(tiles(2048), lines=3).splitlines()
    assert shown[0].startswith(f"k: {tiles(2048).cycles} cycles") and "estimates" in shown[2]
    assert [line.split()[0] for line in shown[4:9]] == ["TEC", "0", "1", "2", "3"]
    assert shown[10].startswith("line") and shown[14] == f"... and {len(tiles(2048).lines) - 3} more lines"
    assert shown[-1].split()[:4] == ["5", "k.cl:10", "4", str(round(sum(tiles(2048).sections[0].cycles.values())))]


class Tags(HTMLParser):
    """The elements of a page, what they refer to, and whether they are closed in order."""

    def __init__(self, content):
        super().__init__()
        self.open, self.seen, self.links = [], [], []
        self.feed(content)

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href")]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_stands_alone(tiles):
    content = page(tiles(2048))
    tags = Tags(content)
    assert (
        tags.open == []
        and tags.links == []
        and "@import" not in content
        and content.count("url(") == content.count("url(#")
    )
    assert tags.seen.count("svg") >= 4 and tags.seen.count("section") == 5
    assert f'"Total Cycles": {tiles(2048).cycles},' in content
    assert "this is the C text of each line" in content and "__vload" in content  # k.cl is not there
    assert "__fload" not in content and "__fstore" not in content  # the names of hosts
    data = content.partition('id="profile">')[2].partition("</script>")[0]
    assert json.loads(data) == as_data(tiles(2048))


def test_numbers_that_are_equal_are_all_on_the_page(tiles):
    whole = tiles(1024)
    idle = replace(whole, tasks=(Task(0, 4, 0),), timeline=replace(whole.timeline, spans=[]))
    shown = page(idle).partition('<div class="tiles">')[2].partition("</div>\n")[0]
    for what in ("bytes by DMA", "bytes to and from device memory", "operations on vector lanes"):
        assert f"<b>0</b><span>{what}</span>" in shown


def test_the_trace_has_a_track_per_tec_and_channel(tiles):
    trace = as_trace(tiles(2048))
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert sorted(names.values())[:4] == ["TEC 0", "TEC 0 DMA", "TEC 0 DMA event 0", "TEC 0 sections"]
    bars = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert sum(e["args"].get("bytes", 0) for e in bars) == tiles(2048).total.dma_bytes
    assert max(e["ts"] + e["dur"] for e in bars) == pytest.approx(tiles(2048).seconds * 1e6, rel=1e-3)


EDGES = (0, 1, 2, 3, 5, 7, 8, 31, 255, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 53) + 1, (1 << 64) - 1)


def forged(records, draw):
    """Records as a kernel may have left them: some lost, doubled, exchanged, or with other numbers in them."""
    out = list(records)
    for _ in range(draw.choice((1, 1, 2, 5, 20))):
        at, other, field = draw.randrange(len(out)), draw.randrange(len(out)), draw.randrange(6)
        low = out[at]._replace(**{out[at]._fields[field]: draw.choice(EDGES[: 15 if field < 2 else 13])})
        out = draw.choice(
            (
                out[:at] + out[at + 1 :],
                [*out, out[at]],
                [*out[:at], out[other], *out[at + 1 :]],
                *[[*out[:at], low, *out[at + 1 :]]] * 4,
            )
        )
        if not out:
            break
    return out


def test_forged_records_become_a_profile_or_are_refused(tiles):
    """A kernel can write where the engine keeps its records."""
    program = tiles(1024).program
    arguments = [np.arange(1024, dtype="float16"), np.zeros(1024, "float16"), 1024]
    with counting(program).program.caller.loaded(arguments) as job:
        honest = run_loaded(job, record=True).records
    assert profile_of(program, recorded(honest)).timeline == tiles(1024).timeline
    refused = 0
    for seed in range(250):
        try:
            profile = profile_of(program, recorded(forged(honest, random.Random(seed))))
        except CompassError as error:
            assert error.code == "bad-records"
            refused += 1
        else:
            page(profile), text(profile), as_trace(profile), as_data(profile)
    assert 50 < refused < 200


def recorded(records):
    return RunResult(0.0, "", b"".join(RECORD.pack(*record) for record in records))


@pytest.mark.parametrize("at", [10**k for k in range(0, 19, 3)])
@pytest.mark.parametrize("size", [1, 3, 17, 100_001])
def test_transfers_end_at_any_time(at, size):
    """A rest of a byte may take less time than a clock that shows billions of cycles can tell apart."""
    steps = [transfer(at + i, size, i % 3, flags) for i, flags in enumerate((READ, BOTH, 0, READ, BOTH))]
    line = line_of(*(task(i, at, *steps[i:], transfer(at, size)) for i in range(4)))
    assert line.cycles >= at and sum(span.kind == "transfer" for span in line.spans) <= 4 * 6
