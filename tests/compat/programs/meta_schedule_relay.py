"""The kernels of a Relay program as tasks of meta_schedule: extracted, searched, kept in a database, and built from it."""

import logging

import numpy as np
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm import relay
from tvm.contrib import graph_executor
from tvm.contrib.utils import tempdir

rng = np.random.default_rng(0)
x, w, b = (relay.var(n, shape=s) for n, s in {"x": (4, 16), "w": (16, 16), "b": (16,)}.items())
body = x
for _ in range(2):
    body = relay.nn.relu(relay.nn.bias_add(relay.nn.dense(body, w), b))
mod = tvm.IRModule.from_expr(relay.Function([x, w, b], relay.nn.softmax(body)))
params = {n: rng.uniform(-1, 1, s).astype("float32") for n, s in {"w": (16, 16), "b": (16,)}.items()}
data = rng.uniform(-1, 1, (4, 16)).astype("float32")
target = tvm.target.Target("llvm --num-cores=2")
KEY = "relay.backend.use_meta_schedule"


def answer(lib):
    graph = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    graph.run(x=data)
    return graph.get_output(0).numpy()


messages = []
handler = logging.Handler()
handler.emit = lambda r: messages.append(r.getMessage())
logging.getLogger("tvm.meta_schedule").addHandler(handler)
logging.getLogger("tvm.meta_schedule").propagate = False

tasks = ms.relay_integration.extract_tasks(mod, target, params)
assert [(t.weight, len(t.dispatched)) for t in tasks] == [(1, 1), (2, 1)], tasks
assert tasks[0].task_name == "fused_nn_softmax" and "dense" in tasks[1].task_name
contexts, weights = ms.relay_integration.extracted_tasks_to_tune_contexts(tasks, tempdir().path, seed=1)
assert weights == [1.0, 2.0] and [c.task_name for c in contexts] == [t.task_name for t in tasks]

config = ms.runner.EvaluatorConfig(number=1, repeat=1, min_repeat_ms=0)
database = ms.relay_integration.tune_relay(
    mod, params, target, tempdir().path, 4, num_trials_per_iter=2, runner=ms.runner.LocalRunner(evaluator_config=config),
    cost_model="random", strategy="replay-trace", seed=0,
)  # fmt: skip
assert all(database.has_workload(t.dispatched[0]) for t in tasks)
with tvm.transform.PassContext(opt_level=3):
    plain = answer(relay.build(mod, target, params=params))
    assert not ms.is_meta_schedule_enabled()
messages.clear()
tvm.testing.assert_allclose(
    answer(ms.relay_integration.compile_relay(database, mod, target, params)), plain, rtol=1e-5, atol=1e-6
)
with target, database, tvm.transform.PassContext(opt_level=3, config={KEY: True, f"{KEY}_dispatch": 4}):
    assert ms.is_meta_schedule_enabled()
    tvm.testing.assert_allclose(answer(relay.build(mod, target, params=params)), plain, rtol=1e-5, atol=1e-6)
assert not [m for m in messages if "Cannot find" in m], messages
executable = ms.relay_integration.compile_relay(database, mod, target, params, backend="vm")
machine = tvm.runtime.vm.VirtualMachine(executable, tvm.cpu())
tvm.testing.assert_allclose(machine.run(data).numpy(), plain, rtol=1e-5, atol=1e-6)

seen = []
with ms.database.ScheduleFnDatabase(lambda sch: bool(seen.append(sch))):
    with tvm.transform.PassContext(opt_level=3, config={KEY: True}):
        assert np.array_equal(answer(relay.build(mod, target, params=params)), plain)
    assert len(seen) == len([m for m in messages if "Cannot find workload" in m]) == len(tasks)
    try:
        with tvm.transform.PassContext(opt_level=3, config={KEY: True, f"{KEY}_dispatch": 4}):
            relay.build(mod, target, params=params)
        raise AssertionError("a kernel that is not on record was built")
    except tvm.TVMError as error:
        assert "Cannot find workload" in str(error)
for refused, word in (
    (lambda: ms.relay_integration.compile_relay(database, mod, target, params, backend="aot"), "Unknown backend"),
    (lambda: relay.build(mod, target, params=params), "no `meta_schedule.Database`"),
):
    try:
        with tvm.transform.PassContext(opt_level=3, config={KEY: True}):
            refused()
        raise AssertionError(word)
    except ValueError as error:
        assert word in str(error)
