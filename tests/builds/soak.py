"""Many builds beside each other in one folder, some killed, with a cache that is damaged meanwhile.

`python -m tests.builds.soak --count 100 --seed 0`. Every build that says it is done has made the right aipu.bin, every
other one was killed or says why, and what a killed one left is right or not there.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

ENTRIES = {"plus": lambda a, n: a + n, "times": lambda a, n: a * n, "minus": lambda a, n: a - n}
_BODY = """
@S.prim_func
def {name}(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    if S.get_local_id() == 0:
        for i in range(8):
            b[i] = a[i] {operator} n

"""
SOURCE = "from compassc.dsl import script as S\n\n" + "".join(
    _BODY.format(name=name, operator=operator) for name, operator in zip(ENTRIES, "+*-", strict=True)
)
LONGEST = 300.0
"""Seconds after which a build hangs."""


def soak(folder: Path, count: int, seed: int, jobs: int = 4, kills: float = 0.3) -> dict[str, int]:
    """Runs the builds; how many were done, killed and refused. AssertionError when a promise is broken."""
    choice = random.Random(seed)
    (folder / "kernel.py").write_text(SOURCE)
    environment = {**os.environ, "COMPASS_CACHE_DIR": str(folder / "cache")}
    plans = [
        (i, choice.choice(list(ENTRIES)), choice.randrange(1, 1000), choice.random() < kills, choice.uniform(0, 1.5))
        for i in range(count)
    ]

    def one(plan: tuple[int, str, int, bool, float]) -> str:
        number, entry, n, kill, after = plan
        if number % 5 == 4:
            _damage(folder / "cache", random.Random(number))
        status, words = _build(folder, environment, number, entry, n, after if kill else None)
        out = folder / f"{number}.bin"
        if status == 0 or out.exists():
            assert _result(out) == ENTRIES[entry](np.arange(8), n).tolist(), f"build {number} made something else"
        if status == 0:
            return "done"
        if kill:
            return "killed"
        raise AssertionError(f"build {number} ended with {status}: {words}")

    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(one, plans))
    return {kind: outcomes.count(kind) for kind in sorted(set(outcomes))}


def _build(
    folder: Path, environment: dict[str, str], number: int, entry: str, n: int, after: float | None
) -> tuple[int, str]:
    command = [
        sys.executable,
        "-m",
        "compassc",
        "build",
        "kernel.py",
        "-k",
        entry,
        "--set",
        f"n={n}",
        "-o",
        f"{number}.bin",
    ]
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    if after is not None:
        time.sleep(after)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    words, _ = process.communicate(timeout=LONGEST)
    return process.returncode, words.decode(errors="replace")


def _damage(cache: Path, choice: random.Random) -> None:
    """Cuts or changes an entry in place, as a full disk or a broken one does."""
    entries = [path for path in cache.glob("*/??/*") if path.parts[-3] in ("obj", "pch", "cc-log")]
    if entries:
        path = choice.choice(sorted(entries))
        try:
            data = path.read_bytes()
            path.write_bytes(data[: len(data) // 2] if choice.random() < 0.5 else data[:-1] + b"\x55")
        except FileNotFoundError:
            return


def _result(path: Path) -> list[int]:
    from compass_runtime import Program

    program = Program.load(path)
    b = np.zeros(8, np.int32)
    job = program.create_job(arrays={"a": (8,), "b": (8,)}, shapes={"b": (8,)})
    b = job.run([np.arange(8, dtype=np.int32)])["b"]
    return b.reshape(-1)[:8].tolist()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compass-soak-") as folder:
        print(soak(Path(folder), given.count, given.seed, given.jobs))


if __name__ == "__main__":
    main()
