"""Laws of all layers' kernels, on samples of every type: PySim gives what the simulator gives, the number of TECs does not
matter, and what a reference refuses a kernel refuses too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from compass_core import files
from compassc.dsl import BuildManager
from compassc.graph import Layer, LayerError, Tensor
from compassc.graph.dtypes import numpy_dtype
from compassc.layers.declare import all_types, evaluate
from compassc.layers.kernel import Kernel
from compassc.layers.kernel_cache import function_of
from compassc.layers.kernels import BUILDERS, FORM_BUILDERS, STEPS, kernel_of, load_kernels
from compassc.layers.samples import SAMPLES, Draw, drawn
from compassc.layers.support import BY_ELEMENT, DTYPES, SHAPES, WITHOUT_KERNEL
from tests.choosing import chosen, some
from tests.layers.cases import Array
from tests.layers.cases import drawn as values_of
from tests.layers.harness import arguments, build, expect, run

Damage = Callable[[Layer], Layer]


@cache
def sampled() -> tuple[Layer, ...]:
    """A layer of every type that has a kernel, of one data type or another."""
    found = []
    for i, name in enumerate(sorted(SAMPLES)):
        for n in range(len(SHAPES) * len(DTYPES)):
            shape, dtype = SHAPES[n % len(SHAPES)], DTYPES[(i + n) % len(DTYPES)]
            layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, dtype))
            if layer is not None and _kernel(layer) is not None:
                found.append(layer)
                break
    return tuple(found)


def _kernel(layer: Layer) -> Kernel | None:
    try:
        return kernel_of([layer])
    except LayerError:
        return None


def test_there_are_samples_of_nearly_all_types():
    assert len(sampled()) > 100


def part_for(test: str, every: int) -> list[Layer]:
    """One sample of `every`, others for each test."""
    taken = chosen((f"{test} {layer.type}" for layer in sampled()), every)
    return [layer for layer in sampled() if f"{test} {layer.type}" in taken]


def inputs_of(layer: Layer) -> list[Array]:
    source = np.random.default_rng(5)
    return [values_of(source, t) for t in layer.inputs]


def with_tecs(kernel: Kernel, many: int) -> Kernel:
    """The kernel as it is where a group has so many TECs: all others repeat what these do."""
    text = kernel.text.replace("S.get_local_id()", f"(S.get_local_id() % {many})")
    text = text.replace("S.get_local_size()", str(many))
    text = re.sub(r"shared_part\(([^,()]*), (\d+)\)", rf"S.ceildiv(S.ceildiv(\1, \2), {many}) * \2", text)
    return Kernel(re.sub(r"shared_part, |, shared_part", "", text), kernel.arguments)


def test_the_number_of_tecs_does_not_matter(tmp_path):
    for layer in some(part_for("TECs", 11)):
        kernel, inputs = kernel_of([layer]), inputs_of(layer)
        results = []
        for form in (kernel, with_tecs(kernel, 1), with_tecs(kernel, 3)):
            function = function_of(form, files.write(tmp_path / f"{form.name}.py", form.text))
            args, outputs = arguments(form, layer, inputs)
            BuildManager("X2_1204").build(function)(*args)
            results.append(outputs)
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                np.testing.assert_array_equal(a.view("uint8"), b.view("uint8"), layer.type)


def test_pysim_gives_what_the_simulator_gives(tmp_path):
    for layer in some(part_for("PySim", 13)):
        kernel, inputs = kernel_of([layer]), inputs_of(layer)
        function = function_of(kernel, files.write(tmp_path / f"{kernel.name}.py", kernel.text))
        args, outputs = arguments(kernel, layer, inputs)
        BuildManager("X2_1204").build(function)(*args)
        again, others = arguments(kernel, layer, inputs)
        function(*again)
        for a, b in zip(outputs, others, strict=True):
            np.testing.assert_array_equal(a, b, layer.type)


def test_every_type_has_a_kernel_or_says_why_not():
    load_kernels()
    made = {*STEPS, *BUILDERS, *FORM_BUILDERS}
    for declared in some(all_types().values()):
        reasons = [bool(declared.refused), declared.name in WITHOUT_KERNEL, declared.name in made]
        assert sum(reasons) == 1, f"{declared.name} has a kernel, or a reason why it has none, but not both"


SINGLE = re.compile(r"^ {4,}(\w+\[.*\] = |S\.vstore\(.*\+ r\d*, one\)$|.*S\.vbcast\(t\d+\[\(base_x \+ r)", re.MULTILINE)
"""A store of one element, one at the index of a loop over results, a load of one that is made for each of them."""


def test_kernels_that_go_element_by_element_are_listed():
    found = set()
    for (i, name), (n, shape) in product(enumerate(SAMPLES), enumerate(SHAPES)):
        layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, ("float32", "int8")[(i + n) % 2]))
        kernel = layer and _kernel(layer)
        if kernel and kernel.is_program and SINGLE.search(kernel.text):
            found.add(name)
    assert {"Filter", "Gather", "NMS", "Repeat"} <= found
    assert found <= BY_ELEMENT.keys(), f"say in support.BY_ELEMENT why: {', '.join(sorted(found - BY_ELEMENT.keys()))}"
    common = {t.name for t in all_types().values() if t.use == "common"}
    assert {n for n in BY_ELEMENT if n in common} <= {
        *("Gather", "GatherElements", "GatherND", "NMS", "Select", "Slice", "StridedSlice", "Where")
    }


DAMAGED = ("a word", -7, 2**40, [1, 2, 3, 4, 5, 6, 7], 0.37)


def contradictions(layer: Layer) -> Iterator[tuple[Layer, tuple[str, ...]]]:
    """The layer with something that may contradict the rest, and what a message is to name."""
    for n, key in enumerate(layer.attributes):
        for value in (DAMAGED[n % 5], DAMAGED[(n + 2) % 5]):
            yield replace(layer, attributes={**layer.attributes, key: value}), (key, str(value))
    for key, array in layer.constants.items():
        for other in (array.reshape(-1)[1:], array[None]):
            yield replace(layer, constants={**layer.constants, key: other}), (key,)
    y = layer.outputs[0]
    for shape in ((*y.shape[:-1], y.shape[-1] + 1) if y.shape else (2,), (), (0, *y.shape[1:])):
        yield replace(layer, outputs=(replace(y, shape=shape), *layer.outputs[1:])), (str(list(shape)),)


EMPTY = ((0,), (2, 0), (0, 3), (1, 0, 4, 8), (1, 4, 0, 8))


def without_elements() -> Iterator[Layer]:
    """Samples on empty inputs, where the type has some."""
    for i, name in enumerate(sorted(SAMPLES)):
        for n, shape in enumerate(EMPTY):
            try:
                layer = drawn(
                    Draw(np.random.default_rng(n)), name, Tensor("x", shape, ("int8", "float32")[(i + n) % 2])
                )
            except (ValueError, OverflowError):
                continue  # nothing can be drawn from an empty range
            if layer is not None and all(t.is_integer or "float" in t.dtype for t in layer.inputs):
                yield layer


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_layers_without_elements_have_kernels():
    layers = list(without_elements())
    assert len(layers) > 100
    for layer in layers:
        try:
            kernel_of([layer])
        except LayerError as error:
            assert any(t.count for t in layer.inputs) and any(t.count for t in layer.outputs) or "kernel" in str(error)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_layers_without_elements_give(tmp_path):
    known = [(layer, kernel) for layer in list(without_elements())[::23] if (kernel := _kernel(layer)) is not None]
    build([kernel for _, kernel in known], tmp_path)
    done = 0
    for layer, kernel in known:
        inputs = [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs]
        for got, want in zip(run(kernel, layer, inputs, tmp_path), evaluate(layer, inputs), strict=True):
            np.testing.assert_array_equal(got, want, layer.type)
            done += 1
    assert done > 4


SMALL = ((), (1,), (1, 1, 1, 1), (2, 3, 1, 2, 1, 4), (1, 1, 1, 1, 1, 1))


def test_any_rank(tmp_path):
    """Element-wise layers, moves and reductions from rank 0 to 6, and with sizes of 1."""
    kinds = (
        "Activation",
        "Eltwise",
        "BatchNorm",
        "Reshape",
        "Transpose",
        "Concat",
        "Slice",
        "Pad",
        "Reduce",
        "Softmax",
        "TopK",
    )

    def compare(outputs: list[Array], wanted: list[Array], said: str) -> None:
        for got, want in some(zip(outputs, wanted, strict=True)):
            np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), 1e-5, 1e-6, err_msg=said)

    for i, name in enumerate(kinds):
        for n, shape in enumerate(SMALL):
            layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", shape, ("int8", "float32")[(i + n) % 2]))
            if layer is None or (i + n) % 3:
                continue
            inputs = inputs_of(layer)
            compared = partial(compare, wanted=evaluate(layer, inputs), said=f"{name} {shape}")
            expect(kernel_of([layer]), layer, inputs, tmp_path, compared)


def names_both(message: str, layer: Layer, words: tuple[str, ...]) -> bool:
    """Whether a message names what is damaged with its value, or what it contradicts, and two values."""
    if all(w.upper() in message.upper() for w in words):
        return True
    known = [*layer.attributes, *layer.constants, *(t.name for t in (*layer.inputs, *layer.outputs))]
    sides = re.search("expected|but|which|must|declared|contradict|do not|does not|one for each", message)
    return sides is not None and any(f"'{name}'" in message for name in known)


def refusals(layer: Layer) -> tuple[str, str]:
    """What the reference and what the kernel say, "" where they take the layer."""
    found = []
    inputs = [np.zeros(t.shape, numpy_dtype(t.dtype)) for t in layer.inputs]
    for ask in (lambda: evaluate(layer, inputs), lambda: kernel_of([layer])):
        try:
            ask()
            found.append("")
        except LayerError as error:
            found.append(str(error))
    return found[0], found[1]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_contradictions_are_refused_by_kernels_too_and_named():
    wrong = []
    for layer in sampled():
        for damaged, words in contradictions(layer):
            reference, kernel = refusals(damaged)
            if reference and not kernel:
                wrong.append(f"{layer.type}: no kernel's refusal, but {reference}")
            wrong += [
                f"{layer.type} {words}: {m}" for m in (reference, kernel) if m and not names_both(m, damaged, words)
            ]
    assert not wrong, "\n".join(wrong[:20])


def shaped(layer: Layer, side: str, i: int, shape: tuple[int, ...]) -> Layer:
    """The layer with an input or output of another shape."""
    tensors = getattr(layer, side)
    i %= len(tensors)
    return replace(layer, **{side: (*tensors[:i], replace(tensors[i], shape=shape), *tensors[i + 1 :])})


def with_attribute(key: str, value: Any) -> Damage:
    return lambda layer: replace(layer, attributes={**layer.attributes, key: value})


def without(key: str) -> Damage:
    return lambda layer: replace(layer, attributes={k: v for k, v in layer.attributes.items() if k != key})


def with_shape(side: str, i: int, change: Callable[[tuple[int, ...]], tuple[int, ...]]) -> Damage:
    return lambda layer: shaped(layer, side, i, change(getattr(layer, side)[i].shape))


def with_constant(key: str, change: Callable[[Array], Array]) -> Damage:
    return lambda layer: replace(layer, constants={**layer.constants, key: change(layer.constants[key])})


def fewer(side: str) -> Damage:
    return lambda layer: replace(layer, **{side: getattr(layer, side)[:-1]})  # type: ignore[arg-type]


def nothing(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (0, *shape[1:])


QUANTISED = "int8"
KINDS_OF_DAMAGE: list[tuple[str, str, Damage, str]] = [
    ("Eltwise Add Sub Mul", QUANTISED, with_attribute("shift_value", []), "'shift_value' is [], expected"),
    ("Eltwise Add Sub Mul", QUANTISED, with_attribute("scale_value", []), "'scale_value' is [], expected"),
    ("Eltwise Add", QUANTISED, with_attribute("shift_value", [2, 2]), "'shift_value' has 2 values [2, 2], expected 1"),
    ("FullyConnected NoOp Dummy", "", with_shape("inputs", 0, lambda s: (1, *s)), "is declared as"),
    ("FullyConnected NoOp Dummy ChannelShuffle", "", with_shape("outputs", 0, lambda s: (1, *s)), "is declared as"),
    (
        "FullyConnected",
        "",
        with_constant("weights", lambda a: a.reshape(-1)[:1].reshape(())),
        "'weights' has the shape []",
    ),
    ("Convolution DepthwiseConv Convolution3D", "", with_shape("inputs", 0, nothing), "is declared as"),
    ("Convolution ConvTranspose Convolution3D", "", with_shape("outputs", 0, lambda s: ()), "is declared as []"),
    ("DepthToSpace SpaceToDepth", "", with_shape("inputs", 0, nothing), "is declared as"),
    ("BasicLSTM GRUv1 GRUv3 RNN", "", with_shape("inputs", 1, lambda s: s[1:]), "expected 2 dimensions"),
    (
        "BasicLSTM GRUv1 GRUv3 RNN",
        "",
        with_shape("inputs", 0, lambda s: ()),
        "is declared as [], expected 3 dimensions",
    ),
    ("GatherND", "", with_shape("inputs", 0, nothing), "has no elements, but"),
    ("ROIPooling", "", with_shape("inputs", 0, nothing), "has no elements, but"),
    ("ScatterElements ScatterND", "", with_shape("inputs", 2, lambda s: (1, *s)), "indices"),
    ("ReverseSequence", "", with_shape("inputs", 1, nothing), "has 0 lengths, but"),
    ("Filter", "", with_shape("outputs", -1, lambda s: (2,)), "is declared as [2], expected [1]"),
    ("Filter NormalizedMoments", "", fewer("outputs"), "outputs"),
    ("Logical", "", fewer("inputs"), "inputs"),
    ("Pow", "", without("exponent"), "'exponent' is missing"),
    ("Split", "", without("splits"), "'splits' is missing"),
    ("Split", "", with_shape("outputs", 0, lambda s: s[1:]), "is declared as"),
    ("Moments", "", with_attribute("keepdims", False), "is declared as"),
    ("BatchToSpaceND SpaceToBatchND", "", with_attribute("block_size", []), "'block_size' is [], expected 2 numbers"),
    ("BatchToSpaceND", "", with_attribute("crops", []), "'crops' is [], expected 2 pairs"),
    ("LayerNorm RMSNorm", QUANTISED, with_attribute("axis", []), "'axis' is [], expected"),
    (
        "LayerNorm RMSNorm InstanceNorm",
        QUANTISED,
        with_attribute("weights_zp", [1, 2, 3]),
        "'weights_zp' has 3 values, but",
    ),
    ("BatchNorm", "", with_constant("weights", lambda a: a.reshape(-1)[1:]), "'weights' has 7 values, but"),
    ("BiasAdd", "", with_constant("biases", lambda a: a[:0]), "'biases' has the shape [0], expected"),
    ("LogSoftmax", QUANTISED, with_attribute("quantize_scale", [0.5]), "'quantize_scale' is [0.5], expected 2 numbers"),
    ("Softmax", QUANTISED, with_constant("lut", lambda a: a.astype("float32")), "'lut' is float32, but"),
    ("Shape", "", with_shape("outputs", 0, lambda s: (1, *s)), "is declared as"),
]
"""Types, the data type of their sample ("" any), a damage, and words of the refusal."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_damages_are_refused_in_words_about_the_layer():
    done = 0
    for names, dtype, damage, words in KINDS_OF_DAMAGE:
        for name in names.split():
            drafts = (
                drawn(
                    Draw(np.random.default_rng(n)),
                    name,
                    Tensor("x", shape, dtype or ("float32", "int8", "int16")[n % 3]),
                )
                for n, shape in enumerate(SHAPES * 2)
            )
            try:
                whole = next(layer for layer in drafts if layer is not None and kernel_of([layer]))
                damaged = damage(whole)
            except (KeyError, StopIteration):
                continue  # the sample's form has no such constant
            for message in refusals(damaged):
                assert words in message and "contradict each other" not in message, f"{name}: {message}"
            done += 1
    assert done > 45


