"""Functions of blocks searched by rules, and by a function of one's own; what was found is kept in files."""

import numpy as np
import tvm
import tvm.testing
from tvm import meta_schedule as ms
from tvm.contrib.utils import tempdir
from tvm.script import tir as T

N = 16


@tvm.script.ir_module
class Module:
    @T.prim_func
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), D: T.Buffer((16, 16), "float32")):
        C = T.alloc_buffer((16, 16), "float32")
        for i, j, k in T.grid(16, 16, 16):
            with T.block("product"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = 0.0
                C[vi, vj] += A[vi, vk] * B[vk, vj]
        for i, j in T.grid(16, 16):
            with T.block("positive"):
                vi, vj = T.axis.remap("SS", [i, j])
                D[vi, vj] = T.max(C[vi, vj], 0.0)


target = tvm.target.Target("llvm --num-cores=1")
runner = ms.runner.LocalRunner(evaluator_config=ms.runner.EvaluatorConfig(number=1, min_repeat_ms=0))
a, b = (np.random.uniform(-1, 1, size=(N, N)).astype("float32") for _ in range(2))


def check(sch):
    run = tvm.build(sch.mod, target=target)
    d = tvm.nd.empty((N, N))
    run(tvm.nd.array(a), tvm.nd.array(b), d)
    tvm.testing.assert_allclose(d.numpy(), np.maximum(a @ b, 0), rtol=1e-4, atol=1e-5)


def search(folder, **options):
    return ms.tune_tir(
        mod=Module, target=target, work_dir=folder.temp_dir, max_trials_global=3, num_trials_per_iter=3, runner=runner,
        seed=7, **options,
    )  # fmt: skip


folder = tempdir()
database = search(folder)
assert len(database) == 3
sch = ms.tir_integration.compile_tir(database, Module, target)
check(sch)
again = ms.database.JSONDatabase(work_dir=folder.temp_dir)
assert len(again) == 3
assert tvm.ir.structural_equal(again.query_ir_module(Module, target, "main"), sch.mod)
with again:
    assert ms.Database.current() is again


def tiles(sch):
    product = sch.get_block("product")
    i, j, k = sch.get_loops(product)
    i0, i1 = sch.split(i, factors=sch.sample_perfect_tile(i, n=2))
    j0, j1 = sch.split(j, factors=sch.sample_perfect_tile(j, n=2))
    sch.reorder(i0, j0, k, i1, j1)


def chosen():
    memory = search(
        tempdir(), space=ms.space_generator.ScheduleFn(tiles), strategy="replay-trace", database="memory",
        cost_model="random",
    )  # fmt: skip
    check(ms.tir_integration.compile_tir(memory, Module, target))
    return [record.trace.as_json()[1] for record in memory.get_all_tuning_records()]


assert chosen() == chosen(), "a seed gives the same candidates"
context = ms.TuneContext(mod=Module, target=target, space_generator="post-order-apply", search_strategy="evolutionary")
designs = context.generate_design_space()
assert len(designs) == 3 and all("SamplePerfectTile" in str(d.trace.as_json()) for d in designs)
