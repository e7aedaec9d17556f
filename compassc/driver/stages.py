"""The stages as a table: each is one arrow from the artifact it reads to the artifacts it writes.

`load` puts the artifact of the stage before, read from a file, into a build, so that any stage can start from files;
`run` does the arrow on what the build has and returns the files written, the main one first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from compass_core import PARAMS_FORMAT, files, targets
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, Span, UsageError, together
from compass_core.errors.excerpts import file_digest
from compass_core.errors.suggest import help_for
from compass_core.files import claims
from compass_core.reading import jsontext
from compassc.driver.files import json_text, read_graph
from compassc.driver.interface import interface_text, read_interface

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import KernelFields
    from compassc.codegen import LineMap
    from compassc.driver.build import Build
    from compassc.ir.stmts import IRModule
    from compassc.te import TEKernel


B = TypeVar("B")
"""What a stage works on: the build of a kernel, or of a model (`compassc.models.build`)."""


@dataclass(frozen=True)
class Stage(Generic[B]):
    """One arrow. `reads` and `writes` are the suffixes of its main artifacts."""

    name: str
    reads: str
    writes: str
    load: Callable[[B, Path], None]
    run: Callable[[B], list[Path]]


def _load_source(build: Build, path: Path) -> None:
    build.request.kernel = path


def _parse(build: Build) -> list[Path]:
    from compassc.ir import print_module
    from compassc.language.functions import PyPrimFunc, chosen
    from compassc.language.kernel_files import load_kernels
    from compassc.language.parser import parse

    request = build.request
    assert request.kernel is not None, "parse has a file to read"
    source = load_kernels(request.kernel, request.module, request.dependencies)
    sizes = {**request.values, **request.shapes}
    kernel: PyPrimFunc | TEKernel = chosen(source.entry(request.entry), build.target.name, sizes)
    traces: Mapping[str, str] = {}
    if isinstance(kernel, PyPrimFunc):
        build.module = parse(kernel, build.target.name)
    else:
        build.module, traces = kernel.lower(build.target.name, request.pass_options("parse"), simple_mode=True)
    build.dependencies = list(source.dependencies)  # complete only now: parsing may read files too
    build.name = build.module.entry
    made = [files.write(build.file(".ir.txt"), print_module(build.module, _sources(build)))]
    return [*made, *(files.write(build.file(suffix), text) for suffix, text in traces.items())]


def _adopt_target(build: Build, name: str, path: Path) -> None:
    """Go on for the target that the file of an earlier stage was made for; UsageError when another one is asked for."""
    if build.request.target not in ("", name):
        raise UsageError(
            f"'{path}' was made for target {name}, not for {build.request.target}",
            code="other-target",
            help="leave out --target, or start again from the kernel",
        )
    build.target = targets.load(name)


def _read_module(build: Build, path: Path, text: str, stage: str) -> IRModule:
    """The module of a text, whose target and name the build takes over. CompassError when it is not well formed, or lacks
    what `stage` guarantees."""
    from compassc.analysis.wellformed import verify_stage
    from compassc.ir import parse_module
    from compassc.ir.text import digests_of
    from compassc.ir.verify import VerifyError

    module, build.sources = parse_module(text, str(path), read_graph), digests_of(text.splitlines())
    try:
        verify_stage(module)
    except VerifyError as error:
        raise CompassError(f"this IR is not well formed: {error}", Span(str(path), 1), code="ir-text") from None
    try:
        verify_stage(module, stage)
    except VerifyError as error:
        command, before = _MADE_BY[stage]
        help = f"`compassc {command} {path}` makes it of {before} IR" if before else "start again from the kernel"
        raise CompassError(f"this IR is not {stage}: {error}", Span(str(path), 1), code="ir-text", help=help) from None
    build.name = build.name or module.entry
    _adopt_target(build, module.target, path)
    return module


_MADE_BY = {"parsed": ("parse", ""), "lowered": ("lower", "parsed"), "legalised": ("legalize", "lowered")}
"""By which command IR gets the guarantees of a stage, and of what."""


def _load_module(build: Build, path: Path) -> None:
    build.module = _read_module(build, path, files.read_text(path), "parsed")


def _lower(build: Build) -> list[Path]:
    from compassc import passes

    assert build.module is not None, "lower runs after parse or load"
    build.lowered = passes.lower(build.module, build.request.pass_options("lower"), check_resources)
    return [lowered_text(build)] if build.request.texts else []


def lowered_text(build: Build) -> Path:
    """Writes what `lower` leaves for the next stage."""
    from compassc.ir import print_module

    assert build.lowered is not None, "it was lowered"
    return files.write(build.file(".lowered.txt"), print_module(build.lowered, _sources(build)))


def _sources(build: Build) -> frozenset[str]:
    """The digests of the source files that the module's places refer to: those that its text names, or those of the files
    now."""
    if build.sources is not None:
        return build.sources
    from compassc.ir import walk_stmts

    module = build.module or build.lowered
    assert module is not None, "there is a module by now"
    spans = [f.span for f in module.functions] + [s.span for f in module.functions for s in walk_stmts(f.body)]
    named = {span.file for span in spans if span is not None}
    build.sources = frozenset(digest for file in named if (digest := file_digest(file)) is not None)
    return build.sources


def check_resources(module: IRModule) -> None:
    """CompassError for arrays that do not fit the target's memories, and for more events than a TEC has."""
    from compassc.check import Subject, capacity, event_limit

    subject = Subject(module)
    found = [*capacity.run(subject), *event_limit.run(subject)]
    if found:
        raise together(found)