def impossible(layer: Layer) -> Iterator[tuple[Layer, tuple[str, ...]]]:
    """The layer with what no layer of its type has, and what a message is to name."""
    if "..." not in all_types()[layer.type].outputs:
        extra = [replace(layer.outputs[0], name=f"extra{i}") for i in range(4)]
        yield replace(layer, outputs=(*layer.outputs, *extra)), ("outputs", "extra3", "expected")
    for side in ("inputs", "outputs"):
        tensors = getattr(layer, side)
        for i, t in enumerate(tensors):
            if not t.is_integer:
                continue
            limit = (1 << t.integer.bits) - 1
            wrong = [({"scale": v}, f"the scale {v:g}, expected") for v in (0.0, -1.0, float("nan"), float("inf"))]
            wrong.append(({"zero": -limit - 1}, f"the zero point {-limit - 1:g}, expected {-limit} to {limit}"))
            if 7 not in t.shape:
                wrong.append(({"scale": (1.0,) * 7}, "7 scales or zero points, but they are not one for each index"))
            for given, words in wrong[i % 3 :: 3]:
                changed = (*tensors[:i], replace(t, **given), *tensors[i + 1 :])  # type: ignore[arg-type]
                yield replace(layer, **{side: changed}), (f"'{t.name}'", words)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_no_layer_has_is_refused_with_both_values():
    done = 0
    for layer in sampled():
        for damaged, words in impossible(layer):
            found = refusals(damaged)
            assert all(word in m for m in found for word in words), f"{layer.type} {words}: {found}"
            done += 1
    assert done > 500


