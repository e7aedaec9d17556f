"""Tensors alive at the same time never overlap, and the plan is near the least any plan needs."""

from __future__ import annotations

import random
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_runtime import Program
from compassc.gbuilder.build import GraphOptions, build_model
from compassc.gbuilder.memory import ALIGN, Step, nbytes, plan
from compassc.gbuilder.order import waits
from compassc.gbuilder.plugin_api import Tensor
from compassc.graph import Tensor as GraphTensor
from compassc.graph.build import GraphBuilder
from compassc.graph.files import save
from tests.choosing import some


def tensor(size: int, name: str = "t") -> Tensor:
    made = Tensor()
    made.name, made.shape, made.dtype = name, [size], "int8"
    return made


@st.composite
def programs(draw):
    """Steps that read tensors made before them and make new ones."""
    made, steps = [tensor(8, "in")], []
    for i in range(draw(st.integers(1, 12))):
        reads = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3))
        writes = [tensor(draw(st.integers(1, 4000)), f"t{i}.{k}") for k in range(draw(st.integers(1, 2)))]
        made += writes
        steps.append(Step(tuple(reads), tuple(writes)))
    return made, steps


def graph(made, outputs):
    return SimpleNamespace(inputs=[made[0]], outputs=outputs)


def lives(made, steps):
    """First and last step of each tensor."""
    uses = {id(t): [i for i, s in enumerate(steps) if any(u is t for u in (*s.reads, *s.writes))] for t in made}
    return {key: (min(numbers), max(numbers)) for key, numbers in uses.items() if numbers}


@given(programs())
@settings(max_examples=150, deadline=None)
def test_what_is_alive_together_lies_apart(program):
    made, steps = program
    planned = plan(graph(made, [made[-1]]), steps)
    spans = lives(made, steps)
    for section in planned.sections:
        for i, one in enumerate(section.placements):
            assert one.offset + nbytes(one.tensor) <= section.size
            for other in section.placements[:i]:
                a, b = spans[id(one.tensor)], spans[id(other.tensor)]
                if a[0] <= b[1] and b[0] <= a[1]:
                    ends = sorted([(one.offset, nbytes(one.tensor)), (other.offset, nbytes(other.tensor))])
                    assert ends[0][0] + ends[0][1] <= ends[1][0]
    assert planned.floor <= planned.peak <= planned.unshared


def layered(source: random.Random, layers: int):
    """A network-like program: a chain with residual connections and two-way branches."""
    made = [tensor(64, "in")]
    steps, trunk = [], made[0]
    for i in range(layers):
        wide = tensor(source.choice((4096, 8192, 16384)), f"a{i}")
        back = tensor(source.choice((2048, 4096)), f"b{i}")
        steps += [Step((trunk,), (wide,)), Step((wide,), (back,))]
        joined = tensor(4096, f"c{i}")
        steps.append(Step((back, trunk) if i % 2 else (back,), (joined,)))
        made += [wide, back, joined]
        trunk = joined
    return made, steps


def test_plans_of_networks_are_within_five_percent_of_the_least():
    for seed in range(20):
        made, steps = layered(random.Random(seed), 15)
        planned = plan(graph(made, [made[-1]]), steps)
        assert planned.peak <= 1.05 * planned.floor
        assert planned.floor % ALIGN == 0


@given(programs(), st.sampled_from(["X2_1204", "X3P_1304"]))
@settings(max_examples=150, deadline=None)
def test_a_step_starts_after_all_it_conflicts_with(program, target):
    made, steps = program
    planned = plan(graph(made, [made[-1]]), steps)
    order = waits(steps, planned, target)
    place = {
        id(p.tensor): (n, p.offset, p.offset + nbytes(p.tensor))
        for n, s in enumerate(planned.sections)
        for p in s.placements
    }

    def touches(a, b):
        (n, low, high), (m, bottom, top) = place[id(a)], place[id(b)]
        return n == m and low < top and bottom < high

    finished = []
    for i, step in some(enumerate(steps)):
        before = set(range(i)) if order[i] is None else set().union(*({j} | finished[j] for j in order[i]))
        finished.append(before)
        for j in range(i):
            pairs = [(a, b) for a in step.writes for b in (*steps[j].reads, *steps[j].writes)]
            pairs += [(a, b) for a in step.reads for b in steps[j].writes]
            assert j in before or not any(touches(a, b) for a, b in pairs)
        allowed = 4 if target.startswith("X3") else 1
        assert order[i] is None or len(order[i]) <= allowed
        assert target.startswith("X3") or order[i] in (None, (), (i - 1,))


