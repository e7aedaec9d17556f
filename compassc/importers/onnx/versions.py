"""The older forms of operators, said by the newest, which is the one that functions of operators take: attributes that became inputs,
and operators that became forms of others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

import numpy as np

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compassc.importers.values import ModelTensor, Refused


@dataclass(frozen=True)
class Older:
    """An operator's form before an opset. `inputs`: what each input of the newest form is, an input of the older one by its place, or
    an attribute by its name. `defaults`: attributes that the newest form takes otherwise where they are not given."""

    before: int
    inputs: tuple[int | str | None, ...]
    defaults: Mapping[str, object] = field(default_factory=dict)
    operator: str = ""
    """Its name in the newest form, where it has another one."""


Item = TypeVar("Item")
REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
BY_SCALES = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
MOST = float(np.finfo(np.float32).max)
OLDER: dict[str, tuple[Older, ...]] = {
    "Clip": (Older(6, (0, "min", "max")), Older(11, (0, "min", "max"), {"min": -MOST, "max": MOST})),
    "DFT": (Older(20, (0, 1, "axis"), {"axis": 1}),),
    "Dropout": (Older(12, (0, "ratio")),),
    "Pad": (Older(11, (0, "pads", "value")),),
    "ReduceSum": (Older(13, (0, "axes")),),
    "Resize": (Older(11, (0, None, 1), BY_SCALES),),
    "RoiAlign": (Older(16, (0, 1, 2), {"coordinate_transformation_mode": "output_half_pixel"}),),
    "Scatter": (Older(11, (0, 1, 2), operator="ScatterElements"),),
    "Slice": (Older(10, (0, "starts", "ends", "axes")),),
    "Split": (Older(13, (0, "split")),),
    "Squeeze": (Older(13, (0, "axes")),),
    "TopK": (Older(10, (0, "k")),),
    "Unsqueeze": (Older(13, (0, "axes")),),
    "Upsample": (Older(9, (0, None, "scales"), BY_SCALES, "Resize"), Older(10, (0, None, 1), BY_SCALES, "Resize")),
    **{f"Reduce{name}": (Older(18, (0, "axes")),) for name in REDUCTIONS},
}
"""By the operator's name, oldest first."""


def newest(
    name: str, opset: int, inputs: Sequence[Item], attributes: dict[str, object], known: Callable[[Array], Item]
) -> tuple[str, Sequence[Item | None], dict[str, object]]:
    """Name, inputs and attributes of a node as the newest form has them. `known`: makes a tensor of an array."""
    older = next((o for o in OLDER.get(name, ()) if opset < o.before), None)
    if older is None:
        return name, inputs, attributes
    taken = 1 + max(s for s in older.inputs if isinstance(s, int))
    if any(i is not None for i in inputs[taken:]):
        raise Refused(f"its inputs after the first {taken} are not supported")
    given = {**older.defaults, **attributes}
    made: list[Item | None] = []
    for source in older.inputs:
        if isinstance(source, int):
            made.append(inputs[source] if source < len(inputs) else None)
            continue
        value = None if source is None else given.pop(source, None)
        made.append(None if value is None else known(_array(value, inputs[0])))
    return older.operator or name, made, given


def _array(value: object, x: object) -> Array:
    """An attribute as an input: one real number has the type of the first input."""
    array = np.asarray(value)
    if array.dtype.kind == "i" or not array.size:
        return array.astype(np.int64)
    return array.astype(x.dtype if isinstance(x, ModelTensor) and not array.ndim else np.float32)
