"""Every form of every value operation: the chain, PySim and the operation's definition give the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from law import check_forms, enough
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


@pytest.mark.parametrize(("t", "lanes"), [(t, lanes) for t in STORAGE for lanes in WIDTHS[t.bits]])
def test_other_widths(t: DataType, lanes: int, tmp_path: Path) -> None:
    check_forms("wide", list(all_forms(t, lanes)), tmp_path, cc_options="-O1")


@pytest.mark.parametrize("lanes", MASK_WIDTHS)
def test_masks(lanes: int, tmp_path: Path) -> None:
    check_forms("masks", list(all_forms(BOOL, lanes)), tmp_path)


@pytest.mark.parametrize("t", [t for t in STORAGE if not t.is_bfloat])
def test_scalars(t: DataType, tmp_path: Path) -> None:
    check_forms("scalars", list(all_forms(t, 1)), tmp_path, many=1 << 18)


@pytest.mark.parametrize("t", STORAGE)
def test_scalars_and_literals_among_vectors(t: DataType, tmp_path: Path) -> None:
    check_forms("mixed", mixed_forms(t), tmp_path, cc_options="-O1")


@pytest.mark.parametrize(("t", "lanes"), [(t, lanes) for t in STORAGE for lanes in (0, WIDTHS[t.bits][3])])
def test_constant_masks_and_sources(t: DataType, lanes: int, tmp_path: Path) -> None:
    check_forms("constant", list(constant_forms(t, lanes)), tmp_path, cc_options="-O1")
