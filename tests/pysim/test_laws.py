"""Laws of PySim as a machine: memory, threads, barriers, calls. What operations compute is tested under tests/ops."""

import threading

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.pysim import PySimInfo, checking
from tests.choosing import some


def i32(*values):
    return np.array(values, "int32")


@S.prim_func
def seed(a: S.ptr("int32", "global"), b: S.ptr("int32", "global")):
    va = S.vload(a)
    vb = S.vadd(va, 1)
    S.vstore(vb, b)


def test_seed_kernel():
    a, b = np.arange(8, dtype="int32"), np.zeros(8, "int32")
    assert seed(a, b) is None
    assert (b == a + 1).all()


# ------------------------------------------------------------------------------------------------------------ threads


@S.prim_func
def ids(out: S.ptr("int32", "global")):
    tid = S.get_local_id()
    out[tid] = tid * 10 + S.get_local_size()


def test_every_tec_runs_once():
    out = np.full(4, -1, "int32")
    ids(out)
    assert out.tolist() == [4, 14, 24, 34]


@S.prim_func
def exchange(out: S.ptr("int32", "global")):
    shared = S.alloc_buffer((4,), "int32", "shared")
    tid = S.get_local_id()
    shared[tid] = tid + 1
    S.barrier()
    out[tid] = shared[0] + shared[1] + shared[2] + shared[3]


def test_barrier_orders_and_shared_memory_is_one():
    out = np.zeros(4, "int32")
    exchange(out)
    assert out.tolist() == [10] * 4


@S.prim_func
def early(out: S.ptr("int32", "global")):
    tid = S.get_local_id()
    if tid == 2:
        return
    for _ in range(3):
        S.barrier()
    out[tid] = 1


def test_a_barrier_that_a_tec_never_reaches_is_reported():
    with pytest.raises(CompassError, match="TEC0, TEC1 and TEC3 wait for ever at barrier 1") as e:
        early(np.zeros(4, "int32"))
    assert (e.value.code, e.value.span.line) == ("barrier", early.span.line + 6)
    texts = [(n.message, n.span and n.span.line) for n in e.value.notes]
    assert ("TEC3 waits here", early.span.line + 6) in texts
    assert ("TEC2 has ended after 0 barriers", None) in texts


@S.prim_func
def failing(out: S.ptr("int32", "global"), bad: S.i32):
    tid = S.get_local_id()
    if tid >= bad:
        out[100 + tid] = 1
    S.barrier()
    S.barrier()


@pytest.mark.parametrize("bad", [0, 1, 3])
def test_the_lowest_failing_tec_is_reported_and_nobody_waits_for_ever(bad):
    with pytest.raises(CompassError, match=f"element {100 + bad} of parameter out out of bounds: 4 int32") as e:
        failing(np.zeros(4, "int32"), bad)
    assert f"TEC{bad}" in e.value.notes[-1].message
    assert e.value.span.file == __file__
    assert not [t for t in threading.enumerate() if t.name.startswith("TEC")]


@S.prim_func
def python_error(out: S.ptr("int32", "global")):
    out[0] = {}["missing"]


def test_python_errors_are_located():
    with pytest.raises(CompassError, match="KeyError: 'missing'") as e:
        python_error(np.zeros(4, "int32"))
    assert type(e.value.__cause__) is KeyError
    assert (e.value.span.file, e.value.span.line) == (__file__, python_error.span.line + 2)


@pytest.mark.parametrize("variable", ["CPS_TVM_PYSIM_SINGLE_THREAD", "AIPU_TVM_PYSIM_SINGLE_THREAD"])
def test_single_thread_mode(monkeypatch, variable):
    monkeypatch.setenv(variable, "true")
    seen = []

    @S.prim_func
    def k(out: S.ptr("int32", "global")):
        tid = S.get_local_id()
        seen.append(threading.current_thread())
        out[tid] = tid

    out = np.zeros(4, "int32")
    k(out)
    assert out.tolist() == [0, 1, 2, 3]
    assert set(seen) == {threading.current_thread()}
    with pytest.raises(CompassError, match="single-thread"):
        exchange(out)


