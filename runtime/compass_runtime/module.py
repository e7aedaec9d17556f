"""Modules: functions looked up by name, trees of imported modules, and one file that holds such a tree.

The file is a tar archive whatever it is called: `module.json` describes the tree, one member per module has its
content.
A module is loaded by the global function `runtime.module.loadbinary_<type key>`, so that every kind brings its own.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core import files
from compass_core.arrays import Array
from compass_core.reading import jsontext
from compass_core.reading.limits import MODULE_IMPORTS, MODULES
from compass_runtime.errors import MissingFunction, RuntimeStateError, RuntimeValueError
from compass_runtime.packed import PackedFunc, get_global_func, register_func
from compass_runtime.timing import Plan, time_evaluator

if TYPE_CHECKING:
    from compass_runtime.devices import Device
    from compass_runtime.ndarray import NDArray
    from compass_runtime.timing import BenchmarkResult

ENTRY = "__tvm_main__"
BLOCK = 512
"""Bytes of a block of an archive: members begin and end at them."""
DESCRIPTION = "module.json"
"""The first member of a module file."""
FORMAT = "compass-module/2"
LIBRARY_NAME = "nn_model.so"
"""The file a directory with an exported model must contain."""
SERIALIZABLE, RUNNABLE, EXPORTABLE = 1, 2, 4
_SHARED = ("", "dll", "dylib", "dso", "so", "o", "tar")
"""Formats under which files of modules are asked for."""
LOADER = "runtime.module.loadbinary_"
_HASH = hashlib.sha256().digest_size
_HOMES = {
    "compass.runtime.CompassModule": "compass_runtime.compass_module",
    "compass.runtime.CudaModule": "compass_runtime.cuda_module",
    "compass.runtime.GraphExecutorFactory": "compass_runtime.factory",
    "compass.runtime.HostLibrary": "compass_runtime.host_module",
}
"""Kinds of modules that come with the runtime, and where their loaders are."""


class Module:
    """Functions by name. Subclasses give `find`, and `save_to_bytes` where they can be exported."""

    type_key = "runtime.Module"
    flags = RUNNABLE

    def __init__(self) -> None:
        self._imports: list[Module] = []
        self._entry: PackedFunc | None = None
        self.entry_name = ENTRY

    def find(self, name: str) -> Callable[..., object] | None:
        """The module's own function of that name; None when it has none."""
        return None

    def get_function(self, name: str, query_imports: bool = False) -> PackedFunc:
        """The function of that name, of this module or, when asked, of the imports in order. It keeps the module."""
        found = self._lookup(name, query_imports)
        if found is None:
            raise MissingFunction(f"the module ({self.type_key}) has no function '{name}'", code="no-function")
        return found

    def implements_function(self, name: str, query_imports: bool = False) -> bool:
        """Whether `get_function` finds something."""
        return self._lookup(name, query_imports) is not None

    def _lookup(self, name: str, query_imports: bool) -> PackedFunc | None:
        for module in self.tree() if query_imports else [self]:
            body = module.find(name)
            if body is not None:
                return body if isinstance(body, PackedFunc) else PackedFunc(body, name, module)
        return None

    def __getitem__(self, name: str) -> PackedFunc:
        if not isinstance(name, str):
            raise RuntimeValueError(
                f"functions are looked up by text, not by {type(name).__name__}", code="no-function"
            )
        return self.get_function(name, query_imports=True)

    @property
    def entry_func(self) -> PackedFunc:
        """The function that a call of the module is."""
        if self._entry is None:
            self._entry = self.get_function(self.entry_name)
        return self._entry

    def __call__(self, *args: Array | int | NDArray) -> Any:
        return self.entry_func(*args)

    @property
    def imported_modules(self) -> list[Module]:
        return list(self._imports)

    def import_module(self, other: Module) -> None:
        """Adds an import. RuntimeStateError when that closes a circle."""
        if self is other or any(below is self for below in other.tree()):
            raise RuntimeStateError("a module cannot import itself, directly or through others", code="import-circle")
        self._imports.append(other)

    def clear_imports(self) -> None:
        """Drops all imports."""
        self._imports.clear()

    def tree(self) -> list[Module]:
        """This module and everything below it, each once, parents first."""
        seen: dict[int, Module] = {}
        waiting: list[Module] = [self]
        while waiting:
            module = waiting.pop()
            if id(module) not in seen:
                seen[id(module)] = module
                waiting += reversed(module._imports)
        return list(seen.values())

    @property
    def format(self) -> str:
        return ""

    def get_source(self, format: str = "") -> str:
        """The source text; empty where there is none, or none in that format."""
        return ""

    def get_property_mask(self) -> int:
        """The flags together: 1 can be written, 2 can be called, 4 goes to a library."""
        return self.flags | (EXPORTABLE if self.is_dso_exportable else 0)

    @property
    def is_runnable(self) -> bool:
        return bool(self.flags & RUNNABLE)

    @property
    def is_binary_serializable(self) -> bool:
        return bool(self.flags & SERIALIZABLE)

    @property
    def is_dso_exportable(self) -> bool:
        return False

    def save_to_bytes(self) -> bytes:
        """The module's content for its loader. RuntimeStateError where it has no form outside this process."""
        raise RuntimeStateError(
            f"a module of kind {self.type_key} cannot be exported",
            code="not-exportable",
            help="it calls Python functions of this process",
        )

    def export_library(
        self,
        file_name: str | os.PathLike[str],
        *,
        fcompile: None = None,
        fpack_imports: None = None,
        addons: None = None,
        workspace_dir: str | None = None,
    ) -> None:
        """Writes this module and its imports to one file, which `load_module` reads in any process.

        No linker is called: RuntimeStateError for functions that would call one. `workspace_dir` changes nothing.
        """
        for name, given in (("fcompile", fcompile), ("fpack_imports", fpack_imports), ("addons", addons)):
            if given is not None:
                raise RuntimeStateError(
                    f"export_library does not link, so it takes no '{name}'", code="module-file", help="leave it out"
                )
        files.write(Path(file_name), pack(self))

    def save(self, file_name: str | os.PathLike[str], fmt: str = "") -> None:
        """`export_library`; all formats are one."""
        self.export_library(file_name)

    def time_evaluator(
        self,
        func_name: str,
        dev: Device,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: float = 0,
        limit_zero_time_iterations: int = 100,
        cooldown_interval_ms: float = 0,
        repeats_to_cooldown: int = 1,
        cache_flush_bytes: int = 0,
        f_preproc: str = "",
    ) -> Callable[..., BenchmarkResult]:
        """A function that measures `func_name` with the arguments it is called with, in seconds per call.

        See `timing.Plan` for the numbers; `f_preproc` names a global function to call before each group of calls.
        """
        plan = Plan(
            number, repeat, min_repeat_ms, limit_zero_time_iterations, cooldown_interval_ms, repeats_to_cooldown
        )
        return time_evaluator(self.get_function(func_name, True), dev, plan, cache_flush_bytes, f_preproc)

    def __repr__(self) -> str:
        return f"<Module {self.type_key}>"