def told_otherwise(layer: Layer) -> Iterator[tuple[Layer, tuple[str, ...]]]:
    """The layer with an attribute that differs from what its tensors say, or is beyond what any layer has."""
    for attribute in all_types()[layer.type].attributes:
        if attribute.name not in layer.attributes:
            continue
        if attribute.told is not None:
            right: Any = attribute.told(layer)
            wrong: Any = [*right[:-1], right[-1] + 1] if isinstance(right, list) and right else 77
            yield replace(layer, attributes={**layer.attributes, attribute.name: wrong}), (str(wrong), str(right))
        if attribute.kind in ("count", "counts"):
            yield replace(layer, attributes={**layer.attributes, attribute.name: 0}), ("0", "at least 1")
        if attribute.kind == "measure":
            yield replace(layer, attributes={**layer.attributes, attribute.name: -0.5}), ("-0.5", "not negative")
    if layer.is_quantised and layer.has("shift_value") and layer.has("scale_value"):
        yield replace(layer, attributes={**layer.attributes, "shift_value": 1 << 40}), (str(1 << 40), "127")
        scale = [-1] * len(layer.integers("scale_value"))
        given = {**layer.attributes, "scale_value": scale if len(scale) > 1 else -1}
        yield replace(layer, attributes=given), ("-1", "0 to")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_attributes_that_contradict_the_tensors_are_refused_with_both_values():
    done = 0
    for layer in sampled():
        for damaged, words in told_otherwise(layer):
            found = refusals(damaged)
            if "scale_value" in layer.attributes and found == ("", ""):
                continue  # a form of the type that does not look at it
            assert all(found), f"{layer.type} {words}: {found}"
            assert all(word in m for m in found for word in words), found
            done += 1
    assert done > 60


