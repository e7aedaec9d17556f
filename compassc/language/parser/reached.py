"""What Python that runs while a kernel is parsed may find and change: what names stand for, what that holds, and what the
user's functions among it mention, to any depth."""

from __future__ import annotations

import functools
import sys
import types
import warnings
import zlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from ..source import is_user_file

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Parts = dict[str, object]
_Reader = Callable[..., Parts]
_SHORT = 1 << 16
"""Bytes of arrays that are kept; of longer ones a checksum is."""
_DEEP = 4
"""Modules within modules, and iterators of iterators, that are looked into."""
_OURS = __name__.partition(".")[0] + "."


class Reached:
    """What was reached from `roots`, values with their names, and what it held then."""

    def __init__(self, roots: Iterable[tuple[str, object]]) -> None:
        self._found: list[tuple[str, object, _Reader, Parts]] = []
        seen: set[int] = set()
        waiting = [*roots]
        while waiting:
            path, value = waiting.pop()
            if id(value) in seen or (reader := _reader(value)) is None:
                continue
            seen.add(id(value))
            parts = reader(value)
            self._found.append((path, value, reader, parts))  # which keeps it: no other object gets its id
            waiting.extend((_joined(path, name), part) for name, part in parts.items())

    def changed(self) -> str | None:
        """What holds something else now, as a program names it; None: nothing. Attributes that appear later, such as
        results that are kept, are no change."""
        for path, value, reader, parts in self._found:
            now = reader(value)
            if reader in _WHOLE and now.keys() != parts.keys():
                return path
            for name, part in parts.items():
                if name not in now or not same(part, now[name]):
                    return _joined(path, "" if reader in _WHOLE else name)
        return None


def same(a: object, b: object) -> bool:
    """Whether two values are certainly the same, whatever is done with them later."""
    return a is b or (type(a) is type(b) and isinstance(a, (int, float, str, bytes)) and repr(a) == repr(b))


def may_change(value: object) -> bool:
    """Whether using a value may change it or others, by Python of the user's that runs or by itself."""
    return _reader(value) is not None or (isinstance(value, types.ModuleType) and _is_users(value.__name__))


def _joined(path: str, name: str) -> str:
    """The name of a part: an attribute or item of what has a path, or a name of its own, which a function mentions."""
    return path + name if name[:1] in (".", "[", "") else name


def _reader(value: object) -> _Reader | None:
    """What tells the parts of a value that may change or hold what may; None: there are none."""
    kind = type(value)
    known = _READERS.get(kind)
    if known is not None or kind in _CONSTANT or kind.__module__.startswith(_OURS):
        return known
    for base, reader in _READERS.items():
        if isinstance(value, base):
            return reader
    if kind.__module__ == "numpy":
        return _bytes if kind.__name__ == "ndarray" else None
    if isinstance(value, type):
        return _of_class if _is_users(value.__module__) else None
    if _is_users(kind.__module__):
        return _of_object
    return _progress if hasattr(kind, "__next__") else None


def _items(value: Iterable[object]) -> Parts:
    return {f"[{i}]": x for i, x in enumerate(value)}


def _entries(value: dict[object, object]) -> Parts:
    return _items(value.keys()) | {f"[{i}:]": x for i, x in enumerate(value.values())}


def _bytes(value: bytearray | array[int] | NDArray[np.generic]) -> Parts:
    if isinstance(value, bytearray):
        data = bytes(value)
    elif getattr(value, "dtype", None) == object:
        return _items(value.tolist())
    else:
        data = value.tobytes()
    return {"[:]": data if len(data) <= _SHORT else zlib.crc32(data)}


def _of_function(value: types.FunctionType) -> Parts:
    """What a function of the user's mentions, by its names, and what it keeps itself."""
    kept: Parts = {f".{name}": x for name, x in value.__dict__.items()}
    if not is_user_file(value.__code__.co_filename):
        return kept
    names = _names(value.__code__)
    found = {name: value.__globals__[name] for name in names & value.__globals__.keys()}
    for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
    kept |= {".__defaults__": value.__defaults__, ".__kwdefaults__": value.__kwdefaults__}
    return dict(_mentioned(found, names, _DEEP)) | kept


