"""NarrowDataType: loops and indices of 64 bits in 32."""

from __future__ import annotations

from loops_text import after

WIDE = 'for i in T.serial(T.int64(0), T.int64({}), T.int64(1), nonneg=True, dtype="int64"):\n    p[{}] = 1'


def test_loops_count_in_32_bits_and_so_do_indices_that_fit():
    assert after("NarrowDataType", WIDE.format(64, "((i * T.int64(2)) + T.int64(1))")) == (
        "for i in T.serial(0, 64, 1, nonneg=True):\n    p[((i * 2) + 1)] = 1"
    )


def test_an_index_that_may_not_fit_stays_wide():
    assert "int64" in after("NarrowDataType", WIDE.format(1 << 30, "(i * T.int64(16))"))


def test_32_bits_stay():
    body = "for i in T.serial(0, 64, 1, nonneg=True):\n    p[i] = 1"
    assert after("NarrowDataType", body) == body


def test_masked_accesses_keep_their_masks():
    lanes = "T.ramp((i * T.int64(8)), T.int64(1), 8)"
    load = f'T.load(p, {lanes}, mask=T.mask("4T4F"))'
    wide = WIDE.replace("p[{}] = 1", f'T.store(p, {lanes}, value={load}, mask=T.mask("4T4F"))')
    assert after("NarrowDataType", wide.format(8)).count('mask=T.mask("4T4F")') == 2
