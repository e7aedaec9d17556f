"""Laws of what a kernel's author sees: debuggers, tracers, printed variables, where errors point."""

import itertools
import os
import re
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import script as S
from compassc.pysim import PySimInfo, checking, session

KERNEL = """
import numpy as np
import pdb
from compassc.dsl import script as S

SCALE = 3

def helper(x):
    return int(x) * SCALE

@S.prim_func
def scaled(v: S.i32x8) -> S.i32x8:
    w = v * 2
    return w

@S.prim_func
def k(a: S.ptr("int32", "global"), n: S.i32):
    if S.get_local_id() == TEC:
        tile = S.alloc_buffer((2, 4), "int32", "lsram")
        v = S.vload(a)
        total = helper(n)
        STOP
        u = scaled(v)
        tile[1, 2] = total
        S.vstore(u, a)

k(np.arange(8, dtype="int32"), 7)
"""


def debug(tmp_path, stop, commands, tec=0, text=KERNEL, **variables):
    """What pdb prints when it is fed `commands` in a run of a kernel."""
    path = tmp_path / "kernel.py"
    text = text.replace("STOP", stop).replace("TEC", str(tec))
    path.write_text(text)
    root = Path(S.__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (root, root / "core"))), **variables}
    done = subprocess.run(
        [sys.executable, path],
        check=False,
        input="\n".join(commands) + "\n",
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )
    lines = text.splitlines()
    return done, path, 1 + next((i for i, line in enumerate(lines) if line.endswith("u = scaled(v)")), 0)


_STOPS_AT_THE_CALL = sys.version_info >= (3, 13)
"""Whether the debugger stops in the line of breakpoint(), and not in the next one."""
SINGLE = {"CPS_TVM_PYSIM_SINGLE_THREAD": "TRUE"}


def test_pdbrc_may_go_on_without_asking(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / ".pdbrc").write_text("continue\n")
    done, _, _ = debug(tmp_path, "breakpoint()", ["p 'asked'"], HOME=str(home), **SINGLE)
    assert done.returncode == 0, done.stderr
    assert "asked" not in done.stdout


@pytest.mark.parametrize(
    ("stop", "single"), [("breakpoint()", True), ("breakpoint()", False), ("pdb.set_trace()", True)]
)
def test_breakpoints_stop_in_the_kernel_line_with_its_variables(tmp_path, stop, single):
    commands = ["p v", "p n", "p a", "tile", "p sorted(locals())", "p __name__", "p v + 1", "p S.vadd(v, v)", "c"]
    done, path, line = debug(tmp_path, stop, commands, tec=0 if single else 2, **(SINGLE if single else {}))
    assert done.returncode == 0, done.stderr
    line -= _STOPS_AT_THE_CALL
    assert f"> {path}({line})k()" in done.stdout
    assert f"-> {path.read_text().splitlines()[line - 1].strip()}" in done.stdout
    assert "int32x8([0, 1, 2, 3, 4, 5, 6, 7], 0x00000000 0x00000001" in done.stdout
    assert "int32(7, 0x00000007)" in done.stdout
    assert "global int32*(parameter a + 0 bytes: [0, 1, 2, 3, 4, 5, 6, 7])" in done.stdout
    assert "lsram int32[2, 4](lsram array tile + 0 bytes)" in done.stdout
    assert "['a', 'n', 'tile', 'total', 'v']" in done.stdout
    assert "'__main__'" in done.stdout
    assert "int32x8([1, 2, 3, 4, 5, 6, 7, 8]" in done.stdout
    assert "int32x8([0, 2, 4, 6, 8, 10, 12, 14]" in done.stdout


def test_steps_go_through_the_users_code_only(tmp_path):
    done, path, _ = debug(tmp_path, "breakpoint()", ["s", "s", "p w", "s", "w", "c"], **SINGLE)
    assert done.returncode == 0, done.stderr
    stops = [text for text in done.stdout.splitlines() if "> " in text and "(" in text and ".py(" in text]
    assert all(str(path) in text for text in stops), done.stdout
    assert ")scaled()" in done.stdout


MACROS = """
import numpy as np
from compassc.dsl import script as S

@S.macro
def bump(x, step):
    t = x + step
    x = t

@S.prim_func
def k(a: S.ptr("int32", "global"), n: S.i32):
    tile = S.alloc(4, "int32", "lsram")
    tile[1] = n
    import pdb; pdb.set_trace()
    bump(n, 4)
    a[0] = n

k(np.arange(8, dtype="int32"), 7)
"""


