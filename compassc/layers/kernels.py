"""Which kernel computes a layer: element-wise steps by layer type, and kernels of their own for the others."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from compass_core.errors import CompassError
from compassc.build import Expression, Recorder, Value
from compassc.dsl import script as S
from compassc.graph import Layer, LayerError, Tensor
from compassc.layers import families
from compassc.layers.choices import choose, is_asked, recorded, wanted
from compassc.layers.declare import consistent, find_type, type_of
from compassc.layers.emit import as_stored
from compassc.layers.empty_kernels import kernel_of_nothing
from compassc.layers.kernel import Kernel
from compassc.layers.layer_checks import check
from compassc.layers.layer_kernel import LayerKernel
from compassc.layers.machine import configuration, settled
from compassc.layers.stored_weights import with_real_weights

Step = Callable[..., "Value | tuple[Value, ...]"]
"""`step(source, layer, *operands)`: adds the layer's statements and gives its value, in the range of the output; one for
each output where there are several."""
Builder = Callable[..., Kernel]
"""`builder(layer)`; one that takes a tail is called `builder(layer, tail)` with the layers that follow in the kernel."""

STEPS: dict[str, Step] = {}
"""Layer type -> its step; filled when its family's kernels are imported (`load_kernels_of`), as the other tables are."""
WORD_STEPS: dict[str, Step] = {}
"""Layer type -> its step where an operand or an output is uint32."""
BUILDERS: dict[str, Builder] = {}
"""Layer type -> the function that makes its kernel."""
FORM_BUILDERS: dict[str, list[tuple[Callable[[Layer], bool], Builder]]] = {}
"""Layer type -> forms of it and what makes their kernels, where other forms of the type are steps or share a kernel."""
WITH_TAIL: set[str] = set()
"""Types whose kernels can go on with element-wise layers."""
SCHEDULED: dict[str, Callable[[Layer], bool]] = {}
"""Layer type -> of which layers the expression with its default schedule comes before the kernel by hand."""
IMPLEMENTATION = "implementation"
"""The choice of how a kernel is made."""
BY_HAND, BY_SCHEDULE = "hand", "schedule"


def elementwise(*types: str) -> Callable[[Step], Step]:
    """Registers a step for layer types: layers whose elements follow from the operands' elements at the same place."""

    def register(step: Step) -> Step:
        for name in types:
            STEPS[name] = step
        return step

    return register


def of_words(*types: str) -> Callable[[Step], Step]:
    """Registers a step for layers of these types with operands or outputs of uint32, whose lanes are uint32."""

    def register(step: Step) -> Step:
        WORD_STEPS.update(dict.fromkeys(types, step))
        return step

    return register


def step_of(layer: Layer) -> Step:
    """The step of an element-wise layer. LayerError for one of uint32 that has none."""
    if all(t.dtype != "uint32" for t in (*layer.inputs, *layer.outputs)):
        return STEPS[layer.type]
    if layer.type not in WORD_STEPS:
        raise LayerError(f"{layer.type} of uint32 has no kernel")
    return WORD_STEPS[layer.type]


def kernel(*types: str, tail: bool = False) -> Callable[[Builder], Builder]:
    """Registers a function that makes the kernel of a layer of these types."""

    def register(builder: Builder) -> Builder:
        for name in types:
            BUILDERS[name] = builder
            if tail:
                WITH_TAIL.add(name)
        return builder

    return register


def form_kernel(name: str, when: Callable[[Layer], bool]) -> Callable[[Builder], Builder]:
    """Registers a function that makes the kernel of layers of one type of which `when` holds."""

    def register(builder: Builder) -> Builder:
        FORM_BUILDERS.setdefault(name, []).append((when, builder))
        return builder

    return register


def method_kernel(name: str, method: str) -> Callable[[Builder], Builder]:
    """Registers a function that makes the kernel of a layer of one type with one method."""
    return form_kernel(name, lambda layer: layer.word("method", "") == method)


