"""Running a kernel file to get its kernels, and knowing which files it read."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import field
from pathlib import Path
from types import ModuleType

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, UsageError
from compass_core.reading import pyast
from compass_core.reading.limits import TEXT_BYTES

from .. import services
from . import numpy_types
from .functions import PyPrimFunc
from .kernel import Kernel
from .python_errors import hint
from .source import definition, user_line


@dataclass
class KernelFile:
    """The kernels of a file, by name, and the files that were read while it ran (grows while kernels are parsed)."""

    path: Path
    module: ModuleType
    kernels: dict[str, Kernel]
    files: set[Path] = field(repr=False)

    @property
    def dependencies(self) -> list[Path]:
        """The kernel file, the modules of the user that it imports from its folder and its package, and what else it read, where
        that was noted (`load_kernels`)."""
        return [self.path, *sorted(p for p in self.files if p != self.path)]

    @property
    def written(self) -> dict[str, PyPrimFunc]:
        """The kernels that are written in the language, without functions that give schedules."""
        return {name: k for name, k in self.kernels.items() if isinstance(k, PyPrimFunc)}

    def entry(self, name: str | None = None) -> Kernel:
        """The kernel to build: the named one, else the only one that no other kernel calls."""
        if name is not None:
            if name not in self.kernels:
                raise CompassError(f"{self.path} has no kernel {name!r}", code="entry", help=self._choices())
            return self.kernels[name]
        if not self.kernels:
            raise CompassError(
                f"{self.path} defines no kernel",
                Span(str(self.path), 1),
                code="entry",
                notes=_foreign_names(),
                help="decorate one with @S.prim_func, or a function that gives a schedule with @te.kernel",
            )
        called = set().union(*map(called_names, self.written.values()))
        roots = [k for n, k in self.kernels.items() if n not in called]
        if len(roots) != 1:
            raise CompassError(
                f"{self.path} has several kernels; say which to build", code="entry", help=self._choices()
            )
        return roots[0]

    def _choices(self) -> str:
        return f"use -k NAME; kernels here: {', '.join(self.kernels) or 'none'}"


def _foreign_names() -> tuple[str, ...]:
    """A note for a file whose decorators may be those of another package."""
    where = services.other_package()
    return (
        ()
        if where is None
        else (f"tvm is the package installed in {where}; ours is taken by `python -m compassc.compat --shadow`",)
    )


def called_names(kernel: PyPrimFunc) -> set[str]:
    """The global names that a kernel's code mentions, except its own name."""
    names = {n.id for n in pyast.walk([definition(kernel.py_func)]) if isinstance(n, ast.Name)}
    return names - {kernel.__name__}


