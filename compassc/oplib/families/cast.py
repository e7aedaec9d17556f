"""Cast: fractions are dropped toward zero; results are clamped to the range of the type, or cut to its bits."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.layer import FLOATS, Choice, Layer, count, one_of, operator
from compassc.oplib.vector import LIMITS, SHORT, share

TYPES = ("float32", "float16", "int32", "int16", "int8", "uint8")
LANES = 32


def _converted(value, source: str, to: str, saturate: bool):
    """A vector in the other type; whole numbers pass through int32, floats through float32."""
    if source == to:
        return value
    if to in FLOATS:
        value = value if source in FLOATS or source == "int32" else S.cast(value, "int32")
        value = S.cast(value, "float32") if source != "float32" else value
        return value if to == "float32" else S.cast(value, to)
    if source in FLOATS:
        value = value if source == "float32" else S.cast(value, "float32")
        if saturate and to != "int32":
            low, high = LIMITS[to]
            value = S.min(S.max(value, float(low)), float(high))
        value = S.cast(value, "int32")
    else:
        value = value if source == "int32" else S.cast(value, "int32")
        if saturate and to != "int32":
            low, high = LIMITS[to]
            value = S.min(S.max(value, low), high)
    return value if to == "int32" else S.cast(value, to)


@cache
def _kernel(source: str, to: str, saturate: bool):
    @S.prim_func
    def cast(x: S.ptr(source, "global"), y: S.ptr(to, "global"), n: S.i32):
        part = share(n, LANES)
        first = S.get_local_id() * part
        for at in range(first, S.min(first + part, n), LANES):
            mask = S.tail_mask(S.min(n - at, LANES), LANES)
            v = S.vload(x + at, mask, lanes=LANES)
            S.vstore(_converted(v, source, to, saturate), y + at, mask)

    return cast


@operator("Cast")
def select(layer: Layer) -> Choice:
    source = one_of("data type", str(layer.input().dtype), TYPES)
    to = one_of("target type", str(layer.output.dtype), TYPES)
    saturate = layer.word("clip_mode", "SATURATION", ("SATURATION", "TRUNCATION")) == "SATURATION"
    name = f"cast_{SHORT[source]}_{SHORT[to]}" + ("" if saturate else "_cut")
    return Choice(_kernel(source, to, saturate), name, [layer.input(), layer.output, count(layer.input().shape)])
