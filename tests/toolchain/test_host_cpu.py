"""COMPASS_HOST_CPU: code is compiled for the level that is asked for, says so, and is kept apart in the caches."""

import itertools
import os
import platform

import numpy as np
import pytest

from compass_core.errors import UsageError
from compass_core.files.cache import Cache
from compass_core.hostcc import command, host, pch
from compass_core.hostcc.clang import find_clang
from compass_core.switches import HOST_CPUS
from compass_runtime.program import Program
from compassc import te
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.layers import kernel_cache

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
LEVELS = HOST_CPUS[1:]
FEATURES = [set(host._LEVELS[level]) for level in LEVELS]


@S.prim_func
def doubled(a: S.ptr("fp32", "global"), b: S.ptr("fp32", "global")):
    S.vstore(S.vload(a) * 2, b)


def available(level: str) -> bool:
    return not host.missing_features(" ".join(host._LEVELS[level]))


def test_a_higher_level_has_more_features():
    assert all(low < high for low, high in itertools.pairwise(FEATURES))
    assert FEATURES[-1] <= host._RELEVANT


@pytest.mark.parametrize("level", LEVELS)
def test_files_say_and_use_what_the_level_has(level, monkeypatch):
    monkeypatch.setenv("COMPASS_HOST_CPU", level)
    if not available(level):
        with pytest.raises(UsageError, match="lacks"):
            BuildManager().build(doubled)
        return
    built = BuildManager().build(doubled)
    assert Program.load(built.path).code.features == " ".join(sorted(host._LEVELS[level])) == host.current().features
    assert f"-march={level}" in command.kernel_flags(find_clang(), "X")
    x, y = np.arange(8, dtype="float32"), np.zeros(8, "float32")
    built(x, y)
    np.testing.assert_array_equal(y, 2 * x)


@pytest.mark.parametrize(
    "features", [host._X86.intersection(host.cpu_features()), host._X86, host._V2], ids=["own", "all", "few"]
)
def test_clang_is_told_of_all_features_and_no_others(features, monkeypatch, tmp_path):
    monkeypatch.setenv("COMPASS_HOST_CPU", "native")
    monkeypatch.setattr(host, "cpu_features", lambda: tuple(sorted(features)))
    done = command.run([str(find_clang().path), *host.options(), "-E", "-dM", "-xc", os.devnull], tmp_path)
    macros = {f: f"__{host._NAMES.get(f, f.replace('_', '')).replace('.', '_').upper()}__" for f in host._X86}
    assert done.status == 0, done.output
    assert {f for f, macro in macros.items() if f"#define {macro} 1" in done.output} == features


def test_features_of_other_machines_are_not_looked_for_among_those_of_x86(monkeypatch):
    monkeypatch.setattr(host, "cpu_features", lambda: ("aes", "asimd"))
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert host.options() == ["-march=native"]


def test_a_processor_that_the_user_names_is_all_that_clang_is_told():
    flags = command.kernel_flags(find_clang(), "X", ("-march=x86-64",))
    assert flags[-1] == "-march=x86-64" and not {*host.options()} & {*flags}


def test_a_level_that_the_machine_lacks_is_refused(monkeypatch):
    monkeypatch.setattr(host, "cpu_features", lambda: ("sse4_1", "sse4_2"))
    monkeypatch.setenv("COMPASS_HOST_CPU", "x86-64-v2")
    with pytest.raises(UsageError, match=r"no 'x86-64-v2' .*lacks popcnt") as refused:
        host.current()
    assert refused.value.help


def added():
    a = te.placeholder((64,), "float32", name="a")
    b = te.compute((64,), lambda i: a[i] * 2 + 1, name="b")
    return te.build(te.create_schedule(b), [a, b], "c")


def test_every_cache_key_tells_levels_apart(monkeypatch):
    levels = ["native", *filter(available, LEVELS)]
    headers, objects = set(), set()
    for level in levels:
        monkeypatch.setenv("COMPASS_HOST_CPU", level)
        headers.add(pch.pch_path(find_clang(), command.kernel_flags(find_clang(), "X"), Cache()))
        objects.add(kernel_cache.compiler_identity())
        (library,) = (m for m in added().tree() if m.type_key == "compass.runtime.HostLibrary")
        assert library.description["features"] == host.current().features
    assert len(headers) == len(objects) == len(levels)


def test_files_that_are_joined_need_what_any_of_them_needs(monkeypatch):
    stamped = {b"old": host.HostStamp("", "sse4_1"), b"new": host.HostStamp("", "avx sse4_1")}
    monkeypatch.setattr(host, "read_stamp", stamped.get)
    assert host.features_of(stamped) == "avx sse4_1"
    assert host.features_of([b"none"]) == host.current().features