class FileRecorder:
    """Notes the files opened for reading while it is on; Python's own and installed files are left out."""

    def __init__(self) -> None:
        self.files: set[Path] = set()
        self.on = self.hooked = False
        paths = sysconfig.get_paths()
        self.skip = tuple({paths[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")} | {sys.prefix + "/lib"})
        self.own = str(Path(__file__).resolve().parents[2])
        self._others: dict[str, ModuleType] = {}
        self._users: dict[str, tuple[ModuleType, str]] = {}
        self._seen: dict[str, ModuleType] = {}

    def note(self, path: object, mode: str | None) -> None:
        """A file is opened."""
        if not isinstance(path, str) or (mode is not None and not mode.startswith("r")):
            return
        full = os.path.abspath(path)
        if self.of_user(full) and not full.endswith((".pyc", ".pyi")) and os.path.isfile(full):
            self.files.add(Path(full))

    def of_user(self, full: str) -> bool:
        """Whether a file is the user's: not of the system, of Python, of an installed package, or of this one."""
        package = full.startswith(self.own) and ("/compassc/" in full[len(self.own) :] or "/compass_" in full)
        outside = full.startswith((*self.skip, "/proc/", "/sys/", "/dev/", "/etc/")) and not full.startswith(
            "/dev/shm/"
        )
        return not (package or outside)

    def modules_of_user(self) -> dict[str, tuple[ModuleType, str]]:
        """The modules that may be the user's, by name, with their files. Each is looked at once, and none where there are those
        that were there before, for there are thousands of them in a program that has loaded much."""
        if sys.modules == self._seen:
            return self._users
        others, before = self._others, self._users
        self._users, self._seen = users, seen = {}, sys.modules.copy()
        for name, module in [(n, m) for n, m in seen.items() if others.get(n) is not m]:
            known = before.get(name)
            if known is not None and known[0] is module:
                users[name] = known
            elif file := getattr(module, "__file__", None):
                if self.of_user(file):
                    users[name] = module, file
                else:
                    others[name] = module
        return users

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While it is on. Audit hooks cannot be removed: so there is one, from the first time on, which is asked whenever a node
        of the IR gets its class, too, and costs as much as the rest of making the node."""
        if not self.hooked:

            def hook(event: str, args: tuple[object, str | None, int]) -> None:
                if event == "open" and self.on:
                    self.note(args[0], args[1])

            sys.addaudithook(hook)
            self.hooked = True
        self.on = True
        try:
            yield
        finally:
            self.on = False


_RECORDER: FileRecorder | None = None
_ONE_AT_A_TIME = threading.RLock()
"""Modules, import paths and the recorder are the whole process's: files that other threads load wait."""


def recorder() -> FileRecorder:
    """The process-wide recorder."""
    global _RECORDER
    if _RECORDER is None:
        _RECORDER = FileRecorder()
    return _RECORDER


@dataclass(frozen=True)
class _Place:
    """Where a file stands among modules: its name as one, the folder that its package lies in, and whether it is the
    package itself (`__init__.py`)."""

    name: str
    root: Path
    is_package: bool = False

    @property
    def parent(self) -> str:
        """The package of its relative imports; empty where there is none."""
        return self.name if self.is_package else self.name.rpartition(".")[0]


def _place_of(full: Path, module: str) -> _Place:
    """`module`: its name where it was asked for by that. Else folders with `__init__.py` around the file are its packages."""
    if module:
        is_package = full.name == "__init__.py"
        return _Place(module, full.parents[module.count(".") + is_package], is_package)
    names, folder = [full.stem], full.parent
    while (folder / "__init__.py").is_file() and folder.name.isidentifier():
        names, folder = [folder.name, *names], folder.parent
    return _Place(".".join(names), folder)


def module_file(name: str) -> Path:
    """The file of a module, found as `python -m` finds it: from the working directory first; nothing is imported.

    UsageError when there is none.
    """
    from importlib.machinery import PathFinder

    places: list[str] | None = [os.getcwd(), *sys.path]
    spec, known = None, ""
    for part in name.split("."):
        known = f"{known}.{part}" if known else part
        spec = PathFinder.find_spec(known, places) if part.isidentifier() and places is not None else None
        places = list(spec.submodule_search_locations or ()) if spec is not None else None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        raise UsageError(
            f"there is no module {name!r}",
            code="no-module",
            help="modules are looked for from the working directory and on PYTHONPATH; a file is given as it is",
        )
    return Path(os.path.relpath(spec.origin) if Path(spec.origin).is_relative_to(Path.cwd()) else spec.origin)


def load_kernels(path: Path | str, module: str = "", every_file: bool = False) -> KernelFile:
    """Run a Python file (not as `__main__`) and collect the kernels it defines.

    A file in a package may have relative imports; `module` is its full name where its package has no `__init__.py`.
    `every_file`: its `dependencies` have all files that it reads, data and modules from elsewhere, too; to know them makes
    compiling slower in the rest of the process. A Python error in the file is a CompassError at its line.
    """
    path = Path(path)
    if not path.is_file():
        raise CompassError(f"no such kernel file: {path}", code="input")
    services.take_vendor_names()
    numpy_types.announce()
    found, full = recorder(), path.resolve()
    place = _place_of(full, module)
    with _ONE_AT_A_TIME:
        read: set[Path] = set()
        found.files = read
        recording = found.recording() if every_file else nullcontext()
        with _without_bytecode(), _own_modules(place, full.parent, found), recording:
            made = _execute(path, full, place, bool(module))
    read -= {full, path.absolute()}
    return KernelFile(path, made, {n: v for n, v in vars(made).items() if isinstance(v, Kernel)}, read)


@contextmanager
def _own_modules(place: _Place, folder: Path, found: FileRecorder) -> Iterator[None]:
    """Import from the kernel's folder and its package's first, and leave no trace: another kernel file may have modules of
    these names.

    The user's modules that are imported meanwhile count as files that were read.
    """
    before, name = sys.modules.copy(), place.name  # dict() is slow where modules were removed
    inside = (str(folder) + os.sep, str(place.root) + os.sep)
    added = [str(folder), *([str(place.root)] if place.root != folder else [])]
    sys.path[:0] = added
    try:
        yield
    finally:
        for one in added:
            sys.path.remove(one)
        if name in before:
            sys.modules[name] = before[name]
        else:
            sys.modules.pop(name, None)
        users = found.modules_of_user()
        for key, (module, file) in [one for one in users.items() if one[1][1].startswith(inside)]:
            if key != name:
                found.files.add(Path(file))
            if before.get(key) is not module:
                del sys.modules[key], users[key]


def _text(path: Path) -> str:
    try:
        return files.read(path, TEXT_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        what = f"'{path}' is no Python file: it is not UTF-8 text"
        help = "give the file with the kernel, or save it in UTF-8"
        raise CompassError(what, Span(str(path), line), code="python", help=help) from None


@contextmanager
def _without_bytecode() -> Iterator[None]:
    """Write no bytecode of what a kernel file imports: Python takes it for current when a module was changed within a
    second and kept its size, so that the next build would be of the old text."""
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        yield
    finally:
        sys.dont_write_bytecode = before


def _execute(path: Path, full: Path, place: _Place, as_module: bool) -> ModuleType:
    """The module that the file makes. `as_module`: its package comes first, as for `python -m`; else only where the file has
    relative imports."""
    import importlib
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_file_location

    try:
        text = _text(path)
        code = compile(text, str(path), "exec", dont_inherit=True)  # the path as given, so that messages show it so
        package = place.name.rpartition(".")[0]
        if package and (as_module or _imports_relatively(text)):
            importlib.import_module(package)
            if (made := sys.modules.get(place.name)) is not None:  # by its package
                return made
        folders = [str(full.parent)] if place.is_package else None
        loader = SourceFileLoader(place.name, str(full))
        spec = spec_from_file_location(place.name, full, loader=loader, submodule_search_locations=folders)
        assert spec is not None, "there is a loader"
        module = module_from_spec(spec)
        sys.modules[place.name] = module
        exec(code, module.__dict__)  # noqa: S102 - running the user's file is the purpose
    except CompassError as e:
        e.span = e.span or user_line(e, str(path))
        raise
    except SyntaxError as e:
        where = Span(
            e.filename or str(path), e.lineno or 1, e.offset or 1, e.end_lineno or 0, max(e.end_offset or 0, 0)
        )
        raise CompassError(f"{e.msg}", where, code="python") from None
    except (Exception, SystemExit) as e:
        message = f"running the file raised {type(e).__name__}: {e}"
        where = user_line(e, str(path)) or Span(str(path), 1)
        raise CompassError(message, where, code="python", help=hint(e)) from e
    return module


def _imports_relatively(text: str) -> bool:
    return any(isinstance(node, ast.ImportFrom) and node.level for node in ast.walk(ast.parse(text)))
