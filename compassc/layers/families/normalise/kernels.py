"""Kernels of normalisations: a mean, a sum of squares, then every element times a factor of its position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from compass_core.arrays import Array
from compassc.build import Expression, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers.arithmetic import inverse_root_table
from compassc.layers.axes import AxisLoop, ending
from compassc.layers.axis_sums import divide, goes_in_rows, mean_and_squares, squares, sums_of_bytes
from compassc.layers.byte_functions import BYTES
from compassc.layers.families.normalise import byte_steps
from compassc.layers.families.normalise.groups import in_groups
from compassc.layers.families.normalise.reference import affine, factors, norm_axes
from compassc.layers.kernel import Kernel
from compassc.layers.kernels import kernel, scheduled
from compassc.layers.lane_arithmetic import divide_pair, inverse_root, shift_pair, square_of
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.requantise import limited, requantise
from compassc.layers.vectors import halves_of, product_of_halves

Operands = dict[str, Tensor | Array]


class NormalisationKernel:
    """A normalisation in the making: the walk over its positions, with factors and addends as operands."""

    def __init__(self, layer: Layer, tail: Sequence[Layer] = ()) -> None:
        self.layer, self.tail, self.k = layer, tail, LayerKernel()
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
        with self.k.active():
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
        small = k.number(float(np.float32(layer.number("epsilon", epsilon))))
        with k.active(), w.positions():
            mean = w.mean("x") if centred else None

            def away() -> Expression:
                x = w.load("x")
                return x if mean is None else x - mean

            total = w.sum_of("squares", lambda: square_of(away()), "float32")
            root: Expression = S.sqrt(total / k.number(float(w.count)) + small)
            factor = k.held("factor", 1.0 / root)  # type: ignore[arg-type]
            with w.each():
                y = k.let(away() * factor)
                if "weights" in self.affine:
                    y = k.let(y * w.load("weights"))
                if "biases" in self.affine:
                    y = k.let(y + w.load("biases"))
                w.settle(layer, self.tail, y)
            for name, value in zip(self.outputs, (factor if mean is None else mean, factor), strict=False):
                w.store(name, value)
        return k.kernel()

    def normalised(self, mean: Value, factor: Value, prefix: str = "norm_") -> Value:
        """An element around its mean in the scale of the normalised values."""
        k, x, out = self.k, self.layer.input.integer, self.layer.output.integer
        low, high = (-(1 << (out.bits - 1)), (1 << (out.bits - 1)) - 1) if out.signed else (0, (1 << out.bits) - 1)
        span = self.layer.input.high - self.layer.input.low
        if self.layer.input.dtype in BYTES:
            scale, shift = self.layer.scale_shift(prefix, of=1)
            half, own = k.held("mean_half", S.cast(mean, "int16")), k.held("factor_half", S.cast(factor, "uint16"))
            parts = k.let(halves_of(self.w.raw("x")) - half)
            both = k.let(product_of_halves(parts, own), low=-span * 32768, high=span * 32768)
            return requantise(k, both, scale, shift + 8, 0, low, high)
        away = k.let(self.w.load("x") - mean, low=-span, high=span)
        if x.bits <= 8:
            scale, shift = self.layer.scale_shift(prefix, of=1)
            product = k.let(away * factor, low=-span * 32768, high=span * 32768)
            return requantise(k, product, scale, shift + 8, 0, low, high)
        product = k.let((away >> 1) * factor, low=-32768 * 65535, high=32767 * 65535)
        return requantise(k, product, 1, 7, 0, low, high)

    def integer_factor(self, lower: Value, upper: Value, variance_bits: bool, prefix: str = "norm_") -> Value:
        """2^15 over the root of the mean (of 8 bits: the sum shifted) of squares, requantised."""
        k, w, layer = self.k, self.w, self.layer
        table = k.table(inverse_root_table().astype(np.uint16))
        count, move = w.count, layer.factor("var_shift_value", 0) if variance_bits else 0
        factor = w.start("factor", 0, "int32")
        if variance_bits and move >= 0:
            if move > 16:
                k.assign(lower, upper >> S.u32(k.number(min(move - 16, 31))))
                k.assign(upper, lower >> S.u32(16))
                k.assign(lower, lower & S.u32(0xFFFF))
                move = 0
            shift_pair(factor, lower, upper, k.number(move))
        elif not variance_bits and count < 1 << 16:
            divide_pair(factor, lower, upper, w.filled(k.number(count), "uint32"))
        elif not variance_bits:
            whole, _ = divide(w, lower, upper)
            k.assign(factor, S.cast(S.min(whole, S.u32(0x7FFFFFFF)), "int32"))
        inverse_root(factor, table, k.mask)
        k.assign(factor, (factor + 32768) >> 16)
        if variance_bits:
            return factor
        scale, shift = layer.scale_shift(prefix, of=1)
        return requantise(k, factor.within(0, 32768), scale, shift, 0, 0, 65535)

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
                n = k.let(self._times(n, key), low=min(products), high=max(products))
            else:
                n = k.let(n + w.load(key), low=n.low + ends[0], high=n.high + ends[1])
        if "factors" in self.affine:
            k.any_lanes, k.lanes_of = True, lambda numbers: w.lanes_at(k.pointer(numbers), "factors")
        y = requantise(k, n, self.scale, self.shift, out.scalar_zero, out.low, out.high)
        k.any_lanes, k.lanes_of = False, None
        w.settle(self.layer, self.tail, y)

    def _times(self, n: Value, key: str) -> Expression:
        """Normalised integers times their factors."""
        k, w = self.k, self.w
        dtype = next((d for d in BYTES if (n.name, d) in k.stored_forms), "")
        if self.affine[key].dtype != np.int16 or not dtype or w.lane.steps[w.names.index(key)] != 1:
            return n * w.load(key)
        held = k.let(halves_of(k.stored(n, dtype)))
        return product_of_halves(held, k.let(w.raw(key)))

    def in_bytes(self) -> bool:
        """Whether the sums of a position are those of joined bytes, and fit 32 bits."""
        x, w = self.layer.input, self.w
        small = x.dtype in BYTES and self.layer.output.integer.bits == 8 and w.count <= byte_steps.MOST
        return small and w.across and w.lane.steps[0] == 1 and not self.outputs

    def kernel_of_bytes(self, prefix: str) -> Kernel:
        k, w, layer, out = self.k, self.w, self.layer, self.layer.output
        with k.active(), w.positions():
            d = byte_steps.deviation(k, layer, w.count, *sums_of_bytes(w))
            with w.each():
                n = byte_steps.normalised(k, layer, w.raw("x"), d, prefix)
                if layer.type == "MVN":
                    w.settle(layer, self.tail, requantise(k, n, 1, 0, out.scalar_zero, out.low, out.high))
                else:
                    self.store(n)
        return k.kernel()


# where it comes first it has 7 to 71 % fewer cycles than by hand
scheduled("LayerNorm", "RMSNorm", when=lambda layer: goes_in_rows(layer.input.shape, norm_axes(layer)))


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
    with k.active(), w.positions():
        mean, lower, upper = mean_and_squares(w, x.high - x.low)
        factor = own.integer_factor(lower, upper, x.integer.bits <= 8, prefix)
        with w.each():
            n = own.normalised(mean, factor, prefix)
            if layer.type == "MVN":
                y = requantise(k, n, 1, 0, layer.output.scalar_zero, layer.output.low, layer.output.high)
                w.settle(layer, tail, y)
            else:
                own.store(n)
        if own.outputs:
            out = layer.outputs[1]
            w.store("mean_out", limited(k, k.let(mean - k.number(out.scalar_zero)), out.low, out.high))
        if len(own.outputs) > 1:
            kind = layer.outputs[2].integer
            w.store("factor_out", limited(k, factor, max(kind.low, 0), min(kind.high, 65535)))
    return k.kernel()


@kernel("RMSNorm", tail=True)
def rms_norm(layer: Layer, tail: Sequence[Layer] = ()) -> Kernel:
    own = NormalisationKernel(layer, tail)
    if not layer.is_quantised:
        return own.float_kernel(False, 1e-5)
    k, w, x = own.k, own.w, layer.input
    zero = x.scalar_zero
    largest = max(abs(x.low + zero), abs(x.high + zero))
    name = k.number(zero)
    top = (1 << (layer.output.integer.bits - 1)) - 1
    with k.active(), w.positions():
        factor = own.integer_factor(*squares(w, lambda v: v + name, largest), False)
        with w.each():
            u = k.let(w.load("x") + name, low=x.low + zero, high=x.high + zero)
            shares = (u >> 8) * factor + ((((u & 255) * factor) + 128) >> 8)
            own.store(limited(k, k.let(shares), -top - 1, top))
    return k.kernel()
