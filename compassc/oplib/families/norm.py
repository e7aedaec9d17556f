"""LayerNorm, RMSNorm (over trailing axes) and BatchNorm (scale and shift of the last axis), computed in float32."""

from functools import cache

from compassc.dsl import script as S
from compassc.oplib.layer import FLOATS, Choice, Layer, Unsupported, constant, operator, split_axes
from compassc.oplib.vector import LANES, ROW, SHORT, filled, narrow, wide


@cache
def _rows(centred: bool, dtype: str):
    """Normalises every row of rows x cols, then scales and shifts it. A row stays in LSRAM."""
    lanes = LANES[dtype]

    @S.prim_func
    def norm(
        x: S.ptr(dtype, "global"), w: S.ptr("float32", "global"), b: S.ptr("float32", "global"),
        y: S.ptr(dtype, "global"), rows: S.i32, cols: S.i32, epsilon: S.fp32,
    ):  # fmt: skip
        row = S.alloc(ROW, "float32", scope="lsram")
        for r in range(S.get_local_id(), rows, S.get_local_size()):
            total = filled(0.0, lanes)
            for i in range(0, cols, lanes):
                mask = S.tail_mask(S.min(cols - i, lanes), lanes)
                v = S.vsel(wide(S.vload(x + (r * cols + i), mask), dtype), filled(0.0, lanes), mask)
                S.vstore(v, row + i)
                total = total + v
            mean = S.fp32(0.0)
            if centred:
                mean = S.vrpadd(total)[0] / S.fp32(cols)
            squares = filled(0.0, lanes)
            for j in range(0, cols, lanes):
                own = S.tail_mask(S.min(cols - j, lanes), lanes)
                d = S.vload(row + j, lanes=lanes) - mean
                squares = S.vsel(squares + d * d, squares, own)
            scale = 1.0 / S.sqrt(S.vrpadd(squares)[0] / S.fp32(cols) + epsilon)
            for k in range(0, cols, lanes):
                last = S.tail_mask(S.min(cols - k, lanes), lanes)
                u = (S.vload(row + k, lanes=lanes) - mean) * scale
                u = u * S.vload(w + k, last, lanes=lanes) + S.vload(b + k, last, lanes=lanes)
                S.vstore(narrow(u, dtype), y + (r * cols + k), last)

    return norm


@operator("LayerNorm", "RMSNorm")
def select(layer: Layer) -> Choice:
    import numpy as np

    dtype = layer.dtype(*FLOATS)
    x, y = layer.input(), layer.output
    axes = layer.axes() if "axis" in layer.params else [len(x.shape) - 1]
    rows, cols, inner = split_axes(list(x.shape), axes)
    if inner != 1:
        raise Unsupported(f"the axes {axes} are not the last ones")
    w = layer.constant("weights").astype("float32").reshape(-1)
    b = layer.constant("biases").astype("float32").reshape(-1) if "biases" in layer.constants else np.zeros_like(w)
    if w.size != cols or b.size != cols:
        raise Unsupported(f"weights and biases have {w.size} and {b.size} elements, the axes {cols}")
    tensors = [x, constant("weights", w), constant("biases", b), y]
    if cols > ROW:
        raise Unsupported(f"{cols} elements are normalised together; at most {ROW} fit LSRAM")
    name = f"{layer.type}_{SHORT[dtype]}".lower()
    kernel = _rows(layer.type == "LayerNorm", dtype)
    return Choice(kernel, name, [*tensors, rows, cols, float(layer.number("epsilon", 1e-5))])
