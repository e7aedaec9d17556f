"""Lowering what is lowered already changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from compassc import pass_manager, passes
from compassc.ir import parse_module, print_module

FILES = sorted((Path(__file__).parents[1] / "codegen" / "lowered").glob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_lowering_is_idempotent(path):
    module = parse_module(path.read_text(encoding="utf-8"))
    assert print_module(passes.lower(module, pass_manager.PassOptions(verify=True))) == print_module(module)
