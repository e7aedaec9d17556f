"""What operators do in another layout: which layouts they take and give, and their attributes there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from compass_core.dataclass import dataclass
from compassc.relay.attributes import Attrs
from compassc.relay.layouts import Layout, layout
from compassc.relay.operators import Op, OpPattern
from compassc.relay.types import TensorType, TupleType, Type

Name = str | None
"""A layout by its name: None where it is not known, "" of what stays as it is in every layout."""


@dataclass(frozen=True)
class Asked:
    """A call: its attributes, the layouts of its inputs (those of tuples one after the other) as they were and as they are now
    (None: what they were is asked), and the types that its arguments had."""

    attrs: Attrs | None
    new: Sequence[Name] | None
    old: Sequence[Name]
    types: Sequence[Type]

    def shape(self, argument: int) -> tuple[object, ...]:
        """The extents that an argument had."""
        t = self.types[argument]
        return tuple(t.shape) if isinstance(t, TensorType) else ()

    def first(self) -> Name:
        """The layout of the first input, of what was the first one that is known."""
        return self.new[0] if self.new is not None else next((n for n in self.old if n), None)


@dataclass(frozen=True)
class Inferred:
    """The layouts that a call takes and gives, and its attributes for them."""

    inputs: Sequence[Name]
    outputs: Sequence[Name]
    attrs: Attrs | None


Rule = Callable[[Asked], "Inferred | None"]
"""None where a call cannot be in these layouts."""


def changed(attrs: Attrs | None, **values: object) -> Attrs:
    """Attributes with other values."""
    assert attrs is not None
    return attrs.changed(**values)


def moved(axis: int, old: str, new: str) -> int | None:
    """The place of an axis of a layout in another one; None where it is split or not there."""
    letter = layout(old).axes[axis].letter
    place = layout(new).index_of(letter)
    return place if place >= 0 and layout(new).factor_of(letter) < 0 and letter.isupper() else None


def _text(axes: Sequence[tuple[str, int]]) -> str:
    return "".join(f"{factor or ''}{letter}" for letter, factor in axes)


def _fits(name: str, shape: Sequence[object]) -> bool:
    return len(layout(name)) == len(shape)


# ------------------------------------------------------------------------------------------------- calls of each element


def _same(asked: Asked) -> Inferred | None:
    name = asked.first()
    return Inferred([name] * len(asked.old), [name], asked.attrs) if name else None


def _broadcast(asked: Asked) -> Inferred | None:
    """The layouts of two operands that are stretched to each other, further ones as they are."""
    given = list(asked.new if asked.new is not None else asked.old)
    ranks = [len(asked.shape(i)) for i in (0, 1)]
    rest = given[2:]
    pair = given[:2]
    if pair[0] is None and pair[1] is None:
        return None
    for unknown, known in ((0, 1), (1, 0)):
        name = pair[known]
        if pair[unknown] is None:
            if not name or ranks[known] < ranks[unknown] or len(layout(name)) != ranks[known]:
                return None
            pair[unknown] = _text([(a.letter, a.factor) for a in layout(name).axes[ranks[known] - ranks[unknown] :]])
            return Inferred([*pair, *rest], [name], asked.attrs)
    large = 0 if len(layout(pair[0] or "").primals) >= len(layout(pair[1] or "").primals) else 1
    result, old = pair[large], asked.old[1 - large]
    if not result:
        return None
    if asked.new is not None and asked.shape(1 - large):
        small = _stretched(result, old or "", asked.shape(1 - large))
        if small is None:
            return None
        pair[1 - large] = small
    return Inferred([*pair, *rest], [result], asked.attrs)


def _stretched(name: str, old: str, shape: Sequence[object]) -> str | None:
    """A layout for an operand that had another one: blocks of axes of extent 1 have length 1."""
    if not _fits(old, shape) or not set(layout(old).primals) <= set(layout(name).primals):
        return None
    axes = []
    for a in layout(name).axes:
        at = layout(old).index_of(a.primal)
        extent = 1 if at < 0 else shape[at]
        whole = a.factor and isinstance(extent, int) and extent % a.factor
        if whole and extent != 1:
            return None
        axes.append((a.letter, min(a.factor, 1) if extent == 1 else a.factor))
    return _text(axes)


# ------------------------------------------------------------------------------------------------------ calls with an axis


def _along(vectors: int, outputs: Sequence[str] = ("",)) -> Rule:
    """A rule of operators with an `axis` of their first input, along which further ones are. `outputs`: "" for the layout."""

    def rule(asked: Asked) -> Inferred | None:
        name, attrs = asked.first(), asked.attrs
        if not name or not asked.old[0] or attrs is None:
            return None
        axis = attrs["axis"] % len(asked.shape(0)) if asked.shape(0) else 0
        if asked.new is not None and name != asked.old[0]:
            place = moved(axis, asked.old[0], name)
            if place is None and any(asked.shape(i) for i in range(1, 1 + vectors)):
                return None
            attrs = changed(attrs, axis=attrs["axis"] if place is None else place)
        return Inferred([name, *[""] * vectors], [o or name for o in outputs], attrs)

    return rule


def _outer(axis: int, old: str, new: str) -> tuple[int, int]:
    """The place of an axis of a layout, or of its outer part, in another one, and how long its blocks are; -1 for none."""
    letter = layout(old).axes[axis].letter
    return (layout(new).index_of(letter) if letter.isupper() else -1), max(layout(new).factor_of(letter), 1)


def _divides(block: int, extent: object) -> bool:
    return block == 1 or (isinstance(extent, int) and extent % block == 0)


def _joined(asked: Asked) -> Inferred | None:
    t = asked.types[0]
    assert isinstance(t, TupleType)
    count, shape = len(t.fields), next((f.shape for f in t.fields if isinstance(f, TensorType)), ())
    old = next((n for n in asked.old[:count] if n), None)
    if old is None or asked.attrs is None or not _fits(old, shape):
        return None
    name, attrs = old, asked.attrs
    if asked.new is not None and len(set(asked.new[:count])) == 1 and asked.new[0] and asked.new[0] != old:
        axis = attrs["axis"] % len(shape)
        place, block = _outer(axis, old, asked.new[0])
        if place >= 0 and all(isinstance(f, TensorType) and _divides(block, f.shape[axis]) for f in t.fields):
            name, attrs = asked.new[0], changed(attrs, axis=place)
    return Inferred([name] * count + [""] * (len(asked.old) - count), [name], attrs)


def _split(asked: Asked) -> Inferred | None:
    found = _along(0)(asked)
    if found is None or asked.attrs is None:
        return None
    parts = asked.attrs["indices_or_sections"]
    return Inferred(
        found.inputs, list(found.outputs) * (parts if isinstance(parts, int) else len(parts) + 1), found.attrs
    )


def _axes(value: object, rank: int) -> list[int]:
    given = (
        [value] if isinstance(value, int) else list(value) if isinstance(value, (tuple, list)) else list(range(rank))
    )
    return [int(a) % rank for a in given]


def _reduced(asked: Asked) -> Inferred | None:
    name, old, attrs = asked.first(), asked.old[0], asked.attrs
    if not name or not old or attrs is None or not _fits(old, asked.shape(0)):
        return None
    rank = len(asked.shape(0))
    axes = _axes(attrs["axis"], rank)
    if attrs["exclude"]:
        axes = [a for a in range(rank) if a not in axes]
    letters = {layout(old).axes[a].primal for a in axes}
    source = layout(name)
    if asked.new is not None and name != old:
        attrs = changed(attrs, axis=[i for i, a in enumerate(source.axes) if a.primal in letters], exclude=False)
    kept = [
        (a.letter, min(a.factor, 1) if a.primal in letters else a.factor)
        for a in source.axes
        if attrs["keepdims"] or a.primal not in letters
    ]
    return Inferred([name], [_text(kept)], attrs)


def _squeezed(asked: Asked) -> Inferred | None:
    name, old, attrs = asked.first(), asked.old[0], asked.attrs
    shape = asked.shape(0)
    if not name or not old or attrs is None or not _fits(old, shape):
        return None
    gone = attrs["axis"]
    axes = [i for i, n in enumerate(shape) if n == 1] if gone is None else _axes(gone, len(shape))
    letters = {layout(old).axes[a].letter for a in axes}
    if asked.new is not None and name != old:
        places = [moved(a, old, name) for a in axes]
        if None in places:
            return None
        attrs = changed(attrs, axis=places)
    return Inferred(
        [name], [_text([(a.letter, a.factor) for a in layout(name).axes if a.letter not in letters])], attrs
    )


def _transposed(asked: Asked) -> Inferred | None:
    name, old, attrs = asked.first(), asked.old[0], asked.attrs
    shape = asked.shape(0)
    if not name or not old or attrs is None or not _fits(old, shape):
        return None
    order = [a % len(shape) for a in attrs["axes"] or range(len(shape) - 1, -1, -1)]
    result = _text([(a.letter, a.factor) for a in (layout(old).axes[i] for i in order)])
    if asked.new is not None and name != old:
        places = [moved(a, old, name) for a in order]
        if None in places:
            return None
        attrs = changed(attrs, axes=places)
    return Inferred([name], [result], attrs)


# --------------------------------------------------------------------------------------------------------------- windows


def _padded(asked: Asked) -> Inferred | None:
    name, old, attrs = asked.first(), asked.old[0], asked.attrs
    if not name or not old or attrs is None or not _fits(old, asked.shape(0)):
        return None
    if asked.new is not None and name != old:
        widths = {a.letter: tuple(w) for a, w in zip(layout(old).axes, attrs["pad_width"])}
        if any(any(widths.get(a.primal, (0,))) for a in layout(name).axes if a.factor):
            return None
        attrs = changed(attrs, pad_width=[widths.get(a.letter, (0, 0)) for a in layout(name).axes])
    return Inferred([name, *[""] * (len(asked.old) - 1)], [name], attrs)


def _sliced(asked: Asked) -> Inferred | None:
    name, old, attrs = asked.first(), asked.old[0], asked.attrs
    shape = asked.shape(0)
    if not name or not old or attrs is None or not _fits(old, shape):
        return None
    if asked.new is not None and name != old:
        axes = attrs["axes"]
        given = list(range(len(attrs["begin"]))) if axes is None else _axes(axes, len(shape))
        places = [moved(a, old, name) for a in given]
        if None in places:
            return None
        if axes is not None:
            attrs = changed(attrs, axes=places)
        elif len(given) < len(shape) or len(attrs["strides"]) not in (1, len(given)):
            return None
        else:
            order = sorted(range(len(given)), key=lambda i: places[i] or 0)
            fields = {n: [attrs[n][i] for i in order] for n in ("begin", "end", "strides") if len(attrs[n]) > 1}
            attrs = changed(attrs, **fields)
    return Inferred([name], [name], attrs)


def _sliced_like(asked: Asked) -> Inferred | None:
    name, attrs = asked.first(), asked.attrs
    old = next((n for n in asked.old if n), None)
    if not name or not old or attrs is None or len(asked.shape(0)) != len(asked.shape(1)):
        return None
    if asked.new is not None and name != old:
        axes = _axes(attrs["axes"] or None, len(asked.shape(0)))
        places = [moved(a, old, name) for a in axes]
        if None in places:
            return None
        attrs = changed(attrs, axes=places)
    return Inferred([name, name], [name], attrs)


def _followed(*unchanged: str) -> Rule:
    """A rule of operators that work in the layout they are told: that of their data, unless they are told one for results
    (`out_layout`), or the axes H and W would be other ones (`unchanged` says which have to stay where they are)."""

    def rule(asked: Asked) -> Inferred | None:
        attrs = asked.attrs
        assert attrs is not None
        name = str(attrs["layout"])
        rest = [""] * (len(asked.old) - 1)
        if attrs.get("out_layout"):
            return Inferred([name, *rest], [str(attrs["out_layout"])], attrs)
        new = asked.new[0] if asked.new is not None else None
        if new and new != name and _may_follow(layout(name), layout(new), unchanged):
            name, attrs = new, changed(attrs, layout=new)
        return Inferred([name, *rest], [name], attrs)

    return rule


def _may_follow(old: Layout, new: Layout, unchanged: Sequence[str]) -> bool:
    space = [a.letter for a in old.axes if a.letter in "DHW"]
    return set(old.primals) == set(new.primals) and all(
        new.factor_of(s) < 0 and (s not in unchanged or new.index_of(s) == old.index_of(s)) for s in space
    )


def _windows(asked: Asked) -> Inferred | None:
    attrs = asked.attrs
    assert attrs is not None
    name = str(attrs["data_layout"])
    rest = [""] * (len(asked.old) - 2)
    return Inferred([name, str(attrs["kernel_layout"]), *rest], [str(attrs["out_layout"]) or name], attrs)


def _deformed(asked: Asked) -> Inferred | None:
    found = _windows(asked)
    assert found is not None
    return Inferred([found.inputs[0], found.inputs[0], found.inputs[1]], found.outputs, found.attrs)


def _names(prefix: str, words: str) -> list[str]:
    return [f"{prefix}{word}" for word in words.split()]


RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        _names("nn.", "conv1d conv2d conv3d conv1d_transpose conv2d_transpose conv3d_transpose contrib_conv2d_NCHWc "
               "contrib_depthwise_conv2d_NCHWc") + _names("qnn.", "conv2d conv2d_transpose"), _windows,
    ),
    "nn.deformable_conv2d": _deformed,
    **dict.fromkeys(
        _names("nn.", "max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d global_max_pool2d global_avg_pool2d "
               "adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d "
               "adaptive_avg_pool3d") + ["qnn.avg_pool2d"], _followed(),
    ),
    **dict.fromkeys(["nn.upsampling", "nn.upsampling3d", *_names("image.", "resize1d resize2d resize3d")], _followed("H", "W", "D")),
    **dict.fromkeys(["vision.roi_align", "vision.roi_pool"], _followed("N", "C", "H", "W")),
    "nn.batch_norm": _along(4, ("", "C", "C")),
    **dict.fromkeys(["nn.layer_norm", "nn.instance_norm"], _along(2)),
    **dict.fromkeys(["nn.prelu", "nn.bias_add"], _along(1)),
    "qnn.requantize": _along(4),
    **dict.fromkeys(["qnn.quantize", "qnn.dequantize"], _along(2)),
    "split": _split,
    **dict.fromkeys(["concatenate", "qnn.concatenate"], _joined),
    **dict.fromkeys("sum mean max min prod argmax argmin all any".split(), _reduced),
    "squeeze": _squeezed,
    "transpose": _transposed,
    "nn.pad": _padded,
    "strided_slice": _sliced,
    "slice_like": _sliced_like,
    **dict.fromkeys(["qnn.add", "qnn.subtract", "qnn.mul"], _broadcast),
}  # fmt: skip
"""The rules of operators by name. Of others those of each element have one by their pattern."""
_OPAQUE_ELEMENTS = ("nn.softmax", "nn.log_softmax", "nn.fast_softmax")


def rule_of(op: Op) -> Rule | None:
    """The rule of an operator: what programs registered, what stands here, or what follows from its pattern."""
    registered = op.get_attr("FInferCorrectLayout")
    if registered is not None:
        return lambda asked: _registered(registered, asked)
    if op.name in RULES or op.name in _OPAQUE_ELEMENTS:
        return RULES.get(op.name)
    pattern, count = op.get_attr("TOpPattern"), len(op.arguments)
    if pattern == OpPattern.ELEMWISE and count == 1:
        return _same
    return _broadcast if pattern in (OpPattern.BROADCAST, OpPattern.ELEMWISE) and count == 2 else None


@dataclass(frozen=True)
class InferCorrectLayoutOutput:
    """What a registered rule gives: layouts of inputs and results, and the attributes for them."""

    input_layouts: Sequence[Layout | str]
    output_layouts: Sequence[Layout | str]
    new_attrs: Attrs | None


def _registered(rule: Callable[..., InferCorrectLayoutOutput], asked: Asked) -> Inferred | None:
    def given(names: Sequence[Name]) -> list[Layout]:
        return [layout(n or "") for n in names]

    found = rule(asked.attrs, given(asked.new) if asked.new is not None else [], given(asked.old), asked.types)
    inputs, outputs = (
        [str(getattr(n, "name", n)) or None for n in part] for part in (found.input_layouts, found.output_layouts)
    )
    return None if None in inputs or None in outputs else Inferred(inputs, outputs, found.new_attrs)
