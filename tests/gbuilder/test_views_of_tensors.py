"""Layers that take a tensor as it stands, or a part of it, do not run; what they give can be seen all the same."""

from __future__ import annotations

import numpy as np
import pytest

from compass_runtime import Program
from compass_runtime.tensors import all_tensors
from compassc.gbuilder.build import GraphOptions, build_in_memory
from compassc.graph.build import GraphBuilder
from compassc.graph.run import run_graph


def built(graph, folder, fuse=True):
    build_in_memory(graph, folder, folder / "aipu.bin", "X2_1204", GraphOptions(work_dir=folder / "kernels", fuse=fuse))
    return Program.load(folder / "aipu.bin")


def agree(graph, folder, fuse=True):
    """Every tensor that is seen; gives the types of the launches."""
    program = built(graph, folder, fuse)
    source = np.random.default_rng(0)
    inputs = {t.name: source.normal(0, 1, t.shape).astype(t.dtype) for t in graph.inputs}
    seen, known = all_tensors(program.create_job(), inputs), run_graph(graph, inputs)
    for name, array in seen.items():
        np.testing.assert_allclose(array.reshape(-1), known[name].reshape(-1), rtol=1e-5, atol=1e-6, err_msg=name)
    assert {t.name for t in graph.outputs} < set(seen)
    return [launch.types for launch in program.note.launches]


@pytest.mark.parametrize("fuse", [True, False])
def test_a_view_of_what_joined_layers_make_is_seen_when_they_are_done(tmp_path, fuse):
    g = GraphBuilder("net")
    x = g.input("x", (1, 4, 4, 8), "float32")
    (a,) = g.layer("Pooling", [x], name="a", outputs=[((1, 4, 4, 8), "float32")], attributes={
        "method": "MAX", "kernel_x": 1, "kernel_y": 1, "stride_x": 1, "stride_y": 1, "pad_left": 0, "pad_right": 0,
        "pad_top": 0, "pad_bottom": 0, "ceil_mode": False})  # fmt: skip
    (b,) = g.layer("Sigmoid", [a], name="b", outputs=[(a.shape, a.dtype)])
    (c,) = g.layer("Reshape", [b], name="c", outputs=[((16, 8), a.dtype)], attributes={"shape": [16, 8]})
    (d,) = g.layer("Softmax", [c], name="d", outputs=[(c.shape, c.dtype)], attributes={"axis": 1})
    assert len(agree(g.finish([d]), tmp_path, fuse)) == (2 if fuse else 3)


PARTS = {
    "rows": ("Slice", {"begin": [0, 2, 0], "end": [1, 6, 16], "strides": [1, 1, 1]}, [(1, 4, 16)], True),
    "to the end": ("StridedSlice", {"begin": [0, -4, 0], "end": [1, 99, 16], "strides": [1, 1, 1]}, [(1, 4, 16)], True),
    "columns": ("Slice", {"begin": [0, 0, 8], "end": [1, 8, 16], "strides": [1, 1, 1]}, [(1, 8, 8)], False),
    "every other": ("Slice", {"begin": [0, 0, 0], "end": [1, 8, 16], "strides": [1, 2, 1]}, [(1, 4, 16)], False),
    "a piece of a row": ("Crop", {"crops": [[0, 1], [3, 4], [0, 9]]}, [(1, 1, 9)], True),
    "halves": ("Split", {"axis": 1, "splits": [3, 5]}, [(1, 3, 16), (1, 5, 16)], True),
    "halves of rows": ("Split", {"axis": 2, "splits": [8, 8]}, [(1, 8, 8), (1, 8, 8)], False),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_whose_elements_lie_behind_each_other_are_views(tmp_path, name):
    kind, attributes, shapes, view = PARTS[name]
    g = GraphBuilder("net")
    x = g.input("x", (1, 8, 16), "float32")
    (a,) = g.layer("Tanh", [x], name="a", outputs=[(x.shape, x.dtype)])
    parts = g.layer(kind, [a], name="part", outputs=[(s, a.dtype) for s in shapes], attributes=attributes)
    ends = [g.layer("Abs", [p], name=f"end{i}", outputs=[(p.shape, p.dtype)])[0] for i, p in enumerate(parts)]
    launches = agree(g.finish(ends), tmp_path)
    assert (kind in [t for types in launches for t in types]) is not view


def test_a_part_that_leaves_the_graph_is_copied(tmp_path):
    g = GraphBuilder("net")
    x = g.input("x", (1, 8, 16), "float32")
    (a,) = g.layer("Tanh", [x], name="a", outputs=[(x.shape, x.dtype)])
    parts = g.layer(
        "Split", [a], name="part", outputs=[((1, 4, 16), a.dtype)] * 2, attributes={"axis": 1, "splits": [4, 4]}
    )
    (y,) = g.layer("Abs", [parts[0]], name="y", outputs=[(parts[0].shape, a.dtype)])
    assert len(agree(g.finish([y, parts[1]]), tmp_path)) == 3
