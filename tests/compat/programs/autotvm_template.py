"""A matrix product and a convolution as templates of autotvm: searched, recorded, and built from the best record."""

import logging
import random

import numpy as np
import tvm
import tvm.testing
from tvm import autotvm, te
from tvm.contrib.utils import tempdir

logging.getLogger("autotvm").setLevel(logging.ERROR)


@autotvm.template("programs/product")
def product(n, l, m, dtype):
    A, B = te.placeholder((n, l), name="A", dtype=dtype), te.placeholder((l, m), name="B", dtype=dtype)
    k = te.reduce_axis((0, l), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    y, x = s[C].op.axis
    (k,) = s[C].op.reduce_axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, C, y)
    xo, xi = cfg["tile_x"].apply(s, C, x)
    cfg.define_annotate("inner", [xi], policy="try_vec")
    s[C].reorder(yo, xo, k, yi, xi)
    cfg["inner"].apply(s, C, [xi])
    return s, [A, B, C]


folder = tempdir()
log = folder.relpath("product.log")
task = autotvm.task.create("programs/product", args=(16, 16, 16, "float32"), target="llvm")
assert len(task.config_space) == 5 * 5 * 2 and task.flop == 2 * 16**3, task.config_space
option = autotvm.measure_option(builder="local", runner=autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0))
random.seed(3)
tuner = autotvm.tuner.RandomTuner(task)
tuner.tune(n_trial=3, measure_option=option, callbacks=[autotvm.callback.log_to_file(log)])
seen = [inp.config.index for inp, _ in autotvm.record.load_from_file(log)]
assert len(set(seen)) == 3 and tuner.best_config.index in seen and tuner.best_flops > 0
random.seed(3)
again = autotvm.tuner.RandomTuner(task).next_batch(3)
assert [c.index for c in again] == seen, "a seed gives the same search"
for kind in (autotvm.tuner.XGBTuner, autotvm.tuner.GATuner, autotvm.tuner.GridSearchTuner, autotvm.tuner.DropletTuner):
    assert kind(task).next_batch(2)
with autotvm.apply_history_best(log), tvm.target.Target("llvm"):
    s, arguments = product(16, 16, 16, "float32")
    run = tvm.build(s, arguments)
a, b = (np.random.uniform(size=(16, 16)).astype("float32") for _ in range(2))
c = tvm.nd.empty((16, 16))
run(tvm.nd.array(a), tvm.nd.array(b), c)
tvm.testing.assert_allclose(c.numpy(), a @ b, rtol=1e-4)
best = folder.relpath("best.log")
autotvm.record.pick_best(log, best)
((inp, result),) = autotvm.record.load_from_file(best)
assert inp.task.workload == task.workload and inp.config.index == tuner.best_config.index and result.error_no == 0
line = autotvm.record.encode(inp, result)
assert autotvm.record.encode(*autotvm.record.decode(line)) == line
assert '"llvm -keys=cpu", "programs/product", [16, 16, 16, "float32"], {}' in line
