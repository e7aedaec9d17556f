"""What commands say of files that are something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from compass_core.errors.suggest import help_for


def test_a_built_program_is_no_model(compassc):
    Path("aipu.bin").write_bytes(b"\x7fELF\1\1\1")
    done = compassc("build", "aipu.bin", "-t", "X2_1204")
    assert done.status == 2 and "it is built: `compass-run aipu.bin` runs it" in done.err
    Path("weights.bin").write_bytes(b"\0" * 8)
    assert "weights without their network" in compassc("build", "weights.bin", "-t", "X2_1204").err


def test_a_kernel_is_built_before_it_runs(compassc):
    Path("kernel.py").write_text("")
    for command in ("run", "import"):
        done = compassc(command, "kernel.py")
        assert done.status == 2 and "`compassc build kernel.py -t TARGET`, then `compass-run aipu.bin`" in done.err


@pytest.mark.parametrize(("text", "line"), [(b"\xff\xfe\0x", 1), (b"x = 1\n# caf\xe9\n", 2)])
def test_the_line_that_is_not_utf_8_is_named(compassc, text, line):
    Path("kernel.py").write_bytes(text)
    done = compassc("check", "kernel.py")
    assert done.status == 1 and f"kernel.py:{line}: error: 'kernel.py' is no Python file" in done.err


def test_a_kernel_may_begin_with_a_byte_order_mark(compassc):
    text = "from compassc.dsl import script as S\n\n\n@S.prim_func\ndef k(a: S.ptr('i32', 'global')):\n    a[0] = 1\n"
    Path("kernel.py").write_text(text, encoding="utf-8-sig")
    assert compassc("check", "kernel.py").status == 0


@pytest.mark.parametrize("many", [1, 60, 61, 400])
def test_of_many_names_the_first_are_listed(many):
    names = [f"name{n}" for n in range(many)]
    found = help_for("something else", names, "names").removeprefix("names: ").split(", ")
    assert found == names[:60] + ([f"and {many - 60} more"] if many > 60 else [])