def _mentioned(found: dict[str, object], names: frozenset[str], deep: int) -> Iterator[tuple[str, object]]:
    """Values that are mentioned; of the user's modules, what of these may be mentioned."""
    for name, value in found.items():
        if not isinstance(value, types.ModuleType):
            yield name, value
        elif deep and _is_users(value.__name__):
            inner = {f"{name}.{part}": vars(value)[part] for part in names & vars(value).keys()}
            yield from _mentioned(inner, names, deep - 1)


@functools.lru_cache(maxsize=1024)
def _names(code: types.CodeType) -> frozenset[str]:
    """The names in a function's text, and in those of the functions in it."""
    inner = (_names(x) for x in code.co_consts if isinstance(x, types.CodeType))
    return frozenset(code.co_names).union(*inner)


def _of_method(value: types.MethodType | types.BuiltinMethodType) -> Parts:
    owner = value.__self__
    return {"": None if isinstance(owner, types.ModuleType) else owner, ".__func__": getattr(value, "__func__", None)}


def _of_partial(value: functools.partial[object]) -> Parts:
    return {".func": value.func, ".args": value.args, ".keywords": value.keywords}


def _of_wrapper(value: object) -> Parts:
    """The functions of properties, of static methods and those of classes, and of what keeps results."""
    names = ("fget", "func", "__func__", "__wrapped__")
    return {f".{name}": x for name in names if (x := getattr(value, name, None)) is not None}


def _of_class(value: type[object]) -> Parts:
    return {f".{name}": x for name, x in value.__dict__.items() if name not in ("__dict__", "__weakref__")}


def _of_object(value: object) -> Parts:
    """The attributes of an object, and its class."""
    slots = (s for kind in type(value).__mro__ for s in _words(kind.__dict__.get("__slots__", ())))
    found: Parts = {f".{s}": getattr(value, s) for s in slots if hasattr(value, s)}
    found |= {f".{name}": x for name, x in getattr(value, "__dict__", {}).items()}
    bases = (kind for kind in type(value).__mro__ if _is_users(kind.__module__))
    return found | {kind.__qualname__: kind for kind in bases}


def _words(slots: str | Iterable[str]) -> tuple[str, ...]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _of_generator(value: types.GeneratorType[object, object, object]) -> Parts:
    frame = value.gi_frame
    return {".": None} if frame is None else {".": frame.f_lasti, **{f"[{k}]": x for k, x in frame.f_locals.items()}}


def _progress(value: object) -> Parts:
    """How far an iterator of Python's is, and the iterators that it takes items of."""
    left = getattr(value, "__length_hint__", None)
    if left is not None:
        return {".": left()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            made = _told(value.__reduce__(), _DEEP)
        except TypeError:  # Python cannot tell
            made = value
    return {".": repr(made)}


def _told(value: object, deep: int) -> object:
    """What `__reduce__` gave, with the progress of iterators in it."""
    if isinstance(value, tuple):
        return tuple(_told(x, deep) for x in value)
    return _progress(value) if deep and hasattr(type(value), "__next__") else value if type(value) is int else id(value)


def _is_users(module: str) -> bool:
    """Whether a module is the user's."""
    found = sys.modules.get(module)
    if found is None or module in sys.builtin_module_names:
        return False
    return is_user_file(getattr(found, "__file__", None) or module)


_READERS: dict[type, _Reader] = {
    **dict.fromkeys((list, tuple, set, frozenset, deque), _items),
    dict: _entries,
    **dict.fromkeys((bytearray, array), _bytes),
    types.FunctionType: _of_function,
    **dict.fromkeys((types.MethodType, types.BuiltinMethodType, types.MethodWrapperType), _of_method),
    functools.partial: _of_partial,
    **dict.fromkeys((property, staticmethod, classmethod, functools.cached_property, type(_names)), _of_wrapper),
    types.SimpleNamespace: _of_object,
    types.GeneratorType: _of_generator,
}
_WHOLE = (_items, _entries, _bytes, _progress, _of_generator)
"""Readers of values that are compared as wholes."""
_CONSTANT = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis), range, slice, types.CodeType)
