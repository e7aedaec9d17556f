"""Operators of `compassc.topi` at modest sizes, and the least that each of them has to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_runtime.profile.costs import cost_model
from compassc import te, topi

REALS = ("float16", "float32")
ALL = ("int8", *REALS)
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Places:
    """A tensor of places below 16."""

    shape: Shape


@dataclass(frozen=True)
class Case:
    """An operator on tensors; `products`: how many products are added (or pairs compared). `functions`: classes of
    operations of the table of costs of which each element of the largest tensor takes one at least."""

    name: str
    define: Callable[..., te.Tensor]
    inputs: tuple[Shape | Places, ...]
    products: int = 0
    kinds: tuple[str, ...] = ALL
    functions: tuple[str, ...] = ()

    def made(self, kind: str) -> tuple[list[te.Tensor], te.Tensor, list[np.ndarray[Any, Any]]]:
        """Tensors, result, and arrays for both."""
        draw, tensors, arrays = np.random.default_rng(0), [], []
        for i, given in enumerate(self.inputs):
            shape, own = (given.shape, "int32") if isinstance(given, Places) else (given, kind)
            tensors.append(te.placeholder(shape, own, name=f"x{i}"))
            whole = draw.integers(0, 16, shape).astype(own)
            arrays.append(whole if own.startswith("int") else draw.uniform(0.1, 2, shape).astype(own))
        out = self.define(*tensors)
        arrays.append(np.zeros([d.value for d in out.shape], str(out.dtype)))
        return tensors, out, arrays

    def bound(self, kind: str, arrays: list[np.ndarray[Any, Any]], target: str) -> float:
        """Cycles that the TECs of a target need at least, by its table of costs: for the start, and for the most of the bytes
        that device memory gives, of one operation on vectors of the widest type, of products by dot products where these
        take the type, and of functions, whose unit takes the next vector after their interval: of reals in the type's lanes,
        of quotients, which halves have none of, in those of float32."""
        model = cost_model(target)
        width, units = model.target.vector_bytes, model.tecs * model.units["vector"]
        widest, elements = max(a.itemsize for a in arrays), max(a.size for a in arrays)
        lanes = {f: width // (4 if f == "div" else np.dtype(kind).itemsize) for f in self.functions}
        return model.launch_cycles + max(
            sum(a.nbytes for a in arrays) / model.device_memory_bytes_per_cycle,
            elements * widest / width / units,
            self.products * np.dtype(kind).itemsize / width / units,
            sum(elements / lanes[f] * model.interval(f, False) for f in self.functions) / units,
        )


def _rows(
    name: str,
    function: Callable[..., te.Tensor],
    count: int = 1,
    kinds: tuple[str, ...] = ALL,
    takes: tuple[str, ...] = (),
) -> Case:
    return Case(name, function, ((64, 512),) * count, 0, kinds, takes)


def _reduction(name: str, what: str, shape: Shape, axis: int | None) -> Case:
    return Case(f"{name} of {what}", lambda x: getattr(topi, name)(x, axis), (shape,))


_PICTURE, _LAST = (1, 32, 32, 32), (1, 16, 16, 16)
_WINDOWS = 32 * 16 * 16 * 16 * 9
CASES = (
    *(_rows(n, getattr(topi, n), 1, REALS, ("math",)) for n in ("exp", "log", "tanh", "sigmoid", "erf", "gelu", "silu")),
    *(_rows(n, getattr(topi, n), 1, REALS) for n in ("floor", "sqrt")),
    *(_rows(n, getattr(topi, n)) for n in ("abs", "sign", "relu", "negative")),
    *(_rows(n, getattr(topi, n), 2) for n in ("add", "subtract", "multiply", "maximum")),
    _rows("divide", topi.divide, 2, REALS, ("div",)),
    _rows("cast", lambda x: topi.cast(x, "int32")),
    Case("prelu", topi.prelu, ((4, 64, 128), (64,)), 0, REALS),
    Case("add a row", topi.add, ((64, 512), (512,))),
    Case("where", topi.where, (Places((64, 512)), (64, 512), (64, 512))),
    Case("transpose", topi.transpose, ((128, 256),)),
    Case("transpose inside", lambda x: topi.transpose(x, [0, 2, 1]), ((8, 64, 64),)),
    Case("reshape", lambda x: topi.reshape(x, [512, 64]), ((64, 512),)),
    Case("concatenate", lambda a, b: topi.concatenate([a, b], 1), ((64, 256), (64, 256))),
    Case("strided_slice", lambda x: topi.strided_slice(x, [0, 1], [64, 512], [1, 2]), ((64, 512),)),
    Case("pad", lambda x: topi.pad(x, [1, 1], [1, 1]), ((62, 510),)),
    Case("tile", lambda x: topi.tile(x, [2, 2]), ((32, 256),)),
    Case("repeat", lambda x: topi.repeat(x, 2, 1), ((64, 256),)),
    Case("flip", lambda x: topi.flip(x, 1), ((64, 512),)),
    Case("depth_to_space", lambda x: topi.depth_to_space(x, 2), (_PICTURE,)),
    Case("space_to_depth", lambda x: topi.space_to_depth(x, 2), ((1, 8, 64, 64),)),
    *(
        _reduction(n, what, shape, axis)
        for n in ("sum", "max", "mean", "argmax")
        for what, shape, axis in (("rows", (64, 512), 1), ("columns", (512, 64), 0), ("all", (64, 512), None))
    ),
    Case("take", lambda x, i: topi.take(x, i, 1), ((16, 512), Places((512,)))),
    Case("gather", lambda x, i: topi.gather(x, 1, i), ((16, 256), Places((16, 256)))),
    Case("scatter_elements", topi.scatter_elements, ((64, 64), Places((16, 64)), (16, 64))),
    Case("topk", lambda x: topi.topk(x, 5, ret_type="values"), ((16, 128),), 16 * 128),
    Case("matmul", topi.matmul, ((64, 256), (256, 64)), 64 * 64 * 256),
    Case("dense", topi.nn.dense, ((64, 256), (64, 256)), 64 * 64 * 256),
    Case("dense of a row", topi.nn.dense, ((1, 1024), (256, 1024)), 256 * 1024),
    Case("batch_matmul", topi.nn.batch_matmul, ((8, 32, 64), (8, 32, 64)), 8 * 32 * 32 * 64),
    Case("conv2d_nchw", lambda x, w: topi.nn.conv2d_nchw(x, w, 1, 1), (_LAST, (32, 16, 3, 3)), _WINDOWS),
    Case("conv2d_nhwc", lambda x, w: topi.nn.conv2d_nhwc(x, w, 1, 1), (_LAST, (3, 3, 16, 32)), _WINDOWS),
    Case("group_conv2d_nchw", lambda x, w: topi.nn.group_conv2d_nchw(x, w, 1, 1, 1, 4), ((1, 32, 16, 16), (32, 8, 3, 3)), _WINDOWS // 2),
    Case("group_conv2d_nhwc", lambda x, w: topi.nn.group_conv2d_nhwc(x, w, 1, 1, 1, 4), ((1, 16, 16, 32), (3, 3, 8, 32)), _WINDOWS // 2),
    Case("conv1d_ncw", lambda x, w: topi.nn.conv1d_ncw(x, w, 1, 1), ((1, 32, 128), (64, 32, 3)), 64 * 128 * 96),
    Case("conv1d_nwc", lambda x, w: topi.nn.conv1d_nwc(x, w, 1, 1), ((1, 128, 32), (3, 32, 64)), 64 * 128 * 96),
    Case("depthwise_conv2d_nchw", lambda x, w: topi.nn.depthwise_conv2d_nchw(x, w, 1, 1), (_PICTURE, (32, 1, 3, 3)), 9 * 32**3),
    Case("depthwise_conv2d_nhwc", lambda x, w: topi.nn.depthwise_conv2d_nhwc(x, w, 1, 1), (_PICTURE, (3, 3, 32, 1)), 9 * 32**3),
    Case("conv2d_transpose_nchw", lambda x, w: topi.nn.conv2d_transpose_nchw(x, w, 2, 1, output_padding=1),
         ((1, 16, 8, 8), (16, 32, 3, 3)), _WINDOWS // 4),
    _rows("softmax", topi.nn.softmax, 1, REALS, ("math",)),
    Case("layer_norm", lambda x, g, b: topi.nn.layer_norm(x, g, b, [1]), ((64, 512), (512,), (512,)), 0, REALS),
    Case("rms_norm", lambda x, g: topi.nn.rms_norm(x, g, [-1]), ((64, 512), (512,)), 0, REALS),
    Case("group_norm", lambda x, g, b: topi.nn.group_norm(x, g, b, 8, 1, [2, 3]), (_PICTURE, (32,), (32,)), 0, REALS),
    Case("batch_norm", topi.nn.batch_norm, (_PICTURE, *[(32,)] * 4), 0, REALS),
    Case("max_pool2d", lambda x: topi.nn.pool2d(x, 3, 2, 1, [1] * 4, "max"), (_PICTURE,), 9 * 32 * 256),
    Case("avg_pool2d", lambda x: topi.nn.pool2d(x, 3, 2, 1, [1] * 4, "avg"), (_PICTURE,), 9 * 32 * 256),
    Case("global_pool", lambda x: topi.nn.global_pool(x, "avg"), ((1, 128, 16, 16),)),
    Case("adaptive_pool", lambda x: topi.nn.adaptive_pool(x, [4, 4], "avg"), (_LAST,)),
    Case("resize2d", lambda x: topi.image.resize2d(x, [32, 32]), (_LAST,), 0, REALS),
)  # fmt: skip
