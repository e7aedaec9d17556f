"""NumPy's files: `.npy`, and `.npz` archives of them. What a file says is checked before anything is made of it."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING

from compass_core import files, vendor
from compass_core.arrays import Array, NumpyDType
from compass_core.errors import CompassError
from compass_core.reading.budget import Budget
from compass_core.reading.limits import UNPACKED_BYTES

if TYPE_CHECKING:
    from zipfile import ZipInfo


MAGIC = b"\x93NUMPY"
ZIP_MAGIC = b"PK\x03\x04"
_MEMBER = re.compile(r"(?P<path>.+\.npz):(?P<name>[^/:]+)", re.IGNORECASE | re.DOTALL)
_LONGEST_HEADER = 10_000
"""Characters of the longest header that is read, as in NumPy."""
_MOST_BRACKETS = 200
_DTYPE = re.compile(r"[<>=|]?(?:[biufcV]\d{1,3}|\?|b1)")


def kind(path: Path) -> str:
    """`npy`, `npz` or nothing, by the name of a file or of a member of an archive."""
    suffix = split_member(path)[0].suffix.lower()
    return suffix[1:] if suffix in (".npy", ".npz") else ""


def split_member(path: Path) -> tuple[Path, str]:
    """`FILE.npz:NAME` as file and name of an array in it; the name is empty where there is none."""
    match = _MEMBER.fullmatch(str(path))
    return (Path(match["path"]), match["name"]) if match and not path.exists() else (path, "")


def load(path: Path, name: str = "") -> Array:
    """The array of a `.npy` file or of a member `FILE.npz:NAME`; of an archive without a name the array `name`, else its
    only one. CompassError when there is no such array, or the file is damaged.
    """
    file, member = split_member(path)
    data = files.read(file)
    return from_bytes(data, str(file), member or name, bool(member))


def from_bytes(data: bytes, where: str, name: str = "", exactly: bool = False) -> Array:
    """The array in the content of a file; see `load`. `exactly`: no other array of an archive than `name` will do."""
    if not data.startswith(ZIP_MAGIC):
        return parse(data, where)
    found = _members(data, where)
    if name not in found and (exactly or len(found) != 1):
        have = ", ".join(found) or "none"
        raise CompassError(
            f"'{where}' has no array '{name}'",
            code="tensor-file",
            help=f"its arrays are: {have}; {where}:NAME takes one of them",
        )
    member = found[name if name in found else next(iter(found))]
    return parse(_unpacked(data, member, where, Budget(where, lambda: len(data))), where)


def names_in(path: Path) -> list[str]:
    """The names of the arrays in a `.npz` file."""
    return list(_members(files.read(path), str(path)))


def all_in(data: bytes, where: str) -> dict[str, Array]:
    """The arrays in the content of a `.npz` file by name, or that of a `.npy` file, whose name is empty; see `load`."""
    if not data.startswith(ZIP_MAGIC):
        return {"": parse(data, where)}
    members, budget = _members(data, where), Budget(where, lambda: len(data))
    return {name: parse(_unpacked(data, member, where, budget), where) for name, member in members.items()}


def _members(data: bytes, where: str) -> dict[str, ZipInfo]:
    """Name of each array -> its member in the archive."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            listed = archive.infolist()
            return {m.filename.removesuffix(".npy"): m for m in listed if m.filename.endswith(".npy")}
    except Exception as error:  # noqa: BLE001 (a damaged archive makes zipfile raise whatever it meets)
        raise _damaged(where, error) from None


def _unpacked(data: bytes, member: ZipInfo, where: str, budget: Budget) -> bytes:
    """The content of a member. It has as many bytes as the archive says, or fewer: so these are asked of the budget."""
    import zipfile

    budget.take(UNPACKED_BYTES, member.file_size, f"'{member.filename}'")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive, archive.open(member) as file:
            return file.read(member.file_size)
    except Exception as error:  # noqa: BLE001 (see above)
        raise _damaged(where, error) from None


def _damaged(where: str, error: Exception) -> CompassError:
    return CompassError(
        f"'{where}' is not a .npz file: {error}",
        code="tensor-file",
        help="files with raw bytes must not be called .npz",
    )