@given(programs())
@settings(max_examples=60, deadline=None)
def test_no_wait_is_for_what_another_wait_includes(program):
    made, steps = program
    order = waits(steps, plan(graph(made, [made[-1]]), steps), "X3P_1304")
    finished = []
    for i, found in some(enumerate(order)):
        finished.append(set(range(i)) if found is None else set().union(*({j} | finished[j] for j in found)))
        assert not any(j in finished[k] for j in found or () for k in found or ())


def test_thousands_of_layers_are_planned_and_ordered_at_once():
    made = [tensor(64, f"t{i}") for i in range(6001)]
    steps = [Step((made[i],), (made[i + 1],)) for i in range(6000)]
    planned = plan(graph(made, [made[-1]]), steps)
    assert planned.peak == planned.floor == 2 * ALIGN
    assert waits(steps, planned, "X2_1204") == [(), *[None] * 5999]


def test_a_thousand_tensors_lie_as_near_as_they_can():
    chance = random.Random(0)
    made = [tensor(64 * chance.randrange(1, 400), f"t{i}") for i in range(1500)]
    steps = [Step(tuple(chance.sample(made[max(0, i - 6) : i], min(i, 2))), (made[i],)) for i in range(1, 1500)]
    planned = plan(graph(made, [made[-1]]), steps)
    assert planned.floor <= planned.peak <= 1.25 * planned.floor


def test_tensors_of_a_gibibyte_have_places():
    made = [tensor(1 << 30, f"t{i}") for i in range(4)]
    steps = [Step((made[i],), (made[i + 1],)) for i in range(3)]
    planned = plan(graph(made, [made[-1]]), steps)
    assert planned.peak == planned.floor == 2 << 30


GIB = 1 << 30


def added(folder, elements):
    """The text of a graph that adds two tensors of int8."""
    graph = GraphBuilder("added")
    shape = (1, 1024, 1024, elements >> 20)
    a, b = (graph.input(f"{name}_0", shape, "int8", scale=1.0, zero=0) for name in "ab")
    y = graph.layer(
        "Eltwise",
        [a, b],
        name="y",
        outputs=[GraphTensor("y_0", shape, "int8", scale=1.0)],
        attributes={"method": "ADD", "scale_value": [1, 1, 1], "shift_value": 0},
    )
    save(graph.finish(y), folder / "graph.txt")
    return folder / "graph.txt"


def build(text):
    return build_model(text, None, text.with_name("aipu.bin"), "X2_1204", GraphOptions(work_dir=text.parent)).path


def test_three_tensors_of_a_gibibyte_have_room_on_the_device(tmp_path):
    """All that the device's memory holds; nothing is written to it here."""
    job = Program.load(build(added(tmp_path, GIB))).create_job()
    assert [slot.nbytes for slot in (*job.inputs, *job.outputs)] == [GIB] * 3
    job.close()


def test_a_graph_beyond_the_device_is_refused_with_what_its_parts_take(tmp_path):
    with pytest.raises(CompassError) as caught:
        build(added(tmp_path, GIB + (1 << 20)))
    error = caught.value
    assert error.code == "graph-memory" and error.span.file == str(tmp_path / "graph.txt")
    assert "(2,149,580,800 of inputs, 1,074,790,400 of outputs), but there are 3,221,225,472" in error.message
    assert "'a_0' [1, 1024, 1024, 1025] int8 (1,074,790,400 bytes)" in str(error.notes[0])
    assert not (tmp_path / "aipu.bin").exists()
