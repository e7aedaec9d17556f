"""Stores whose mask is a number: by bytes on hosts where it has the first lanes, and the same memory on every kind of host."""

from pathlib import Path

import numpy as np
import pytest

from compass_core.hostcc import first_lanes, host, whole_vectors
from compassc.dsl import BuildManager
from compassc.dsl import script as S


@pytest.mark.parametrize(
    "mask",
    ["__vmov_b(0x00000001)", "__vmov_b(0x7FFFFFFF)", "__vmov_h(0x00000155)", "__vmov_h(5)", "__vmov_w(0x11111111)"],
)
def test_a_store_of_first_lanes_is_one_of_bytes_and_nothing_moves(mask: str) -> None:
    line = "  __vstore(__vadd(a, b, {mask}), (__global int8*)(p + f(i, j)), {mask});\n"
    text = line.format(mask=mask)
    made = first_lanes.copied(f"{{\n{text}}}\n")
    assert (
        made == f"{{\n{text.replace('__vstore', '__wstore')}}}\n" and whole_vectors.readable(made) == f"{{\n{text}}}\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        "  __vstore(a, p, ALL_TRUE_w);",
        "  __vstore(a, p, __vmov_h(0x00000004));",
        "  __vstore(a, p, __vmov_h(0x00000003));",
        "  __vstore(a, p, __vmov_w(0x00000000));",
        "  __vstore(a, p, __vmov_w(0x00000101));",
        "  __vstore(a, p, __vmov_w(n));",
        "  __vstore(a, p, __vmov_w(0x00000011) & m);",
        "  __vstore(a, p, m), g(b, __vmov_w(0x00000011));",
        "  __vstore_stride(a, p, 8, __vmov_w(0x00000011));",
        "  b = __vload(p, __vmov_w(0x00000011));",
    ],
)
def test_other_stores_stay(text: str) -> None:
    assert first_lanes.copied(text) == text


@S.prim_func
def tails(
    bytes_: S.ptr("u8", "global"),
    halves: S.ptr("fp16", "global"),
    words: S.ptr("i32", "global"),
    out: S.ptr("i8", "global"),
):
    if S.get_local_id() == 0:
        S.vstore(S.vload(bytes_, lanes=11), out.as_ptr("u8"))
        S.vstore(S.vload(halves, lanes=21), (out + 33).as_ptr("fp16"))
        S.vstore(S.vload(words, lanes=13), (out + 77).as_ptr("i32"))
        S.vstore(S.vload(words), (out + 131).as_ptr("i32"), mask="3T5F")


@pytest.mark.parametrize("level", ["native", "x86-64-v3", "x86-64"])
def test_memory_behind_the_last_lane_stays(level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    if level != "native" and host.missing_features(" ".join(host._LEVELS[level])):
        pytest.skip("the host is no such one")
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    source = np.random.default_rng(3)
    given = [source.integers(0, 256, n, "uint8") for n in (11, 42, 52)]
    wanted = np.full(150, 7, np.uint8)
    for at, data in zip((0, 33, 77, 131), [*given, given[2][:12]], strict=True):
        wanted[at : at + data.size] = data
    got = np.full(150, 7, np.int8)
    made = BuildManager(output_dir=str(tmp_path)).build(tails)
    (unit,) = tmp_path.rglob("*.cc.cl")
    assert unit.read_text().count(" __wstore(") == 4
    made(given[0], given[1].view("float16"), given[2].view("int32"), got)
    np.testing.assert_array_equal(got.view(np.uint8), wanted)