FACTORS = re.compile(r"(scale|shift)(_value)?$")
NEED_NONE = {
    "var_shift_value",
    "lut_shift_value",
    "hidden_scale_value",
    "hidden_shift_value",
    "spatial_shift_value",
    "spatial_scale_value",
    "areas_shift",
    "bin_scale_value",
    "bin_shift_value",
    "grid_scale_value",
    "grid_shift_value",
    "iou_thresh_shift",
}
"""Factors that some forms of a type do not use, and shifts that the format gives a number to where they are missing."""


def without_factors() -> Iterator[tuple[Layer, str]]:
    """Quantised layers, each without one of the factors that its sample has."""
    for i, name in enumerate(sorted(SAMPLES)):
        for n in range(len(SHAPES) * 2):
            dtype = ("int8", "int16")[(i + n) % 2]
            layer = drawn(Draw(np.random.default_rng(n)), name, Tensor("x", SHAPES[n % len(SHAPES)], dtype, 4.0, 1))
            if layer is not None and layer.is_scaled:
                for field in ("attributes", "constants"):
                    held = getattr(layer, field)
                    for key in filter(FACTORS.search, held):
                        left = {k: v for k, v in held.items() if k != key}
                        yield replace(layer, **{field: left}), key
                break


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_multipliers_and_shifts_that_are_missing_are_not_1_and_0():
    done = set()
    for layer, key in without_factors():
        other = key.removesuffix("_value") if key.endswith("_value") else f"{key}_value"
        found = refusals(layer)
        if found == ("", ""):
            # the factor is a constant beside the attribute, or of no use in this form
            assert other in {**layer.attributes, **layer.constants} or key in NEED_NONE or layer.type in UNSCALED, (
                f"{layer.type} without '{key}' is taken"
            )
            continue
        assert all(f"'{key.removesuffix('_value')}" in m for m in found), f"{layer.type} {key}: {found}"
        done.add(layer.type)
    assert len(done) > 30