def scheduled(*types: str, when: Callable[[Layer], bool] = lambda layer: True) -> None:
    """Has expressions with their schedules come before kernels by hand for layers of these types of which `when` holds."""
    SCHEDULED.update(dict.fromkeys(types, when))


@cache
def load_family(family: str) -> None:
    """Imports the kernels of a family: every module of it but the references."""
    package = importlib.import_module(f"{families.__name__}.{family}")
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        if not module.name.endswith(".reference"):
            importlib.import_module(module.name)


@cache
def load_kernels() -> None:
    """Imports the kernels of all families."""
    for family in families.TYPES:
        load_family(family)


def load_kernels_of(name: str) -> None:
    """Imports the kernels of a layer type's family, if there is such a type."""
    if name in families.FAMILY_OF:
        load_family(families.FAMILY_OF[name])


def is_step(name: str) -> bool:
    """Whether layers of this type are element-wise."""
    load_kernels_of(name)
    return name in STEPS


def takes_tail(name: str) -> bool:
    """Whether element-wise layers can join the kernel of a layer of this type."""
    return is_step(name) or name in WITH_TAIL


def kernel_of(layers: Sequence[Layer]) -> Kernel:
    """The kernel of a layer, with the element-wise layers behind it; LayerError with the reason where there is none."""
    for layer in layers:
        load_kernels_of(layer.type)
        declared = find_type(layer.type)
        if declared is None:
            raise LayerError(f"there is no layer type '{layer.type}'")
        if declared.refused:
            raise LayerError(declared.refused)
        with consistent(layer):
            check(declared, layer)
    with consistent(layers[0]), recorded(layers), settled(), Recorder().active():
        return _kernel_of([with_real_weights(layer) for layer in layers])


def _kernel_of(layers: Sequence[Layer]) -> Kernel:
    first = layers[0]
    declared = find_type(first.type)
    if declared and (reason := declared.reason_against(first)):
        raise LayerError(reason)
    if any(t.count == 0 for t in first.inputs):
        known = kernel_of_nothing(layers)
        if known is not None:
            return known
    ways = _ways(layers)
    found = choose(IMPLEMENTATION, ways, ways.index, str) if len(ways) > 1 else BY_HAND
    if found == BY_SCHEDULE:
        from compassc.layers.expressions import scheduled_kernel

        try:
            return scheduled_kernel(layers, configuration().name)
        except LayerError:
            if wanted(IMPLEMENTATION) is not None:
                raise
    with _takes_types(layers[0]):
        return _by_hand(layers)


def _ways(layers: Sequence[Layer]) -> list[str]:
    """How the kernel of layers can be made, the better way first. Element-wise layers have one loop for all."""
    first = layers[0]
    known = first.type in SCHEDULED and configuration().cores == 1
    if (
        not (known or is_asked())
        or first.is_quantised
        or first.type in STEPS
        or any(type_of(x.type).body is None for x in layers)
    ):
        return [BY_HAND]
    if is_asked():
        from compassc.layers.expressions import expression_of

        try:
            expression_of(layers)
        except LayerError:
            return [BY_HAND]
    return [BY_SCHEDULE, BY_HAND] if known and SCHEDULED[first.type](first) else [BY_HAND, BY_SCHEDULE]


def _by_hand(layers: Sequence[Layer]) -> Kernel:
    first, *tail = layers
    for when, own in FORM_BUILDERS.get(first.type, ()):
        if when(first):
            if tail:
                raise LayerError(f"no layer joins this form of {first.type}")
            return own(first)
    if first.type in STEPS:
        from compassc.layers.loops import elementwise_kernel

        return elementwise_kernel(layers)
    if first.type not in BUILDERS:
        raise LayerError(f"{first.type} has no kernel yet")
    builder = BUILDERS[first.type]
    if first.type in WITH_TAIL:
        return builder(first, tail)
    if tail:
        raise LayerError(f"layers cannot join the kernel of a {first.type}")
    return builder(first)


