"""Bytes in LSRAM that are factors several times: taken apart once where nothing else is done with them, with the same sums."""

from typing import Any

import numpy as np
import pytest

from compass_core.hostcc import factors, host, promises
from compassc.dsl import BuildManager
from compassc.dsl import script as S

WORDS = 6


def summed(kind: str) -> Any:
    """Adds up products of words of two pixels with weights in LSRAM, brought in two pieces."""

    @S.prim_func
    def products(x: S.ptr(kind, "global"), w: S.ptr("i8", "global"), y: S.ptr("i32", "global")):
        S.assume_unclipped()
        wt = S.alloc(WORDS * 32, "i8", "lsram")
        a, b = S.i32x8(0), S.i32x8(0)
        for part in range(2):
            S.dma_copy(wt, w + part * WORDS * 32, WORDS * 32)
            held = wt + 0
            for c in range(0, WORDS, 2):
                ws = held + c * 32
                xs = x + (part * WORDS + c) * 32
                w0, x0, x1 = S.vload(ws), S.vload(xs), S.vload(xs + 2 * WORDS * 32)
                a = S.vqdpa(a, x0, w0)
                b = S.vqdpa(b, x1, w0)
                w1, x2, x3 = S.vload(ws + 32), S.vload(xs + 32), S.vload(xs + (2 * WORDS + 1) * 32)
                a = S.vqdpa(a, x2, w1)
                b = S.vqdpa(b, x3, w1)
        S.vstore(a, y)
        S.vstore(b, y + 8)

    return products


@pytest.mark.parametrize("level", ["native", "x86-64-v3", "x86-64"])
@pytest.mark.parametrize("kind", ["i8", "u8"])
def test_sums_are_the_same(kind: str, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    rng, many = np.random.default_rng(3), 2 * WORDS * 32
    info = np.iinfo(f"{'u' * (kind == 'u8')}int8")
    x = rng.choice(np.array([info.min, info.max, 5, info.max - 1], info.dtype), 2 * many)
    w = rng.choice(np.array([-128, 127, -1, 90], "int8"), many)
    y = np.zeros(16, "int32")
    made = BuildManager().build(summed(kind))
    text = promises.kept(made.c_code)
    assert factors.apart(text).count("__wload(") == 2 and factors.apart(text).count("__compass_halve(") == 1
    made(x, w, y)
    wanted = (x.reshape(2, -1, 8, 4).astype("int64") * w.reshape(1, -1, 8, 4)).sum((1, 3)).reshape(-1)
    np.testing.assert_array_equal(y, wanted)


TEXT = """\
  __lsram char wt_buf[8192];
  __lsram char* wt = wt_buf;
  DmaDirect_kGlobal_to_kLsram((int)wt, (int)(c1 + f(n, 2)), n, n, n, n);
  __lsram char* held = wt;
    __lsram char* ws = (held + (c * 128));
    char32 w = __vload((__lsram char32*)ws, ALL_TRUE_b);
    a = __wqdpa(a, x, w, ALL_TRUE_b);
    a1 = __wqdpa(a1, x1, w, ALL_TRUE_b);
    char32 w1 = __vload((__lsram char32*)(ws + 32), ALL_TRUE_b);
    a2 = __wqdpa(a2, x, w1, ALL_TRUE_b);
    a3 = __wqdpa(a3, x1, w1, ALL_TRUE_b);
  held = (held + n);
"""


def test_a_text_is_changed_at_loads_and_ends_of_lines_and_back() -> None:
    made = factors.apart(TEXT)
    assert made.splitlines()[1:3] == [
        "  __lsram char* wt = wt_buf; __compass_halves_of(wt, wt_buf);",
        f"{TEXT.splitlines()[2]} __compass_halve(wt, n);",
    ]
    assert "    __pair w1 = __wload((__lsram char32*)(ws + 32), ALL_TRUE_b);\n" in made
    assert [len(line) for line in made.splitlines()[3:]] == [len(line) for line in TEXT.splitlines()[3:]]
    assert factors.whole(made) == TEXT != made


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("n, n, n, n)", "n, n, n, m)"),  # rows that lie apart
        ("(int)wt,", "(int)held,"),  # not to the array's begin
        ("wt = wt_buf", "wt = (wt_buf + 32)"),
        ("held = (held + n);", "wt = (wt + n);"),
        ("held = (held + n);", "__vstore(v, (__lsram char32*)held, m);"),
        ("held = (held + n);", "use(w1);"),
        ("held = (held + n);", "__lsram char* ws = other;"),
        ("held = (held + n);", "int k = wt_buf[3];"),
        ("    a1 = __wqdpa(a1, x1, w, ALL_TRUE_b);\n", ""),  # a factor of one pixel
        ("a1 = __wqdpa(a1, x1, w, ALL_TRUE_b)", "a1 = __wqdpa(a1, x1, w, some)"),
        ("__vload((__lsram char32*)ws, ALL_TRUE_b)", "__vload((__lsram char32*)ws, some)"),
    ],
)
def test_a_text_that_does_more_stays(old: str, new: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    assert factors.apart(text) == text
