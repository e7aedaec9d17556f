"""One build: what was asked for, what exists so far, and the loop over the stages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from compass_core import switches, targets
from compass_core.dataclass import dataclass
from compassc.driver.files import sha256_of, stage_files
from compassc.driver.stages import STAGES, Stage, find_stage
from compassc.settings.choices import collecting

if TYPE_CHECKING:
    from compass_core.aipubin.kernelinfo import KernelFields
    from compass_core.arrays import Array
    from compassc.analysis.interface import Interface
    from compassc.codegen import CodegenResult
    from compassc.ir import IRModule
    from compassc.pass_manager import PassOptions

STAGE_FOLDER_SUFFIX = ".compass"


@dataclass
class Request:
    """What to build and how. `kernel` is the source file, `module` its full name where it was asked for by that; the Python
    API, which has a function instead, parses itself.

    `final` is where the main artifact of the last stage goes when that stage is not gbuild (None: among the stage
    files). `shapes`, `values` and `consts` fix tensor shapes (in elements), scalar parameters and constant tensors by
    parameter name; `pipelines` replaces the passes of a stage. `fix_shapes`: write the shapes the
    analysis finds into aipu.bin. `output` is the aipu.bin; the stage files go to
    `folder`, by default `STEM.compass` beside it. `dependencies`: find all files that the kernel's file reads.
    `texts`: write what stages before the C text leave for others, which a build that goes on in memory does not read.
    `toolchain`: `compass`, or `vendor` for the vendor's own compiler and builder (`driver.vendor`).
    """

    target: str = ""
    kernel: Path | None = None
    entry: str | None = None
    output: Path = Path("aipu.bin")
    folder: Path | None = None
    final: Path | None = None
    stop_after: str = "gbuild"
    passes: PassOptions | None = None
    pipelines: dict[str, tuple[str, ...]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    values: dict[str, int | float] = field(default_factory=dict)
    consts: dict[str, Array] = field(default_factory=dict)
    fix_shapes: bool = True
    clang: str | None = None
    cc_flags: tuple[str, ...] = ()
    use_cache: bool | None = None
    dry_run: bool = False
    toolchain: str = "compass"
    module: str = ""
    dependencies: bool = False
    texts: bool = True

    def stage_folder(self) -> Path:
        """Where the stage files go."""
        stem = self.module.rpartition(".")[2] or (self.kernel.stem if self.kernel is not None else "kernel")
        return self.folder or self.output.parent / (stem + STAGE_FOLDER_SUFFIX)

    def pass_options(self, stage: str) -> PassOptions:
        """The options of the pass pipeline of a stage; all stages share one object, which numbers the passes."""
        from compassc.pass_manager import SCHEDULE_STAGES, PassOptions

        if self.passes is None:
            self.passes = PassOptions()
        self.passes.passes = self.pipelines.get(stage)
        self.passes.pipelines = {name: passes for name, passes in self.pipelines.items() if name in SCHEDULE_STAGES}
        return self.passes


@dataclass(frozen=True)
class StageRecord:
    """What a finished stage wrote (its main artifact first), that artifact's SHA-256, its wall time in seconds, and what it
    took from tuning records: what for, and how."""

    name: str
    outputs: tuple[Path, ...]
    sha256: str
    seconds: float
    tuned: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Build:
    """The state of a build: each stage reads what the one before left here and adds its own.

    `name` is the entry function's and begins the name of every stage file; `files` maps the suffix of an artifact to a
    path other than the default one; `sources` has the digests of the files that places of the module are in
    (`compass_core.errors.excerpts`); `shapes` are the tensor shapes known so far, given ones included. `versions` are of
    programs other than clang; `notes` are said when the build is done.
    """

    request: Request
    folder: Path
    target: targets.Target
    name: str = ""
    files: dict[str, Path] = field(default_factory=dict)
    dependencies: list[Path] = field(default_factory=list)
    module: IRModule | None = None
    lowered: IRModule | None = None
    legalised: IRModule | None = None
    interface: Interface | None = None
    sources: frozenset[str] | None = None
    generated: CodegenResult | None = None
    params: KernelFields | None = None
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    warnings: str = ""
    notes: list[str] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    records: list[StageRecord] = field(default_factory=list)

    def file(self, suffix: str) -> Path:
        """The path of the artifact with this suffix."""
        return self.files.get(suffix, self.folder / (self.name + suffix))

    @property
    def result(self) -> Path:
        """The main artifact of the last stage that ran."""
        return self.records[-1].outputs[0]


def stages_of(request: Request) -> Sequence[Stage[Build]]:
    """The stages from a kernel to the aipu.bin, by the toolchain that is asked for."""
    if request.toolchain == "compass":
        return STAGES
    from compassc.driver.vendor import VENDOR_STAGES

    return VENDOR_STAGES


Listener = Callable[[str, "StageRecord | None"], None]
"""Called with a stage's name when it starts (None) and when it is done (its record)."""


def new_build(request: Request, folder: Path | None = None) -> Build:
    """An empty build for a request; UsageError when its target is unknown."""
    target = targets.load(request.target or switches.TARGET.get())
    return Build(request, folder or request.stage_folder(), target)


class Chain(Protocol):
    """What the loop over stages needs of a build."""

    folder: Path
    records: list[StageRecord]


C = TypeVar("C", bound=Chain)


def run_stage(build: C, stage: Stage[C], listener: Listener | None = None) -> StageRecord | None:
    """Run one stage on what the build has; returns its record, None when a dry run made it only print commands."""
    if listener is not None:
        listener(stage.name, None)
    build.folder.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    with collecting() as taken:
        outputs = stage.run(build)
    if not outputs:
        return None
    record = StageRecord(stage.name, tuple(outputs), sha256_of(outputs[0]), time.perf_counter() - start, taken)
    build.records.append(record)
    if listener is not None:
        listener(stage.name, record)
    return record


def run_stages(build: C, stages: Sequence[Stage[C]], last: Stage[C], listener: Listener | None = None) -> None:
    """Run the stages up to `last`, or to the one that makes nothing."""
    for stage in stages:
        if run_stage(build, stage, listener) is None or stage is last:
            return


def run_build(
    request: Request, listener: Listener | None = None, waiting: Callable[[Path], object] = lambda folder: None
) -> Build:
    """Run the stages up to `request.stop_after` and write build.yaml. A dry run ends where clang would start.

    Builds with the same stage folder run one after another; `waiting` is called when that means to wait.
    """
    from compassc.driver.record import write_build_record

    build = new_build(request)
    stages = stages_of(request)
    last = find_stage(request.stop_after, stages, f"unknown stage '{request.stop_after}'")
    if request.final is not None:
        build.files[last.writes] = request.final
    with stage_files(build.folder, lambda: waiting(build.folder)):
        run_stages(build, stages, last, listener)
        write_build_record(build)
    return build
