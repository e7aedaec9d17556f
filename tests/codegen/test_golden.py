"""The C of six lowered kernels is the text that `tests/examples` demands of the whole way; white space does not count."""

from __future__ import annotations

from pathlib import Path

import pytest

from compassc import pass_manager
from compassc.codegen.c_unit import print_unit
from compassc.ir import parse_module

HERE = Path(__file__).parent
WANTED = HERE.parent / "examples" / "spec_c"


def c_text(ir_text: str) -> str:
    """The C of a module given as IR text, by the whole of legalisation."""
    module = pass_manager.run_pipeline(pass_manager.pipeline_names("legalize"), parse_module(ir_text))
    return "\n".join(line.text for line in print_unit(module).lines) + "\n"


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize("name", sorted(p.stem for p in WANTED.glob("*.cl")))
def test_generated_c_is_the_stored_text(name):
    text = c_text((HERE / "lowered" / f"{name}.txt").read_text())
    assert words(text) == words((WANTED / f"{name}.cl").read_text())
