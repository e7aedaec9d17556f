"""CombineHalfProducts: what halves give is added in float32, to even and odd lanes that nothing brings into order, to the
bit."""

from __future__ import annotations

import numpy as np
import pytest

from compassc import targets, te

DRAW = np.random.default_rng(0)


def product(rows: int, depth: int, columns: int, kind: str, lanes: int):
    a, b = te.placeholder((rows, depth), kind, name="a"), te.placeholder((depth, columns), kind, name="b")
    k = te.reduce_axis((0, depth), "k")
    c = te.compute(
        (rows, columns), lambda i, j: te.sum(a[i, k].astype("float32") * b[k, j].astype("float32"), axis=k), name="c"
    )
    s = te.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[1], factor=lanes)
    s[c].reorder(c.op.axis[0], outer, k, inner)
    s[c].vectorize(inner)
    return s, [a, b, c]


def in_turn(x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Sums in float32 in the order of the products, each rounded once: products of halves are exact in float64, and so are
    these sums, as far as their rounding to float32 goes."""
    total = np.zeros((len(x), w.shape[1]), "f4")
    for k in range(len(w)):
        total = (total.astype("f8") + x[:, k : k + 1].astype("f8") * w[k : k + 1].astype("f8")).astype("f4")
    return total


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
@pytest.mark.parametrize("scale", [1, 2.0**-14, 2.0**14])
def test_sums_have_the_bits_of_fused_sums(target, scale):
    s, args = product(3, 37, 48, "float16", 16)
    text = te.lower(s, args, "k", target=target).script()
    assert "vfmae" in text and "vfmao" in text and "S.fma" not in text
    spread = np.exp2(DRAW.integers(-9, 2, (3, 37)))
    x = (DRAW.standard_normal((3, 37)) * spread * scale).clip(-6e4, 6e4).astype("f2")
    w, found = DRAW.standard_normal((37, 48)).astype("f2"), np.zeros((3, 48), "f4")
    targets.build(s, args, target)(x, w, found)
    np.testing.assert_array_equal(found, in_turn(x, w))


@pytest.mark.parametrize(("kind", "lanes"), [("float16", 8), ("float32", 16), ("bfloat16", 16)])
def test_other_sums_are_left(kind, lanes):
    s, args = product(3, 37, 48, kind, lanes)
    assert "vfmae" not in te.lower(s, args, "k", target="X2_1204").script()


def test_a_vector_to_which_more_is_added_is_left(check):
    params = 'p: T.ptr("float32", "global"), q: T.ptr("float32", "global")'
    before = "total: T.float32x16 = T.splat(T.float32(0.0), 16)\ntotal = (total + p[T.ramp(0, 1, 16)])\n"
    check("CombineHalfProducts", params, before + "q[T.ramp(0, 1, 16)] = total")


# What is added for a half, the two factors whose product that is, and what the program has where it is in two parts.
VALUES = {
    "halves": (lambda v: v, lambda v: (v, np.float32(1)), "vfmae"),
    "squares": (lambda v: v * v, lambda v: (v, v), "vfmae"),
    "distances": (lambda v: (v - 1.5) * (v - 1.5), lambda v: (v - np.float32(1.5),) * 2, "part='even'"),
}


@pytest.mark.parametrize("target", ["X2_1204", "X3P_1304"])
@pytest.mark.parametrize("what", VALUES)
def test_what_halves_give_is_added_with_the_same_bits(target, what):
    value, factors, sign = VALUES[what]
    a, k = te.placeholder((29, 48), "float16", name="a"), te.reduce_axis((0, 29), "k")
    c = te.compute((48,), lambda j: te.sum(value(a[k, j].astype("float32")), axis=k), name="c")
    s = te.create_schedule(c)
    outer, inner = s[c].split(c.op.axis[0], factor=16)
    s[c].reorder(outer, k, inner)
    s[c].vectorize(inner)
    assert sign in te.lower(s, [a, c], "k", target=target).script()
    x, found, wanted = DRAW.standard_normal((29, 48)).astype("f2"), np.zeros(48, "f4"), np.zeros(48, "f4")
    for row in x:  # a product and its sum are rounded once, as in float64 here
        first, second = factors(row.astype("f4"))
        wanted = (wanted.astype("f8") + first.astype("f8") * second.astype("f8")).astype("f4")
    targets.build(s, [a, c], target)(x, found)
    np.testing.assert_array_equal(found, wanted)
