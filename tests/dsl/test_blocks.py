"""Schedulable blocks without a schedule: a scope whose axes stand for the loop variables they are bound to."""

import numpy as np
import pytest

from compass_core.errors import CompassError

SOURCE = """
@S.prim_func
def k(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), h: S.i32, w: S.i32):
    a2 = S.match_buffer(a, (h, w))
    b2 = S.match_buffer(b, (h, w))
    for i, j in S.grid(h, w):
        with S.block("B"):
            vi, vj = S.axis.remap("SS", [i, j])
            b2[vi, vj] = a2[vi, vj] + vi
"""


def test_a_block_runs_as_its_loop_body(kernel):
    from compassc.dsl import BuildManager

    func = kernel(SOURCE).entry("k")
    a, expected = (
        np.arange(12, dtype=np.int32),
        np.arange(12, dtype=np.int32) + np.repeat(np.arange(3, dtype=np.int32), 4),
    )
    built, simulated = np.zeros_like(a), np.zeros_like(a)
    BuildManager().build(func)(a, built, 3, 4)
    func(a, simulated, 3, 4)
    assert (built == expected).all() and (simulated == expected).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('with S.block("B"):', 'with S.block("B") as x:'), "no `as`"),
        (('S.block("B")', "S.grid(2)"), "needs S.block"),
        (("[i, j]", "[a2, j]"), "bound to an integer"),
        (('"SS"', '"SX"'), "S or R"),
        (("vi\n", "vi\n    b2[0, 0] = vi\n"), "undefined variable 'vi'"),
    ],
)
def test_malformed_blocks(kernel, change, message):
    from compassc.dsl import parse

    with pytest.raises(CompassError) as caught:
        parse(kernel(SOURCE.replace(*change)).entry("k"))
    assert message in str(caught.value) + str(caught.value.help)


def test_an_unrolled_loop_repeats_its_body(kernel):
    from compassc.dsl import BuildManager

    func = kernel(
        """
        @S.prim_func
        def k(b: S.ptr("i32", "global")):
            for i in S.unroll(1, 4):
                b[i * 2] = i
        """
    ).entry("k")
    ex = BuildManager().build(func)
    assert "for" not in ex.c_code and "b[6] = 3;" in ex.c_code
    built, simulated = np.zeros(8, np.int32), np.zeros(8, np.int32)
    ex(built)
    func(simulated)
    assert built.tolist() == simulated.tolist() == [0, 0, 1, 0, 2, 0, 3, 0]


def test_what_a_kernel_prints_goes_to_stdout(kernel, capsys):
    from compassc.dsl import BuildManager

    func = kernel(
        """
        @S.prim_func
        def k(b: S.ptr("i32", "global"), n: S.i32):
            b[0] = n
            if S.get_local_id() == 1:
                S.printf("n is %d, %x\\n", n, n)
        """
    ).entry("k")
    ex = BuildManager().build(func)
    b = np.zeros(1, np.int32)
    ex(b, 26)
    built = capsys.readouterr().out
    func(b, 26)
    assert built == capsys.readouterr().out == "n is 26, 0x1a\n"


def test_kernel_files_of_one_name_do_not_share_modules(tmp_path):
    import sys

    from compassc.dsl import load_kernels

    for value in (3, 4):
        folder = tmp_path / str(value)
        folder.mkdir()
        (folder / "constants.py").write_text(f"N = {value}\n")
        (folder / "kernel.py").write_text(
            "from constants import N\nfrom compassc.dsl import script as S\n\n\n"
            '@S.prim_func\ndef k(b: S.ptr("i32", "global")):\n    b[0] = N\n'
        )
        loaded = load_kernels(folder / "kernel.py")
        out = np.zeros(1, np.int32)
        loaded.entry()(out)
        assert out[0] == value
        assert {p.name for p in loaded.dependencies} == {"kernel.py", "constants.py"}
    assert "kernel" not in sys.modules and "constants" not in sys.modules
