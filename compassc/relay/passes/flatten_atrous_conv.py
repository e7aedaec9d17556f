"""Write convolutions of space in batches as convolutions with dilation.

Before: a typed module.
After: no convolution without padding and strides, in NHWC, stands between `nn.space_to_batch_nd` and `nn.batch_to_space_nd` of the same
blocks whose paddings and crops a convolution with dilation can have.
"""

from __future__ import annotations

from compassc.relay.expr import Call, Expr
from compassc.relay.layouts import layout
from compassc.relay.module import IRModule
from compassc.relay.operators import op_name
from compassc.relay.passes._functions import rewrite_functions, tensor
from compassc.relay.types import is_dynamic

NAME = "FlattenAtrousConv"
LEVEL = 0
REQUIRED = ("InferType",)
_CONVOLUTIONS = ("nn.conv2d", "qnn.conv2d")


def run(module: IRModule) -> IRModule:
    return rewrite_functions(module, _flattened)


def _call(e: Expr, *names: str) -> Call | None:
    return e if isinstance(e, Call) and op_name(e) in names and e.attrs is not None else None


def _flattened(before: Expr, after: Expr) -> Expr:
    outer = _call(before, "nn.batch_to_space_nd")
    conv = _call(outer.args[0], *_CONVOLUTIONS) if outer else None
    inner = _call(conv.args[0], "nn.space_to_batch_nd") if conv else None
    now = after.args[0] if isinstance(after, Call) and inner else None
    if outer is None or conv is None or inner is None or not isinstance(now, Call) or not isinstance(now.args[0], Call):
        return after
    paddings = _paddings(outer, conv, inner)
    if paddings is None or conv.attrs is None or inner.attrs is None:
        return after
    attrs = conv.attrs.changed(dilation=inner.attrs["block_shape"], padding=paddings)
    return Call(
        conv.op, [now.args[0].args[0], *now.args[1:]], attrs, (), before.span if isinstance(before, Call) else None
    )


def _paddings(outer: Call, conv: Call, inner: Call) -> list[int] | None:
    """The paddings of the convolution with dilation; None where there is none that does the same."""
    a, b, c = (dict(e.attrs or {}) for e in (outer, conv, inner))
    blocks = list(c["block_shape"])
    if list(a["block_shape"]) != blocks or len(blocks) != 2 or b["data_layout"] != "NHWC" or any(b["padding"]):
        return None
    plain = all(n == 1 for n in (*b["strides"], *b["dilation"])) and b["out_layout"] in ("", "NHWC")
    data, weight, result = inner.args[0], conv.args[1], outer
    zero = op_name(conv) == "nn.conv2d" and not c.get("pad_value")
    if not plain or not zero or any(is_dynamic(e.checked_type) for e in (data, weight, result)):
        return None
    kernel = layout(str(b["kernel_layout"]))
    if kernel.primals != kernel.name:
        return None
    before, behind = [], []
    for i, axis in enumerate("HW"):
        reach = (tensor(weight).concrete_shape[kernel.index_of(axis)] - 1) * blocks[i]
        start = c["paddings"][i][0] - a["crops"][i][0]
        end = tensor(result).concrete_shape[1 + i] + reach - tensor(data).concrete_shape[1 + i] - start
        before.append(start)
        behind.append(end)
    return [*before, *behind] if min(*before, *behind) >= 0 else None
