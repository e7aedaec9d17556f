"""Every operator of the table with its default schedules, against its reference in NumPy.

`python -m tests.topi --target X2_1204` tries all of them on any target; here the host has all, the simulator a sample of the
operators and types (all of them with `--whole`).
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from compassc import targets, te, topi
from tests.choosing import some
from tests.topi.trying import tried

CASES = [(name, kind) for name, operator in topi.OPERATORS.items() for kind in operator.types]


@pytest.mark.parametrize("name", topi.OPERATORS)
def test_on_the_host(name):
    assert tried(topi.OPERATORS[name], "llvm -opt-level=1", together=True)


@pytest.mark.sampled(8)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_on_the_simulator(name, kind, whole):
    assert tried(topi.OPERATORS[name], "X2_1204", most=99 if whole else 1, kinds=(kind,))


def with_axes():
    """Operators and their samples that name axes, with the rank of what has them."""
    for operator in topi.OPERATORS.values():
        for number, sample in enumerate(
            operator.samples if "axis" in inspect.signature(operator.define).parameters else ()
        ):
            arrays = sample.inputs(operator.types[0])[1]
            bound = inspect.signature(operator.define).bind(*arrays, **sample.options)
            if bound.arguments.get("axis") is not None:
                first = np.ndim(arrays[0][0] if isinstance(arrays[0], list) else arrays[0])
                rank = first + (operator.name in ("expand_dims", "stack"))
                yield pytest.param(operator, bound, rank, id=f"{operator.name}-{number}")


@pytest.mark.parametrize(("operator", "bound", "rank"), list(with_axes()))
def test_references_count_axes_from_the_end(operator, bound, rank):
    """Also those that are made of one by others: `expand_dims` by several at -1, numbers of axes, an axis alone."""
    axes = bound.arguments["axis"]
    wanted = operator.evaluate(*bound.args)
    ways = (
        [axes % rank - rank]
        if isinstance(axes, int)
        else [[a % rank - rank for a in axes], *(axes if len(axes) == 1 else ())]
    )
    for way in some(ways):
        bound.arguments["axis"] = way
        for found, want in some(zip(operator.evaluate(*bound.args), wanted, strict=True)):
            np.testing.assert_array_equal(found, want)


def test_the_table_is_complete():
    """Every public function is declared, with a page's worth of text and samples."""
    plain = {"schedule", "conv1d", "conv2d", "pool2d"}  # by layout or kind they are others
    functions = [n for n in topi.__all__ if callable(getattr(topi, n)) and n[0].islower()]
    assert set(functions) - plain <= set(topi.OPERATORS)
    for operator in topi.OPERATORS.values():
        assert operator.samples and operator.types and operator.define.__doc__, operator.name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda a, b: topi.add(a, b), "do not go together"),
        (lambda a, b: topi.matmul(a, b), "reduced over differ"),
        (lambda a, b: topi.sum(a, 2), "has no axis 2"),
        (lambda a, b: topi.reshape(a, [5]), "12 elements"),
        (lambda a, b: topi.transpose(a, [0, 0]), "does not name each"),
        (lambda a, b: topi.concatenate([a, b]), "differ on other axes"),
        (lambda a, b: topi.nn.conv2d(a, b, layout="HWCN"), "no layout 'HWCN'"),
        (lambda a, b: topi.take(a, b, 0, "raise"), "no mode 'raise'"),
        (lambda a, b: topi.nn.prelu(a, te.placeholder((3,))), "takes numbers of the shape .'4'., not .'3'."),
        (lambda a, b: topi.nn.layer_norm(a, a, b, [0, 1]), "takes numbers of the shape"),
        (lambda a, b: topi.nn.rms_norm(a, te.placeholder((4, 3)), [1, 0]), "takes numbers of the shape"),
        (lambda a, b: topi.nn.batch_norm(a, *[te.placeholder((3,))] * 4), "takes numbers of the shape"),
    ],
)
def test_what_is_refused_names_the_reason(call, said):
    a, b = te.placeholder((3, 4), "int32", name="a"), te.placeholder((3, 5), "int32", name="b")
    with pytest.raises(te.ExpressionError, match=said):
        call(a, b)


@pytest.mark.parametrize("target", ["X2_1204", "llvm", "cuda"])
def test_knobs(target):
    """A knob changes the schedule, never what it computes is wrong: the trace says what was done."""
    a, b = te.placeholder((64, 64), name="a"), te.placeholder((64, 64), name="b")
    c = topi.matmul(a, b)
    knobs = {"X2_1204": {"lanes": 16}, "llvm": {"rows": 2, "columns": 1}, "cuda": {"threads": 64}}[target]
    plain, turned = topi.schedule(c, target), topi.schedule(c, target, **knobs)
    assert str(plain.trace) != str(turned.trace)
    with pytest.raises(TypeError):
        topi.schedule(c, target, speed=11)


def test_a_schedule_that_no_memory_holds_is_refused():
    a = te.placeholder((1 << 20,), name="a")
    with pytest.raises(te.LowerError, match="memory|bytes"):
        topi.schedule(topi.sort(a), "X2_1204")


def test_whole_pictures_of_other_sizes_are_those_of_the_reference():
    """At ties, too: what lies between elements is computed in the order of the reference."""
    draw, cases = np.random.default_rng(0), []
    for n, mode in enumerate(("half_pixel", "align_corners", "asymmetric", "half_pixel")):
        shape, size = (1, 2, *map(int, draw.integers(2, 9, 2))), [int(v) for v in draw.integers(2, 20, 2)]
        x = te.placeholder(shape, "int8", name=f"x{n}")
        cases.append((x, draw.integers(-100, 100, shape).astype("int8"), (size, "linear", mode)))
    outs = [topi.OPERATORS["resize2d"].define(x, *given) for x, _, given in cases]
    found = [np.zeros([d.value for d in t.shape], "int8") for t in outs]
    module = targets.build(topi.schedule(outs, "X2_1204"), [*(x for x, *_ in cases), *outs], "X2_1204")
    module(*(a for _, a, _ in cases), *found)
    for got, (_, array, given) in some(zip(found, cases, strict=True)):
        np.testing.assert_array_equal(got, topi.OPERATORS["resize2d"].reference(array, *given))
