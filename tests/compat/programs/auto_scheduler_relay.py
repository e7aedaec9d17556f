"""The kernels of a Relay program as tasks of auto_scheduler: extracted, searched, recorded, and built from the best records."""

import json
import logging
from pathlib import Path

import numpy as np
import tvm
import tvm.testing
from tvm import auto_scheduler, relay
from tvm.contrib import graph_executor
from tvm.contrib.utils import tempdir

rng = np.random.default_rng(0)
x = relay.var("x", shape=(1, 6, 6, 4))
w = relay.var("w", shape=(3, 3, 4, 4))
b, y = relay.var("b", shape=(4,)), relay.var("y", shape=(1, 6, 6, 4))
layout = {"padding": (1, 1), "kernel_size": (3, 3), "channels": 4, "data_layout": "NHWC", "kernel_layout": "HWIO"}
body = x
for _ in range(2):  # a sum that goes through two additions of one name into the last map
    body = relay.nn.relu(relay.add(relay.add(relay.nn.conv2d(body, w, **layout), b), y))
mod = tvm.IRModule.from_expr(relay.Function([x, y, w, b], relay.nn.softmax(relay.nn.batch_flatten(body))))
params = {n: rng.uniform(-1, 1, s).astype("float32") for n, s in {"w": (3, 3, 4, 4), "b": (4,)}.items()}
data = rng.uniform(-1, 1, (1, 6, 6, 4)).astype("float32")
target = tvm.target.Target("llvm")
ON = {"relay.backend.use_auto_scheduler": True}


def answer(**config):
    with tvm.transform.PassContext(opt_level=3, config=config, disabled_pass={"AutoSchedulerLayoutRewrite"}):
        assert auto_scheduler.is_auto_scheduler_enabled() == bool(config)
        lib = relay.build(mod, target=target, params=params)
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    graph.run(x=data, y=data)
    return graph.get_output(0).numpy()


messages = []
handler = logging.Handler()
handler.emit = lambda r: messages.append(r.getMessage())
logging.getLogger("auto_scheduler").addHandler(handler)
logging.getLogger("auto_scheduler").propagate = False

folder = tempdir()
tasks, weights = auto_scheduler.extract_tasks(
    mod["main"], params, target, dump_workload_to_dag_log=folder.relpath("dags")
)
assert sorted(weights) == [1, 2], weights
(conv,) = [t for t, n in zip(tasks, weights) if n == 2]
assert "conv2d" in conv.desc and 1 <= conv.compute_dag.flop_ct / (2 * 36 * 36 * 4) < 1.5, conv.compute_dag.flop_ct
assert set(json.loads(Path(folder.relpath("dags")).read_text())) == {t.workload_key for t in tasks}
every, _ = auto_scheduler.extract_tasks(mod, params, "llvm", include_simple_tasks=True)
assert {t.workload_key for t in tasks} < {t.workload_key for t in every}

log = folder.relpath("records.json")
tuner = auto_scheduler.TaskScheduler(tasks, weights, callbacks=[])
runner = auto_scheduler.LocalRunner(number=1, repeat=1, min_repeat_ms=0)
tuner.tune(
    auto_scheduler.TuningOptions(6, runner=runner, verbose=0, measure_callbacks=[auto_scheduler.RecordToFile(log)])
)
found = list(auto_scheduler.load_records(log))
assert {i.task.workload_key for i, r in found if not r.error_no} == {t.workload_key for t in tasks}, messages

plain = answer()
asked = []


class Noted(auto_scheduler.ApplyHistoryBest):
    """Notes which states builds get."""

    def _query_inside(self, target, workload_key, func_name):
        asked.append((workload_key, super()._query_inside(target, workload_key, func_name)))
        return asked[-1][1]


messages.clear()
with Noted(log):
    assert np.array_equal(answer(), plain) and not asked
    tvm.testing.assert_allclose(answer(**ON), plain, rtol=1e-5, atol=1e-6)
    for task in tasks:
        best = min(
            (np.mean(r.costs), i.state.transform_steps) for i, r in found if i.task.workload_key == task.workload_key
        )
        assert dict(asked)[task.workload_key].transform_steps == best[1]
assert not messages, messages
tvm.testing.assert_allclose(answer(**ON), plain, rtol=1e-5, atol=1e-6)
with auto_scheduler.ApplyHistoryBest([]):  # told of once for each sum, and built by default
    for _ in range(2):
        assert np.array_equal(answer(**ON), plain)
assert len(messages) == len(tasks) and all("Cannot find tuned schedules" in m for m in messages), messages
with auto_scheduler.ApplyHistoryBestOrSample(None):  # a program that is not measured
    tvm.testing.assert_allclose(answer(**ON), plain, rtol=1e-5, atol=1e-6)

with open(log) as file, open(folder.relpath("cuda"), "w") as into:
    for line in map(json.loads, file):
        line["i"][0][1] = "cuda -keys=cuda,gpu"
        into.write(json.dumps(line) + "\n")
asked.clear()
with Noted(folder.relpath("cuda")):
    assert np.array_equal(answer(**ON), plain) and {state for _, state in asked} == {None}