def parse(data: bytes, where: str) -> Array:
    """The array of a `.npy` file's content; CompassError when its header or its length is not in order."""
    import numpy as np

    try:
        dtype, fortran, shape, start = _header(data)
    except Exception as error:  # noqa: BLE001 (whatever a damaged header leads to is a reason to refuse it)
        text = str(error) or type(error).__name__
        raise CompassError(
            f"'{where}' is not a .npy file: {text}",
            code="tensor-file",
            help="files with raw bytes must not be called .npy",
        ) from None
    count = math.prod(shape)
    if count * dtype.itemsize != len(data) - start:
        raise CompassError(
            f"'{where}' is damaged: its header announces {count * dtype.itemsize} bytes "
            f"({dtype.name} {shape}), but {len(data) - start} follow",
            code="tensor-file",
        )
    flat: Array = np.frombuffer(data, dtype, count, start) if count else np.empty(0, dtype)
    return np.ascontiguousarray(flat.reshape(shape, order="F" if fortran else "C")).reshape(shape)


def _header(data: bytes) -> tuple[NumpyDType, bool, tuple[int, ...], int]:
    """Data type, whether the first index runs fastest, shape, and where the elements begin; ValueError and others when
    it is damaged."""
    import ast

    import numpy as np

    if data[:6] != MAGIC:
        raise ValueError("it does not begin as one")
    wide = data[6] if len(data) > 6 else 0
    if wide not in (1, 2, 3):
        raise ValueError(f"version {wide} is unknown")
    start = 10 if wide == 1 else 12
    if len(data) < start:
        raise ValueError("it ends within its header")
    length = int.from_bytes(data[8:start], "little")
    text = data[start : start + length]
    if len(text) != length or length > _LONGEST_HEADER or sum(map(text.count, b"([{")) > _MOST_BRACKETS:
        raise ValueError(f"its header of {length} bytes is cut off or too long")
    try:
        fields = ast.literal_eval(text.decode("utf-8" if wide == 3 else "latin1").strip())
    except SyntaxError:
        raise ValueError("its header is no dictionary of Python") from None
    if not isinstance(fields, dict) or fields.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("its header has not the keys descr, fortran_order, shape")
    descr, fortran, shape = fields["descr"], fields["fortran_order"], fields["shape"]
    if descr == "|O":
        raise ValueError("it holds Python objects, not numbers")
    if not isinstance(descr, str) or not _DTYPE.fullmatch(descr):
        raise ValueError(f"elements of type {str(descr)[:80]!r} are no numbers")
    if not isinstance(shape, tuple) or not all(type(dim) is int and 0 <= dim < 1 << 40 for dim in shape):
        raise ValueError(f"{str(shape)[:80]} is not a shape")
    if len(shape) > 32 or type(fortran) is not bool:
        raise ValueError("its header has a value of the wrong kind")
    return np.dtype(descr), fortran, shape, start + length


def other_elements(array: Array, wanted: NumpyDType, what: str, name: str) -> str:
    """The warning for an array whose elements are read as another type; empty when they have the `wanted` type.

    CompassError when their bytes make no sense as that type: elements of another size or byte order (which programs
    with the vendor's names may pass), or objects. `what` says which argument, `name` is the wanted type's.
    """
    given = array.dtype
    if given == wanted:
        return ""
    foreign = given.itemsize != wanted.itemsize or not given.isnative
    if given.hasobject or (foreign and not vendor.names_in_use) or array.nbytes % wanted.itemsize:
        shown = given.name if given.isnative else f"{given.name} of the other byte order"
        raise CompassError(
            f"{what} holds {shown}, but the kernel takes {name}",
            code="tensor-dtype",
            help=f"convert it: array.astype('{name}')",
        )
    return f"{what} holds {given.name}, the kernel reads its bytes as {name}"


def write(file: IO[bytes], array: Array) -> None:
    """Write an array as a `.npy` file, also into a pipe."""
    import numpy as np

    target = file if file.seekable() else _Pipe(file)
    np.lib.format.write_array(target, np.asanyarray(array), allow_pickle=False)


class _Pipe:
    """A file that has no position. NumPy asks files of the system for theirs, and some Pythons have none for pipes."""

    def __init__(self, file: IO[bytes]) -> None:
        self.write = file.write


def write_archive(file: IO[bytes], arrays: Mapping[str, Array], packed: bool = False) -> None:
    """Write arrays by name as a `.npz` file; `packed`: compressed."""
    import zipfile

    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how, allowZip64=True) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                write(member, array)
