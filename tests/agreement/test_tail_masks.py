"""S.tail_mask(n, lanes) has the first n lanes for every n: none for negative ones, all beyond the last."""

from pathlib import Path

import numpy as np
import pytest

from compassc.dsl import BuildManager, load_kernels

LANES = (5, 8, 16, 20, 32)
COUNTS = {
    "int32": (-(2**31), -33, -9, -1, 0, 1, 4, 5, 7, 8, 9, 15, 16, 17, 19, 21, 24, 31, 32, 33, 64, 2**31 - 1),
    "uint32": (0, 3, 8, 33, 2**31, 2**32 - 1),
    "int8": (-128, -1, 5, 40, 127),
    "uint16": (0, 6, 300, 65535),
}
LITERALS = (-1000, -1, 0, 3, 8, 20, 33, 10**6)


def expected(count: int) -> list[int]:
    return [int(lane < count) for lanes in LANES for lane in range(lanes)]


def program(counts: list[str], parameter: str) -> str:
    """A kernel that writes the masks of all lane counts, for each count."""
    lines = ["from compassc.dsl import script as S\n\n\n@S.prim_func"]
    lines.append(f"def masks({parameter}y: S.ptr('i32', 'global'), base: S.i32):")
    at = 0
    for count in counts:
        for lanes in LANES:
            ones = f"S.vbcast(S.i32(1), lanes={lanes})"
            lines.append(f"    S.vstore(S.vsel({ones}, 0, S.tail_mask({count}, {lanes})), y + base + {at})")
            at += lanes
    return "\n".join(lines) + "\n"


def both(path: Path, text: str, calls: list[list], size: int) -> list[list[int]]:
    """What a kernel writes in each call, compiled and in PySim, which has to be the same."""
    path.write_text(text)
    kernel, out = load_kernels(path).entry(), []
    executor = BuildManager("X2_1204").build(kernel)
    for arguments in calls:
        ours, pysims = np.full(size, 7, "int32"), np.full(size, 7, "int32")
        executor(*arguments, ours, 0)
        kernel(*arguments, pysims, 0)
        assert ours.tolist() == pysims.tolist(), arguments
        out.append(ours.tolist())
    return out


@pytest.mark.parametrize("kind", COUNTS)
def test_counts_that_a_run_gives(kind: str, tmp_path: Path) -> None:
    text = program(["n"], f"n: S.{kind}, ")
    got = both(tmp_path / "k.py", text, [[n] for n in COUNTS[kind]], sum(LANES))
    assert got == [expected(n) for n in COUNTS[kind]]


def test_counts_that_the_build_knows(tmp_path: Path) -> None:
    wanted = [[bit for n in LITERALS for bit in expected(n)]]
    assert both(tmp_path / "k.py", program([str(n) for n in LITERALS], ""), [[]], len(wanted[0])) == wanted
    folded = [f"S.i32({n} - 1) + 1" for n in LITERALS]
    assert both(tmp_path / "f.py", program(folded, ""), [[]], len(wanted[0])) == wanted