UNSCALED = ("Pooling", "GlobalPool", "ROIPooling")
"""Types whose samples have factors that other forms or types use."""


@pytest.mark.parametrize("kind", ["Clip", "Eltwise"])
def test_limits_that_exclude_each_other_are_refused(kind):
    x = Tensor("x", (4,), "float32")
    given = {"clip_min": 2.0, "clip_max": 1.0, "method": "ADD", "with_activation": "CLIP"}
    layer = Layer("l", kind, [x] * (2 if kind == "Eltwise" else 1), [replace(x, name="y")], given)
    assert all("'clip_min' is 2, but 'clip_max' is 1" in m for m in some(refusals(layer)))


BEYOND = (
    "Mul Add Square Exp Softplus Reduce MatMul BatchNorm FullyConnected Pooling DepthwiseConv Cumulate Tile".split()
)


@pytest.mark.parametrize("dtype", ["float16"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_finite_numbers_stay_finite_in_16_bits(tmp_path, dtype):
    """What is too large for the type is its largest number; infinities and NaN stay what they are."""
    kernels = {}
    for name in BEYOND:
        for shape in SHAPES[:3]:
            layer = drawn(Draw(np.random.default_rng(1)), name, Tensor("x", shape, dtype))
            if layer and (kernel := _kernel(layer)):
                kernels[layer] = kernel
                break
    build(list(kernels.values()), tmp_path)
    limited = 0
    for layer, kernel in kernels.items():
        source, name = np.random.default_rng(2), layer.type
        inputs = [source.uniform(-60000, 60000, t.shape).astype(numpy_dtype(t.dtype)) for t in layer.inputs]
        inputs[0].reshape(-1)[:2] = (np.inf, np.nan)[: inputs[0].size]
        for got, want in zip(run(kernel, layer, inputs, tmp_path), evaluate(layer, inputs), strict=True):
            largest = np.abs(want[np.isfinite(want)].astype("f4")).max(initial=0)
            limited += largest == 65504
            assert (np.isinf(got) == np.isinf(want)).all(), name
            ours = got[np.isfinite(got)].astype("f4")
            assert np.abs(ours).max(initial=0) <= 65504 and (largest != 65504 or np.abs(ours).max() == 65504), name
    assert limited >= 3
