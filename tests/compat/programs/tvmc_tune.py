"""A model tuned and compiled by `tvmc`: records of its tasks, and a package that computes the same with them."""

import numpy as np
import tvm
from tvm import relay
from tvm.autotvm.record import load_from_file
from tvm.contrib.utils import tempdir
from tvm.driver import tvmc

folder = tempdir()
rng = np.random.default_rng(0)
x, w, v = relay.var("x", shape=(4, 20)), relay.var("w", shape=(32, 20)), relay.var("v", shape=(16, 32))
function = relay.Function([x, w, v], relay.nn.dense(relay.nn.relu(relay.nn.dense(x, w)), v))
params = {n: tvm.nd.array(rng.uniform(-1, 1, s).astype("float32")) for n, s in {"w": (32, 20), "v": (16, 32)}.items()}
model = tvmc.TVMCModel(tvm.IRModule.from_expr(function), params)
log = tvmc.tune(model, "llvm", folder.relpath("log.json"), trials=3, tuner="random", number=1, tasks_filter="1")
(first,) = (load_from_file(log),)
seen = [inp.task.args[0][1] for inp, _ in first]
assert seen == [(4, 32)] * 3, seen
again = tvmc.tune(model, "llvm", log, prior_records=log, trials=2, tuner="xgb_rank_knob", number=1)
measured = [inp for inp, _ in load_from_file(again)]
assert [inp.task.args[0][1] for inp in measured[3:]] == [(4, 20), (4, 32)], "one trial each"
inputs = {"x": rng.uniform(-1, 1, (4, 20)).astype("float32")}
results = [
    tvmc.run(
        tvmc.compile(model, "llvm", package_path=folder.relpath(f"{i}.tar"), tuning_records=r), "cpu", inputs=inputs
    )
    for i, r in enumerate([None, log])
]
np.testing.assert_allclose(*[r.get_output("output_0") for r in results], rtol=1e-5, atol=1e-5)
for words, why in {
    ("tuner", "best"): "no tuner best",
    ("tasks_filter", "2"): "the model has 2",
    ("tasks_filter", "a-b"): "not understood",
    ("hostname", "board"): "this machine alone",
}.items():
    try:
        tvmc.tune(model, "llvm", log, **dict([words]))
        raise AssertionError(words)
    except tvmc.TVMCException as error:
        assert why in str(error), error
