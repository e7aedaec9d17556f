"""Counters in the C text of kernels: the same results, and numbers that can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from runtime_kernels import pointer, scalar

from compass_core.errors import ToolchainError
from compass_core.hostcc.sources import Source
from compass_runtime import Program
from compass_runtime.profile.collect import Tally
from compass_runtime.profile.costs import cost_model
from compass_runtime.profile.instrument import instrument
from compass_runtime.profile.run import profiled_call
from compass_runtime.profile.table import text

N = 40
STATEMENTS = {
    "for": ("for (int i = 0; i < n; i++) out[i] = a[i] * 3;", N, N),
    "nested without braces": (
        "for (int i = 0; i < n; i++) for (int j = 0; j < 2; j++) if (j) out[i] = a[i]; else out[i] = 1;",
        N,
        2 * N,
    ),
    "while with break": ("int i = 0; while (1) { if (i >= n) break; out[i] = a[i]; i++; }", N, N),
    "continue": ("for (int i = 0; i < n; i++) { if (i & 1) continue; out[i] = a[i]; }", N // 2, N // 2),
    "do": ("int i = 0; do { out[i] = a[i]; } while (++i < n);", N, N),
    "early return": ("for (int i = 0; i < n; i++) { if (i == 7) return; out[i] = a[i]; }", 7, 7),
    "switch": (
        """for (int i = 0; i < n; i++) {
             switch (i & 3) {
               case 0: out[i] = a[i]; break;
               case 1: out[i] = 1;
               case 2: out[i] += 2; break;
               default: ;
             }
           }""",
        N // 4 + N // 2,
        N // 4 + N // 4 + N // 2,
    ),
    "arms": ("for (int i = 0; i < n; i++) out[i] = i < 8 ? a[i] : i;", 8, N),
    "lazy": ("int s = 0; for (int i = 0; i < n; i++) if (i < 5 && a[i] > -100) s++; out[0] = s;", 5, 1),
    "lazy or": ("int s = 0; for (int i = 0; i < n; i++) if (i >= 5 || a[i] > -100) s++; out[0] = s;", 5, 1),
    "goto": ("int i = 0; again: out[i] = a[i]; i++; if (i < n) goto again;", N, N),
    "macro": ("#define EACH(i) for (int i = 0; i < n; i++)\n EACH(i) out[i] = a[i];\n", N, N),
    "pragma": ("#pragma unroll\n for (int i = 0; i < n; i++) { out[i] = a[i]; }", N, N),
    "pragma of a loop without braces": (
        "#pragma clang loop unroll_count(2)\n for (int i = 0; i < n; i++) out[i] = a[i];",
        N,
        N,
    ),
    "statements on one line": (
        "if (n > 3) out[0] = a[0];if (n > 4) out[1] = a[1];else out[2] = a[2];out[3] = a[3];",
        3,
        3,
    ),
    "pointers": ("__global int* p = a; __global int* q = out; while (p < a + n) *q++ = *p++;", N, N),
    "comma": ("for (int i = 0, j = n; i < j; i++, j--) out[i] = a[i], out[j - 1] = a[j - 1];", N, N),
    "declaration in a condition's scope": ("if (n) { int x = a[0], y = a[1]; out[0] = x + y; }", 2, 1),
}
FUNCTIONS = """
_CLC_INLINE int twice(__global int* p, int i);
_CLC_INLINE int twice(__global int* p, int i) { return p[i] * 2; }
int nothing(void) { return 1; }
int none() { return 0; }
_CLC_OVERLOAD int pick(int x) { return x; }
_CLC_OVERLOAD int pick(float x) { return (int)x; }
__attribute__((noinline)) void last(__global int* out, __global int* a, int n) {
  for (int i = 0; i < n; i++)
    out[i] = twice(a, i) + nothing() + none() + pick(i) + pick((float)i);
}
"""


def one_tec(body: str) -> str:
    return (
        "__kernel void k(__global int* a, __global int* out, int n) {\n  if (get_local_id(0)) return;\n"
        + body
        + "\n}\n"
    )


def kernel(build, text):
    return build(text, pointer("a", "input", shape=(N,)), pointer("out", "output", shape=(N,)), scalar("n"))


def profiled(path, n=N):
    """The profile of a run that gives the same as one without counters."""
    program = Program.load(path)
    a = np.random.default_rng(0).integers(-99, 99, N, dtype="int32")
    plain, counted = np.zeros(N, "int32"), np.zeros(N, "int32")
    program.call([a, plain, n])
    profile = profiled_call(program, [a, counted, n])
    assert plain.tobytes() == counted.tobytes() and plain.any()
    return profile


def count(profile, kind):
    return profile.total.classes.get(kind, Tally()).count


@pytest.mark.parametrize("name", STATEMENTS)
def test_scalar_loads_and_stores_of_statements(build, name):
    body, loads, stores = STATEMENTS[name]
    profile = profiled(kernel(build, one_tec(body)))
    arguments = 4 * 3
    assert (count(profile, "scalar_load") - arguments, count(profile, "scalar_store")) == (loads, stores)


def test_functions_take_their_counters_along(build):
    profile = profiled(kernel(build, FUNCTIONS + one_tec("last(out, a, n);")))
    assert count(profile, "scalar_store") == N and count(profile, "scalar_load") == N + 12
    assert count(profile, "call") == 4 + 1 + 5 * N


def test_tables_are_as_wide_as_the_terminal(build, monkeypatch):
    """What does not fit is counted; waits that do not occur have no column."""
    profile = profiled(kernel(build, one_tec(STATEMENTS["switch"][0])))
    monkeypatch.setenv("COLUMNS", "500")
    wide = text(profile)
    assert "more" not in wide and "TEC  cycles  work  vector" in wide
    monkeypatch.setenv("COLUMNS", "95")
    narrow = text(profile)
    assert "3 more" in narrow
    assert max(map(len, narrow.splitlines())) <= 95 < max(map(len, wide.splitlines()))


def test_text_is_printed_once_and_counted(build, capsys):
    profile = profiled(kernel(build, one_tec('for (int i = 0; i < 3; i++) printf("%d (\\n", i); out[0] = 1;')))
    assert capsys.readouterr().out == "0 (\n1 (\n2 (\n" and count(profile, "print") == 3


MASK_CASTS = """
  int8 v = __vload((__global int8*)a, ALL_TRUE_w);
  __vstore(v, (__global int8*)out, (bool8)(n > 3));
  if (n) __vstore((int8)(n), (__global int8*)(out + 8), (bool8)(n < 3));