def test_thread_names():
    names = set()

    @S.prim_func
    def k(out: S.ptr("int32", "global")):
        names.add(threading.current_thread().name)

    k(None)
    assert names == {"TEC0", "TEC1", "TEC2", "TEC3"}


def test_runs_in_several_threads_do_not_mix():
    results = [np.zeros(4, "int32") for _ in range(4)]
    threads = [threading.Thread(target=exchange, args=(r,)) for r in results]
    for t in some(threads):
        t.start()
    for t in some(threads):
        t.join()
    assert all(r.tolist() == [10] * 4 for r in some(results))


@S.prim_func
def different_shared(out: S.ptr("int32", "global")):
    for _ in S.tec_range(1):
        S.alloc((8,), "int32", "shared")
        S.alloc((16,), "int32", "shared")
    for _ in S.tec_range(1, 4):
        S.alloc((16,), "int32", "shared")


def test_shared_allocations_must_match():
    with pytest.raises(CompassError, match="shared allocation 0"):
        different_shared(None)


# ---------------------------------------------------------------------------------------------------------- arguments


@S.prim_func
def scalars(out: S.ptr("float32", "global"), n: S.i8, x: S.fp32, flag: S.bool):
    out[0] = n
    out[1] = x
    out[2] = 1 if flag else 2


def test_scalars_take_the_parameter_type():
    out = np.zeros(4, "float32")
    scalars(out, 100, 0.1, False)
    assert out[:3].tolist() == [100.0, np.float32(0.1), 2.0]


def test_wrong_arguments():
    out = np.zeros(8, "int32")
    for call, message in (
        (lambda: seed(out), "takes 2 arguments, 1 given"),
        (lambda: seed(out, [1, 2]), r"argument 2 \(b\) must be a NumPy array, got list"),
        (lambda: seed(out, np.zeros(8, ">i4")), r"argument 2 \(b\) holds int32 of the other byte order"),
        (lambda: seed(np.zeros(8, "int64"), out), r"argument 1 \(a\) holds int64, but the kernel takes int32"),
        (lambda: seed(out, np.zeros(8, object)), r"argument 2 \(b\) holds object, but the kernel takes int32"),
        (lambda: seed(out, None), "null int32 pointer"),
    ):
        with pytest.raises(CompassError, match=message):
            call()


@S.prim_func
def nullable(a: S.ptr("int32", "global"), out: S.ptr("int32", "global")):
    out[0] = 1 if a.is_nullptr else 2


@pytest.mark.parametrize(("value", "expected"), [(None, 1), (0, 1), (np.zeros(1, "int32"), 2)])
def test_null_pointers(value, expected):
    out = np.zeros(4, "int32")
    nullable(value, out)
    assert out[0] == expected


def test_arrays_with_gaps_are_copied_in_and_out():
    for view in (lambda m: m[:, 3], lambda m: m.T[::-1], lambda m: m[::2, 1::3]):
        source, target = np.arange(64, dtype="int32").reshape(8, 8), np.full((8, 8), -1, "int32")
        expected = target.copy()
        view(expected)[...] = view(source) + 1
        plus_one(view(source), view(target), view(source).size)
        np.testing.assert_array_equal(target, expected)
        plus_one(view(target), view(target), view(target).size)  # in place: the input's copy must not undo it
        np.testing.assert_array_equal(view(target), view(source) + 2)


