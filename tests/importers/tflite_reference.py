"""What TFLite's models compute, in NumPy: integers where a runtime computes with these exactly (`tflite_whole`), else real numbers
(`tflite_reals`).

`run(content, arrays)` evaluates a model's bytes. Quantised operators without a function in INTEGERS are computed on the
real numbers that their inputs stand for, and rounded.
"""

from __future__ import annotations

import numpy as np

from compass_core.reading.budget import Budget
from compassc.importers.tflite.source import parse
from tests.importers.tflite_reals import REAL, away
from tests.importers.tflite_whole import INTEGERS, along

ENDINGS = {0: (None, None), 1: (0, None), 2: (-1, 1), 3: (0, 6)}


def dequantised(array, t):
    return ((array.astype(np.float64) - along(t.zero, t, array.ndim)) * along(t.scale, t, array.ndim)).astype(
        np.float32
    )


def quantised(array, t):
    kind = np.iinfo(t.dtype)
    factor = (1 / t.scale).astype(np.float32)
    whole = away(array.astype(np.float32) * along(factor, t, array.ndim)) + along(t.zero, t, array.ndim)
    return np.clip(whole, kind.min, kind.max).astype(t.dtype)


def limited(array, ending):
    low, high = ENDINGS[ending]
    return array if low is None and high is None else np.clip(array, low, high)


def limited_integers(array, t, ending):
    kind, scale, zero = np.iinfo(t.dtype), float(t.scale[0]), int(t.zero[0])
    low, high = (None if v is None else zero + away(v / scale) for v in ENDINGS[ending])
    low, high = kind.min if low is None else max(low, kind.min), kind.max if high is None else min(high, kind.max)
    return np.clip(array, low, high).astype(t.dtype)


def run(content, arrays):
    """The outputs of a model for its inputs."""
    model = parse(content, "model.tflite", Budget("model.tflite"))
    values = {i: t.array for i, t in enumerate(model.tensors)} | {-1: None}
    values.update(zip(model.inputs, arrays, strict=True))
    with np.errstate(all="ignore"):
        for node in model.nodes:
            infos = [None if i < 0 else model.tensors[i] for i in node.inputs]
            outs = [model.tensors[i] for i in node.outputs]
            values.update(zip(node.outputs, computed(node, [values[i] for i in node.inputs], infos, outs), strict=True))
    return [values[i] for i in model.outputs]


def is_quantised(t):
    return t is not None and t.scale.size > 0 and t.dtype.kind in "iu"


def computed(node, arrays, infos, outs):
    options = dict(node.options)
    ending = 0 if "cell_clip" in options else options.pop("fused_activation_function", 0)
    whole = any(map(is_quantised, infos)) and is_quantised(outs[0])
    if whole and node.operator in INTEGERS:
        made = INTEGERS[node.operator](arrays, infos, outs[0], options)
        return [limited_integers(made, outs[0], ending)]
    given = [dequantised(a, t) if is_quantised(t) and a is not None else a for a, t in zip(arrays, infos, strict=True)]
    made = REAL[node.operator](*given, options=options, out=outs[0], outs=outs, operator=node.operator)
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    made = [limited(np.asarray(m), ending) for m in made]
    return [
        quantised(m, t) if is_quantised(t) else np.asarray(m).astype(t.dtype) for m, t in zip(made, outs, strict=True)
    ]
