"""What default schedules make on the NPU of operators whose parts do not lie as the loops run: right, and without loops of
scalars."""

from __future__ import annotations

import re

import numpy as np
import pytest

from compassc import targets, te, topi
from compassc.operators.declare import OPERATORS

TARGET = "X2_1204"
P = te.placeholder


def made(out, args, given):
    s = topi.schedule(out, TARGET)
    text = te.lower(s, [*args, out], "k", target=TARGET).script()
    found = np.zeros([d.value for d in out.shape], str(out.dtype))
    targets.build(s, [*args, out], TARGET)(*given, found)
    return text, found


@pytest.mark.parametrize("shapes", [((16, 96), (64, 24)), ((6, 10), (4, 15)), ((3, 4, 50), (600,)), ((7,), (7, 1))])
def test_elements_in_another_shape_are_transferred(shapes):
    old, new = shapes
    x, given = P(old, "int32", name="x"), np.arange(np.prod(old), dtype="int32").reshape(old)
    text, found = made(topi.reshape(x, new), [x], [given])
    np.testing.assert_array_equal(found, given.reshape(new))
    if given.size > 64:
        assert "dma_copy" in text and "//" not in re.sub(r"T\.addr\(.*", "", text)


PRODUCTS = {
    "one row": ((1, 512), (72, 512)),
    "rows that memory does not hold": ((20, 3072), (40, 3072)),
    "a sum that no piece divides": ((3, 2753), (33, 2753)),
}


@pytest.mark.parametrize("case", PRODUCTS)
@pytest.mark.parametrize("kind", ["int8", "float32"])
def test_products_of_any_depth_are_tiles_in_the_memory_of_a_tec(case, kind):
    shapes = PRODUCTS[case]
    x, w = (P(shape, kind, name=n) for shape, n in zip(shapes, "xw"))
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, shape).astype(kind) for shape in shapes]
    text, found = made(topi.nn.dense(x, w), [x, w], given)
    np.testing.assert_array_equal(found, given[0].astype("i4") @ given[1].astype("i4").T)
    assert text.count("dma_copy") >= 3 and ("vqdpa" in text) == (kind == "int8")


def test_channels_of_a_group_share_what_they_read():
    x, w = P((1, 8, 5, 19), "float32", name="x"), P((16, 4, 3, 3), "float32", name="w")
    draw = np.random.default_rng(0)
    given = [draw.integers(-9, 9, [d.value for d in t.shape]).astype("f4") for t in (x, w)]
    text, found = made(topi.nn.group_conv2d_nchw(x, w, 1, 1, 1, 2), [x, w], given)
    np.testing.assert_array_equal(found, OPERATORS["group_conv2d_nchw"].reference(*given, 1, 1, 1, 2))
    assert len(re.findall(r"_value\w*: T\.float32x8 = ", text)) >= 4


@pytest.mark.parametrize("kind", ["int8", "float16", "float32"])
@pytest.mark.parametrize("operator", [topi.argmax, topi.argmin, topi.sum, topi.max])
def test_all_elements_are_reduced_by_all_tecs(operator, kind):
    x = P((64, 512), kind, name="x")
    given = np.random.default_rng(0).integers(-60, 60, (64, 512)).astype(kind)
    given[17:, 9] = given.max()
    if operator is topi.sum:
        given = (given // 32).astype(kind)
    text, found = made(operator(x), [x], [given])
    wanted = getattr(given, operator.__name__)() if operator is not topi.sum else given.sum(dtype=kind)
    assert found.ravel()[0] == wanted
    assert "T.tec(" in text and "_lanes" in text


def test_rows_of_several_axes_have_numbers_of_their_own():
    x, *numbers = P((1, 8, 9, 16), name="x"), *(P((8,), name=n) for n in "gbmv")
    draw = np.random.default_rng(0)
    given = [draw.uniform(0.5, 2, [d.value for d in t.shape]).astype("f4") for t in (x, *numbers)]
    text, found = made(topi.nn.batch_norm(x, *numbers), [x, *numbers], given)
    np.testing.assert_allclose(found, OPERATORS["batch_norm"].reference(*given), rtol=1e-5)
    assert text.count("576, 576, 576") == 3, "channels of 144 numbers are transferred at once"
