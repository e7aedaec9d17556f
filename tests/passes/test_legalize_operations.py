"""LegalizeOperations: operations that no instruction does alone."""

from __future__ import annotations

from vector_text import after


def test_concatenated_constants_are_one_constant():
    body = 'k: T.boolx16 = S.vconcat(T.mask("8T"), T.mask("8F"), dtype="boolx16", part="all")'
    assert after("LegalizeOperations", body) == ['k: T.boolx16 = T.mask("8T8F")']


def test_lanes_of_the_first_part_come_first():
    body = 'k: T.boolx32 = S.vconcat(T.mask("16T"), T.mask("1T15F"), dtype="boolx32", part="all")'
    assert after("LegalizeOperations", body) == ['k: T.boolx32 = T.mask("17T15F")']


def test_masks_that_are_not_constant_stay():
    body = 'k: T.boolx16 = S.vconcat(T.mask("8T"), T.tail(n, 8), dtype="boolx16", part="all")'
    assert any("S.vconcat" in line for line in after("LegalizeOperations", body))
