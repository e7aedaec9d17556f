"""NumPy's files: what NumPy writes is read equal, and what is damaged is refused, whatever was done to it."""

import io
import random
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import CompassError
from compass_core.reading import arrays

DTYPES = ["i1", "u1", "<i2", ">i2", "<i4", ">u4", "<i8", "<f2", "<f4", ">f8", "<c8", "?", "V2"]


def npy(array, version=None) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version)
    return file.getvalue()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4), (1, 1, 1, 5)])
def test_what_numpy_writes_is_read_equal(dtype, shape):
    size = int(np.prod(shape, dtype=int)) * np.dtype(dtype).itemsize
    array = np.frombuffer(random.Random(0).randbytes(size), dtype).reshape(shape)
    for given_array, version in ((array, None), (np.asfortranarray(array), None), (array, (2, 0)), (array, (3, 0))):
        found = arrays.parse(npy(given_array, version), "x")
        assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, given_array.shape, array.tobytes())


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", "Python objects"),
        ("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (1,)}", "no numbers"),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (-1,)}", "not a shape"),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (True,)}", "not a shape"),
        ("{'descr': '<i4', 'fortran_order': 0, 'shape': (1,)}", "wrong kind"),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000,) * 3}", "not a .npy file"),
        ("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000, 1000000000, 1000000000)}", "is damaged"),
        ("{'descr': '<i4', 'fortran_order': False}", "keys"),
        ("{'descr': '<i7', 'fortran_order': False, 'shape': (1,)}", "not a .npy file"),
        ("[" * 150, "not a .npy file"),
        ("(" * 5000, "cut off or too long"),
        ("-" * 9000 + "1", "not a .npy file"),
        ("", "no dictionary of Python"),
        ("\0", "not a .npy file"),
        ("'" * 3, "not a .npy file"),
        ("__import__('os').abort()", "not a .npy file"),
    ],
)
def test_headers_that_say_something_else_are_refused(header, message):
    data = arrays.MAGIC + b"\1\0" + len(header).to_bytes(2, "little") + header.encode() + bytes(4)
    with pytest.raises(CompassError, match=message) as caught:
        arrays.parse(data, "x.npy")
    assert caught.value.code == "tensor-file" and "x.npy" in caught.value.message


def test_a_file_that_ends_within_its_header_is_refused():
    for version, size in ((1, 7), (1, 9), (2, 11)):
        with pytest.raises(CompassError, match="it ends within its header"):
            arrays.parse(npy(np.zeros(3, "float32"), (version, 0))[:size], "x.npy")


def _mutated(data: bytes, choice: random.Random) -> bytes:
    """Bytes changed, removed, doubled or inserted, mostly in the header."""
    content = bytearray(data)
    for _ in range(choice.randint(1, 4)):
        at = choice.randrange(min(len(content), choice.choice((12, 100, len(content)))) or 1)
        length = choice.choice((1, 1, 2, 8, 40))
        kind = choice.randrange(4)
        if kind == 0:
            content[at : at + length] = choice.randbytes(length)
        elif kind == 1:
            del content[at : at + length]
        elif kind == 2:
            content[at:at] = content[at : at + length]
        else:
            content[at : at + 1] = choice.choice((b"9", b"(", b"'", b"\0", b"\xff", b"-", b"L", b"{"))
    return bytes(content)


def judge(data: bytes) -> bool:
    """Whether a file is taken; a refusal is a CompassError, everything else a defect."""
    try:
        found = arrays.from_bytes(data, "x", "a")
    except CompassError as error:
        assert error.code in ("tensor-file", "limit-exceeded")
        return False
    assert found.nbytes <= len(data) or data.startswith(arrays.ZIP_MAGIC)
    return True


def test_damaged_files_are_read_or_refused():
    choice = random.Random(1)
    array = np.arange(6, dtype=np.int32).reshape(2, 3)
    archive = io.BytesIO()
    np.savez_compressed(archive, a=array, b=array)
    seeds = [npy(array), npy(array, (2, 0)), archive.getvalue()]
    taken = [judge(_mutated(choice.choice(seeds), choice)) for _ in range(6000)]
    assert 0 < sum(taken) < len(taken)


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_read_or_refused(data):
    for start in (b"", arrays.MAGIC, arrays.MAGIC + b"\1\0", arrays.ZIP_MAGIC):
        judge(start + data)


def test_of_an_archive_one_array_is_taken(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, w=np.arange(3), v=np.arange(4))
    assert arrays.load(path, "w").tolist() == [0, 1, 2]
    assert arrays.load(tmp_path / "x.npz:v", "w").tolist() == [0, 1, 2, 3]
    for wrong, name in ((path, "u"), (tmp_path / "x.npz:u", "w")):
        with pytest.raises(CompassError, match="has no array 'u'") as caught:
            arrays.load(wrong, name)
        assert "w, v" in caught.value.help
    np.savez(path, np.arange(3))
    assert arrays.load(path, "w").tolist() == [0, 1, 2]


def test_an_archive_that_swells_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "UNPACKED_BYTES", arrays.UNPACKED_BYTES._replace(most=1 << 20, per_byte=0))
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", npy(np.zeros(1 << 21, np.uint8)))
    with pytest.raises(CompassError, match="x.npz: 'a.npy': .* may have 1 MiB at most"):
        arrays.load(path, "a")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in "abc":
            archive.writestr(f"{name}.npy", npy(np.zeros(1 << 19, np.uint8)))
    assert arrays.load(path, "a").nbytes == 1 << 19
    with pytest.raises(CompassError, match="'b.npy': .* 1 MiB at most") as caught:  # of all together
        arrays.all_in(path.read_bytes(), "x.npz")
    assert caught.value.code == "limit-exceeded"