@S.prim_func
def plus_one(a: S.ptr("int32", "global"), b: S.ptr("int32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        for i in range(n):
            b[i] = a[i] + 1


def test_a_dtype_mismatch_warns_and_reads_bytes(caplog):
    a, b = np.arange(8, dtype="float32"), np.zeros(8, "int32")
    seed(a, b)
    assert "holds float32" in caplog.text
    assert (b == a.view("int32") + 1).all()


# ------------------------------------------------------------------------------------------------------ sub-functions


@S.prim_func
def narrow(x: S.i32) -> S.i8:
    return x


@S.prim_func
def change(v: S.i32x8) -> S.i32x8:
    v[0] = 99
    return v


@S.prim_func
def second(p: S.ptr("int32", "global"), step: S.i32 = 1) -> S.ptr("int32", "global"):
    return p + step


@S.prim_func
def calls(a: S.ptr("int32", "global"), out: S.ptr("int32", "global")):
    v = S.vload(a)
    w = change(v)
    out[0] = narrow(300)
    out[1] = v[0]
    out[2] = w[0]
    out[3] = second(a)[0]
    out[4] = second(a, step=3)[0]


def test_values_pass_by_value_and_results_take_the_annotated_type():
    out = np.zeros(8, "int32")
    calls(np.arange(5, 13, dtype="int32"), out)
    assert out[:5].tolist() == [44, 5, 99, 6, 8]


def test_sub_function_errors():
    for wrong, message in (
        (lambda a: narrow(), "argument x is missing"),
        (lambda a: narrow(1, 2), "at most 1 arguments, got 2"),
        (lambda a: narrow(y=1), "y is not a parameter"),
        (lambda a: narrow(a), r"argument 1 \(x\) must be int32"),
        (lambda a: change(1), r"argument 1 \(v\) must be int32x8"),
        (lambda a: second(1), r"argument 1 \(p\) must be a pointer"),
        (lambda a: seed(a, a) or change(None), "must be int32x8"),
    ):

        @S.prim_func
        def k(a: S.ptr("int32", "global")):
            wrong(a)  # noqa: B023

        with pytest.raises(CompassError, match=message):
            k(np.zeros(8, "int32"))


# -------------------------------------------------------------------------------------------------------------- memory


def in_kernel(body, *arrays, scope="global"):
    """Run `body(tec 0 pointers)` in a kernel on one TEC, return nothing."""
    kinds = [S.ptr(str(a.dtype), scope) for a in arrays]

    def run(*pointers):
        for _ in S.tec_range(1):
            body(*pointers)

    from compassc.language.functions import Param
    from compassc.pysim import run_entry

    run_entry(run, [Param(f"p{i}", k.type, False, None) for i, k in enumerate(kinds)], arrays)


def test_aliases_share_storage():
    data = np.zeros(16, "int32")

    def body(p):
        b = S.match_buffer(p, (4, 4))
        b[1, 2] = 7
        assert p[6] == 7
        q = p + 4
        q[0:4] = 3
        assert b[1, 3] == 3
        assert q == b.addr_of(1)
        assert q > p
        q.as_ptr("int8")[1] = 1
        assert p[4] == 3 + 256
        r = (p + 5).as_ptr("i32x8")
        r[0] = S.i32x8(9)
        assert b[3, 0] == 9

    in_kernel(body, data)
    assert data[4] == 259
    assert (data[5:13] == 9).all()


@pytest.mark.parametrize(
    ("access", "message"),
    [
        (lambda p: p[4], "load: element 4 of parameter p0 out of bounds: 4 int32"),
        (lambda p: (p + 2)[2], "element 2 .* 2 int32 elements"),
        (lambda p: p[-1], "element -1"),
        (lambda p: (p - 1)[0], "element 0 "),
        (lambda p: p[2:6], "elements 2 to 5"),
        (lambda p: p[0:8:2], "elements 0 to 6"),
        (lambda p: p[3:3], "selects nothing"),
        (lambda p: p[0:], "stop of a slice"),
        (lambda p: p[0, 0], "takes one index"),
        (lambda p: p[1.5], "must be an integer"),
        (lambda p: p[S.fp32(1)], "must be an integer"),
        (lambda p: p.as_ptr("void")[0], "void pointer cannot be accessed"),
        (lambda p: p.as_ptr("void") + 1, "void pointer cannot be moved"),
        (lambda p: p.as_ptr(""), 'write "void"|needs a data type'),
        (lambda p: p.as_ptr("bool"), "no pointer to bool"),
        (lambda p: p == 0, "only be compared with a pointer"),
        (lambda p: p < S.alloc((4,), "int32"), "unrelated"),
        (lambda p: S.vload(p), "elements 0 to 7"),
        (lambda p: S.vstore(S.i32x8(1), p), "elements 0 to 7"),
        (lambda p: S.match_buffer(p, (5,)), "4 bytes too small"),
        (lambda p: S.match_buffer(p, (2, 2))[2, 0], "index 2 .* dimension 0 has size 2"),
        (lambda p: S.match_buffer(p, (2, 2))[0], "takes 2 indices, got 1"),
        (lambda p: S.alloc((0,), "int32"), "must be positive"),
        (lambda p: S.alloc((4,), "i32x9"), "int32x9"),
        (lambda p: S.alloc((4,), "i32", "global"), "not a scope"),
    ],
)
def test_wrong_accesses(access, message):
    with pytest.raises(CompassError, match=message):
        in_kernel(lambda p: access(p), np.zeros(4, "int32"))


def test_stores_convert():
    out = np.zeros(8, "int8")

    def body(p):
        p[0] = S.i32(300)
        p[1] = S.fp32(-2.7)
        p[2:4] = 5
        p[4:8] = S.cast([1, 2, 3, 1000], "i32")

    in_kernel(body, out)
    assert out.tolist() == [44, -2, 5, 5, 1, 2, 3, -24]


def test_uninitialised_memory_is_the_same_every_time():
    def body(p):
        p[0] = S.alloc((1,), "int32", "lsram")[0]

    a, b = i32(0), i32(0)
    with checking():
        in_kernel(body, a)
        in_kernel(body, b)
    assert a == b
    assert a[0] != 0


def test_vectors_loaded_are_copies():
    def body(p):
        v = S.vload(p)
        p[0] = 5
        assert v[0] == 0

    in_kernel(body, np.zeros(8, "int32"))


def test_the_address_of_a_variable_sees_it():
    def body(p):
        v = S.vload(p)
        q = v.addr
        q.as_ptr("int32")[3] = 7
        assert v[3] == 7
        v[2] = 5
        assert q.as_ptr("int32")[2] == 5
        n = S.i32(1)
        n.addr[0] = 4
        assert n == 4

    in_kernel(body, np.zeros(8, "int32"))


# ------------------------------------------------------------------------------------------------------ control, events


def test_loops():
    def body(p):
        assert list(S.grid(2, 3)) == [(i, j) for i in range(2) for j in range(3)]
        assert list(S.grid(3)) == [0, 1, 2]
        assert list(S.vectorized(2)) == [0, 1]
        assert list(S.tec_range(1, 4)) == []
        assert S.meta_var(5) == 5

    in_kernel(body, i32(0))


def test_async_copies_happen_when_waited_for():
    def body(p):
        lsram = S.alloc((8,), "int32", "lsram")
        lsram[0:8] = 0
        ev, other = S.alloc_events(2)
        S.async_dma_copy(lsram, p, 4, event=ev)
        S.async_dma_copy(lsram + 4, p, 4, event=ev)
        S.async_dma_copy(p, lsram, 1, event=other)
        assert lsram[0] == 0
        S.wait_events(ev)
        assert [int(lsram[i]) for i in range(8)] == [1, 2, 3, 4] * 2
        S.free_events(ev, other)
        with pytest.raises(CompassError, match="was freed"):
            S.wait_events(ev)
        with pytest.raises(CompassError, match="5 events are requested, 4 are free"):
            S.alloc_events(5)

    in_kernel(body, i32(1, 2, 3, 4))


def test_outside_of_a_kernel():
    with pytest.raises(CompassError, match=r"S\.vadd can only be used in a kernel|kernel"):
        S.vadd(1, 2)


def test_unsupported():
    with pytest.raises(CompassError, match="which is not simulated"):
        in_kernel(lambda p: S.asm("nop"), i32(0))


def test_printf(capsys):
    def body(p):
        S.printf(
            "%d %u %x %X %o %c %% %s|%f %f %v8hlx\n", -1, S.u8(200), 255, 171, 8, 65, "hi", 1.5, -0.25, S.i32x8(17)
        )

    in_kernel(body, i32(0))
    assert capsys.readouterr().out == "-1 200 0xff 0xAB 010 A % hi|1.500000 -0.250000 " + ",".join(["0x11"] * 8) + "\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("%q", 1), "known specifier"),
        (("%d",), "takes 1 argument, got 0"),
        (("%d", 1.5), "integer scalar"),
        (("%f", 1), "float16 or float32"),
        ((5,), "must be a Python string"),
    ],
)
def test_printf_errors(args, message):
    with pytest.raises(CompassError, match=message):
        in_kernel(lambda p: S.printf(*args), i32(0))


