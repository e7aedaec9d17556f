"""Laws: what a layer gives does not depend on how it is cut to fit LSRAM, nor on how many cores share the work."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from compassc.graph import LayerError, Tensor
from compassc.layers import arranged, axes, remapping, streams
from compassc.layers.declare import evaluate
from compassc.layers.families.linear import depthwise, depthwise_bytes, products, tiles
from compassc.layers.families.resize import kernels as resize
from compassc.layers.kernels import kernel_of
from compassc.layers.machine import Share, planned_for
from compassc.layers.samples import Draw, drawn
from compassc.layers.vectors import LANES
from compassc.layers.windows import Window
from tests.layers.cases import drawn as values_of
from tests.layers.harness import run
from tests.layers.random_networks import differences, network

ROOM: list[tuple[ModuleType, str, Share]] = [
    (streams, "ROOM", Share(3, 64)),
    (remapping, "PART", Share(1, 32)),
    (axes, "SLAB", Share(1)),
    (resize, "STAGED", Share(1, 32)),
    (depthwise, "INPUT", Share(5, 32)),
    (depthwise_bytes, "WORDS", Share(5, 32)),
    (depthwise_bytes, "RAW", Share(15, 256)),
    (tiles, "INPUT", Share(1, 16)),
    (products, "INPUT", Share(1, 16)),
    (tiles, "SEGMENT", Share(3, 128)),
]
"""What parts of kernels take of LSRAM, and a smaller share."""
CUT = [
    ("Convolution", "int8"),
    ("Convolution", "int16"),
    ("DepthwiseConv", "uint8"),
    ("DepthwiseConv", "int16"),
    ("FullyConnected", "int8"),
    ("Eltwise", "int8"),
    ("Sigmoid", "uint8"),
    ("Softmax", "int8"),
    ("LayerNorm", "int8"),
    ("Reduce", "float32"),
    ("Resize", "int8"),
    ("Concat", "int16"),
]
SHAPES = ((1, 17, 19, 40), (2, 9, 150), (3, 700))


@pytest.mark.parametrize("part", range(3))
def test_how_layers_are_cut_does_not_matter(tmp_path, monkeypatch, part):
    others = 0
    for name, dtype in CUT[part::3]:
        for shape in SHAPES:
            layer = drawn(Draw(np.random.default_rng(4)), name, Tensor("x", shape, dtype))
            if layer is None:
                continue
            try:
                whole = kernel_of([layer])
                with monkeypatch.context() as smaller:
                    for module, key, amount in ROOM:
                        smaller.setattr(module, key, amount)
                    cut = kernel_of([layer])
            except LayerError:
                continue
            numbers = [[a for a in k.arguments if isinstance(a, int)] for k in (whole, cut)]
            if whole.text == cut.text and numbers[0] == numbers[1]:
                continue
            inputs = [values_of(np.random.default_rng(5), t) for t in layer.inputs]
            for other, want in zip(run(cut, layer, inputs, tmp_path), evaluate(layer, inputs), strict=True):
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(other, want, 1e-5, 1e-5, err_msg=name)
                else:
                    np.testing.assert_array_equal(other, want, f"{name} {shape}")
            others += 1
            break
    assert others >= 2


@pytest.mark.parametrize(("target", "seed"), [("X2_1204MP3", 4), ("X3P_1304MP2", 6), ("X3S_1304MP4", 7)])
def test_cores_give_what_one_gives(tmp_path, target, seed):
    assert not list(differences(network(seed, 5), tmp_path, True, np.random.default_rng(seed), target))


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
def test_turns_and_pixels_leave_nothing_over(target: str) -> None:
    """No loop of products has a rest: turns divide the words of every segment, and the pixels of a turn the columns."""
    seen, rng = set(), np.random.default_rng(7)
    for _ in range(60):
        kernel, dilation = (tuple(map(int, rng.integers(1, 8, 2))) for _ in range(2))
        window = Window(kernel, (1, 1), dilation, ((0, 0), (0, 0)))
        sizes = [reach + int(more) for reach, more in zip(window.reach, rng.integers(0, 30, 2), strict=True)]
        made, words = window.positions(tuple(sizes)), int(rng.integers(1, 200))
        s = tiles.Shape(1, *sizes, words, *made, int(rng.integers(1, 65)), 1, window)
        with planned_for(target):
            for t in tiles._candidates(s, words, 64, tiles.INPUT.size, tiles.segment_words()):
                (_, across), kw, dilated = t.cells, kernel[1], dilation[1] > 1
                runs = {t.chunk} if dilated else {min(kw - first, across) * t.chunk for first in range(0, kw, across)}
                assert not any(run % t.turn for run in runs) and t.columns % t.pixels == 0, (s, t)
                seen.add((t.turn, t.pixels))
    assert {turn for turn, _ in seen} == set(tiles.TURNS)
    assert {pixels for _, pixels in seen} == ({1, 2, 4} if target == "X2_1204" else {1, 4})


@pytest.mark.parametrize("part", [1, 1 << 12])
def test_packed_weights_are_the_same_in_parts_of_any_size(monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    """[group][block][chunk][plane][ky][kx][word][output][channel of the word], and 0 where there is no output or channel."""
    monkeypatch.setattr(arranged, "PART", part)
    rng = np.random.default_rng(3)
    for dtype, per_word in (("int8", 4), ("int16", 2), ("float32", 1)):
        for _ in range(12):
            many, groups, own, inner, kh, kw, chunk = map(int, rng.integers(1, (3, 4, 90, 20, 3, 3, 6)))
            window = Window((kh, kw), (1, 1), (1, 1), ((0, 0), (0, 0)))
            s = tiles.Shape(1, kh, kw, inner * groups, 1, 1, own * groups, groups, window)
            t = tiles.Tiling(1, 1, chunk, -(-inner // per_word // chunk), (kh, kw), 1, kh, kw, 1, 1)
            planes = rng.integers(-100, 100, (many, groups * own, kh, kw, inner)).astype(dtype)
            depth = t.chunks * t.chunk * per_word
            wide = np.zeros((many, groups, s.blocks * LANES, kh, kw, depth), dtype)
            wide[:, :, :own, :, :, :inner] = planes.reshape(many, groups, own, kh, kw, inner)
            lanes = wide.reshape(many, groups, s.blocks, LANES, kh, kw, t.chunks, t.chunk, per_word)
            found = tiles.packed(s, t, planes, per_word)
            np.testing.assert_array_equal(found.array, lanes.transpose(1, 2, 6, 0, 4, 5, 7, 3, 8).reshape(-1))
            assert found.array.dtype == found.dtype and found.array.size == found.size
