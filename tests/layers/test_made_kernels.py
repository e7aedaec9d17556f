"""Kernels of layers that are made as IR: their text means the same, and their statements say which Python made them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from compassc import layers
from compassc.dsl import parse
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.equal import structural_equal
from compassc.ir.visit import walk_stmts
from compassc.layers.kernel_cache import function_of
from compassc.layers.kernels import STEPS, kernel_of, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.source import Kernel
from compassc.layers.support import DTYPES, SHAPES
from tests.choosing import some

PACKAGE = Path(layers.__file__).parent


def element_wise() -> list[str]:
    load_kernels()
    return list(some(sorted(STEPS.keys() & SAMPLES.keys())))


def made(name: str) -> list[Kernel]:
    """Kernels of a few layers of a type, of several data types."""
    kernels = []
    for n, (dtype, shape) in enumerate(zip(chosen_types(name), SHAPES, strict=False)):
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
        if layer is not None:
            with suppress(LayerError):
                kernels.append(kernel_of([layer]))
    return [k for k in kernels if k.function is not None]


def chosen_types(name: str) -> list[str]:
    """Data types, beginning with one that depends on the name."""
    first = crc32(name.encode()) % len(DTYPES)
    return [*DTYPES[first:], *DTYPES[:first]]


@pytest.mark.parametrize("name", element_wise())
def test_the_text_of_a_made_kernel_is_its_ir(name, tmp_path):
    for kernel in some(made(name)):
        path = tmp_path / f"{kernel.name}.py"
        path.write_text(kernel.text)
        assert structural_equal(parse(function_of(kernel, path), "X2_1204").entry_func, kernel.function)


FORMS: list[tuple[str, dict[str, Any], tuple[int, ...]]] = [
    ("Activation", {"method": "CRELU", "axis": 1, "scale_value": 171, "shift_value": 8}, (3, 18, 5)),
    ("Activation", {"method": "CRELU", "axis": 0, "scale_value": 171, "shift_value": 8}, (6, 9, 5)),
    ("Where", {}, (135, 3)),
    ("Select", {}, (135, 3)),
]


@pytest.mark.parametrize(("kind", "attributes", "shape"), FORMS)
@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_the_text_of_a_form_of_its_own_is_its_ir(kind, attributes, shape, dtype, tmp_path):
    x, out = Tensor("x", (3, 9, 5), dtype), "int32" if kind != "Activation" else dtype
    kernel = kernel_of([Layer("layer", kind, [x], [Tensor("y", shape, out)], attributes)])
    path = tmp_path / f"{kernel.name}.py"
    path.write_text(kernel.text)
    assert kernel.function is not None
    assert structural_equal(parse(function_of(kernel, path), "X2_1204").entry_func, kernel.function)


def test_statements_say_which_python_made_them():
    for kernel in some(made("Eltwise")):
        files = {Path(s.span.file) for s in walk_stmts(kernel.function.body)}
        assert PACKAGE / "loops.py" in files
        assert any(f.name in ("kernels.py", "emit.py", "byte_functions.py") for f in files)
        assert all(f.is_relative_to(PACKAGE) and f.name != "layer_kernel.py" for f in files)
