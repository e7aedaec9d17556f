"""Kernels of attention: lanes are keys, then channels of values; a row of scores lies in LSRAM."""

from __future__ import annotations

from compassc.build import Address, Expression
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.families.attention.reference import attention_of, parts, rotation_of
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel
from compassc.layers.lane_arithmetic import across_max, across_sum
from compassc.layers.layer_kernel import kernel_of_macro
from compassc.layers.vectors import clamp, load, narrow, wide, wide_kind

KEYS = 6144
"""Scores of a query that LSRAM holds."""


@S.macro
def rotated(
    x: Address, cos: Address, sin: Address, y: Address, images: Expression, heads: Expression, steps: Expression,
    width: Expression, half: Expression, second: Expression, of_image: Expression, of_head: Expression,
    of_step: Expression, positions: Expression, cached: Expression, cos_type: str, sin_type: str, dtype: str, to: str,
    interleaved: bool, per_image: bool, places: Address | None = None,
) -> None:  # fmt: skip
    """Pairs of elements turned by the angle of their position; what is behind the pairs stays."""
    for p in range(S.get_local_id(), images * steps * heads, S.get_local_size()):
        s = p / heads % steps
        b = p / (heads * steps)
        own = b * of_image + p % heads * of_head + s * of_step
        at = s + 0 if places is None else S.i32(places[b * steps + s])
        line = ((b * positions if per_image else 0) + clamp(at, 0, positions - 1)) * cached
        for j in range(0, half, 32):
            mask = S.tail_mask(S.min(half - j, 32), 32)
            c = load(cos + (line + j), mask, cos_type, 32)
            n = load(sin + (line + j), mask, sin_type, 32)
            first = j * (2 if interleaved else 1)
            u = wide(S.vload(x + (own + first), mask, lanes=32, stride=2 if interleaved else 1), dtype)
            v = wide(S.vload(x + (own + second + first), mask, lanes=32, stride=2 if interleaved else 1), dtype)
            S.vstore(narrow(c * u - n * v, to), y + (own + first), mask, stride=2 if interleaved else 1)
            S.vstore(narrow(n * u + c * v, to), y + (own + second + first), mask, stride=2 if interleaved else 1)
        for j in range(half * 2, width, 32):
            mask = S.tail_mask(S.min(width - j, 32), 32)
            S.vstore(narrow(load(x + (own + j), mask, dtype, 32), to), y + (own + j), mask)


def _floats(*tensors: Tensor) -> None:
    for t in tensors:
        if wide_kind(t) != "float32":
            raise LayerError(f"'{t.name}' is {t.dtype}, expected floats")


@kernel("RotaryEmbedding")
def rotary_embedding(layer: Layer) -> Kernel:
    r, (x, cos, sin) = rotation_of(layer), layer.inputs[:3]
    _floats(x, cos, sin, layer.output)
    given: dict[str, Tensor] = {}
    if len(layer.inputs) == 4:
        if wide_kind(layer.inputs[3]) != "int32":
            raise LayerError(f"positions are {layer.inputs[3].dtype}, expected whole numbers")
        given["places"] = layer.inputs[3]
    return kernel_of_macro(
        rotated,
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
        cos_type=cos.dtype,
        sin_type=sin.dtype,
        dtype=x.dtype,
        to=layer.output.dtype,
        interleaved=layer.flag("interleaved", False),
        per_image=bool(r.cache_per_image),
        **given,
    )


@S.macro
def attended(
    q: Address, k: Address, v: Address, y: Address, images: Expression, heads: Expression, shared: Expression,
    queries: Expression, width: Expression, keys: Expression, values: Expression, factor: Expression,
    step_q: Expression, step_qc: Expression, step_k: Expression, step_kc: Expression, step_v: Expression,
    step_vc: Expression, k_type: str, v_type: str, to: str, mask_type: str, added: Address | None = None,
    mask_image: Expression | None = None, mask_head: Expression | None = None,
) -> None:  # fmt: skip
    """Values weighed by the softmax of their keys' products with a query."""
    scores = S.alloc(KEYS, "float32", scope="lsram")
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
                acc = (
                    acc + wide(S.vload(near + (c * step_kc + j * step_k), mask, lanes=32, stride=step_k), k_type) * one
                )
            acc = acc * factor
            if added is not None:
                of_image = 0 if mask_image is None else b * mask_image
                of_head = 0 if mask_head is None else h * mask_head
                acc = acc + load(added + (of_image + of_head + m * keys + j), mask, mask_type, 32)
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
                acc = (
                    acc + wide(S.vload(far + (j * step_v + c * step_vc), mask, lanes=32, stride=step_vc), v_type) * one
                )
            S.vstore(narrow(acc / total, to), y + (p * values + c), mask)


@kernel("SDPAttention")
def attention(layer: Layer) -> Kernel:
    a, (q, k, v) = attention_of(layer), layer.inputs[:3]
    _floats(*layer.inputs, layer.output)
    if a.keys > KEYS:
        raise LayerError(f"scores of {a.keys} keys do not fit LSRAM; it takes {KEYS}")
    turned = {n: layer.flag(f"trans_{n}", False) for n in "qkv"}
    given: dict[str, Tensor | int] = {}
    mask = layer.inputs[3] if len(layer.inputs) > 3 else None
    if mask is not None:
        sizes = {"mask_image": mask.count // mask.shape[0], "mask_head": a.queries * a.keys}
        given = {"added": mask} | {n: v for i, (n, v) in enumerate(sizes.items()) if mask.shape[i] > 1}
    steps = {
        "q": (1, a.queries) if turned["q"] else (a.width, 1),
        "k": (a.width, 1) if turned["k"] else (1, a.keys),
        "v": (1, a.keys) if turned["v"] else (a.values, 1),
    }
    given |= {f"step_{n}": s[0] for n, s in steps.items()} | {f"step_{n}c": s[1] for n, s in steps.items()}
    return kernel_of_macro(
        attended,
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
        k_type=k.dtype,
        v_type=v.dtype,
        to=layer.output.dtype,
        mask_type=mask.dtype if mask is not None else "",
        **given,
    )
