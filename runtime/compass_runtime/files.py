"""Tensor files: NumPy's `.npy` and `.npz`, and raw bytes. Outputs appear in full or not at all.

What a file holds is told by its name: `.bin`, `.raw`, `.dat` (a number may follow) and names without an ending are raw
bytes; other names are refused unless raw bytes are asked for. `-` is stdin or stdout.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from compass_core import files
from compass_core.arrays import Array
from compass_core.errors import CompassError
from compass_core.errors.suggest import help_for
from compass_core.files import claims
from compass_core.reading import arrays
from compass_runtime.quantisation import NOT_QUANTISED

if TYPE_CHECKING:
    from compass_runtime.program import TensorInfo


STDIO = Path("-")
_RAW_NAME = re.compile(r"|\.(bin|raw|dat)\d*", re.IGNORECASE)
_RAW_HELP = (
    "tensors are .npy, .npz, or raw bytes in files called .bin, .raw or .dat; --raw takes any name for raw bytes"
)


def read_array(path: Path, info: TensorInfo, any_dtype: bool = False, raw: bool = False, real: bool = False) -> Array:
    """The array in a file; CompassError naming the file when it is none, or of another dtype than the tensor.

    `raw`: a name that says nothing means raw bytes. `real`: floats for a quantised tensor are the numbers it stands for.
    """
    claims.reads(path)
    array = _read(path, info, raw)
    wanted = info.numpy_dtype
    if real and array.dtype.kind == "f" and wanted.kind in "iu" and info.quantisation != NOT_QUANTISED:
        _check_real(path, array, info)
        return info.quantisation.integers(array, wanted)
    if array.dtype.kind == "V" and array.dtype.itemsize == wanted.itemsize and info.dtype.name == "bfloat16":
        array = array.view(wanted)  # .npy has no name for bfloat16
    if array.dtype != wanted and array.dtype == wanted.newbyteorder():
        array = array.astype(wanted)
    if array.dtype != wanted and (made := _converted(path, array, info, real)) is not None:
        return made
    if array.dtype != wanted and not (any_dtype or info.raw):
        raise CompassError(
            f"'{path}' has elements of type {array.dtype.name}, but '{info.name}' is {info.dtype.name}",
            code="tensor-dtype",
            help=_help(path, array, info),
        )
    return array


WIDEST = ("int64", "uint64", "float64")
"""What NumPy makes of numbers that are given no type: they are converted where that changes none."""


def _converted(path: Path, array: Array, info: TensorInfo, real: bool) -> Array | None:
    """The array in the tensor's type: real numbers rounded to those of a tensor of floats, numbers of the widest types where
    they stay the same. None for others. CompassError for real numbers beyond the type."""
    import numpy as np

    wanted = info.numpy_dtype
    of_floats = wanted.kind not in "iub"
    if (
        (array.dtype.name not in WIDEST and not real)
        or array.dtype.kind not in "iuf"
        or (not of_floats and array.dtype.kind == "f")
    ):
        return None
    with np.errstate(all="ignore"):
        made = array.astype(wanted)
        if real and of_floats:
            if (np.isfinite(array) & ~np.isfinite(made.astype(np.float64))).any():
                raise CompassError(f"'{path}' has numbers beyond {info.dtype.name}", code="tensor-dtype")
            return made
        same = np.array_equal(made.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
    return made if same else None


def _help(path: Path, array: Array, info: TensorInfo) -> str:
    if info.quantisation != NOT_QUANTISED:
        return "--float takes real numbers for quantised tensors, and gives them"
    if array.dtype.kind == "f" and info.numpy_dtype.kind not in "iub":
        return f"--float rounds them to {info.dtype.name}; numpy.save('{path}', array.astype('{info.dtype.name}'))"
    return f"numpy.save('{path}', array.astype('{info.dtype.name}'))"


def _check_real(path: Path, array: Array, info: TensorInfo) -> None:
    """CompassError for real numbers that a quantised tensor cannot have."""
    if (array != array).any():  # noqa: PLR0124 (NaN alone differs from itself)
        raise CompassError(
            f"'{path}' has NaN, which no element of '{info.name}' ({info.dtype.name}) stands for",
            code="tensor-dtype",
            help="give numbers; what is beyond the range becomes the largest or smallest element",
        )


def _read(path: Path, info: TensorInfo, raw: bool) -> Array:
    if arrays.kind(path):
        return arrays.load(path, info.name)
    data = files.read_stream(sys.stdin.buffer, "stdin") if path == STDIO else files.read(path)
    plain = path == STDIO or not path.suffix
    if data.startswith(arrays.MAGIC) and not raw:
        if plain:
            return arrays.from_bytes(data, str(path), info.name)
        raise CompassError(
            f"'{path}' is a .npy file, but is not called so",
            code="tensor-file",
            help="call it .npy; --raw takes its header for elements",
        )
    if not raw and (path == STDIO or not is_raw_name(path)):
        what = "stdin is no .npy file" if path == STDIO else f"'{path}': a file called '{path.suffix}' is no tensor"
        raise CompassError(what, code="tensor-file", help=_RAW_HELP)
    return _elements(data, path, info)


def is_raw_name(path: Path) -> bool:
    """Whether a file of this name holds raw bytes."""
    return _RAW_NAME.fullmatch(path.suffix) is not None


def _elements(data: bytes, path: Path, info: TensorInfo) -> Array:
    """Raw bytes as elements of the tensor, in its shape where that is known."""
    import numpy as np

    if len(data) % info.dtype.size:
        raise CompassError(
            f"'{path}' has {len(data)} bytes, which are no whole number of {info.dtype.name} elements "
            f"for '{info.name}'",
            code="tensor-size",
        )
    array: Array = np.frombuffer(data, dtype=info.numpy_dtype)
    shape = info.shape
    if shape is not None and array.size == int(np.prod(shape)):
        array = array.reshape(shape)
    return array


def check_outputs(targets: Mapping[str, Path], raw: bool) -> None:
    """CompassError when two outputs have one file (an archive takes several), or a name does not say what to write."""
    plain = [path for path in targets.values() if arrays.kind(path) != "npz"]
    if len(set(plain)) < len(plain):
        raise CompassError(
            "two outputs would go to the same file", code="output-files", help="a file called .npz takes several"
        )
    for path in plain:
        if not (raw or path == STDIO or arrays.kind(path) or is_raw_name(path)):
            raise CompassError(
                f"'{path}': it is not clear what to write to a file called '{path.suffix}'",
                code="tensor-file",
                help=_RAW_HELP,
            )


def write_arrays(targets: Mapping[str, Path], found: Mapping[str, Array], raw: bool = False) -> None:
    """Writes the arrays by name to their files, of which none gets its name before all are written; then stdout."""
    contents: dict[Path, files.Content] = {}
    for path in dict.fromkeys(targets.values()):
        members = {name: found[name] for name, at in targets.items() if at == path}
        if path != STDIO:
            contents[path] = _into(_writer(path, members, raw))
    files.write_all(contents)
    if STDIO in targets.values():
        sys.stdout.flush()
        _writer(STDIO, {name: found[name] for name, at in targets.items() if at == STDIO}, raw)(sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _writer(path: Path, members: Mapping[str, Array], raw: bool) -> Callable[[BinaryIO], object]:
    first = next(iter(members.values()))
    if arrays.kind(path) == "npz":
        return lambda file: arrays.write_archive(file, members)
    if arrays.kind(path) == "npy" or (path == STDIO and not raw):
        return lambda file: arrays.write(file, first)
    return lambda file: file.write(first.tobytes())


def _into(write: Callable[[BinaryIO], object]) -> Callable[[Path], None]:
    def to(path: Path) -> None:
        with path.open("r+b") as file:
            write(file)

    return to


def expanded(items: Iterable[str], names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Items without the archives among them, and `name -> FILE.npz:name` for what these have of `names`.

    An archive whose arrays have no names (NumPy calls them arr_0, arr_1, ...), or that has one only, stands for its
    arrays in order.
    """
    rest: list[str] = []
    by_name: dict[str, str] = {}
    for item in items:
        if arrays.kind(Path(item)) != "npz" or arrays.split_member(Path(item))[1]:
            rest.append(item)
            continue
        have = arrays.names_in(Path(item))
        known = {own_name(name, names): name for name in have if own_name(name, names) in names}
        if not known and (len(have) == 1 or have == [f"arr_{i}" for i in range(len(have))]):
            rest += [f"{item}:{name}" for name in have]
        elif known:
            by_name |= {name: f"{item}:{member}" for name, member in known.items()}
        else:
            raise CompassError(
                f"'{item}' has no array of a tensor's name",
                code="tensor-file",
                help=f"its arrays are: {', '.join(have) or 'none'}; the tensors: {', '.join(names)}",
            )
    return rest, by_name


def own_name(name: str, names: Sequence[str]) -> str:
    """The name that a tensor has here: the first output of a layer NAME, as models call it, is NAME_0."""
    return f"{name}_0" if name not in names and f"{name}_0" in names else name


def split_items(texts: Sequence[str]) -> list[str]:
    """The comma-separated items of repeatable options; a text that is the name of an existing file is one item."""
    items: list[str] = []
    for text in texts:
        items += [text] if text and Path(text).exists() else [part for part in text.split(",") if part]
    return items


def split_named(items: Sequence[str], names: Sequence[str], option: str) -> tuple[list[str], dict[str, str]]:
    """Items as `(without name, by name)` for `name=text` items. CompassError for names that are not in `names`."""
    positional, named = [], {}
    for item in items:
        given, equals, text = item.partition("=")
        if not equals or Path(item).exists():
            positional.append(item)
            continue
        name = own_name(given, names)
        if name not in names:
            raise CompassError(
                f"{option}: there is no tensor '{name}'", code="no-parameter", help=help_for(name, names, "tensors")
            )
        if name in named:
            raise CompassError(f"{option}: '{name}' is given twice", code="given-twice")
        named[name] = text
    return positional, named
