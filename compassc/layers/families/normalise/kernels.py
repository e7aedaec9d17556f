"""Kernels of normalisations: a mean, a sum of squares, then every element times a factor of its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compassc.build import Value
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import Array, inverse_root_table
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.axis_sums import divide, mean_and_squares, squares, sums_of_bytes
from compassc.layers.byte_functions import BYTES
from compassc.layers.emit import requantise
from compassc.layers.families.normalise import of_bytes
from compassc.layers.families.normalise.groups import in_groups
from compassc.layers.families.normalise.reference import affine, factors, norm_axes
from compassc.layers.kernels import kernel
from compassc.layers.source import Kernel, KernelSource, named

Operands = dict[str, Tensor | Array]


class NormalisationKernel:
    """A normalisation in the making: the walk over its positions, with factors and addends as operands."""

    def __init__(self, layer: Layer, tail: Sequence[Layer] = ()) -> None:
        self.layer, self.tail, self.k = layer, tail, KernelSource()
        self.quantised = layer.is_quantised
        shape, axes = layer.input.shape, self._axes()
        operands: Operands = {"x": layer.input, "y": ending(layer, tail)}
        if layer.type == "GroupNorm":
            shape, axes = self._groups()
            operands = {"x": replace(layer.input, shape=shape), "y": replace(ending(layer, tail), shape=shape)}
        known = () if layer.type == "MVN" else ("weights", "biases")
        self.affine = {key: values for key in known if (values := self._channels(key)) is not None}
        if layer.type != "MVN" and self.quantised and (scale := factors(layer)[0]).size > 1:
            self.affine["factors"] = self._in_groups(scale)  # only its shape counts
        names = ("mean_out", "factor_out")
        if layer.type != "MVN" and self.quantised:
            self.affine, self.scale, self.shift = self._combined()
        outputs = dict(zip(names, layer.outputs[1:], strict=False))
        self.outputs = list(outputs)
        for t in outputs.values():
            if t.shape != tuple(1 if i in axes else n for i, n in enumerate(shape)):
                raise LayerError(f"'{t.name}' is declared as {list(t.shape)}, which has no kernel")
        self.w = AxisLoop(self.k, axes, {**operands, **self.affine, **outputs}, ("x", "y"), ("y",))

    def _axes(self) -> list[int]:
        layer = self.layer
        if layer.type == "GroupNorm":
            return []
        return list(norm_axes(layer)) if layer.type != "MVN" else layer.axes()

    def _groups(self) -> tuple[tuple[int, ...], list[int]]:
        """The shape with the channels in groups, and the axes over which each is normalised."""
        layer, shape = self.layer, self.layer.input.shape
        axis, group = layer.axis("axis", -1), layer.integer("group")
        if group < 1 or shape[axis] % group:
            raise LayerError(f"{shape[axis]} channels do not divide into {group} groups")
        split = (*shape[:axis], group, shape[axis] // group, *shape[axis + 1 :])
        return split, [a for a in range(1, len(split)) if a != axis]

    def _channels(self, key: str) -> Array | None:
        """Factors or addends, shaped to broadcast to the input as it is walked."""
        values = affine(self.layer, key)
        if values is None:
            return None
        if self.quantised:
            if np.abs(values).max(initial=0) >= 1 << 31:
                largest = np.abs(values).max()
                raise LayerError(f"'{key}' plus '{key}_zp' is up to {largest}, which does not fit 32 bits")
            values = values.astype(np.int32)
        return self._in_groups(values)

    def _in_groups(self, values: Array) -> Array:
        """Values shaped to broadcast to the input, as it is walked."""
        if self.layer.type != "GroupNorm":
            return values
        axis, group = self.layer.axis("axis", -1), self.layer.integer("group")
        own = values.shape[axis]
        halves = (group, own // group) if own > 1 else (1, 1)
        return values.reshape(*values.shape[:axis], *halves, *values.shape[axis + 1 :])

    def float_kernel(self, centred: bool, epsilon: float) -> Kernel:
        k, w, layer = self.k, self.w, self.layer
        if centred:
            w.mean("x")
        away = " - mean" if centred else ""
        w.sum_of("squares", lambda: f"square_of({w.load('x').name}{away})", "float32")
        small = k.scalar(float(np.float32(layer.number("epsilon", epsilon))))
        k.do(f"factor = 1.0 / S.sqrt(squares / {k.scalar(float(w.count))} + {small})")
        with w.each():
            y = k.let(f"({w.load('x').name}{away}) * factor", "float32")
            for key, sign in (("weights", "*"), ("biases", "+")):
                if key in self.affine:
                    y = k.let(f"{y.name} {sign} {w.load(key).name}", "float32")
            w.settle(layer, self.tail, y)
        for name, value in zip(self.outputs, ("mean", "factor"), strict=False):
            w.store(name, value)
        return w.kernel()

    def normalised(self, prefix: str = "norm_") -> Value:
        """An element around its mean in the scale of the normalised values; `factor` must be known."""
        k, x, out = self.k, self.layer.input.integer, self.layer.output.integer
        low, high = (-(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1) if out.signed else (0, (1 << out.bits) - 1)
        span = self.layer.input.high - self.layer.input.low
        if self.layer.input.dtype in BYTES:
            scale, shift = self.layer.scale_shift(prefix, of=1)
            k.do('mean_half = S.cast(mean, "int16")')
            k.do('factor_half = S.cast(factor, "uint16")')
            parts = k.let(f"halves_of({self.w.raw('x')}) - mean_half").name
            both = k.let(f"product_of_halves({parts}, factor_half)", "int32", -span * 32768, span * 32768)
            return requantise(k, both, scale, shift + 8, 0, low, high)
        away = k.let(f"{self.w.load('x').name} - mean", "int32", -span, span)
        if x.bits <= 8:
            scale, shift = self.layer.scale_shift(prefix, of=1)
            product = k.let(f"{away.name} * factor", "int32", -span * 32768, span * 32768)
            return requantise(k, product, scale, shift + 8, 0, low, high)
        product = k.let(f"({away.name} >> 1) * factor", "int32", -32768 * 65535, 32767 * 65535)
        return requantise(k, product, 1, 7, 0, low, high)

    def integer_factor(self, variance_bits: bool, prefix: str = "norm_") -> None:
        """`factor`: 2^15 over the root of the mean (of 8 bits: the sum shifted) of `squares`, requantised."""
        k, w, layer = self.k, self.w, self.layer
        table = k.table(inverse_root_table().astype(np.uint16))
        count, move = w.count, layer.factor("var_shift_value", 0) if variance_bits else 0
        w.start("factor", "0", "int32")
        if variance_bits and move >= 0:
            if move > 16:
                k.do(f"lower = upper >> S.u32({k.scalar(min(move - 16, 31))})")
                k.do("upper = lower >> S.u32(16)")
                k.do("lower = lower & S.u32(0xFFFF)")
                move = 0
            k.do(f"shift_pair(factor, lower, upper, {k.scalar(move)})")
        elif not variance_bits and count < 1 << 16:
            k.do(f"divide_pair(factor, lower, upper, {w.filled(k.scalar(count), 'uint32')})")
        elif not variance_bits:
            divide(w, "whole", "left")
            k.do('factor = S.cast(S.min(whole, S.u32(0x7FFFFFFF)), "int32")')
        k.do(f"inverse_root(factor, {table}, mask)")
        k.do("factor = (factor + 32768) >> 16")
        if not variance_bits:
            scale, shift = layer.scale_shift(prefix, of=1)
            found = requantise(k, named("factor", "int32", 0, 32768), scale, shift, 0, 0, 65535)
            k.do(f"factor = {found.name} + 0")

    def _combined(self) -> tuple[dict[str, Array], Array, Array]:
        """(factors and addends, scale, shift): where 16 and 32 bits hold the factors and the sums times the scale, it is
        part of them."""
        scale, shift = factors(self.layer)
        known, arrays = self.affine, {key: a.astype(np.int64) for key, a in self.affine.items()}
        if (
            "weights" not in known
            or scale.size > 1
            or not 0 < int(scale) < 1 << 15
            or self.layer.output.integer.bits > 8
        ):
            return known, scale, shift
        times = {key: a * int(scale) for key, a in arrays.items()}
        largest = {key: int(np.abs(a).max(initial=0)) for key, a in times.items()}
        if largest["weights"] >= 1 << 15 or 256 * largest["weights"] + largest.get("biases", 0) >= 1 << 31:
            return known, scale, shift
        kinds = {"weights": np.int16, "biases": np.int32}
        kept = {key: a.astype(kinds[key]) for key, a in times.items() if key == "weights" or a.any()}
        return kept, np.ones_like(scale), shift

    def store(self, n: Value) -> None:
        """Factors and addends on normalised integers, requantised to the output."""
        k, w, out = self.k, self.w, self.layer.output
        for key in (key for key in ("weights", "biases") if key in self.affine):
            array = self.affine[key]
            ends = (int(array.min()), int(array.max()))
            if key == "weights":
                products = [a * b for a in (n.low, n.high) for b in ends]
                n = k.let(self._times(n, key), "int32", min(products), max(products))
            else:
                n = k.let(f"{n.name} + {w.load(key).name}", "int32", n.low + ends[0], n.high + ends[1])
        if "factors" in self.affine:
            k.lanes_of = lambda pointer: w.lanes_at(pointer, "factors")
        y = requantise(k, n, self.scale, self.shift, out.scalar_zero, out.low, out.high)
        k.lanes_of = None
        w.settle(self.layer, self.tail, y)

    def _times(self, n: Value, key: str) -> str:
        """The expression of normalised integers times their factors."""
        k, w = self.k, self.w
        dtype = next((d for d in BYTES if (n.name, d) in k.stored_forms), "")
        if self.affine[key].dtype != np.int16 or not dtype or w.lane.steps[w.names.index(key)] != 1:
            return f"{n.name} * {w.load(key).name}"
        held = k.let(f'halves_of(narrow({n.name}, "{dtype}"))').name
        return f"product_of_halves({held}, {k.let(w.raw(key)).name})"

    def in_bytes(self) -> bool:
        """Whether the sums of a position are those of joined bytes, and fit 32 bits."""
        x, w = self.layer.input, self.w
        small = x.dtype in BYTES and self.layer.output.integer.bits == 8 and w.count <= of_bytes.MOST
        return small and w.across and w.lane.steps[0] == 1 and not self.outputs

    def kernel_of_bytes(self, prefix: str) -> Kernel:
        k, w, layer, out = self.k, self.w, self.layer, self.layer.output
        sums_of_bytes(w, "x")
        of_bytes.deviation(k, layer, w.count)
        with w.each():
            n = of_bytes.normalised(k, layer, w.raw("x"), prefix)
            if layer.type == "MVN":
                w.settle(layer, self.tail, requantise(k, n, 1, 0, out.scalar_zero, out.low, out.high))
            else:
                self.store(n)
        return w.kernel()


@kernel("LayerNorm", "InstanceNorm", "GroupNorm", "MVN", tail=True)
def norm(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    if layer.type == "GroupNorm" and (grouped := in_groups(layer, tail)) is not None:
        return grouped
    own = NormalisationKernel(layer, tail)
    if not layer.is_quantised:
        return own.float_kernel(True, 1e-9 if layer.type == "MVN" else 1e-5)
    k, w, x, prefix = own.k, own.w, layer.input, "" if layer.type == "MVN" else "norm_"
    if own.in_bytes():
        return own.kernel_of_bytes(prefix)
    mean_and_squares(w, x.high - x.low)
    own.integer_factor(x.integer.bits <= 8, prefix)
    with w.each():
        n = own.normalised(prefix)
        if layer.type == "MVN":
            y = requantise(k, n, 1, 0, layer.output.scalar_zero, layer.output.low, layer.output.high)
            w.settle(layer, tail, y)
        else:
            own.store(n)
    if own.outputs:
        out = layer.outputs[1]
        k.do(f"mean = clamp(mean - {k.scalar(out.scalar_zero)}, {k.scalar(out.low)}, {k.scalar(out.high)})")
        w.store("mean_out", "mean")
    if len(own.outputs) > 1:
        kind = layer.outputs[2].integer
        w.store("factor_out", f"clamp(factor, {max(kind.low, 0)}, {min(kind.high, 65535)})")
    return w.kernel()


@kernel("RMSNorm", tail=True)
def rms_norm(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    own = NormalisationKernel(layer, tail)
    if not layer.is_quantised:
        return own.float_kernel(False, 1e-5)
    k, w, x = own.k, own.w, layer.input
    zero = x.scalar_zero
    largest = max(abs(x.low + zero), abs(x.high + zero))
    name = k.scalar(zero)
    squares(w, f"{{x}} + {name}", largest)
    own.integer_factor(False)
    top = (1 << (layer.output.integer.bits - 1)) - 1
    with w.each():
        u = k.let(f"{w.load('x').name} + {name}", "int32", x.low + zero, x.high + zero)
        shares = f"({u.name} >> 8) * factor + (((({u.name} & 255) * factor) + 128) >> 8)"
        own.store(k.let(f"clamp({shares}, {k.scalar(-top - 1)}, {k.scalar(top)})", "int32", -top - 1, top))
    return w.kernel()
