"""The table of a kernel's arrays that the compiler writes, from the kernel to its object."""

import json

import pytest

from compass_core.elf.elf64 import section
from compass_core.errors import CompassError
from compass_core.hostcc import arrays
from compassc.dsl import BuildManager
from compassc.dsl import script as S
from compassc.toolchain.unit import read_line_map

TABLE = [3, 1, 4, 1, 5, 9, 2, 6]


@S.prim_func
def k(a: S.ptr("i32", "global"), n: S.i32):
    near = S.alloc(16, "i32", "lsram")
    wide = S.alloc_buffer((2, 3), "i8x32", "shared")
    known = S.alloc_const((8,), "i32", TABLE)
    own = S.alloc(8, "fp32")
    for i in range(8):
        near[i] = a[i] + known[i]
        own[i] = 1.0
    wide[0, 0] = S.i8x32(n)
    a[n] = near[n] + S.i32(own[n]) + S.i32(wide[0, 0][0])


def test_an_object_knows_the_arrays_of_its_kernel(tmp_path):
    BuildManager("X2_1204", tmp_path).build(k)
    found = arrays.read((tmp_path / "gbuilder/op_lib/k.o").read_bytes())
    assert sorted(array[1:] for array in found.values()) == [
        ("known", "constant", "int32"),
        ("near", "lsram", "int32"),
        ("own", "private", "float32"),
        ("wide", "shared", "int8x32"),
    ]
    text = (tmp_path / "gbuilder/op_lib/k.cl").read_text()
    assert all(f" {symbol}[" in text for symbol in found)
    assert next(a.element_bytes for a in found.values() if a.name == "wide") == 32


@pytest.mark.parametrize(
    "wrong", [{"dtype": "int33"}, {"dtype": "int8x0"}, {"scope": "global"}, {"name": 'x"\n'}, {"symbol": ""}]
)
def test_what_is_no_table_is_refused(tmp_path, wrong):
    item = {"symbol": "x", "name": "x", "scope": "lsram", "dtype": "int8"} | wrong
    path = tmp_path / "k.cl.map"
    path.write_text(json.dumps({"files": [], "lines": [], "arrays": [item]}))
    with pytest.raises(CompassError, match="line map is malformed"):
        read_line_map(path)


def test_a_damaged_section_is_refused(tmp_path):
    BuildManager("X2_1204", tmp_path).build(k)
    elf = (tmp_path / "gbuilder/op_lib/k.o").read_bytes()
    content = section(elf, arrays.SECTION)
    with pytest.raises(CompassError, match="table of the kernel's arrays is damaged"):
        arrays.read(elf.replace(content, content.replace(b"lsram", b"lsr m")))