class HostModule(Module):
    """A module without functions of its own: calls go to its imports."""

    type_key = "runtime.HostModule"
    flags = SERIALIZABLE | RUNNABLE

    def find(self, name: str) -> Callable[..., object] | None:
        return next((other.entry_func for other in self._imports if name == ENTRY), None)

    @property
    def format(self) -> str:
        return next((other.format for other in self._imports), "")

    def get_source(self, format: str = "") -> str:
        """The source text of its first import."""
        return next((other.get_source(format) for other in self._imports), "")

    def save_to_bytes(self) -> bytes:
        return b""


class PythonModule(Module):
    """Python functions as a module; they exist in this process only."""

    type_key = "compass.runtime.PackedFuncModule"

    def __init__(self, functions: Mapping[str, Callable[..., object]]) -> None:
        super().__init__()
        self._functions = dict(functions)

    def find(self, name: str) -> Callable[..., object] | None:
        return self._functions.get(name)


def sealed(fields: Mapping[str, object], content: bytes) -> bytes:
    """The content of a module's member: what describes it, and bytes, behind the hash of all that."""
    head = json.dumps(fields, sort_keys=True).encode()
    body = len(head).to_bytes(4, "little") + head + content
    return hashlib.sha256(body).digest() + body


def unsealed(data: bytes, kind: str) -> tuple[dict[str, Any], bytes]:
    """The fields and the content that `sealed` joined. ValueError, TypeError or CompassError when anything is not as it
    was written."""
    body = data[_HASH:]
    if hashlib.sha256(body).digest() != data[:_HASH]:
        raise ValueError("the hash is another")
    end = 4 + int.from_bytes(body[:4], "little")
    fields = jsontext.parse(body[4:end], kind)
    if not isinstance(fields, dict):
        raise TypeError("no fields")
    return fields, body[end:]