def test_macros_are_stepped_through_in_their_own_lines(tmp_path):
    commands = ["n"] * _STOPS_AT_THE_CALL + ["p tile", "s", "s", "p step", "p x + 1", "n", "n", "u", "p n", "w", "c"]
    commands += ["c"] * 3
    done, path, _ = debug(tmp_path, "", commands, text=MACROS, **SINGLE)
    assert done.returncode == 0, done.stderr
    assert "lsram int32*(lsram array tile + 0 bytes: [?, 7, ?, ?])" in done.stdout
    assert f"{path}(7)bump()" in done.stdout and "-> t = x + step" in done.stdout
    assert "(TEC0) 4\n" in done.stdout and "int32(8, 0x00000008)" in done.stdout
    assert "(TEC0) int32(11, 0x0000000b)" in done.stdout
    assert "(TEC3) " in done.stdout
    assert str(Path(S.__file__).parent) not in done.stdout


EACH = """
import numpy as np
from compassc.dsl import script as S

@S.prim_func
def k(a: S.ptr("int32", "global")):
    tid = S.get_local_id()
    BREAK
    x = tid + 1
    y = x * 2
    MEET
    a[tid] = y
    z = y

k(np.arange(8, dtype="int32"))
"""


@pytest.mark.parametrize("meet", ["pass", "S.barrier()"])
def test_steps_stay_on_one_tec(tmp_path, meet):
    """All TECs stop at the same line; one that steps keeps its prompt until it goes on, or waits for the others."""
    text = EACH.replace("BREAK", "breakpoint()").replace("MEET", meet)
    steps = 2 + _STOPS_AT_THE_CALL
    done, _, _ = debug(tmp_path, "", [*["n"] * steps, *(["c"] if meet == "pass" else ["n"])] * 4 + ["c"] * 8, text=text)
    assert done.returncode == 0, done.stderr
    prompts = re.findall(r"\(TEC(\d)\) ", done.stdout)
    turns = [tec for tec, _ in itertools.groupby(prompts)]
    assert sorted(turns[:4]) == ["0", "1", "2", "3"], done.stdout
    assert prompts[: 4 * (steps + 1)] == [tec for tec in turns[:4] for _ in range(steps + 1)]


def test_a_prompt_names_its_tec_and_quitting_ends_the_run(tmp_path):
    done, _, _ = debug(tmp_path, "breakpoint()", ["q"], tec=3)
    assert "(TEC3) " in done.stdout
    assert done.returncode != 0
    assert "BdbQuit" in done.stderr


@S.prim_func
def traced(a: S.ptr("int32", "global"), n: S.i32):
    x = 0
    for i, j in S.grid(2, n):
        x = x + i * j
    S.barrier()
    a[S.get_local_id()] = x


def test_tracers_see_the_lines_of_the_file():
    seen = set()

    def trace(frame, event, _arg):
        if frame.f_code.co_filename != __file__ or frame.f_code.co_name != "traced":
            return None
        seen.add(frame.f_lineno - traced.py_func.__code__.co_firstlineno)
        return trace

    threading.settrace(trace)
    try:
        traced(np.zeros(4, "int32"), 3)
    finally:
        threading.settrace(None)
    assert {2, 3, 4, 5, 6} <= seen


def test_values_print_readably():
    found = {}

    @S.prim_func
    def k(a: S.ptr("int32", "global")):
        v = S.vload(a)
        x = S.fp32(1.5)
        m = v > 3
        found.update(v=repr(v), x=repr(x), m=repr(m), text=f"{v[2]} {v[3]:04x} {x:.2f} {x}", null=repr(a))

    k(np.arange(8, dtype="int32"))
    assert found["x"] == "float32(1.5, 0x3fc00000)"
    assert found["m"] == "boolx8(FFFFTTTT)"
    assert found["text"] == "2 0003 1.50 1.5"
    assert found["v"].startswith("int32x8([0, 1, 2, 3, 4, 5, 6, 7], 0x00000000 0x")


def test_kernels_print_and_use_numpy_and_helpers(capsys):
    def twice(x):
        return np.asarray(x) * 2

    @S.prim_func
    def k(a: S.ptr("int32", "global")):
        for tec in S.tec_range(1):
            v = S.vload(a)
            print("tec", tec, "sum", np.sum(twice(v)))
            assert PySimInfo.current.local_size == 4

    k(np.arange(8, dtype="int32"))
    assert capsys.readouterr().out == "tec 0 sum 56\n"
    assert PySimInfo.current is None


