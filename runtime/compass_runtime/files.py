"""Tensor files: NumPy `.npy`, and raw bytes for every other extension. Outputs appear in full or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from compass_core.errors import CompassError

if TYPE_CHECKING:
    import numpy as np

    from compass_runtime.program import TensorInfo

    Array = np.ndarray[Any, np.dtype[Any]]


def read_array(path: Path, info: TensorInfo, any_dtype: bool = False) -> Array:
    """The array in a file; CompassError naming the file when it is none, or of another dtype than the tensor."""
    try:
        array = _read_npy(path) if path.suffix == ".npy" else _read_raw(path, info)
    except OSError as error:
        raise CompassError(f"cannot read '{path}': {error.strerror or error}", code="file") from None
    wanted = info.numpy_dtype
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize and info.dtype.name == "bfloat16":
        array = array.view(wanted)  # .npy has no name for bfloat16
    if array.dtype != wanted and array.dtype == wanted.newbyteorder():
        array = array.astype(wanted)
    if array.dtype != wanted and not (any_dtype or info.raw):
        raise CompassError(f"'{path}' has elements of type {array.dtype.name}, but '{info.name}' is {info.dtype.name}",
                           code="tensor-dtype",
                           help=f"numpy.save('{path}', array.astype('{info.dtype.name}'))")  # fmt: skip
    return array


def _read_npy(path: Path) -> Array:
    """A .npy file; its header is checked against the size of the file before anything is allocated for it."""
    import numpy as np
    from numpy.lib import format as npy

    with path.open("rb") as file:
        try:
            version = npy.read_magic(file)
            read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read_header(file)
            elements = 1
            for dim in shape:
                elements *= dim
            if dtype.hasobject:
                raise CompassError(f"'{path}' holds Python objects, not numbers", code="file")
            have = os.fstat(file.fileno()).st_size - file.tell()
            if elements * dtype.itemsize != have:
                raise CompassError(f"'{path}' is damaged: its header announces {elements * dtype.itemsize} bytes "
                                   f"({dtype.name} {shape}), but {have} follow", code="file")  # fmt: skip
            file.seek(0)
            array: Array = npy.read_array(file, allow_pickle=False)
        except (ValueError, TypeError, SyntaxError, EOFError, OverflowError) as error:
            raise CompassError(f"'{path}' is not a .npy file: {error}", code="file",
                               help="files with raw bytes must not be called .npy") from None  # fmt: skip
    return np.ascontiguousarray(array).reshape(shape)


def _read_raw(path: Path, info: TensorInfo) -> Array:
    """Raw bytes as elements of the tensor, in its shape where that is known."""
    import numpy as np

    data = path.read_bytes()
    if len(data) % info.dtype.size:
        raise CompassError(f"'{path}' has {len(data)} bytes, which are no whole number of {info.dtype.name} elements "
                           f"for '{info.name}'", code="tensor-size")  # fmt: skip
    array: Array = np.frombuffer(data, dtype=info.numpy_dtype)
    shape = info.shape
    if shape is not None and array.size == int(np.prod(shape)):
        array = array.reshape(shape)
    return array


def write_arrays(arrays: Mapping[Path, Array]) -> None:
    """Writes all files, each under a temporary name first; only when all are written do they get their names."""
    written: list[tuple[Path, Path]] = []
    try:
        for path, array in arrays.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
                written.append((Path(file.name), path))
                _write(file, path, array)
            os.chmod(file.name, 0o666 & ~_umask())
        for temporary, path in written:
            os.replace(temporary, path)
    except OSError as error:
        raise CompassError(f"cannot write '{path}': {error.strerror or error}", code="file") from None
    finally:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)


def _write(file: IO[bytes], path: Path, array: Array) -> None:
    import numpy as np

    if path.suffix == ".npy":
        np.save(file, array, allow_pickle=False)
    else:
        file.write(array.tobytes())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def split_items(texts: Sequence[str]) -> list[str]:
    """The comma-separated items of repeatable options; a text that is the name of an existing file is one item."""
    items: list[str] = []
    for text in texts:
        items += [text] if Path(text).exists() else [part for part in text.split(",") if part]
    return items


def split_named(items: Sequence[str], names: Sequence[str], option: str) -> tuple[list[str], dict[str, str]]:
    """Items as `(without name, by name)` for `name=text` items. CompassError for names that are not in `names`."""
    from compass_core.suggest import help_for

    positional, named = [], {}
    for item in items:
        name, equals, text = item.partition("=")
        if not equals or Path(item).exists():
            positional.append(item)
            continue
        if name not in names:
            raise CompassError(f"{option}: there is no tensor '{name}'", code="no-parameter",
                               help=help_for(name, names, "tensors"))  # fmt: skip
        if name in named:
            raise CompassError(f"{option}: '{name}' is given twice", code="given-twice")
        named[name] = text
    return positional, named
