"""Kernels that are one algorithm, such as the suppression of boxes: a macro, or a whole text that names its parameters,
and has `$name` where layers differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import numpy as np

from compass_core.arrays import Array
from compassc.build import Pointer, Value
from compassc.graph import LayerError, Tensor
from compassc.language.functions import Macro
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.source import Kernel, KernelSource, Parameter, finish
from compassc.layers.vectors import pointee

Substitutions = dict[str, "str | Sequence[str]"]
"""What `$name` is replaced by in the text of a kernel, by name: a part of a line, or lines."""


def script(
    text: str,
    k: KernelSource | None = None,
    words: Substitutions | None = None,
    /,
    **arguments: Tensor | Array | float,
) -> Kernel:
    """The kernel of a text with a parameter for each of `arguments`: tensors, arrays, int32 and float32 numbers.

    A list of lines in `words` replaces a line that is `$name` alone. `k` holds parameters and head lines of such lines.
    """
    k = k or KernelSource()
    for name, argument in arguments.items():
        k.parameters.append(Parameter(name, _annotation(argument), argument))
    lines = list(k.head)
    for line in dedent(text).strip("\n").splitlines():
        lines += filled(line, words or {})
    return finish(k, lines)


def kernel_of_macro(macro: Macro, **arguments: Tensor | Array | float | str | None) -> Kernel:
    """The kernel whose statements are those of a macro. Tensors, arrays and numbers become parameters; texts, truth values
    and None are what they are."""
    k = LayerKernel()
    with k.active():
        macro(**{name: _argument(k, given) for name, given in arguments.items()})
    return k.kernel()


def _argument(k: LayerKernel, given: Tensor | Array | float | str | None) -> Pointer | Value | str | bool | None:
    if isinstance(given, Tensor):
        return k.tensor(given)
    if isinstance(given, np.ndarray):
        return k.pointer(given)
    return given if given is None or isinstance(given, (str, bool)) else k.number(given)


def _annotation(argument: Tensor | Array | float) -> str:
    if isinstance(argument, (Tensor, np.ndarray)):
        dtype = argument.dtype if isinstance(argument, Tensor) else argument.dtype.name
        return f'S.ptr("{pointee(dtype)}", "global")'
    if isinstance(argument, float):
        return "S.fp32"
    if not -(2**31) <= argument < 2**31:
        raise LayerError(f"the number {argument} does not fit 32 bits")
    return "S.i32"


def filled(line: str, words: Substitutions) -> list[str]:
    bare = line.strip()
    indent = line[: len(line) - len(line.lstrip())]
    if bare.startswith("$") and bare[1:].isidentifier() and not isinstance(words[bare[1:]], str):
        return [indent + inner for inner in words[bare[1:]]]
    for name in sorted(words, key=len, reverse=True):
        value = words[name]
        if isinstance(value, str):
            line = line.replace(f"${name}", value)
    return [line]
