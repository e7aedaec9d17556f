"""Features count what programs do: instructions, bytes and transfers of known loop nests come out exactly."""

import numpy as np
import pytest

from compassc import te, topi
from compassc.dsl import BuildManager
from compassc.tuning.cost import feature_vector, loop_nest, names, table
from compassc.tuning.cost.features import cycles, estimate

TARGET, TECS = "X2_1204", 4


def product(m=16, n=32, depth=64):
    a, b = te.placeholder((m, depth), "int8", name="a"), te.placeholder((n, depth), "int8", name="b")
    c = topi.matmul(a, b, False, True)
    return te.lower(topi.schedule(c, TARGET), [a, b, c], "k", TARGET)


def added(n=4096, tile=256, double=True):
    a, b = (te.placeholder((n,), "float16", name=name) for name in "ab")
    c = te.compute((n,), lambda i: a[i] + b[i], name="c")
    s = te.create_schedule(c)
    local = s.cache_write(c, "lsram")
    copies = [s.cache_read(t, "lsram", [local]) for t in (a, b)]
    share, rest = s[c].split(c.op.axis[0], nparts=TECS)
    outer, _ = s[c].split(rest, factor=tile)
    s[c].bind(share, te.thread_axis("threadIdx.x"))
    for t in (local, *copies):
        s[t].compute_at(s[c], outer)
        if double:
            s[t].double_buffer()
    s[local].vectorize(s[local].split(local.op.axis[0], factor=16)[1])
    return te.lower(s, [a, b, c], "k", TARGET)


def count(module, name):
    """A feature before its logarithm, of all TECs."""
    found = dict(zip(names(), feature_vector(module)))[name]
    return TECS * (2.0**found - 1)


def test_every_feature_has_a_name_of_its_own_and_a_meaning():
    assert len(set(names())) == len(names()) == len(table())
    assert all(f.meaning for f in table())


@pytest.mark.parametrize("sizes", [(64, 32, 64), (128, 16, 128), (64, 64, 32)])
def test_products_of_bytes_are_counted(sizes):
    m, n, depth = sizes
    assert count(product(*sizes), "run.dot") == pytest.approx(m * n * depth / 32)


@pytest.mark.parametrize("double", [True, False])
def test_bytes_that_transfers_move_are_counted(double):
    module = added(double=double)
    assert count(module, "dma.in") == pytest.approx(2 * 2 * 4096, rel=0.1)
    assert count(module, "dma.out") == pytest.approx(2 * 4096, rel=0.1)
    share = dict(zip(names(), feature_vector(module)))["dma.background"]
    assert share == (1.0 if double else 0.0)


def test_vector_additions_are_counted_and_use_all_lanes():
    module = added()
    assert count(module, "run.alu") == pytest.approx(4096 / 16)
    assert dict(zip(names(), feature_vector(module)))["lane_use"] == 1.0


def test_work_on_one_tec_is_not_shared():
    a = te.placeholder((64, 64), "int32", name="a")
    b = te.compute((64, 64), lambda i, j: a[i, j] + 1, name="b")
    alone, shared = te.create_schedule(b), te.create_schedule(b)
    shared[b].bind(b.op.axis[0], te.thread_axis("threadIdx.x"))
    loads = []
    for s in (alone, shared):
        module = te.lower(s, [a, b], "k", TARGET)
        loads.append(2.0 ** dict(zip(names(), feature_vector(module)))["run.scalar_load"] - 1)
    assert loads == [pytest.approx(64 * 64), pytest.approx(64 * 64 / TECS)]


def test_reuse_says_how_often_bytes_are_used():
    a = te.placeholder((64,), "float32", name="a")
    b = te.compute((32, 64), lambda i, j: a[j] * 2.0, name="b")
    s = te.create_schedule(b)
    s[b].vectorize(s[b].split(b.op.axis[1], factor=8)[1])
    nest = loop_nest(te.lower(s, [a, b], "k", TARGET))
    (load,) = [x for st in nest.statements for x in st.accesses if not x.store]
    assert load.reuse == 32


def test_the_values_of_parameters_tell_turns():
    from compassc.dsl import script as S

    @S.prim_func
    def scaled(x: S.ptr("i32", "global"), n: S.i32):
        for i in range(n):
            x[i] = x[i] * 3

    from compassc import pass_manager, passes

    module = passes.lower(BuildManager(TARGET).parse(scaled), pass_manager.PassOptions())
    loads = names().index("run.scalar_load")
    assert feature_vector(module, {"n": 1000.0})[loads] == pytest.approx(np.log2(1001))
    assert loop_nest(module).unknown_loops == 1 and loop_nest(module, {"n": 5.0}).unknown_loops == 0


def test_the_bound_is_near_what_profiles_say():
    from compass_runtime.profile.run import profiled_call

    rng = np.random.default_rng(0)
    bytes_ = [rng.integers(-128, 128, shape, dtype="int8") for shape in ((16, 64), (32, 64))]
    halves = [rng.normal(size=4096).astype("float16") for _ in "ab"]
    for module, arguments in (
        (product(), [*bytes_, np.zeros((16, 32), "int32")]),
        (added(), [*halves, np.zeros(4096, "float16")]),
    ):
        measured = profiled_call(BuildManager(TARGET).build(module).program, arguments).cycles
        nest = loop_nest(module)
        assert 0.4 * measured < estimate(nest) < 1.1 * measured
        assert cycles(nest).work >= cycles(nest).vector