def _importers_first(root: Module) -> list[Module]:
    """The modules of a tree, each behind all that import it."""
    done: dict[int, Module] = {}
    waiting = [(root, False)]
    while waiting:
        module, imports_done = waiting.pop()
        if imports_done:
            done.setdefault(id(module), module)
        elif id(module) not in done:
            waiting += [(module, True), *((other, False) for other in module._imports)]
    return list(reversed(done.values()))


def pack(root: Module) -> bytes:
    """The bytes of a module file; the same modules give the same bytes."""
    modules = _importers_first(root)
    numbers = {id(module): i for i, module in enumerate(modules)}
    entries = [(module.type_key, [numbers[id(other)] for other in module.imported_modules]) for module in modules]
    members = {DESCRIPTION: _description(entries)}
    return _archive(members | {_content(i): module.save_to_bytes() for i, module in enumerate(modules)})


def _description(entries: Sequence[tuple[str, list[int]]]) -> bytes:
    """The text of `module.json`: kind and imports of each module, and the hash of these."""
    modules = [{"type_key": key, "imports": imports} for key, imports in entries]
    digest = hashlib.sha256(json.dumps(modules).encode()).hexdigest()
    return json.dumps({"format": FORMAT, "modules": modules, "sha256": digest}, indent=1).encode()


def _archive(members: Mapping[str, bytes]) -> bytes:
    """The one form in which an archive has these members."""
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return out.getvalue()


def unpack(data: bytes, where: str) -> Module:
    """The module of a module file. RuntimeValueError when the bytes are none, or damaged, CompassError beyond a limit."""
    import tarfile

    try:
        members = _members(data, where)
        entries = _entries(members, where)
        wanted = [DESCRIPTION, *map(_content, range(len(entries)))]
        if list(members) != wanted:
            same = next((i for i, (a, b) in enumerate(zip(members, wanted)) if a != b), min(len(members), len(wanted)))
            raise ValueError(f"at byte {_start(members, same)} begins another member than described")
        written = _archive(members | {DESCRIPTION: _description(entries)})
        if written != data:
            pairs = enumerate(zip(written, data))
            at = next((i for i, (a, b) in pairs if a != b), min(len(written), len(data)))
            raise ValueError(f"it is damaged at byte {at}: not as it was written")
    except (tarfile.TarError, KeyError, ValueError, TypeError, OverflowError) as error:
        raise RuntimeValueError(f"'{where}' is not a module file: {error}", code="module-file") from None
    modules = [_loaded(key, i, members, where) for i, (key, _) in enumerate(entries)]
    for module, (_, imports) in zip(modules, entries, strict=True):
        module._imports += [modules[number] for number in imports]  # only later ones: there is no circle
    return modules[0]