CONVERSIONS = ("Cast", "Quantize", "DeQuantize")
CHOICES = ("Where", "Select")
"""Types whose operands may be integers and floats."""


def _check_kinds(layer: Layer, operands: Sequence[Value], results: Sequence[Value]) -> None:
    """LayerError where a layer that converts nothing has integers and floats."""
    for t, value in zip(layer.outputs, results, strict=True):
        if t.is_integer == (value.kind == "float32"):
            given = "real numbers" if value.kind == "float32" else "integers"
            raise LayerError(f"it makes {given} of its operands, but '{t.name}' is {t.dtype}")
    kinds = {v.kind for v in operands}
    mixed = len(kinds) > 1 and layer.type not in CHOICES
    wrong = kinds == {{"Quantize": "int32", "DeQuantize": "float32"}.get(layer.type)}
    if mixed or wrong or (kinds == {"int32"} and results[0].kind == "float32" and layer.type not in CONVERSIONS):
        raise LayerError(
            f"its operands are {', '.join(t.dtype for t in layer.inputs)}, its output is {layer.output.dtype}; a Cast, "
            "Quantize or DeQuantize has to stand before it"
        )


@contextmanager
def _takes_types(layer: Layer) -> Iterator[None]:
    """LayerError where operations do not take the types of the layer's operands."""
    try:
        yield
    except CompassError as error:
        given = ", ".join(t.dtype for t in layer.inputs)
        outputs = ", ".join(t.dtype for t in layer.outputs)
        raise LayerError(f"its operands are {given}, its outputs {outputs}: {error.message}") from error


def compute(k: LayerKernel, run: Sequence[Layer], values: dict[str, Value]) -> None:
    """Adds what a run of element-wise layers makes to `values`, which has its operands; all by names of tensors."""
    from compassc.layers.byte_functions import looked_up

    known = looked_up(k, run, values[run[0].inputs[0].name])
    if known is not None:
        values[run[-1].output.name] = known
        return
    for layer in run:
        k.channel_shape = ()
        with _takes_types(layer):
            given = step_of(layer)(k, layer, *[values[t.name] for t in layer.inputs])
        made = (given,) if isinstance(given, Value) else given
        if len(made) != len(layer.outputs):
            raise LayerError(f"it has {len(layer.outputs)} outputs, expected {len(made)}")
        _check_kinds(layer, [values[t.name] for t in layer.inputs], made)
        values |= {t.name: as_stored(k, r, t) for r, t in zip(made, layer.outputs, strict=True)}


def follow(
    k: LayerKernel, head: Layer, value: Value, tail: Sequence[Layer], operand: Callable[[Tensor], Value]
) -> tuple[Value, Tensor]:
    """The element-wise layers behind `head`, on its value: (the last value, the last output).

    `operand`: the lanes of a pass of a further operand, which has the shape of the output.
    """
    from compassc.layers.byte_functions import runs

    out = head.output
    values = {out.name: as_stored(k, value, out)}
    for run in runs(tail):
        if any(member.output.shape != out.shape for member in run):
            raise LayerError("it changes the shape")
        for t in run[0].inputs:
            if t.name in values:
                continue
            if t.shape != out.shape:
                raise LayerError(f"'{t.name}' has another shape than what it meets, which cannot join the kernel")
            values[t.name] = operand(t)
        if any(len(member.outputs) > 1 for member in run):
            raise LayerError(f"a {run[0].type} has several outputs, which cannot join the kernel")
        compute(k, run, values)
    last = (tail[-1] if tail else head).output
    return values[last.name], last


def settle(k: LayerKernel, head: Layer, value: Value, tail: Sequence[Layer], place: Expression) -> None:
    """Stores lanes of `head`'s output, after the layers behind it, where `place` is in tensors of its shape."""
    out = head.output
    if tail or out.is_integer:  # real numbers are rounded by storing them
        value, out = follow(k, head, value, tail, lambda t: k.loaded(k.tensor(t) + place, t))
    S.vstore(k.stored(value, out.dtype), k.tensor(out) + place, k.mask)
