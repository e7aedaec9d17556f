"""Gather with indices that are known when the graph runs."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.families.movement import bits
from compassc.oplib.layer import Choice, Layer, Unsupported, count, one_of, operator
from compassc.oplib.vector import LANES, SHORT


@cache
def _kernel(dtype: str, itype: str):
    """y[o, i] = x[o, idx[o / per, i]] for rows of `inner` elements. A negative index counts from the end; one that is
    still outside gives zeros. `per`: outer rows that share one list of indices."""
    lanes = LANES[dtype]

    @S.prim_func
    def gather(
        x: S.ptr(dtype, "global"), idx: S.ptr(itype, "global"), y: S.ptr(dtype, "global"),
        outer: S.i32, size: S.i32, number: S.i32, inner: S.i32, per: S.i32,
    ):  # fmt: skip
        for r in range(S.get_local_id(), outer * number, S.get_local_size()):
            o = r / number
            at = S.i32(idx[o / per * number + r % number])
            if at < 0:
                at = at + size
            inside = at >= 0 and at < size
            if not inside:
                at = 0
            for i in range(0, inner, lanes):
                mask = S.tail_mask(S.min(inner - i, lanes), lanes)
                v = S.vload(x + ((o * size + at) * inner + i), mask)
                if not inside:
                    v = S.cast(S.vbcast(S.i32(0), lanes=lanes), dtype)
                S.vstore(v, y + (r * inner + i), mask)

    return gather


@operator("Gather")
def select(layer: Layer) -> Choice:
    x, idx, y = layer.input(0), layer.input(1), layer.output
    itype = one_of("type of the indices", str(idx.dtype), ("int32", "int16", "int8", "uint8", "uint16"))
    batch = layer.whole("batch_dims", 0)
    axis = layer.axes()[0] if "axis" in layer.params else batch
    if batch > axis or list(x.shape[:batch]) != list(idx.shape[:batch]):
        raise Unsupported(f"batch_dims {batch} does not fit axis {axis} and the shapes")
    outer, number, inner = count(x.shape[:axis]), count(idx.shape[batch:]), count(x.shape[axis + 1 :])
    if count(y.shape) != outer * number * inner or str(x.dtype) != str(y.dtype):
        raise Unsupported(f"its inputs do not lead to the shape {list(y.shape)}")
    per = count(x.shape[batch:axis]) if batch else outer
    name = f"gather_{SHORT[bits(x)]}_{SHORT[itype]}"
    return Choice(_kernel(bits(x), itype), name, [x, idx, y, outer, x.shape[axis], number, inner, per])
