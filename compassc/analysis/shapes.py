"""Tensor shapes that are known when a kernel is built: from `S.match_buffer` and the index arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from compass_core.aipubin.dtypes import element_dtype, scalar_value
from compass_core.extents import evaluate

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import KernelFields


def known_shapes(params: KernelFields, values: Mapping[str, int | float], tecs: int) -> dict[str, tuple[int, ...]]:
    """Shapes of the tensors of a `NAME.params.json` whose sizes do not depend on run-time scalars or on data.

    `values` are the scalars fixed at build. Tensors that are not in the result get their size when the kernel runs.
    """
    shapes: dict[str, tuple[int, ...]] = {}
    types = {p["name"]: p["dtype"] for p in params["params"] if p["kind"] == "scalar"}
    values = {name: scalar_value(element_dtype(types[name]), v) if name in types else v for name, v in values.items()}
    program = params.get("extents")
    extents = evaluate(program, values, tecs) if program else {}
    for p in params["params"]:
        if p["kind"] != "pointer":
            continue
        dims = [values.get(d) if isinstance(d, str) else d for d in p.get("dims") or p.get("shape") or ()]
        known = [int(d) for d in dims if d is not None]
        if dims and len(known) == len(dims):
            shapes[p["name"]] = tuple(known)
            continue
        extent = extents.get(p["name"])
        if extent is not None and extent.elements:
            shapes[p["name"]] = (extent.elements,)
    return shapes
