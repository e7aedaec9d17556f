"""Launches: which layers run in one kernel, why no more, and the text of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc import pass_manager
from compassc.gbuilder.build import GraphOptions, build_in_memory, group_in_memory
from compassc.graph import GraphBuilder, Tensor
from compassc.graph.files import save
from compassc.graph.launches import read_launches, write_launches
from compassc.layers.launches import JOIN, LAUNCHES
from compassc.pass_manager import PassOptions

TARGET = "X2_1204"
OPTIONS = GraphOptions()


class Net:
    """Small graphs of floats: `net("Type", *inputs)`; the name of a layer is that of its output."""

    def __init__(self) -> None:
        self.build = GraphBuilder("net")
        self.x = self.build.input("x", (4, 8), "float32")

    def __call__(self, name: str, kind: str, *inputs: Tensor, shape=(4, 8), constants=None, **given) -> Tensor:
        outputs = [Tensor(name, tuple(shape), "float32")]
        return self.build.layer(kind, inputs, name=name, outputs=outputs, attributes=given, constants=constants or {})[
            0
        ]

    def linear(self, name: str, x: Tensor) -> Tensor:
        constants = {"weights": np.eye(8, dtype=np.float32), "biases": np.zeros(8, np.float32)}
        return self(name, "FullyConnected", x, constants=constants, num_output=8)


def grouped(*ends: Tensor, net: Net, options: GraphOptions = OPTIONS):
    return group_in_memory(net.build.finish(ends), Path(), TARGET, options)


def names(program) -> list[list[str]]:
    return [[layer.name for layer in launch.layers] for launch in program.launches]


def chain(n: Net):
    y = n.linear("a", n.x)
    for k in range(3):
        y = n(f"e{k}", "Exp", y)
    return [y], [["a", "e0", "e1", "e2"]], "'e2' is an output of the graph"


def two_uses(n: Net):
    a = n.linear("a", n.x)
    return [n("y", "Add", n("e", "Exp", a), a)], [["a"], ["e", "y"]], "'a' has 2 uses"


def used_twice(n: Net):
    a = n.linear("a", n.x)
    return [n("y", "Mul", a, a)], [["a"], ["y"]], "'a' has 2 uses"


def output(n: Net):
    a = n.linear("a", n.x)
    return [a, n("y", "Exp", a)], [["a"], ["y"]], "'a' is an output of the graph"


def view(n: Net):
    flat = Tensor("b", (8, 4), "float32")
    (b,) = n.build.layer("Reshape", [n.linear("a", n.x)], name="b", outputs=[flat], attributes={"shape": [8, 4]})
    return [n("y", "Exp", b, shape=(8, 4))], [["a"], ["y"]], "'y' uses a view of 'a'"


def not_element_wise(n: Net):
    return [n.linear("y", n.linear("a", n.x))], [["a"], ["y"]], "'y' is a FullyConnected, which is not element-wise"


def takes_none(n: Net):
    t = n("t", "Transpose", n.x, shape=(8, 4), perm=[1, 0])
    return [n("y", "Exp", t, shape=(8, 4))], [["t"], ["y"]], "the kernel of a Transpose takes no other layer"


def other_shape(n: Net):
    y = n("y", "Add", n.linear("a", n.x), n.build.input("row", (8,), "float32"))
    return [y], [["a"], ["y"]], "'y' cannot join: "


def longest(n: Net):
    y = n.x
    for k in range(18):
        y = n(f"e{k}", "Negative", y)
    return [y], [[f"e{k}" for k in range(16)], ["e16", "e17"]], "a kernel has at most 16 layers"


CASES = [chain, two_uses, used_twice, output, view, not_element_wise, takes_none, other_shape, longest]


@pytest.mark.parametrize("case", CASES)
def test_a_launch_ends_for_a_reason(case):
    net = Net()
    ends, want, reason = case(net)
    found = grouped(*ends, net=net)
    assert names(found) == want
    assert found.launches[0].ends.startswith(reason)
    assert all(launch.kernel is not None and launch.ends for launch in found.launches)
    assert read_launches(write_launches(found), "launches.txt") == want


@pytest.fixture
def graph():
    net = Net()
    a = net.linear("a", net.x)
    return net.build.finish([net("y", "Negative", net("s", "Add", net("e", "Exp", a), a))])


def as_text(groups: list[list[str]]) -> str:
    return "".join(f"launch {i}\n" + "".join(f"    layer   {n}  Any\n" for n in g) for i, g in enumerate(groups))


def build(graph, folder: Path, name: str, options: GraphOptions) -> bytes:
    options = replace(options, work_dir=folder / "kernels")
    return build_in_memory(graph, folder, folder / name, TARGET, options).path.read_bytes()


def test_what_is_told_is_built(graph, tmp_path):
    found = group_in_memory(graph, tmp_path, TARGET, OPTIONS)
    assert names(found) == [["a"], ["e", "s", "y"]]
    text = tmp_path / "launches.txt"
    text.write_text(write_launches(found))
    whole = build(graph, tmp_path, "whole.bin", OPTIONS)
    for told in (text, found):
        assert build(graph, tmp_path, "told.bin", replace(OPTIONS, launches=told)) == whole
    text.write_text(as_text([["a"], ["e", "s"], ["y"]]))
    told = replace(OPTIONS, launches=text)
    assert names(group_in_memory(graph, tmp_path, TARGET, told)) == [["a"], ["e", "s"], ["y"]]
    assert build(graph, tmp_path, "told.bin", told) != whole


@pytest.mark.parametrize(
    ("groups", "says"),
    [
        ([["a"], ["e", "s"]], "the layer 'y' is in no launch"),
        ([["a"], ["e", "s", "y"], ["y"]], "'y' is there twice"),
        ([["a"], ["e", "s", "y"], ["z"]], "'z' is no layer"),
        ([["a", "s"], ["e"], ["y"]], "'s' cannot follow 'a' in a launch: 'a' has 2 uses"),
        ([["a"], ["e", "y"], ["s"]], "'y' cannot follow 'e' in a launch: 's' does"),
        ([["a"], []], "a launch has no layer"),
    ],
)
def test_what_cannot_be_is_refused(groups, says, graph, tmp_path):
    text = tmp_path / "launches.txt"
    text.write_text(as_text(groups))
    with pytest.raises(CompassError, match=says) as raised:
        group_in_memory(graph, tmp_path, TARGET, replace(OPTIONS, launches=text))
    assert raised.value.span is not None and raised.value.span.file == str(text)


def test_passes_on_launches_are_passes(graph, tmp_path, capsys):
    shown = PassOptions(print_changed=True, verify=True, time_passes=True)
    group_in_memory(graph, tmp_path, TARGET, replace(OPTIONS, passes=shown))
    said = capsys.readouterr().err
    assert "-# net: 4 layers in 4 launches" in said and "+# net: 4 layers in 2 launches" in said
    assert {name for name, *_ in pass_manager.describe(LAUNCHES)} == set(pass_manager.pipeline_names("group", LAUNCHES))
    alone = replace(OPTIONS, passes=PassOptions(disabled=frozenset({JOIN})))
    for one in (alone, replace(OPTIONS, fuse=False)):
        assert names(group_in_memory(graph, tmp_path, TARGET, one)) == [["a"], ["e"], ["s"], ["y"]]


def test_the_command(graph, tmp_path, monkeypatch, compassc):
    monkeypatch.chdir(tmp_path)
    save(graph, tmp_path / "net.txt")
    done = compassc("group", "net.txt", "-t", TARGET, "--cycles")
    text = (tmp_path / "net.launches.txt").read_text()
    assert done.status == 0 and "4 layers in 2 launches" in done.err and text.count("cycles  about ") == 2
    plain = compassc("group", "net.txt", "-t", TARGET, "-o", "-").out
    assert plain.splitlines()[1:] == [x for x in text.splitlines()[1:] if not x.startswith("    cycles")]
    assert compassc("gbuild", "net.txt", "-t", TARGET, "--launches", "net.launches.txt", "-o", "told.bin").status == 0
    assert compassc("gbuild", "net.txt", "-t", TARGET, "-o", "own.bin").status == 0
    assert (tmp_path / "told.bin").read_bytes() == (tmp_path / "own.bin").read_bytes()
    (tmp_path / "bad.txt").write_text("nonsense\n")
    bad = compassc("gbuild", "net.txt", "-t", TARGET, "--launches", "bad.txt", "-o", "bad.bin")
    assert bad.status == 1 and "no line of a text of launches" in bad.err
