"""Layers that calibration computes faster than by their references give the same but for the last bits."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.declare import evaluate
from compassc.layers.float_loops import each
from compassc.layers.samples.draw import Draw, drawn
from compassc.quantizer.execute import compute, packed
from compassc.quantizer.fast_references import fast_layers, product

SHAPES = [(2, 9, 7, 8), (1, 16), (3, 5, 24)]


@pytest.mark.parametrize("kind", [kind for kind in fast_layers() if kind != "Constant"])
def test_fast_layers_are_their_references(kind):
    taken = 0
    for seed in range(12):
        layer = drawn(Draw(np.random.default_rng(seed), "layer"), kind, Tensor("x", SHAPES[seed % 3], "float32"))
        if layer is None:
            continue
        inputs = [np.random.default_rng(seed).standard_normal(t.shape).astype(np.float32) for t in layer.inputs]
        want, got = evaluate(layer, inputs)[0], compute(layer, inputs)[0]
        assert (got.shape, got.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * max(1.0, float(np.abs(want).max())))
        taken += 1
    assert taken


def test_constants_are_not_copied():
    values = np.arange(6, dtype=np.float32)
    layer = Layer("c", "Constant", (), (Tensor("c", (2, 3), "float32"),), {}, {"weights": values})
    made = compute(layer, [])[0]
    assert np.shares_memory(made, values) and np.array_equal(made, evaluate(layer, [])[0])


@pytest.mark.parametrize("shape", [(1, 3, 9, 7), (2, 4, 5, 6), (3, 1, 4, 2), (2, 5, 3, 3), (0, 3, 4, 4)])
def test_views_with_gaps_are_packed(shape):
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    for view in (x.transpose(0, 2, 3, 1), x.T, x[..., ::2], np.broadcast_to(x[..., :1], shape)):
        made = packed(view)
        assert made.flags.c_contiguous and made.dtype == view.dtype and np.array_equal(made, view)
        assert not np.shares_memory(made, x)


def test_biases_of_another_number_are_refused():
    x, y = Tensor("x", (1, 4), "float32"), Tensor("y", (1, 2), "float32")
    constants = {"weights": np.ones((2, 4), np.float32), "biases": np.ones(1, np.float32)}
    layer = Layer("layer", "FullyConnected", (x,), (y,), {}, constants)
    for work in (compute, evaluate):
        with pytest.raises(LayerError, match="'biases' has 1 values"):
            work(layer, [np.ones((1, 4), np.float32)])


@pytest.mark.parametrize("shape", [(1, 1, 1), (500, 144, 16), (70, 3000, 40), (33, 9, 4000), (0, 4, 4)])
def test_products_in_pieces_are_products(shape):
    many, inner, outputs = shape
    random = np.random.default_rng(0)
    rows, filters = (random.standard_normal((n, inner)).astype(np.float32) for n in (many, outputs))
    biases = random.standard_normal(outputs).astype(np.float32)
    np.testing.assert_allclose(product(rows, filters, biases), rows @ filters.T + biases, rtol=1e-4, atol=1e-3)


def test_windows_of_all_kinds_are_their_references():
    """Strides, dilations, groups and multipliers, in several pieces and samples."""
    random = np.random.default_rng(3)
    for stride, dilation, groups, multiplier, size in [
        (1, 1, 1, 1, 40),
        (2, 1, 4, 2, 41),
        (3, 2, 32, 1, 60),
        (2, 3, 32, 2, 64),
    ]:
        outputs, inner = 32 * multiplier, 32 // groups
        weights = random.standard_normal((outputs, 3, 5, inner)).astype(np.float32)
        attributes = {"kernel_x": 5, "kernel_y": 3, "stride_x": stride, "stride_y": 1, "dilation_x": dilation, "dilation_y": 1,
                      "pad_left": 2, "pad_right": 1, "pad_top": 0, "pad_bottom": 3, "group": groups, "with_activation": "RELU6"}  # fmt: skip
        columns = (size + 3 - 4 * dilation - 1) // stride + 1
        x, y = Tensor("x", (3, size, size, 32), "float32"), Tensor("y", (3, size + 1, columns, outputs), "float32")
        constants = {"weights": weights, "biases": random.standard_normal(outputs).astype(np.float32)}
        layer = Layer("layer", "Convolution", (x,), (y,), attributes, constants)
        data = random.standard_normal(x.shape).astype(np.float32)
        np.testing.assert_allclose(compute(layer, [data])[0], evaluate(layer, [data])[0], rtol=1e-4, atol=1e-4)


def test_the_blas_library_has_its_threads_again():
    from compassc.layers.threads import _library, blas_on_one_thread

    before = _library().get()
    _library().set(3)
    several = _library().get()
    try:
        with blas_on_one_thread():
            with blas_on_one_thread():
                assert _library().get() == 1
            assert _library().get() == 1
        assert _library().get() == several
    finally:
        _library().set(before)


def test_errors_in_pieces_reach_the_caller():
    from compassc.layers.threads import spread

    def work(piece):
        raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match="piece"):
        spread(work, range(100))


def test_the_first_piece_that_fails_tells_why():
    from compassc.layers.threads import results

    def work(piece: int) -> int:
        if piece > 2:
            raise ValueError(f"piece {piece}")
        return -piece

    assert results(work, range(3)) == [0, -1, -2]
    with pytest.raises(ValueError, match="piece 3"):
        results(work, range(50))


def test_pieces_of_a_piece_are_done_by_its_thread(monkeypatch):
    from threading import get_ident

    from compassc.layers import threads

    monkeypatch.setattr(threads, "processors", lambda: 3)

    def work(_: int) -> set[int]:
        found: set[int] = set()
        threads.spread(lambda _: found.add(get_ident()), range(20))
        return found | {get_ident()}

    assert {len(found) for found in threads.results(work, range(8))} == {1}


def test_a_forked_process_has_threads_of_its_own():
    import multiprocessing

    gelu_of_many(0)
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(gelu_of_many, (1,)).get(60) == gelu_of_many(1)


def gelu_of_many(seed: int) -> float:
    from compassc.quantizer.fast_references import by_pieces

    return float(
        by_pieces(partial(each, "gelu"), np.random.default_rng(seed).standard_normal(1 << 17).astype(np.float32)).sum()
    )
