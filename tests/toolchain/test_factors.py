"""Bytes in LSRAM that are factors several times: taken apart once where nothing else is done with them, with the same sums."""

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from compass_core.hostcc import factors, host, promises
from compassc.dsl import BuildManager
from compassc.dsl import script as S

WORDS = 6


def summed(kind: str, shift: int) -> Any:
    """Adds up products of words of two pixels with weights in LSRAM, brought in two pieces. Words of weights begin `shift`
    bytes behind vectors."""

    @S.prim_func
    def products(x: S.ptr(kind, "global"), w: S.ptr("i8", "global"), y: S.ptr("i32", "global")):
        S.assume_unclipped()
        wt = S.alloc((WORDS + 1) * 32, "i8", "lsram")
        a, b = S.i32x8(0), S.i32x8(0)
        for part in range(2):
            S.dma_copy(wt, w + part * WORDS * 32, WORDS * 32 + shift)
            held = wt + 0
            for c in range(0, WORDS, 2):
                ws = held + (c * 32 + shift)
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
@pytest.mark.parametrize(("kind", "shift"), [("i8", 0), ("u8", 0), ("i8", 4)])
def test_sums_are_the_same(kind: str, shift: int, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    rng, many = np.random.default_rng(3), 2 * WORDS * 32
    info = np.iinfo(f"{'u' * (kind == 'u8')}int8")
    x = rng.choice(np.array([info.min, info.max, 5, info.max - 1], info.dtype), 2 * many)
    w = rng.choice(np.array([-128, 127, -1, 90], "int8"), many + shift)
    y = np.zeros(16, "int32")
    made = BuildManager().build(summed(kind, shift))
    text = promises.kept(made.c_code)
    whole = not shift
    assert factors.apart(text).count("__wload(") == 2 * whole and factors.apart(text).count("__compass_halve(") == whole
    made(x, w, y)
    wanted = (x.reshape(2, -1, 8, 4).astype("int64") * w[shift:].reshape(1, -1, 8, 4)).sum((1, 3)).reshape(-1)
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
  held = (held + 64);
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
        ("held = (held + 64);", "wt = (wt + n);"),
        ("held = (held + 64);", "__vstore(v, (__lsram char32*)held, m);"),
        ("held = (held + 64);", "held = (held + n);"),  # perhaps into a vector
        ("held = (held + 64);", "held = (held + 16);"),
        ("(c * 128)", "(c * 16)"),
        ("(c * 128)", "((c * 128) + q)"),
        ("(ws + 32)", "(ws + 4)"),
        ("[8192]", "[8200]"),  # which has a part of a vector
        ("held = (held + 64);", "use(w1);"),
        ("held = (held + 64);", "__lsram char* ws = other;"),
        ("held = (held + 64);", "int k = wt_buf[3];"),
        ("    a1 = __wqdpa(a1, x1, w, ALL_TRUE_b);\n", ""),  # a factor of one pixel
        ("a1 = __wqdpa(a1, x1, w, ALL_TRUE_b)", "a1 = __wqdpa(a1, x1, w, some)"),
        ("__vload((__lsram char32*)ws, ALL_TRUE_b)", "__vload((__lsram char32*)ws, some)"),
    ],
)
def test_a_text_that_does_more_stays(old: str, new: str) -> None:
    assert old in TEXT
    text = TEXT.replace(old, new)
    assert factors.apart(text) == text


WHOLE, OTHER = (0, 32, 96), (4, 40)
LINES = st.one_of(
    st.sampled_from(["{p} = ({p} + {n});", "  int k = {n};", "{q} = ({q} + k);"]),
    st.sampled_from(["DmaDirect_kGlobal_to_kLsram((int)wt, (int)(c + {n}), {m}, {m}, {m}, {m});"]),
    st.just("__vstore(v, (__lsram char32*){p}, m);"),
    st.just("char32 w{i} = __vload((__lsram char32*)({p} + {n}), ALL_TRUE_b);\n{products}"),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Texts in which an array is copied to, moved in and read from: such as are changed, and others near to them."""
    numbers = st.sampled_from(WHOLE if draw(st.booleans()) else WHOLE + OTHER)
    lines = [
        "__lsram char wt_buf[512];",
        "__lsram char* wt = wt_buf;",
        "__lsram char* p = wt;",
        "__lsram char* q = (wt + 32);",
    ]
    for i, form in enumerate(draw(st.lists(LINES, min_size=3, max_size=9))):
        if "__vstore" in form and not draw(st.booleans()):
            continue
        products = "\n".join(f"a = __wqdpa(a, x, w{i}, ALL_TRUE_b);" for _ in range(draw(st.sampled_from([2, 2, 1]))))
        p = draw(st.sampled_from("pq"))
        lines.append(form.format(p=p, q=p, i=i, n=draw(numbers), m=draw(numbers) + 64, products=products))
    return "\n".join(lines) + "\n"


def factors_in(text: str) -> list[bytes]:
    """The factors of all products of a text, whose statements are run twice."""
    memory, halves, places, made = bytearray(1024), bytearray(1024), {"wt_buf": 0}, []
    values: dict[str, bytes] = {}
    source = bytes(i * 7 % 251 for i in range(1024))

    def at(word: str) -> int:
        base, _, offset = word.strip("()").partition(" + ")
        return places[base] + (int(offset) if offset.isdecimal() else places.get(offset, 0))

    for line in (text.replace("; ", ";\n") * 2).splitlines():
        if found := re.fullmatch(r"(?:__lsram char\* )?(\w+) = (\w+|\(\w+ \+ \w+\));", line.strip()):
            places[found[1]] = at(found[2])
        elif found := re.fullmatch(r" *int (\w+) = (\d+);", line):
            places[found[1]] = int(found[2])
        elif found := re.match(r"DmaDirect\w+\(\(int\)(\w+), \(int\)\(c \+ (\d+)\), (\d+)", line):
            start, size = places[found[1]], int(found[3])
            memory[start : start + size] = source[int(found[2]) : int(found[2]) + size]
        elif found := re.match(r"__compass_halve\((\w+), (\d+)\)", line):
            size = -(-int(found[2]) // 32) * 32
            halves[:size] = memory[places[found[1]] : places[found[1]] + size]
        elif found := re.match(r"__vstore\(v, \(__lsram char32\*\)(\w+)", line):
            memory[places[found[1]] : places[found[1]] + 32] = bytes(range(32))
        elif found := re.match(r"(?:char32|__pair) (\w+) = __(v|w)load\(\(__lsram char32\*\)(\(\w+ \+ \d+\))", line):
            start = at(found[3])
            # a pair lies at twice the offset of its bytes, and has whole vectors
            values[found[1]] = bytes((memory if found[2] == "v" else halves)[start : start + 32])
            assert found[2] == "v" or start % 32 == 0
        elif found := re.match(r"a = __wqdpa\(a, x, (\w+)", line):
            made.append(values[found[1]])
    return made


@settings(max_examples=150, deadline=None)
@given(texts())
def test_changed_texts_have_the_same_factors(text: str) -> None:
    made = factors.apart(text)
    event("changed" if made != text else "as it was")
    assert factors_in(made) == factors_in(text) and factors.whole(made) == text
