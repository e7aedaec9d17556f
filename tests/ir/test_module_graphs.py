"""A module holds graphs of layers beside its functions: text and module are inverse, passes on kernels leave graphs alone."""

from __future__ import annotations

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.graph import Graph, GraphBuilder, read
from compassc.ir import parse_module, print_module
from compassc.ir.equal import structural_equal
from compassc.passes import lower

KERNEL = """# compassc IR 1
@I.module(target="", entry="k")
class Module:
    @T.func
    def k(a: T.ptr("int32", "global"), n: T.int32) -> T.void:
        a[0] = n + 0
"""


def graph(name: str) -> Graph:
    build = GraphBuilder(name)
    x = build.input("x", (2, 3), "float32")
    (y,) = build.layer(
        "FullyConnected",
        [x],
        name='odd"name\\',
        outputs=[((2, 4), "float32")],
        attributes={"num_output": 4},
        constants={"weights": np.arange(12, dtype="float32").reshape(4, 3), "biases": np.zeros(4, "float32")},
    )
    return build.finish([y])


def test_text_and_module_are_inverse():
    module = parse_module(KERNEL).replace(graphs=(graph("one"), graph("two")))
    text = print_module(module)
    again = parse_module(text, read_graph=read)
    assert again.graphs == module.graphs
    assert structural_equal(again, module)
    assert print_module(again) == text
    assert not structural_equal(again.replace(graphs=again.graphs[:1]), module)


def test_passes_on_kernels_leave_graphs_alone():
    module = parse_module(KERNEL).replace(graphs=(graph("one"),))
    assert lower(module).graphs == module.graphs


@pytest.mark.parametrize(
    ("change", "message", "line"),
    [
        (("layer_bottom=[x]", "layer_bottom=[z]"), "no layer produces the tensor 'z'", 25),
        (("AAAAAAAAgD8", "=AAAAAAA"), "not in base64", 8),
    ],
)
def test_mistakes_are_told_at_their_lines(change, message, line):
    text = print_module(parse_module(KERNEL).replace(graphs=(graph("one"),)))
    assert change[0] in text
    with pytest.raises(CompassError, match=message) as caught:
        parse_module(text.replace(*change), "m.ir.txt", read)
    assert caught.value.span.file == "m.ir.txt"
    section = text.replace(*change).splitlines().index("layer_id=1") + 1
    assert caught.value.span.line == (section if "tensor" in message else line)


def test_graphs_need_their_reader():
    text = print_module(parse_module(KERNEL).replace(graphs=(graph("one"),)))
    with pytest.raises(CompassError, match=r"read_graph=compassc\.graph\.read") as caught:
        parse_module(text, "m.ir.txt")
    assert caught.value.span.line == text.splitlines().index("    I.graph(") + 1
