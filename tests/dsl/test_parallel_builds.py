"""Builds beside each other: threads of one process, processes in one folder, and processes that are killed."""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from compassc.dsl import BuildManager, load_kernels, parse
from compassc.dsl import script as S
from compassc.ir import print_module
from tests.choosing import some


@S.prim_func
def twice(v: S.int32x8) -> S.int32x8:
    return S.vadd(v, v)


@S.prim_func
def plus(v: S.int32x8, n: S.int32) -> S.int32x8:
    return S.vadd(v, n)


@S.prim_func
def first(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    S.vstore(plus(twice(S.vload(a)), 1), b)


@S.prim_func
def second(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    S.vstore(twice(plus(twice(S.vload(a)), 2)), b)


@S.prim_func
def third(a: S.ptr("i32", "global"), b: S.ptr("i32", "global")):
    S.vstore(plus(plus(S.vload(a), 3), 4), b)


EXPECTED = {first: lambda a: a * 2 + 1, second: lambda a: (a * 2 + 2) * 2, third: lambda a: a + 7}


@pytest.fixture(autouse=True)
def switching():
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def beside_each_other(work, count=4):
    """The results of `work(i)` in threads that begin at once."""
    start = threading.Barrier(count)

    def begin(i):
        start.wait()
        return work(i)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(begin, range(count)))


def test_threads_parse_kernels_with_sub_functions():
    kernels = list(EXPECTED)
    alone = [print_module(parse(kernel)) for kernel in kernels]

    def work(i):
        return [print_module(parse(kernels[(i + n) % 3])) == alone[(i + n) % 3] for n in range(12)]

    assert all(all(same) for same in some(beside_each_other(work)))


@pytest.mark.parametrize("shared", [False, True], ids=["own folders", "one folder"])
def test_threads_build_and_run(shared, tmp_path):
    """An executor runs what it was built from, also when others have built into the same folder since."""
    a, kernels = np.arange(8, dtype=np.int32), list(EXPECTED)
    built = beside_each_other(
        lambda i: [
            (kernel, BuildManager(output_dir=tmp_path if shared else None).build(kernel, name="k" if shared else None))
            for kernel in (kernels[i % 3], kernels[(i + 1) % 3])
        ]
    )
    for kernel, executor in some(pair for pairs in built for pair in pairs):
        b = np.zeros(8, np.int32)
        executor(a, b)
        np.testing.assert_array_equal(b, EXPECTED[kernel](a))


def test_threads_load_kernel_files_whose_modules_have_the_same_names(tmp_path):
    for i in range(4):
        folder = tmp_path / str(i)
        folder.mkdir()
        (folder / "helper.py").write_text(f"ONE = {i}\n")
        (folder / "kernel.py").write_text(
            "import helper\nfrom compassc.dsl import script as S\n\n\n@S.prim_func\n"
            'def k(a: S.ptr("i32", "global")):\n    a[0] = helper.ONE\n'
        )
    path_before = list(sys.path)

    def work(i):
        found = load_kernels(tmp_path / str(i) / "kernel.py")
        return found.module.helper.ONE, [path.name for path in found.dependencies], found.dependencies[1].parent.name

    assert beside_each_other(work) == [(i, ["kernel.py", "helper.py"], str(i)) for i in range(4)]
    assert sys.path == path_before and "helper" not in sys.modules


def test_a_kernel_of_another_thread_is_not_in_the_way():
    """Script calls outside of a kernel are refused, though another thread is parsing one."""
    from compassc.language.dispatch import LOCAL, parsing

    with parsing(object()):
        assert LOCAL.parser and beside_each_other(lambda _: LOCAL.parser) == [None] * 4
    assert LOCAL.parser is None