def test_a_kernel_reads_the_words_of_descriptor_chains(tmp_path):
    from compassc.dsl import Aiff, load_kernels

    path = tmp_path / "k.py"
    path.write_text(
        "from compassc.dsl import script as S\n\n\n"
        '@S.prim_func\ndef k(d: S.ptr("u32", "global"), o: S.ptr("u32", "global")):\n'
        "    e = d + 1\n    o[0] = d[0]\n    o[1] = e[2]\n"
    )
    chains = Aiff("X2_1204").gen_descriptor()
    out = np.zeros(2, np.uint32)
    load_kernels(path).entry()(chains, out)
    assert out.tolist() == [chains[0][0], chains[0][3]]


# --------------------------------------------------------------------------------------------------------- after builds


@S.prim_func(is_inline=False)
def two_outputs(x: S.ptr("i32", "global"), y: S.ptr("i16", "global"), z: S.ptr("i32", "global")):
    i = S.get_local_id()
    y[i] = x[i] + 1
    z[i] = x[i] * 2


def test_outputs_are_written_to_files_on_request(tmp_path, monkeypatch, caplog):
    x, y, z = np.arange(4, dtype="int32"), np.zeros(4, "int16"), np.zeros(4, "int32")
    monkeypatch.setenv("CPS_DSL", "emu")
    two_outputs(x, y, z)
    assert "two_outputs was not built" in caplog.text
    assert (two_outputs.cps_info, two_outputs.param_infos, two_outputs.output_dir) == (None, None, None)
    BuildManager("X2_1204", output_dir=tmp_path).build(two_outputs)
    monkeypatch.delenv("CPS_DSL")
    two_outputs(x, y, z)
    folder = tmp_path / "gbuilder"
    assert not list(folder.glob("pysim_output*"))
    for option in ("debug", "emulator"):
        monkeypatch.setenv("CPS_DSL", option)
        two_outputs(x + 1, y, z)
        assert {f.name: f.read_bytes() for f in folder.glob("pysim_output*")} == {
            "pysim_output.bin": np.arange(2, 6, dtype="int16").tobytes(),
            "pysim_output.bin1": np.arange(2, 10, 2, dtype="int32").tobytes(),
        }