def _load_lowered(build: Build, path: Path) -> None:
    build.lowered = _read_module(build, path, files.read_text(path), "lowered")


def _legalize(build: Build) -> list[Path]:
    from compassc import passes
    from compassc.analysis.interface import interface_of

    assert build.lowered is not None, "legalize runs after lower or load"
    build.legalised = passes.legalize(build.lowered, build.request.pass_options("legalize"))
    build.interface = interface_of(build.lowered)
    if build.interface.groups < build.target.cores:
        build.notes.append(
            f"{build.name} runs on one of the {build.target.cores} cores of {build.target.name}: "
            "a kernel that asks for its group (S.get_group_id) runs on all"
        )
    return [legalised_text(build)] if build.request.texts else []


def legalised_text(build: Build) -> Path:
    """Writes what `legalize` leaves for the next stage."""
    from compassc.ir import print_module

    assert build.legalised is not None and build.interface is not None, "it was legalised"
    text = print_module(build.legalised, _sources(build)) + interface_text(build.interface)
    return files.write(build.file(".legal.txt"), text)


def _load_legalised(build: Build, path: Path) -> None:
    text = files.read_text(path)
    build.interface = read_interface(text, path)
    build.legalised = _read_module(build, path, text, "legalised")


def _codegen(build: Build) -> list[Path]:
    from compassc import codegen

    assert build.legalised is not None and build.interface is not None, "codegen runs after legalize or load"
    build.generated = codegen.emit(build.legalised, build.interface)
    build.params = build.generated.params
    text = build.file(".cl")
    made = [
        files.write(text, build.generated.text),
        files.write(
            text.with_name(text.name + ".map"), json.dumps(_with_digests(build.generated.line_map, _sources(build)))
        ),
    ]
    if build.request.texts:
        made.append(files.write(build.file(".params.json"), json_text(build.params) + "\n"))
    return made


def _with_digests(line_map: LineMap, sources: frozenset[str]) -> dict[str, object]:
    """The line map with the digests of its files; null for a file that has changed, or is not one of `sources`."""
    found = (file_digest(file) for file in line_map["files"])
    return {**line_map, "sha256": [digest if digest in sources else None for digest in found]}


def _load_c(build: Build, path: Path) -> None:
    build.files[".cl"] = path
    build.name = build.name or path.name.removesuffix(".cl")
    params = path.with_name(path.name.removesuffix(".cl") + ".params.json")
    if params.is_file():
        _adopt_target(build, read_params(params)["target"], params)