@S.prim_func
def inner(p: S.ptr("int32", "lsram"), at: S.i32):
    p[at] = 1


@S.prim_func
def outer(a: S.ptr("int32", "global")):
    tile = S.alloc((4,), "int32", "lsram")
    if S.get_local_id() == 1:
        inner(tile, 9)
    S.barrier()


def test_an_error_names_memory_line_calls_and_tec():
    with pytest.raises(CompassError) as e:
        outer(np.zeros(4, "int32"))
    error = e.value
    assert (
        error.message
        == "store: element 9 of lsram array tile out of bounds: 4 int32 elements lie at and after the pointer"
    )
    assert (error.span.file, error.span.line) == (__file__, inner.span.line + 2)
    calls = [n for n in error.notes if n.message == "called from here"]
    assert [c.span.line for c in calls] == [outer.span.line + 4]
    assert error.notes[-1].message == "raised by TEC1 of a PySim run"


@S.prim_func
def endless(a: S.ptr("int32", "global")):
    if S.get_local_id() == 2:
        a[99] = 1
    while a[0] == 0:
        a[1] = 1


def test_an_error_stops_tecs_that_never_end(monkeypatch):
    monkeypatch.setattr(session, "_GRACE", 0.1)  # of theirs to end by themselves
    with pytest.raises(CompassError, match="element 99"):
        endless(np.zeros(4, "int32"))
    assert not [t for t in threading.enumerate() if t.name.startswith("TEC")]


# -------------------------------------------------------------------------------------------------------------- checks


@S.prim_func
def unwritten(a: S.ptr("int32", "global"), n: S.i32):
    tile = S.alloc((8,), "int32", "lsram")
    if n > 0:
        S.dma_copy(tile, a, n)
    S.vstore(S.vload(tile), a)


def test_memory_that_nobody_wrote_is_not_read():
    text = "bytes 0 to 31 of lsram array tile are read, but none"
    with checking("uninit"), pytest.raises(CompassError, match=text) as e:
        unwritten(np.zeros(8, "int32"), 0)
    assert (e.value.code, e.value.span.line) == ("uninitialised", unwritten.span.line + 5)
    unwritten(np.zeros(8, "int32"), 4)  # tails of vectors are usual
    unwritten(np.zeros(8, "int32"), 8)
    with checking():
        unwritten(np.zeros(8, "int32"), 0)
    with checking("partial"), pytest.raises(CompassError, match="but some of them"):
        unwritten(np.zeros(8, "int32"), 4)


@S.prim_func
def forgotten_wait(a: S.ptr("int32", "global")):
    tile = S.alloc((8,), "int32", "lsram")
    e = S.alloc_events(1)
    S.async_dma_copy(tile, a, 8, event=e)
    S.vstore(S.vload(tile), a)
    S.free_events(e)


def test_a_forgotten_wait_is_a_read_of_memory_that_nobody_wrote():
    text = "missing S.wait_events|none of them was ever written"
    with checking("uninit"), pytest.raises(CompassError, match=text):
        forgotten_wait(np.zeros(8, "int32"))


@S.prim_func
def neighbours(out: S.ptr("int32", "global"), with_barrier: S.bool):
    shared = S.alloc_buffer((4,), "int32", "shared")
    tid = S.get_local_id()
    shared[tid] = tid
    if with_barrier:
        S.barrier()
    out[tid] = shared[(tid + 1) % 4]


def test_races_are_found_whatever_the_order():
    for _ in range(5):
        with checking("race"), pytest.raises(CompassError, match="data race: .* bytes .* of shared array shared") as e:
            neighbours(np.zeros(4, "int32"), False)
    lines = {e.value.span.line, e.value.notes[0].span.line}
    assert lines == {neighbours.span.line + 4, neighbours.span.line + 7}
    out = np.zeros(4, "int32")
    with checking("race"):
        neighbours(out, True)
    assert out.tolist() == [1, 2, 3, 0]


@S.prim_func
def sums(a: S.ptr("int32", "global"), n: S.i32):
    v = S.vload(a)
    if n == 0:
        v = S.vadd(v, v)
    elif n == 1:
        v = v + v
    elif n == 2:
        v[0] = v[0] * 2
    elif n == 3:
        v = S.vadd(v, v, saturate=True)


