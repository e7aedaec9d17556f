"""The code objects of kernels and macros, which tracebacks and debuggers treat as user code, and what generated code has
beside its text."""

from __future__ import annotations

import itertools
import types
import weakref

from compass_core.namedtuple import NamedTuple

KERNEL_CODE: weakref.WeakSet[types.CodeType] = weakref.WeakSet()
"""The code objects of the kernels, sub-functions and macros that were run."""

MACRO_CODE: weakref.WeakKeyDictionary[types.CodeType, dict[str, str]] = weakref.WeakKeyDictionary()
"""The code objects of inlined macros, with the arguments of their parameters."""


class Pasted(NamedTuple):
    """A pasted macro: its name and file, how many lines its code has to move to where it is defined, and what is written
    for its parameters."""

    name: str
    file: str
    shift: int
    arguments: dict[str, str]


class Kept:
    """A value that code has, of which its compiler must not know more than that: it would compute with a marker."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


class GeneratedCode:
    """Data of generated code: the constants behind markers, the macros behind function names, and what names stood for
    when it was made."""

    def __init__(self) -> None:
        self.constants: dict[str, object] = {}
        self.assumed: dict[str, object] = {}
        self.modules: dict[tuple[types.ModuleType, str], object] = {}  # the same of names of modules
        self.pasted: dict[str, Pasted] = {}
        self.addressed: set[str] = set()  # variables whose address is taken
        self.bools: set[str] = set()  # variables that may hold a bool
        self.numbers = itertools.count()  # of hidden variables
        self.known_names: set[str] = set()  # of these, such that keep what S.meta_var gave
