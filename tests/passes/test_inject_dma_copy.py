"""InjectDmaCopy: loops that copy between memories are transfers."""

from __future__ import annotations

PARAMS = 'p: T.ptr("int32", "global"), n: T.int32'
MEMORY = 'p_1 = T.match_buffer(p, (64, 64), "int32")\na = T.alloc((64,), "int32", "lsram")\n'
LOOP = "for i in T.serial(0, {}, 1, nonneg=True):\n    "


def test_a_row_is_one_transfer(check):
    before = MEMORY + LOOP.format(64) + "a[i] = p_1[3, i]"
    after = MEMORY + 'S.dma_copy(T.addr(a, 0), T.addr(p, 192), 256, 256, 256, 256, dtype="void")'
    check("InjectDmaCopy", PARAMS, before, after)


def test_a_guard_makes_it_shorter_and_padding_is_filled_first(transform):
    guarded = transform("InjectDmaCopy", MEMORY + LOOP.format(64) + "if (i < n):\n        a[i] = p_1[3, i]", PARAMS)
    assert guarded.count("S.dma_copy") == 1 and "for " not in guarded and "T.min" in guarded
    padded = transform("InjectDmaCopy", MEMORY + LOOP.format(64) + "a[i] = T.select((i < n), p_1[3, i], 7)", PARAMS)
    assert 0 < padded.index("S.dma_memset") < padded.index("S.dma_copy")


def test_what_is_no_copy_or_too_short_for_one_stays(check):
    for body in ("a[i] = (p_1[3, i] + 1)", "a[i] = a[(63 - i)]", "a[i] = p_1[i, 3]", "a[i] = p_1[3, (63 - i)]"):
        check("InjectDmaCopy", PARAMS, MEMORY + LOOP.format(64) + body)
    check("InjectDmaCopy", PARAMS, MEMORY + LOOP.format(7) + "a[i] = p_1[3, i]")