def _entries(members: Mapping[str, bytes], where: str) -> list[tuple[str, list[int]]]:
    """Kind and imports of each module, by the description. ValueError with its place where it is damaged."""
    if DESCRIPTION not in members:
        raise ValueError(f"at byte 0 there is no {DESCRIPTION}")
    description = jsontext.parse(members[DESCRIPTION], where, code="module-file")
    try:
        if description["format"] != FORMAT:
            raise ValueError(f"its format is {description['format']!r:.80}, not {FORMAT!r}")
        entries = [(str(e["type_key"]), [int(i) for i in e["imports"]]) for e in description["modules"]]
        MODULES.check(len(entries), where)
        MODULE_IMPORTS.check(sum(len(imports) for _, imports in entries), where)
        if not entries or any(not i < j < len(entries) for i, (_, imports) in enumerate(entries) for j in imports):
            raise ValueError("its import tree is damaged")
    except (KeyError, ValueError, TypeError, OverflowError) as error:
        start = _start(members, list(members).index(DESCRIPTION)) + BLOCK
        end = start + len(members[DESCRIPTION])
        raise ValueError(f"its description, at bytes {start} to {end}, is damaged: {error}") from None
    return entries


def _start(members: Mapping[str, bytes], number: int) -> int:
    """Where a member begins in an archive."""
    return sum(BLOCK + -(-len(content) // BLOCK) * BLOCK for content in list(members.values())[:number])


def _content(number: int) -> str:
    """The name of the member that has the content of a module."""
    return f"module{number}.bin"


def _loaded(key: str, number: int, members: Mapping[str, bytes], where: str) -> Module:
    """A module of its content. RuntimeValueError with the place of content that is damaged."""
    name = _content(number)
    loader = _loader(key)
    try:
        return loader(members[name])
    except RuntimeValueError as error:
        start = _start(members, number + 1) + BLOCK
        raise RuntimeValueError(
            f"'{where}': {name}, at bytes {start} to {start + len(members[name])}: {error.message}",
            code=error.code,
            help=error.help,
        ) from None


def _members(data: bytes, where: str) -> dict[str, bytes]:
    """The members of an archive that holds nothing but whole files, one behind the other: nothing in it can say that
    it stands for more bytes than are there."""
    import tarfile

    found: dict[str, bytes] = {}
    at = 0
    while any(header := data[at : at + BLOCK]):
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
        except (tarfile.TarError, ValueError) as error:
            raise ValueError(f"at byte {at} no member begins: {error}") from None
        start = at + BLOCK
        if info.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or not 0 <= info.size <= len(data) - start:
            raise ValueError(f"at byte {at} its member {info.name!r:.80} is no file that is there in full")
        found[info.name] = data[start : start + info.size]
        MODULES.check(len(found) - 1, where)
        at = start + -(-info.size // BLOCK) * BLOCK
    return found


def _loader(type_key: str) -> Callable[[bytes], Module]:
    if type_key in _HOMES:
        import_module(_HOMES[type_key])
    found = get_global_func(LOADER + type_key, allow_missing=True)
    if found is None:
        raise RuntimeValueError(
            f"there is no loader for modules of kind '{type_key}'",
            code="module-loader",
            help=f"register '{LOADER}{type_key}'",
        )
    return found.body


def load_module(path: str | os.PathLike[str], fmt: str = "") -> Module:
    """The module in a file (in a directory: in its `nn_model.so`).

    A global function `runtime.module.loadfile_<ending>` takes precedence for files of its ending, or of the format `fmt`.
    RuntimeValueError naming the path when there is no such file, and for other formats.
    """
    file = Path(path)
    if file.is_dir():
        file = file / LIBRARY_NAME
    if not file.is_file():
        raise RuntimeValueError(f"there is no module file '{file}'", code="module-file")
    own = get_global_func(f"runtime.module.loadfile_{fmt or file.suffix.lstrip('.')}", allow_missing=True)
    if own is None and fmt not in _SHARED:
        raise RuntimeValueError(
            f"no loader reads the format '{fmt}' of '{file}'",
            code="module-file",
            help=f"register the function runtime.module.loadfile_{fmt}, or leave the format out",
        )
    return own.body(str(file)) if own is not None else unpack(files.read(file), str(file))


def _load_host(content: bytes) -> Module:
    return HostModule()


register_func(LOADER + HostModule.type_key, _load_host)
