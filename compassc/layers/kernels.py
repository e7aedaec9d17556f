"""Which kernel computes a layer: element-wise steps by layer type, and kernels of their own for the others."""

from __future__ import annotations

import importlib.util
import pkgutil
from collections.abc import Callable
from functools import cache

from compassc.layers.layer import Layer, LayerError
from compassc.layers.source import Kernel, Value

Step = Callable[..., Value]
"""`step(source, layer, *operands)`: adds the layer's statements and gives its value, in the range of the output."""
Builder = Callable[[Layer], Kernel]

STEPS: dict[str, Step] = {}
"""Layer type -> its step; filled when the families' kernels are imported."""
BUILDERS: dict[str, Builder] = {}
"""Layer type -> the function that makes its kernel."""


def elementwise(*types: str) -> Callable[[Step], Step]:
    """Registers a step for layer types: layers whose elements follow from the operands' elements at the same place."""

    def register(step: Step) -> Step:
        for name in types:
            STEPS[name] = step
        return step

    return register


def kernel(*types: str) -> Callable[[Builder], Builder]:
    """Registers a function that makes the kernel of a layer of these types."""

    def register(builder: Builder) -> Builder:
        for name in types:
            BUILDERS[name] = builder
        return builder

    return register


@cache
def load_kernels() -> None:
    """Imports the kernels of all families."""
    from compassc.layers import families

    for module in pkgutil.iter_modules(families.__path__):
        name = f"{families.__name__}.{module.name}.kernels"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)


def kernel_of(layer: Layer) -> Kernel:
    """The kernel of one layer; LayerError with the reason where there is none."""
    load_kernels()
    if layer.type in STEPS:
        from compassc.layers.loops import elementwise_kernel

        return elementwise_kernel([layer])
    if layer.type not in BUILDERS:
        raise LayerError(f"{layer.type} has no kernel")
    return BUILDERS[layer.type](layer)
