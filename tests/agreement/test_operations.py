"""Every form of every value operation: the chain, PySim and the operation's definition give the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from law import check_forms, enough, together
from op_forms import all_forms, constant_forms, mixed_forms

from compassc.ir.dtypes import BOOL, STORAGE, DataType

WIDTHS = {8: (3, 20, 64, 75), 16: (3, 11, 48, 33), 32: (3, 11, 24, 20)}
"""Per element size: part of a register, several registers, and several with a part."""
MASK_WIDTHS = (8, 16, 32, 3, 24, 40)


@pytest.mark.parametrize("t", STORAGE)
def test_one_register(t: DataType, tmp_path: Path, whole: bool) -> None:
    """Of 8-bit types all pairs are tried, between operands and between neighbours."""
    many = 3 << 16 if t.bits == 8 else enough(whole)
    check_forms("native", list(all_forms(t, 0)), tmp_path, many=many)


@pytest.mark.parametrize("t", STORAGE)
def test_other_widths(t: DataType, tmp_path: Path) -> None:
    check_forms("wide", together(all_forms(t, lanes) for lanes in WIDTHS[t.bits]), tmp_path, cc_options="-O1")


def test_masks(tmp_path: Path) -> None:
    check_forms("masks", together(all_forms(BOOL, lanes) for lanes in MASK_WIDTHS), tmp_path)


def test_scalars(tmp_path: Path) -> None:
    forms = together(all_forms(t, 1) for t in STORAGE if not t.is_bfloat)
    check_forms("scalars", forms, tmp_path, many=1 << 18)


@pytest.mark.parametrize("t", STORAGE)
def test_scalars_and_literals_among_vectors(t: DataType, tmp_path: Path) -> None:
    check_forms("mixed", mixed_forms(t), tmp_path, cc_options="-O1")


@pytest.mark.parametrize("t", STORAGE)
def test_constant_masks_and_sources(t: DataType, tmp_path: Path) -> None:
    forms = together(constant_forms(t, lanes) for lanes in (0, WIDTHS[t.bits][3]))
    check_forms("constant", forms, tmp_path, cc_options="-O1")