def test_a_built_kernel_knows_its_target_and_folder(tmp_path):
    seen = []

    @S.prim_func(is_inline=True)
    def k(out: S.ptr("i32", "global")):
        seen.append((PySimInfo.current, PySimInfo.current.thread_local_data.id))
        out[0] = 1

    assert k.attrs == {"is_inline": True}
    BuildManager("X2_1204", output_dir=tmp_path).build(two_outputs)
    k.built(two_outputs.target, two_outputs.param_infos, tmp_path, None)
    k(np.zeros(1, "int32"))
    session = seen[0][0]
    assert session.cps_info.name == "X2_1204"
    assert session.local_size == 4
    assert session.output_dir == tmp_path / "runtime" / "pysim"
    assert sorted(id for _, id in seen) == [0, 1, 2, 3]


def test_random_pauses_by_the_earlier_option(monkeypatch):
    pauses = []
    monkeypatch.setattr("time.sleep", pauses.append)
    out = np.zeros(8, "int32")
    seed(out, np.arange(8, dtype="int32"))
    assert not pauses
    for option in ("random_pause", "rp; rs=3", "rp; rs=3"):
        monkeypatch.setenv("CPS_DSL", option)
        seed(out, np.arange(8, dtype="int32"))
    assert len(pauses) == 12
    assert sorted(pauses[4:8]) == sorted(pauses[8:]) != sorted(pauses[:4])
