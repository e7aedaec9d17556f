"""Many jobs at once on one program: each thread gets the results of its own arguments."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from runtime_kernels import pointer, scalar

from compass_core.errors import CompassError
from compass_runtime import Program

MIX = """
__kernel void k(__global int* a, __constant int* w, __global int* b, int s) {
  for (int i = get_local_id(0); i < 64; i += get_local_size(0)) b[i] = a[i] * w[i & 3] + s;
}
"""
CRASH = """
__kernel void k(__global int* b, int bad) {
  if (get_local_id(0) == 0) b[bad ? -(1 << 29) : 0] = 5;
}
"""


@pytest.fixture(scope="module")
def mix(build):
    consts = {"w": np.arange(4, dtype=np.int32).tobytes()}
    params = [pointer("a", "input"), pointer("w", "const", shape=(4,)), pointer("b", "output"), scalar("s")]
    return Program.load(build(MIX, *params, consts=consts))


def test_calls_do_not_see_each_others_arrays_constants_or_scalars(mix):
    def one(seed):
        rng = np.random.default_rng(seed)
        a, w = rng.integers(-99, 99, 64, dtype=np.int32), rng.integers(-9, 9, 4, dtype=np.int32)
        b, s = np.zeros(64 + seed % 3, np.int32), seed - 50
        mix.call([a, w, b, s])
        return bool((b[:64] == a * np.tile(w, 16) + s).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(200)))


def test_jobs_of_one_program_run_at_once(mix):
    def one(seed):
        job = mix.create_job(shapes={"a": (64,), "b": (64,)}, values={"s": seed})
        a = np.full(64, seed, np.int32)
        return all((job.run([a])["b"] == a * np.tile(np.arange(4), 16) + seed).all() for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(16)))


def test_a_constant_of_one_job_is_not_that_of_another(mix):
    jobs = [mix.create_job(shapes={"a": (64,), "b": (64,)}, values={"s": 0}) for _ in range(3)]
    ones = np.ones(64, np.int32)
    jobs[0].set_constant("w", np.full(4, 7, np.int32))
    jobs[1].set_constant("w", np.full(4, 9, np.int32))
    found = [sorted(set(job.run([ones])["b"].tolist())) for job in jobs]
    assert found == [[7], [9], [0, 1, 2, 3]]


def test_the_fault_of_one_thread_is_not_the_others(build):
    program = Program.load(build(CRASH, pointer("b", "output"), scalar("bad")))

    def one(number):
        b, bad = np.zeros(1 + number % 4, np.int32), number % 5 == 0
        try:
            program.call([b, int(bad)])
        except CompassError as error:
            return bad and error.code == "kernel-segv"
        return not bad and b[0] == 5

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(one, range(40)))
