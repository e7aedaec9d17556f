"""The texts of every example: IR reads back equal, and the C is the stored one, run after run.

`pytest tests/examples --update-golden` stores the C as it is now; review the difference.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from harness import TARGET, Example, names

from compassc import passes
from compassc.analysis.interface import interface_of
from compassc.codegen import emit, generate
from compassc.driver.interface import interface_text, read_interface
from compassc.dsl import parse
from compassc.ir.equal import structural_equal
from compassc.ir.printer import print_module
from compassc.ir.text import parse_module

GOLDEN = Path(__file__).parent / "golden"
PRINT_ALL_C = """
import sys
sys.path.insert(0, sys.argv[1])
from harness import TARGET, Example, names
from compassc import passes
from compassc.codegen import generate
from compassc.dsl import parse
print("".join(generate(passes.lower(parse(Example(n).kernel, TARGET))).text for n in names()))
"""


def test_ir_text_reads_back(example: Example) -> None:
    parsed = parse(example.kernel, TARGET)
    lowered = passes.lower(parsed)
    for module in (parsed, lowered, passes.legalize(lowered)):
        text = print_module(module)
        again = parse_module(text)
        assert structural_equal(again, module)
        assert print_module(again) == text


def test_c_from_text_is_the_same(example: Example) -> None:
    """A build can start from the stage file: the C does not depend on whether the IR went through its text."""
    lowered = passes.lower(parse(example.kernel, TARGET))
    wanted = generate(lowered)
    assert generate(parse_module(print_module(lowered))).text == wanted.text
    interface = interface_of(lowered)
    text = print_module(passes.legalize(lowered)) + interface_text(interface)
    read = read_interface(text, Path("k.legal.txt"))
    assert read == interface
    assert emit(parse_module(text), read) == wanted


def test_c_is_the_stored_one(example: Example, request: pytest.FixtureRequest) -> None:
    text = generate(passes.lower(parse(example.kernel, TARGET))).text
    stored = GOLDEN / f"{example.name}.cl"
    if request.config.getoption("--update-golden"):
        stored.write_text(text, encoding="utf-8")
    assert stored.is_file(), "no stored C; run with --update-golden"
    assert text == stored.read_text(encoding="utf-8")


def test_every_stored_text_has_an_example() -> None:
    assert {p.stem for p in GOLDEN.glob("*.cl")} == set(names())


def test_c_does_not_depend_on_the_hash_seed() -> None:
    folder = Path(__file__).parents[2] / "examples"
    texts = {
        subprocess.run(
            [sys.executable, "-c", PRINT_ALL_C, str(folder)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
