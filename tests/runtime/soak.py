"""`make soak`: thousands of jobs, a third of which fault, on programs that live as long as the process.

python -m tests.runtime.soak --jobs 3000 --faults 1000
"""

from __future__ import annotations

import argparse
import gc
import os
import runpy
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from compass_core.errors import CompassError
from compass_runtime import Program

KERNEL = """
from compassc.dsl import script as S

@S.prim_func
def crash(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), bad: S.i32):
    if S.get_local_id() == 0:
        b[0] = a[0] + 1
        if bad > 0:
            b[S.int32(0) - 500000000] = 5
"""


@dataclass(frozen=True)
class Held:
    """What the process has in use: descriptors, mappings, bytes of address space and of shared memory, children."""

    files: int
    maps: int
    mapped: int
    shared: int
    children: int

    @classmethod
    def now(cls) -> Held:
        gc.collect()
        status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        return cls(
            len(os.listdir("/proc/self/fd")),
            len(Path("/proc/self/maps").read_text().splitlines()),
            int(status["VmSize"].split()[0]) << 10,
            int(status["RssShmem"].split()[0]) << 10,
            len(children),
        )

    def exceeds(self, before: Held) -> list[str]:
        """What there is more of than before, beyond what an allocator may keep."""
        slack = Held(0, 20, 512 << 20, 4 << 20, 0)
        names = ("files", "maps", "mapped", "shared", "children")
        return [
            f"{n}: {getattr(before, n)} -> {getattr(self, n)}"
            for n in names
            if getattr(self, n) > getattr(before, n) + getattr(slack, n)
        ]


def make_programs(folder: Path, count: int) -> list[Program]:
    """Programs of the kernel, each of them another file."""
    from compassc.dsl import BuildManager

    programs = []
    for number in range(count):
        source = folder / f"kernel{number}.py"
        source.write_text(KERNEL.replace("+ 1", f"+ {number + 1}"), encoding="utf-8")
        kernel = runpy.run_path(str(source))["crash"]
        programs.append(BuildManager("X2_1204", output_dir=str(folder / str(number))).build(kernel).program)
    return programs


def run(programs: list[Program], jobs: int, faults: int) -> None:
    """Runs `jobs` jobs, of which `faults`, evenly spread, end in faults; AssertionError for a wrong result."""
    done = 0
    for number in range(jobs):
        bad = (number + 1) * faults // jobs > done
        which = number % len(programs)
        a, b = np.full(1, number, np.int32), np.zeros(1, np.int32)
        try:
            programs[which].call([a, b, int(bad)])
        except CompassError as error:
            assert bad and error.code == "kernel-segv", error.code
            done += 1
        else:
            assert not bad and b[0] == number + which + 1, (number, b[0])
    assert done == faults


def soak(jobs: int, faults: int, programs: int = 3) -> list[str]:
    """What the process has more of after the jobs than before; nothing, it is to be."""
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        made = make_programs(Path(folder), programs)
        run(made, 4 * programs, programs)  # everything that is made once
        before = Held.now()
        run(made, jobs, faults)
        return Held.now().exceeds(before)


def main() -> int:
    parser = argparse.ArgumentParser(description="Many jobs and faults, and what is left of them.")
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--faults", type=int, default=1000)
    given = parser.parse_args()
    left = soak(given.jobs, given.faults)
    print(f"{given.jobs} jobs, {given.faults} faults: " + (", ".join(left) if left else "nothing is left of them"))
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
