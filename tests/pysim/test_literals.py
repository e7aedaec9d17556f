"""PySim refuses the literals and stores that the compiler refuses."""

from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError
from compassc.dsl import BuildManager, load_kernels

KERNELS = Path(__file__).parents[1] / "errors"
NAMES = "store-other-elements store-widened literal-stored literal-in-operator literal-converted literal-as-argument"


@pytest.mark.parametrize("name", NAMES.split())
def test_both_refuse(name: str) -> None:
    kernel = load_kernels(KERNELS / f"{name}.py").entry("k")
    with pytest.raises(CompassError) as compiled:
        BuildManager("X2_1204").build(kernel)
    kinds = {"fp32": "float32", "fp16": "float16", "i8": "int8", "i32": "int32"}
    text = (KERNELS / f"{name}.py").read_text()
    arrays = [np.zeros(64, kinds[part.split('"')[0]]) for part in text.split('S.ptr("')[1:]]
    with pytest.raises(CompassError) as simulated:
        kernel(*arrays)
    assert simulated.value.code == compiled.value.code
    assert simulated.value.message.removeprefix("S.max: ") in compiled.value.message


def test_bits_are_no_numbers(tmp_path: Path) -> None:
    """Bitwise operators take the bits of a literal, and a negative one stands for those of an unsigned type."""
    path = tmp_path / "k.py"
    path.write_text(
        "from compassc.dsl import script as S\n\n\n@S.prim_func\n"
        "def k(a: S.ptr('i32', 'global'), u: S.ptr('u32', 'global')):\n"
        "    a[1] = a[0] & 0xFFFFFFF0\n    a[2] = a[0] | 0x80000000\n    u[0] = -1\n    u[1] = u[2] + (-1)\n"
    )
    kernel = load_kernels(path).entry()
    ours, pysims = ([np.array([-3, 0, 0], "int32"), np.zeros(3, "uint32")] for _ in range(2))
    BuildManager("X2_1204").build(kernel)(*ours)
    kernel(*pysims)
    assert [a.tolist() for a in ours] == [a.tolist() for a in pysims] == [[-3, -16, -3], [2**32 - 1, 2**32 - 1, 0]]
