"""Kernels of attention: lanes are keys, then channels of values; a row of scores lies in LSRAM."""

from __future__ import annotations

from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.emit import wide_kind
from compassc.layers.families.attention.reference import attention_of, parts, rotation_of
from compassc.layers.kernels import kernel
from compassc.layers.scripts import Substitutions, script
from compassc.layers.source import Kernel

KEYS = 6144
"""Scores of a query that LSRAM holds."""

ROTATE = """
for p in range(S.get_local_id(), images * steps * heads, S.get_local_size()):
    s = p / heads % steps
    b = p / (heads * steps)
    own = b * of_image + p % heads * of_head + s * of_step
    at = $position
    line = ($cache + clamp(at, 0, positions - 1)) * cached
    for j in range(0, half, 32):
        mask = S.tail_mask(S.min(half - j, 32), 32)
        c = load(cos + (line + j), mask, "$cos", 32)
        n = load(sin + (line + j), mask, "$sin", 32)
        u = wide(S.vload(x + (own + j * $stride), mask, lanes=32, stride=$stride), "$dtype")
        v = wide(S.vload(x + (own + second + j * $stride), mask, lanes=32, stride=$stride), "$dtype")
        S.vstore(narrow(c * u - n * v, "$to"), y + (own + j * $stride), mask, stride=$stride)
        S.vstore(narrow(n * u + c * v, "$to"), y + (own + second + j * $stride), mask, stride=$stride)
    for j in range(half * 2, width, 32):
        mask = S.tail_mask(S.min(width - j, 32), 32)
        S.vstore(narrow(load(x + (own + j), mask, "$dtype", 32), "$to"), y + (own + j), mask)
"""


def _floats(*tensors: Tensor) -> None:
    for t in tensors:
        if wide_kind(t) != "float32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected floats")


@kernel("RotaryEmbedding")
def rotary_embedding(layer: Layer) -> Kernel:
    r, (x, cos, sin) = rotation_of(layer), layer.inputs[:3]
    _floats(x, cos, sin, layer.output)
    words: Substitutions = {
        "position": "s + 0",
        "cache": "b * positions" if r.cache_per_image else "0",
        "cos": cos.dtype,
        "sin": sin.dtype,
        "dtype": x.dtype,
        "to": layer.output.dtype,
        "stride": "2" if layer.flag("interleaved", False) else "1",
    }
    given: dict[str, Tensor | int] = {}
    if len(layer.inputs) == 4:
        if wide_kind(layer.inputs[3]) != "int32":
            raise LayerError(f"positions are {layer.inputs[3].dtype}, expected whole numbers")
        words["position"] = "S.i32(places[b * steps + s])"
        given["places"] = layer.inputs[3]
    return script(
        ROTATE,
        None,
        words,
        x=x,
        cos=cos,
        sin=sin,
        y=layer.output,
        images=r.images,
        heads=r.heads,
        steps=r.steps,
        width=r.width,
        half=r.rotated // 2,
        second=int(parts(layer, r)[1].start),
        of_image=r.of_image,
        of_head=r.of_head,
        of_step=r.of_step,
        positions=r.positions,
        cached=r.cached,
        **given,
    )


ATTEND = """
scores = S.alloc($room, "float32", scope="lsram")
for p in range(S.get_local_id(), images * heads * queries, S.get_local_size()):
    m = p % queries
    h = p / queries % heads
    b = p / (queries * heads)
    own = q + ((b * heads + h) * (queries * width) + m * step_q)
    group = b * (heads / shared) + h / shared
    near = k + group * (width * keys)
    far = v + group * (keys * values)
    peak = S.vbcast(S.fp32(-3.4028234663852886e38), lanes=32)
    for j in range(0, keys, 32):
        mask = S.tail_mask(S.min(keys - j, 32), 32)
        acc = S.vbcast(S.fp32(0), lanes=32)
        for c in range(width):
            one = S.cast(own[c * step_qc], "float32")
            acc = acc + wide(S.vload(near + (c * step_kc + j * step_k), mask, lanes=32, stride=step_k), "$k") * one
        acc = acc * factor
        $masked
        S.vstore(acc, scores + j, mask)
        peak = S.vsel(S.max(peak, acc), peak, mask)
    top = across_max(peak)[0]
    sums = S.vbcast(S.fp32(0), lanes=32)
    for j in range(0, keys, 32):
        mask = S.tail_mask(S.min(keys - j, 32), 32)
        power = S.exp(S.vload(scores + j, mask, lanes=32) - top)
        S.vstore(power, scores + j, mask)
        sums = sums + S.vsel(power, S.vbcast(S.fp32(0), lanes=32), mask)
    total = across_sum(sums)[0]
    for c in range(0, values, 32):
        mask = S.tail_mask(S.min(values - c, 32), 32)
        acc = S.vbcast(S.fp32(0), lanes=32)
        for j in range(keys):
            one = scores[j] + 0.0
            acc = acc + wide(S.vload(far + (j * step_v + c * step_vc), mask, lanes=32, stride=step_vc), "$v") * one
        S.vstore(narrow(acc / total, "$to"), y + (p * values + c), mask)
"""


@kernel("SDPAttention")
def attention(layer: Layer) -> Kernel:
    a, (q, k, v) = attention_of(layer), layer.inputs[:3]
    _floats(*layer.inputs, layer.output)
    if a.keys > KEYS:
        raise LayerError(f"scores of {a.keys} keys do not fit LSRAM; it takes {KEYS}")
    turned = {n: layer.flag(f"trans_{n}", False) for n in "qkv"}
    words: Substitutions = {
        "room": str(KEYS),
        "k": k.dtype,
        "v": v.dtype,
        "to": layer.output.dtype,
        "masked": [],
    }
    given: dict[str, Tensor | int] = {}
    if len(layer.inputs) > 3:
        mask = layer.inputs[3]
        row = " + ".join(t for t, n in (("b * mask_image", mask.shape[0]), ("h * mask_head", mask.shape[1])) if n > 1)
        row = f"{row} + m * keys + j" if row else "m * keys + j"
        words["masked"] = [f'acc = acc + load(added + ({row}), mask, "{mask.dtype}", 32)']
        given["added"] = mask
        sizes = {"mask_image": mask.count // mask.shape[0], "mask_head": a.queries * a.keys}
        given |= {n: v for i, (n, v) in enumerate(sizes.items()) if mask.shape[i] > 1}
    steps = {
        "q": (1, a.queries) if turned["q"] else (a.width, 1),
        "k": (a.width, 1) if turned["k"] else (1, a.keys),
        "v": (1, a.keys) if turned["v"] else (a.values, 1),
    }
    given |= {f"step_{n}": s[0] for n, s in steps.items()} | {f"step_{n}c": s[1] for n, s in steps.items()}
    return script(
        ATTEND,
        None,
        words,
        q=q,
        k=k,
        v=v,
        y=layer.output,
        images=a.images,
        heads=a.heads,
        shared=a.shared,
        queries=a.queries,
        width=a.width,
        keys=a.keys,
        values=a.values,
        factor=float(layer.number("scale_factor", 1.0)),
        **given,
    )
