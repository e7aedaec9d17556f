"""Kernels of layers that are made as IR: their text means the same, and their statements say which Python made them."""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from itertools import cycle
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
from compassc.language.functions import Macro
from compassc.layers.kernel_cache import SHARED, function_of
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.layer_kernel import Kernel
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.support import DTYPES, SHAPES, TRIES
from tests.choosing import some

PACKAGE = Path(layers.__file__).parent


PORTED = (
    "movement",
    "control",
    "reduce",
    "softmax",
    "normalise",
    "rows",
    "counting",
    "sampling",
    "attention",
    "images",
    "pooling",
    "resize",
    "linear",
    "recurrent",
    "detection",
    "regions",
)
"""Families, or modules of them, whose own kernels are made as IR, too."""


def types_made() -> list[str]:
    load_kernels()
    own = {name for name, builder in BUILDERS.items() if any(f".{p}." in f"{builder.__module__}." for p in PORTED)}
    return list(some(sorted((STEPS.keys() | own) & SAMPLES.keys())))


def made(name: str) -> list[Kernel]:
    """Kernels of a few layers of a type, of several data types."""
    kernels: list[Kernel] = []
    for n, (dtype, shape) in enumerate(zip(cycle(chosen_types(name)), SHAPES * TRIES, strict=False)):
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
        if layer is not None and len(kernels) < len(SHAPES):
            with suppress(LayerError):
                kernels.append(kernel_of([layer]))
    return [k for k in kernels if k.function is not None and k.is_program]


def chosen_types(name: str) -> list[str]:
    """Data types, beginning with one that depends on the name."""
    first = crc32(name.encode()) % len(DTYPES)
    return [*DTYPES[first:], *DTYPES[:first]]


@pytest.mark.parametrize("name", types_made())
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


def test_what_kernels_call_is_part_of_their_key():
    """The key of a compiled kernel has the state of the modules whose functions its text calls; these call none of others,
    but of those that all kernels share."""
    load_kernels()
    modules = {name: m for name, m in sys.modules.items() if name.startswith(f"{layers.__name__}.")}
    shared = {import_module(f"{layers.__name__}.{name}").__name__ for name in SHARED}
    macros = [found for m in modules.values() for found in vars(m).values() if isinstance(found, Macro)]
    for macro in some(macros):
        function = macro.py_func
        called = [function.__globals__.get(name) for name in function.__code__.co_names]
        homes = {getattr(found, "__module__", "") for found in called if callable(found)}
        assert homes & modules.keys() <= shared | {function.__module__}, macro.__name__