"""


def test_masks_made_of_casts(build):
    """clang does not count the last parenthesis of such a cast to it."""
    stores = profiled(kernel(build, one_tec(MASK_CASTS))).total.classes["store"]
    assert (stores.count, stores.active, stores.lanes) == (2, 8, 16)


LETTERS = """
_CLC_INLINE int größe_von(int é) {{ return /* ümläut */ é > 3 ? é : 4; }}
__kernel void k(__global int* a, __global int* out, int n) {{
  if (get_local_id(0)) return;
# 1 "{file}"
  for (int öde = 0; öde < n; öde++) {{ printf("\u65e5\u672c\u8a9e %d\\n", öde); out[öde] = größe_von(a[öde]) + get_local_id(0); }}
}}
"""


def test_letters_of_all_languages_change_nothing(build):
    """clang counts bytes where Python counts characters, and writes names of files byte by byte."""
    found = {}
    for file in ("größe/\u0928\u0940.py", "plain.py"):
        text = LETTERS.format(file=file)
        if file == "plain.py":
            text = "".join(one if one.isascii() else "x" for one in text)
        profile = profiled(kernel(build, text))
        assert {place[0] for place in profile.lines} - {""} == {"k.cl", file}
        found[file] = {kind: tally.count for kind, tally in profile.total.classes.items()}, profile.cycles
    assert len(set(map(str, found.values()))) == 1


def test_a_unit_gets_its_counters_once_and_stays_whose_it_is(monkeypatch, tmp_path):
    model = cost_model("X2_1204")
    body = "__kernel void k(__global int* a) { for (int i = 0; i < 4; i++) a[i] = i; }"
    one, other = (
        Source("k.cl", model.target.define, (), (), body, identity=name, trusted=True) for name in (b"one", b"other")
    )
    first = instrument(one, model)
    with monkeypatch.context() as patched:
        patched.setattr("compass_runtime.profile.instrument.parse", lambda *_: 1 / 0)
        again = instrument(other, model)
    assert (again.source.text, again.regions) == (first.source.text, first.regions)
    assert (first.source.identity, again.source.identity) == (b"one", b"other")
    assert instrument(one, model, 5).first == 5
    monkeypatch.setenv("COMPASS_CLANG", str(tmp_path / "none"))
    with pytest.raises(ToolchainError):
        instrument(one, model)
