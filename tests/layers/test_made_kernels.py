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

from compass_core import files
from compass_core.bounded import Bounded
from compassc import layers
from compassc.dsl import parse
from compassc.graph import Layer, LayerError, Tensor
from compassc.ir.equal import structural_equal
from compassc.ir.stmts import PrimFunc
from compassc.ir.visit import walk_stmts
from compassc.language.functions import Macro
from compassc.layers import layer_kernel
from compassc.layers.arranged import Arranged
from compassc.layers.families import FAMILY_OF
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import SHARED, function_of
from compassc.layers.kernels import BUILDERS, STEPS, kernel_of, load_kernels
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
    return list(some(sorted((STEPS.keys() | own) & SAMPLES.keys(), key=lambda name: (FAMILY_OF[name], name))))


def made(name: str) -> list[Kernel]:
    """Kernels of a few layers of a type, of several data types."""
    kernels: list[Kernel] = []
    for n, (dtype, shape) in enumerate(zip(cycle(chosen_types(name)), SHAPES * TRIES, strict=False)):
        if len(kernels) == len(SHAPES):
            break
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
        if layer is not None:
            with suppress(LayerError):
                kernels.append(kernel_of([layer]))
    return [k for k in kernels if k.function is not None and k.is_program]


def chosen_types(name: str) -> list[str]:
    """Data types, beginning with one that depends on the name."""
    first = crc32(name.encode()) % len(DTYPES)
    return [*DTYPES[first:], *DTYPES[:first]]


_PARSED: Bounded[str, PrimFunc] = Bounded(64)
"""What texts of kernels mean. A quarter of them are those of other types of the family, too."""


def parsed(kernel: Kernel, folder: Path) -> PrimFunc:
    """What the text of a kernel means."""
    known = _PARSED.get(kernel.text)
    if known is None:
        path = files.write(folder / f"{kernel.name}.py", kernel.text)
        known = _PARSED[kernel.text] = parse(function_of(kernel, path), "X2_1204").entry_func
    return known


@pytest.mark.parametrize("name", types_made())
def test_the_text_of_a_made_kernel_is_its_ir(name, tmp_path):
    for kernel in some(made(name)):
        assert structural_equal(parsed(kernel, tmp_path), kernel.function)


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
    assert kernel.function is not None
    assert structural_equal(parsed(kernel, tmp_path), kernel.function)


class Forgetful(dict[object, layer_kernel.Part]):
    """Knows nothing of what was put into it."""

    def get(self, key: object, default: object = None) -> None:
        return None


@pytest.mark.parametrize("name", ["Convolution", "ConvTranspose", "Convolution3D", "ConvInteger", "FullyConnected"])
def test_a_kernel_is_the_same_whatever_was_made_before(name, monkeypatch):
    monkeypatch.setattr(layer_kernel, "_PARTS", Forgetful())
    alone = list(some(made(name)))
    parts: dict[object, layer_kernel.Part] = {}
    monkeypatch.setattr(layer_kernel, "_PARTS", parts)
    for found in (made(name), made(name)):
        for kernel, other in zip(found, alone, strict=True):
            assert kernel.text == other.text
            assert structural_equal(kernel.function, other.function)
    assert 0 < len(parts) <= 3 * len(alone), "a kernel has three parts at most"


def test_layers_of_other_sizes_and_weights_have_parts_of_kernels_in_common(monkeypatch):
    parts: dict[object, layer_kernel.Part] = {}
    monkeypatch.setattr(layer_kernel, "_PARTS", parts)
    kernels = []
    for size, seed in ((6, 1), (6, 2), (10, 3)):
        x, y = Tensor("x", (1, size, size, 32), "int8"), Tensor("y", (1, size, size, 32), "int8")
        weights = np.random.default_rng(seed).integers(-90, 90, (32, 1, 1, 32)).astype(np.int8)
        window = {f"{key}_{axis}": 1 for key in ("kernel", "stride", "dilation") for axis in "xy"}
        window |= dict.fromkeys(("pad_left", "pad_right", "pad_top", "pad_bottom"), 0)
        constants = {"weights": weights, "biases": np.zeros(32, np.int32)}
        scaled = {"scale_value": seed + 1, "shift_value": 7, "num_output": 32, "group": 1, "with_activation": "NONE"}
        kernels.append(kernel_of([Layer("conv", "Convolution", [x], [y], window | scaled, constants)]))
    weights_of = [next(a for a in k.arguments if isinstance(a, Arranged)) for k in kernels]
    assert len(parts) == 3 and len({w.array.tobytes() for w in weights_of}) == 3


def test_statements_say_which_python_made_them():
    for kernel in some(made("Eltwise")):
        makers = {Path(s.span.file) for s in walk_stmts(kernel.function.body)}
        assert PACKAGE / "loops.py" in makers
        assert any(f.name in ("kernels.py", "emit.py", "byte_functions.py") for f in makers)
        assert all(f.is_relative_to(PACKAGE) and f.name != "layer_kernel.py" for f in makers)


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
