"""Graphs for several samples at once: built in where samples have nothing to do with each other, else refused."""

import numpy as np
import pytest

import compassc
from compass_core.errors import CompassError
from compassc.evaluation import evaluate
from compassc.graph import GraphBuilder


def graph(axis, shape=(1, 6)):
    g = GraphBuilder("net")
    x = g.input("x", shape, "float32")
    (y,) = g.layer("Softmax", [x], name="y", outputs=[(shape, "float32")], attributes={"axis": axis})
    return g.finish([y])


def test_a_run_takes_so_many_samples():
    x = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    one, four = compassc.compile(graph(1), "X2_1204"), compassc.compile(graph(1), "X2_1204", batch=4)
    assert four.inputs[0].shape == (4, 6) and np.array_equal(four(x), one(x))
    assert four(np.stack([x, -x])).shape == (2, 4, 6)


def test_each_sample_of_a_run_has_its_own_answer(tmp_path):
    x = np.random.default_rng(0).normal(size=(12, 6)).astype(np.float32)
    labels = np.where(np.arange(12) % 3, x.argmax(1), x.argmin(1))  # two thirds are right
    four = compassc.compile(graph(1), "X2_1204", batch=4)
    for limit, right in ((None, 8), (2, 5)):
        found = evaluate(four, {"x": x, "labels": labels}, limit=limit, profile=False)
        assert found.samples == (12 if limit is None else 8)
        assert {one.metrics["top-1"] for one in found.subjects} == {right / found.samples}
    with pytest.raises(CompassError, match="there are 11 labels for 12 samples"):
        evaluate(four, {"x": x}, labels=labels[:11])
    labels[6] = 9
    with pytest.raises(CompassError, match="the data, sample 6: the label 9 is none of the 6 classes"):
        evaluate(four, {"x": x}, labels=labels, profile=False)


@pytest.mark.parametrize(
    ("axis", "shape", "message"),
    [(0, (1, 6), "depends on the samples beside it"), (1, (2, 6), "has no first axis of one sample")],
)
def test_samples_that_have_to_do_with_each_other_are_refused(axis, shape, message):
    with pytest.raises(CompassError, match=message):
        compassc.compile(graph(axis, shape), "X2_1204", batch=4)