@pytest.mark.parametrize("n", range(3))
def test_overflow_is_found_on_request(n):
    big = np.full(8, 1 << 30, "int32")
    sums(big, n)
    with checking("overflow"), pytest.raises(CompassError, match=r"= 2147483648 overflows int32") as e:
        sums(big, n)
    assert e.value.span.line == sums.span.line + 4 + 2 * n
    sums(big, n)
    with checking("overflow"):
        sums(big, 3)
        sums(big // 2, n)


@S.prim_func
def narrowing(a: S.ptr("int8", "global"), n: S.i32):
    a[0] = n


def test_stores_that_lose_bits_are_found_on_request():
    with checking("overflow"), pytest.raises(CompassError, match="300 does not fit int8"):
        narrowing(np.zeros(1, "int8"), 300)


def test_checks_by_environment(monkeypatch):
    monkeypatch.setenv("COMPASS_PYSIM_CHECK", "race,overflow")
    with pytest.raises(CompassError, match="data race"):
        neighbours(np.zeros(4, "int32"), False)
    monkeypatch.setenv("COMPASS_PYSIM_CHECK", "none")
    unwritten(np.zeros(8, "int32"), 0)
    with pytest.raises(CompassError, match="no check speed"), checking("speed"):
        pass


def test_pauses_change_nothing(monkeypatch):
    monkeypatch.setenv("COMPASS_PYSIM_PAUSE", "5")
    out = np.zeros(4, "int32")
    neighbours(out, True)
    assert out.tolist() == [1, 2, 3, 0]


# --------------------------------------------------------------------------------------------------------- descriptors


class Chain(list):
    @property
    def count_of_u32(self):
        return len(self)

    def copy(self):
        return Chain(self)


@S.prim_func
def second_word(d: S.ptr("uint32", "global")) -> S.u32:
    return (d + 1)[0]


def test_descriptor_pointers():
    chains = [Chain([1, 2, 3]), Chain([np.arange(4, dtype="uint32"), 5])]

    @S.prim_func
    def k(d: S.ptr("uint32", "global"), out: S.ptr("uint32", "global")):
        for _ in S.tec_range(1):
            out[0] = second_word(d)
            out[1] = (d + 3)[0][2]
            d[4] = 9
            d[0] = out
            assert (d + 3).get_current_desc_chain()[1] == 9
            assert d[0] == out
            with pytest.raises(CompassError, match="no descriptor chain begins at word 1"):
                (d + 1).get_current_desc_chain()
            with pytest.raises(CompassError, match="there are 5 words"):
                d[5]

    out = np.zeros(4, "uint32")
    k(chains, out)
    assert out.tolist() == [2, 2, 0, 0]
    assert chains[0] == [1, 2, 3] and chains[1][1] == 5  # a run has words of its own


def test_a_sub_function_defined_anew_is_the_one_that_is_called(monkeypatch):
    @S.prim_func
    def k(d: S.ptr("uint32", "global"), out: S.ptr("uint32", "global")):
        out[0] = second_word(d)

    @S.prim_func
    def other(d: S.ptr("uint32", "global")) -> S.u32:
        return d[0] + 7

    out = np.zeros(1, "uint32")
    k([Chain([1, 2])], out)
    assert out[0] == 2
    monkeypatch.setitem(globals(), "second_word", other)
    k([Chain([1, 2])], out)
    assert out[0] == 8


@S.prim_func
def _stores(p: S.ptr("i32", "global"), at: S.i32):
    p[at] = 1


def test_tracebacks_have_the_users_frames_alone(monkeypatch):
    @S.prim_func
    def outside(x: S.ptr("i32", "global")):
        _stores(x, 1000)

    @S.prim_func
    def undefined(x: S.ptr("i32", "global")):
        x[0] = nowhere  # noqa: F821

    for kernel, depth in ((outside, 3), (undefined, 1)):
        with pytest.raises(CompassError) as found:
            kernel(np.zeros(4, "int32"))
        for error in filter(None, (found.value, found.value.__cause__)):
            files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            assert files and set(files) == {__file__}
        assert len(found.traceback) == depth
    monkeypatch.setenv("COMPASS_TRACEBACK", "1")
    with pytest.raises(CompassError) as found:
        outside(np.zeros(4, "int32"))
    assert len(found.traceback) > 3


def test_what_s_lacks_is_advised_on_in_pysim_too():
    @S.prim_func
    def k(x: S.ptr("i32", "global")):
        S.prefetch(x)

    with pytest.raises(CompassError, match="AttributeError: S has no 'prefetch'") as found:
        k(np.zeros(4, "int32"))
    assert "S.async_dma_copy" in found.value.help
