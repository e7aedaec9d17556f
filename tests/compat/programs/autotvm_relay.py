"""The kernels of a Relay program as tasks of autotvm: extracted, searched, recorded, and built from the best records."""

import json
import logging

import numpy as np
import tvm
import tvm.testing
from tvm import autotvm, relay
from tvm.contrib import graph_executor
from tvm.contrib.utils import tempdir

rng = np.random.default_rng(0)
x = relay.var("x", shape=(1, 4, 6, 6))
w = relay.var("w", shape=(8, 4, 3, 3))
v = relay.var("v", shape=(16, 288))
conv = relay.nn.relu(relay.nn.conv2d(x, w, padding=(1, 1), kernel_size=(3, 3), channels=8))
out = relay.nn.dense(relay.nn.batch_flatten(conv), v)
mod = tvm.IRModule.from_expr(relay.Function([x, w, v], relay.add(out, relay.const(1.0))))
params = {n: rng.uniform(-1, 1, s).astype("float32") for n, s in {"w": (8, 4, 3, 3), "v": (16, 288)}.items()}
data = rng.uniform(-1, 1, (1, 4, 6, 6)).astype("float32")


def answer():
    with tvm.transform.PassContext(opt_level=3):
        lib = relay.build(mod, "llvm", params=params)
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    graph.run(x=data)
    return graph.get_output(0).numpy()


messages = []
handler = logging.Handler()
handler.emit = lambda r: messages.append((r.levelname, r.getMessage()))
autotvm_log = logging.getLogger("autotvm")
autotvm_log.addHandler(handler)
autotvm_log.propagate = False

plain = answer()
assert not messages, messages
tasks = autotvm.task.extract_from_program(mod["main"], target="llvm", params=params)
assert [t.name for t in tasks] == ["nn.conv2d", "nn.dense"], tasks
sums = [2 * 8 * 36 * 36, 2 * 16 * 288]
assert all(n <= t.flop < 1.1 * n for n, t in zip(sums, tasks)), [t.flop for t in tasks]
(dense,) = autotvm.task.extract_from_program(mod, target="llvm", params=params, ops=(relay.op.get("nn.dense"),))
assert dense.workload == tasks[1].workload and all(len(t.config_space) > 100 for t in tasks)

folder = tempdir()
log = folder.relpath("tuned.log")
option = autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner(number=1, repeat=1, cooldown_interval=0))
for task in tasks:
    tuner = autotvm.tuner.RandomTuner(task)
    tuner.tune(2, option, callbacks=[autotvm.callback.log_to_file(log)])
    assert tuner.best_config is not None, messages
used = []
with autotvm.apply_history_best(log) as best:
    best.knobs = lambda *a, asked=best.knobs: used.append(asked(*a)) or used[-1]
    tvm.testing.assert_allclose(answer(), plain, rtol=1e-5, atol=1e-5)
records = [*autotvm.record.load_from_file(log)]
for task, knobs in zip(tasks, used):
    costs = {np.mean(r.costs): i.config.get_other_option() for i, r in records if i.task.workload == task.workload}
    assert knobs == costs[min(costs)], (knobs, costs)
assert len(used) == 2 and not messages, (used, messages)


def changed(change):
    """The lines of the log, each changed."""
    path = folder.relpath("other.log")
    with open(log) as file, open(path, "w") as into:
        for line in file:
            content = json.loads(line)
            change(content)
            into.write(json.dumps(content) + "\n")
    return path


def of_cuda(content):
    content["input"][0] = "cuda -keys=cuda,gpu"


def of_other_sizes(content):
    content["input"][2][0][1][0] += 1


for change in (of_cuda, of_other_sizes):
    used.clear()
    with autotvm.apply_history_best(changed(change)) as best:
        best.knobs = lambda *a, asked=best.knobs: used.append(asked(*a)) or used[-1]
        assert np.array_equal(answer(), plain) and used == [None, None], used
assert [m for m in messages if m[0] == "WARNING"] == [messages[0]] and "have not been tuned" in messages[0][1], messages


def without_meaning(content):
    content["config"]["entity"] = [["rows", "ot", 5000]]


with autotvm.apply_history_best(changed(without_meaning)):
    try:
        answer()
        raise AssertionError("a record of knobs that kernels do not have was taken")
    except tvm.TVMError as error:
        assert "sets rows to 5000" in str(error)

try:
    autotvm.task.extract_from_program(mod, target="cuda", params=params)
    raise AssertionError("cuda has no tasks")
except tvm.TVMError as error:
    assert "have no tasks" in str(error)
