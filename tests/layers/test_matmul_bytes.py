"""Matrix products of bytes without zero points, four neighbours of the depth at once."""

from __future__ import annotations

import numpy as np
import pytest

from compassc.graph import LayerError
from compassc.layers.kernels import kernel_of
from tests.layers.cases import drawn, layer_of, same, tensor

SIZES = [(1, 7, 5), (3, 64, 32), (65, 4, 33), (9, 131, 70), (70, 257, 3), (2, 1, 40)]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("left", "right"), [("int8", "int8"), ("uint8", "int8"), ("int8", "uint8"), ("uint8", "uint8")]
)
def test_products_of_bytes(tmp_path, left, right, transposed):
    source = np.random.default_rng(6)
    for i, (m, k, n) in enumerate(SIZES):
        batches = ((), (2, 3), (1, 3))[i % 3]
        a = tensor("a", (*batches, m, k), left)
        b = tensor("b", (*batches[-1:], *((n, k) if transposed else (k, n))), right)
        out = "uint8" if i % 2 else "int16"
        given = {"trans_b": transposed, "scale_value": 201, "shift_value": 12 + i % 2 * 4}
        layer = layer_of("MatMul", [a, b], out, given, [(*batches, m, n)])
        assert "vqdpa" in kernel_of([layer]).text
        same(layer, [drawn(source, t) for t in layer.inputs], tmp_path)


@pytest.mark.parametrize("kind", ["MatMul", "MatMulInteger"])
@pytest.mark.parametrize("dtype", ["bool", "int32", "uint32"])
def test_products_of_other_types_are_refused(kind, dtype):
    operands = [tensor(name, (4, 4), dtype) for name in "ab"]
    with pytest.raises(LayerError, match=f"products of {dtype} have no kernel"):
        kernel_of([layer_of(kind, operands, "int32", {"scale_value": 1, "shift_value": 0}, [(4, 4)])])
