"""The pass manager: pipelines by name, and everything a user can see of a pass at work.

A pass is a file: the snake_case of its name (`IfConversion` lives in `if_conversion.py`), with a constant `NAME`, a
docstring that is its contract (the first line says what it does), and `run(program) -> program`, a pure function. Files
that begin with `_` are helpers. `Folder` says where the passes of one kind of program lie (those of graphs in
`compassc.graph.passes`); without one they are the kernels' (`compassc.passes`), which rewrite an IRModule. The registry
is the folder listing: a pass is imported when it is used, so that who asks for a pipeline imports none of them.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TextIO, TypeVar

from compass_core import files
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError
from compass_core.errors.rendering import for_stream
from compass_core.errors.suggest import help_for
from compass_core.namedtuple import NamedTuple
from compassc.pass_manager.vendor_names import NOT_NEEDED, VENDOR_NAMES

if TYPE_CHECKING:
    from compassc.ir import IRModule

M = TypeVar("M")


class _Around(Protocol):
    """What runs a pass in the place of the pass manager."""

    def __call__(self, name: str, module: M, run: Callable[[M], M], /) -> M: ...


EVERY_PASS = "all"
SCHEDULE_STAGES = ("blocks", "threads", "loops")
"""The stages of kernels in which schedules become loops as others are."""
AROUND: ContextVar[_Around | None] = ContextVar("around passes", default=None)
"""What is called instead of each pass on kernels, with its name, the module and the pass."""
DISABLED: ContextVar[frozenset[str]] = ContextVar("disabled passes", default=frozenset())
"""Passes of kernels that are left out of all pipelines that run meanwhile."""
P = TypeVar("P")
"""A program that passes rewrite: an IRModule, or a graph."""
_NOT_PASSES = ("__init__.py", "pipelines.py")


class InternalPassError(Exception):
    """A pass failed, or left a module that is not well formed: a defect of the compiler, never of the kernel.

    `pass_name` is the pass, `before` the text of the module it was given (empty when that cannot be printed).
    """

    def __init__(self, pass_name: str, before: str, cause: Exception) -> None:
        super().__init__(f"internal error in pass {pass_name}: {type(cause).__name__}: {cause}")
        self.pass_name, self.before = pass_name, before


@dataclass(frozen=True)
class PassRun:
    """One pass that ran: its name, wall time in seconds, and whether it changed the module."""

    name: str
    seconds: float
    changed: bool


@dataclass
class PassOptions:
    """What to run and what to show of it. Use one object for all pipelines of a build and a new one for the next.

    Pass names are those of `pass_name`; `all` in `print_before` and `print_after` means every pass. `passes` replaces
    the standard pipeline, `pipelines` those of stages that run on the way (`standing`). `functions` limits printed text to these functions. `limit` stops running passes after that
    many over all pipelines (to find the one that breaks something). `stream` is where text goes, by default stderr.
    """

    disabled: frozenset[str] | tuple[str, ...] = frozenset()
    print_before: tuple[str, ...] = ()
    print_after: tuple[str, ...] = ()
    print_changed: bool = False
    dump_dir: Path | None = None
    time_passes: bool = False
    verify: bool = False
    passes: tuple[str, ...] | None = None
    pipelines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    limit: int | None = None
    stream: TextIO | None = None
    runs: list[PassRun] = field(default_factory=list, init=False, repr=False)
    """The passes that ran so far, in order."""

    def say(self, text: str) -> None:
        stream = self.stream or sys.stderr
        print(for_stream(text, stream), file=stream)


_standing: ContextVar[PassOptions | None] = ContextVar("standing options", default=None)


@contextmanager
def standing(options: PassOptions) -> Iterator[None]:
    """Within it, pipelines of kernels that are given no options have these: schedules become loops in several places."""
    token = _standing.set(options)
    try:
        yield
    finally:
        _standing.reset(token)


def pipelines_are_plain() -> bool:
    """Whether pipelines of kernels that are given no options run as they stand: nobody watches, shows or leaves out passes."""
    return _standing.get() is None and AROUND.get() is None and not DISABLED.get()


# ------------------------------------------------------------------------------------------------------- the registry


@dataclass(frozen=True)
class Folder(Generic[P]):
    """The passes of one kind of program.

    `package`: where they lie, with `pipelines.STAGES` beside them. `text`: the program (or the named functions of it) as
    text. `verify`: raises when a program is not well formed. `aliases`: other names of passes; `absent`: names of passes
    that do not exist here, which may be disabled all the same. `parts`: folders in the package that have more of these
    passes. `recovery`: the module in the package whose `all_errors(names, program, error)` is the error to raise for one
    that a pass found in a program, when these passes are still to come; without one it is the error itself.
    """

    package: str
    text: Callable[[P, tuple[str, ...]], str]
    verify: Callable[[P], object]
    aliases: Mapping[str, str] = field(default_factory=dict, hash=False)
    absent: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    recovery: str = ""

    def all_errors(self, names: tuple[str, ...], program: P, error: CompassError) -> CompassError:
        """The error to raise, see `recovery`."""
        if not self.recovery:
            return error
        found: CompassError = importlib.import_module(f"{self.package}.{self.recovery}").all_errors(
            names, program, error
        )
        return found

    @cached_property
    def canonical(self) -> dict[str, str]:
        """The folded name of a pass by each of its folded aliases."""
        return {_fold(alias): _fold(name) for alias, name in self.aliases.items()}

    @cached_property
    def ignored(self) -> frozenset[str]:
        """The folded names of `absent`."""
        return frozenset(map(_fold, self.absent))

    def key(self, name: str) -> str:
        """What a pass is known by, whatever it is called."""
        folded = _fold(name)
        return self.canonical.get(folded, folded)


def _kernel_text(module: IRModule, functions: tuple[str, ...] = ()) -> str:
    from compassc.ir import print_module

    if functions:
        kept = tuple(f for f in module.functions if f.name in functions)
        module = module.replace(functions=kept, graphs=tuple(g for g in module.graphs if g.name in functions))
    return print_module(module)


def _verify_kernels(module: IRModule) -> None:
    from compassc.ir.verify import verify

    verify(module)


KERNELS: Folder[IRModule] = Folder(
    "compassc.passes",
    _kernel_text,
    _verify_kernels,
    aliases=VENDOR_NAMES,
    absent=NOT_NEEDED,
    parts=("loops",),
    recovery="_recovery",
)


@lru_cache(maxsize=4)
def _modules(package: str, parts: tuple[str, ...]) -> dict[str, str]:
    """The module of each pass by its folded name (lower case, no underscores)."""
    found: dict[str, str] = {}
    for name in (package, *(f"{package}.{part}" for part in parts)):
        files = sorted(os.listdir(importlib.import_module(name).__path__[0]))
        stems = [f[:-3] for f in files if f.endswith(".py") and f not in _NOT_PASSES and f[0] != "_"]
        found |= {stem.replace("_", ""): f"{name}.{stem}" for stem in stems}
    return found


def _fold(name: str) -> str:
    return name.removeprefix("tir.").replace("_", "").lower()


def load_pass(name: str, folder: Folder[Any] = KERNELS) -> ModuleType:
    """The module of a pass. Its aliases work, and any spelling that differs in case, underscores or the prefix `tir.`;
    UsageError with the nearest name for others."""
    modules = _modules(folder.package, folder.parts)
    module = modules.get(folder.key(name))
    if module is None:
        known = [*(load_pass(s, folder).NAME for s in modules), *folder.aliases]
        raise UsageError(f"unknown pass '{name}'", code="unknown-pass", help=help_for(name, known, "passes"))
    return sys.modules.get(module) or importlib.import_module(module)


def pass_name(name: str, folder: Folder[Any] = KERNELS) -> str:
    """The canonical spelling of a pass name."""
    found: str = load_pass(name, folder).NAME
    return found


class Description(NamedTuple):
    """A pass: its name, the first line of its documentation, the stages that run it, and its aliases."""

    name: str
    summary: str
    stages: tuple[str, ...]
    aliases: tuple[str, ...]


def describe(folder: Folder[Any] = KERNELS) -> list[Description]:
    """Every pass, sorted by name."""
    rows = []
    for stem in _modules(folder.package, folder.parts):
        module = load_pass(stem, folder)
        stages = tuple(stage for stage, names in _stages(folder).items() if module.NAME in names)
        aliases = tuple(alias for alias, name in folder.aliases.items() if name == module.NAME)
        rows.append(Description(module.NAME, (module.__doc__ or "").splitlines()[0], stages, aliases))
    return sorted(rows)


def _stages(folder: Folder[object]) -> dict[str, tuple[str, ...]]:
    stages: dict[str, tuple[str, ...]] = importlib.import_module(f"{folder.package}.pipelines").STAGES
    return stages


def pipeline_names(stage: str, folder: Folder[Any] = KERNELS) -> tuple[str, ...]:
    """The passes of a stage, in order, or what standing options have instead of them."""
    options = _standing.get() if folder is KERNELS else None
    other = options.pipelines.get(stage) if options is not None else None
    return _stages(folder)[stage] if other is None else other


def pipeline_text(names: tuple[str, ...]) -> str:
    """A pipeline as text, which `parse_pipeline` reads."""
    return ",".join(names)


def parse_pipeline(text: str, folder: Folder[Any] = KERNELS) -> tuple[str, ...]:
    """The pipeline a text stands for: pass names separated by commas."""
    return tuple(pass_name(part.strip(), folder) for part in text.split(",") if part.strip())


# -------------------------------------------------------------------------------------------------------- running them


def run_pipeline(
    names: tuple[str, ...],
    module: P,
    options: PassOptions | None = None,
    later: tuple[str, ...] = (),
    folder: Folder[P] = KERNELS,  # type: ignore[assignment]
) -> P:
    """The program after the named passes. CompassError when the kernel is at fault, InternalPassError when a pass is.

    `later`: passes that come after these; when one of these finds an error, they are asked for theirs.
    """
    options = options or (_standing.get() if folder is KERNELS else None) or PassOptions()
    disabled = {folder.key(load_pass(name, folder).NAME) for name in _left_out(options, folder)}
    first = len(options.runs)
    if options.verify:
        verify_program("the input", module, module, folder)
    if options.dump_dir is not None and not first:
        _dump(options, 0, "input", module, folder)
    if disabled:
        names = tuple(name for name in names if folder.key(name) not in disabled)
    for number, name in enumerate(names):
        if options.limit is not None and len(options.runs) >= options.limit:
            break
        try:
            pass_, watched = load_pass(name, folder), AROUND.get() if folder is KERNELS else None
            if watched is None:
                module = _run_one(pass_, module, options, folder)
            else:
                module = watched(name, module, partial(_run_one, pass_, options=options, folder=folder))
        except CompassError as error:
            raise folder.all_errors((*names[number:], *later), module, error) from error.__cause__
    if options.time_passes:
        _print_times(options, options.runs[first:])
    return module


def _left_out(options: PassOptions, folder: Folder[Any]) -> list[str]:
    """The passes that are not to run, as they were called, less those that do not exist here."""
    names = {*options.disabled, *(DISABLED.get() if folder is KERNELS else ())}
    return sorted(name for name in names if folder.key(name) not in folder.ignored)


def _run_one(pass_: ModuleType, module: P, options: PassOptions, folder: Folder[P]) -> P:
    name = pass_.NAME
    if _selected(name, options.print_before, folder):
        _print(options, f"IR before {name}", module, folder)
    start = time.perf_counter()
    try:
        after: P = pass_.run(module)
    except CompassError:
        raise
    except Exception as error:  # the boundary where a defect of a pass gets the pass's name and a reproducer
        if left_out := _left_out(options, folder):
            raise CompassError(
                f"{name} cannot go on without a pass that was left out ({', '.join(left_out)}): "
                f"{type(error).__name__}: {error}",
                code="pass-left-out",
                help=f"keep the passes before {name} enabled, or leave it out, too",
            ) from error
        raise InternalPassError(name, folder.text(module, ()), error) from error
    options.runs.append(PassRun(name, time.perf_counter() - start, after is not module))
    if options.verify:
        verify_program(name, module, after, folder)
    if options.print_changed and after is not module:
        _print_diff(options, name, module, after, folder)
    if _selected(name, options.print_after, folder):
        _print(options, f"IR after {name}", after, folder)
    if options.dump_dir is not None:
        _dump(options, len(options.runs), name, after, folder)
    return after


def verify_program(name: str, before: P, after: P, folder: Folder[P]) -> None:
    """InternalPassError, which names the pass, where what it made of `before` is not well formed."""
    try:
        folder.verify(after)
    except Exception as error:  # whatever the verifier finds is a defect of the pass
        raise InternalPassError(name, folder.text(before, ()), error) from error


# ------------------------------------------------------------------------------------------------------------- showing


def _selected(name: str, chosen: tuple[str, ...], folder: Folder[Any]) -> bool:
    return bool(chosen) and any(c == EVERY_PASS or folder.key(c) == folder.key(name) for c in chosen)


def _print(options: PassOptions, title: str, module: P, folder: Folder[P]) -> None:
    options.say(f"# *** {title} ***\n{folder.text(module, options.functions)}")


def _print_diff(options: PassOptions, name: str, before: P, after: P, folder: Folder[P]) -> None:
    import difflib

    old, new = (folder.text(m, options.functions).splitlines() for m in (before, after))
    lines = list(difflib.unified_diff(old, new, f"before {name}", f"after {name}", lineterm=""))
    if lines:
        options.say("\n".join(lines))


def _dump(options: PassOptions, number: int, name: str, module: P, folder: Folder[P]) -> None:
    path = Path(options.dump_dir or ".") / f"{number:02d}-{name}.txt"
    files.write(path, folder.text(module, ()))


def _print_times(options: PassOptions, runs: list[PassRun]) -> None:
    total = sum(run.seconds for run in runs)
    rows = [(f"{run.seconds * 1e3:9.3f}", run.name, "" if run.changed else "(no change)") for run in runs]
    rows.append((f"{total * 1e3:9.3f}", "total", ""))
    options.say("\n".join(["       ms  pass", *(f"{ms}  {name} {note}".rstrip() for ms, name, note in rows)]))