def _cc(build: Build) -> list[Path]:
    from compassc.toolchain import cc

    request = build.request
    options = cc.CcOptions(build.target, request.clang, request.cc_flags, request.use_cache)
    if request.dry_run:
        build.commands = cc.dry_run(build.file(".cl"), build.file(".o"), options)
        return []
    done = cc.compile_file(build.file(".cl"), build.file(".o"), options, _ahead(request.stop_after))
    build.warnings = done.warnings
    return [done.object, done.log]


def _ahead(stop_after: str) -> Callable[[], object] | None:
    """Work for the time that clang takes: importing the modules of the stage after it, when there will be one."""
    return (lambda: import_module("compassc.gbuilder")) if stop_after == "gbuild" else None


def _load_object(build: Build, path: Path) -> None:
    """Take an object, and the parameters beside it (or in the file already named for them)."""
    build.files[".o"] = path
    build.name = build.name or path.name.removesuffix(".o")
    params = build.files.get(".params.json", path.with_name(build.name + ".params.json"))
    if not params.is_file():
        raise UsageError(
            f"'{path}' has no parameters beside it: '{params}' is missing",
            code="no-params",
            help="name the file that codegen wrote with --params FILE",
        )
    claims.reads(params)
    build.params = read_kernel(params)
    _adopt_target(build, build.params["target"], params)


def read_kernel(path: Path) -> KernelFields:
    """The content of a `NAME.params.json`; CompassError when anything in it is not in order."""
    from compass_core.aipubin import KernelInfo

    params = read_params(path)
    try:
        KernelInfo.from_json(params, path.name)
    except CompassError as error:
        raise CompassError(error.message, Span(str(path), 1), code="bad-params") from None
    return params


def read_params(path: Path) -> KernelFields:
    """The content of a `NAME.params.json`, of which only format and target were looked at; CompassError when it is none."""
    params = jsontext.parse(files.read_text(path), str(path), code="bad-params")
    known = isinstance(params, dict) and params.get("format") == PARAMS_FORMAT
    if not known or not isinstance(params.get("target"), str):
        raise CompassError(f"not a parameter file ({PARAMS_FORMAT})", Span(str(path), 1), code="bad-params")
    made: KernelFields = params
    return made


def _gbuild(build: Build) -> list[Path]:
    from compassc import gbuilder
    from compassc.analysis.shapes import known_shapes

    assert build.params is not None, "gbuild runs after cc or load"
    request = build.request
    if request.fix_shapes:
        build.shapes = known_shapes(build.params, request.values, build.target.tecs)
    build.shapes = build.shapes | request.shapes
    built = gbuilder.build_from_params(
        build.params,
        build.file(".o"),
        build.folder,
        request.output,
        shapes=build.shapes,
        values=request.values,
        consts=request.consts,
    )
    return [built]


STAGES: tuple[Stage[Build], ...] = (
    Stage("parse", ".py", ".ir.txt", _load_source, _parse),
    Stage("lower", ".ir.txt", ".lowered.txt", _load_module, _lower),
    Stage("legalize", ".lowered.txt", ".legal.txt", _load_lowered, _legalize),
    Stage("codegen", ".legal.txt", ".cl", _load_legalised, _codegen),
    Stage("cc", ".cl", ".o", _load_c, _cc),
    Stage("gbuild", ".o", ".bin", _load_object, _gbuild),
)


def stage_named(name: str) -> Stage[Build]:
    """The stage of kernels called `name`; UsageError with the nearest name when there is none."""
    return find_stage(name, STAGES, f"unknown stage '{name}'")


def find_stage(name: str, stages: Sequence[Stage[B]], otherwise: str) -> Stage[B]:
    """The one of `stages` called `name`; UsageError with the message `otherwise` and the nearest name when there is none."""
    for stage in stages:
        if stage.name == name:
            return stage

    known = [stage.name for stage in stages]
    raise UsageError(otherwise, code="unknown-stage", help=help_for(name, known, "stages"))
