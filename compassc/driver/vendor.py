"""The last two stages by the vendor's tools: `compassc build --toolchain vendor`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core import files
from compass_core.errors import CompassError
from compassc.analysis.shapes import known_shapes
from compassc.driver.stages import STAGES, Stage
from compassc.gbuilder import kernel_files
from compassc.gbuilder.dsl_files import IR_BIN, IR_TEXT
from compassc.toolchain import vendor

if TYPE_CHECKING:
    from compass_core.aipubin import KernelInfo
    from compassc.driver.build import Build


def _cc(build: Build) -> list[Path]:
    text, made = build.file(".cl").absolute(), build.file(".o").absolute()
    tool = vendor.find(vendor.COMPILER)
    names = Path(_relative(text, made.parent)).as_posix(), made.name
    line = vendor.compiler_command(tool, *names, build.target, build.request.cc_flags)
    build.versions[vendor.COMPILER] = str(tool.path)
    if build.request.dry_run:
        build.commands.append(_in_folder(made.parent, line))
        return [text]
    log = made.with_suffix(".cc.log")
    build.warnings = vendor.run(line, made.parent, log, made, text)
    return [made, log]


def _relative(path: Path, folder: Path) -> str:
    import os

    return os.path.relpath(path, folder)


def _in_folder(folder: Path, line: list[str]) -> str:
    return f"cd {shlex.quote(str(folder))} && {shlex.join(line)}"


def _gbuild(build: Build) -> list[Path]:
    assert build.params is not None, "gbuild runs after cc or load"
    request, folder = build.request, build.folder.absolute()
    build.shapes = known_shapes(build.params, request.values, build.target.tecs) | request.shapes
    info, _, _ = kernel_files(
        build.params, build.file(".o").absolute(), folder, build.shapes, request.values, request.consts
    )
    _complete(info)
    tool, made = vendor.find(vendor.BUILDER), folder / "aipu.bin"
    line = vendor.builder_command(tool, IR_TEXT, IR_BIN, build.target)
    build.versions[vendor.BUILDER] = str(tool.path)
    if request.dry_run:
        build.commands.append(_in_folder(folder, line))
        return []
    said = vendor.run(line, folder, folder / f"{vendor.BUILDER}.log", made)
    build.warnings += said
    if tool.ours:
        build.notes.append(f"{tool.path} is this toolchain's own: the file is for the simulator, not for a board")
    if made != request.output.absolute():
        files.write(request.output, made.read_bytes())
    return [request.output]


def _complete(info: KernelInfo) -> None:
    """CompassError unless all is known that the vendor's builder must know, and its graph has both ends."""
    missing = [f"--shape {p.name}=SIZExSIZE" for p in info.params if p.is_tensor and p.shape is None]
    missing += [f"--set {p.name}=VALUE" for p in info.params if p.role == "attr" and p.value is None]
    if missing:
        raise CompassError(
            f"the vendor's builder needs every size and scalar of '{info.kernel}'",
            code="vendor-open",
            notes=("its aipu.bin has them for good; only files of this toolchain leave some to the run",),
            help=f"give {' '.join(missing)}",
        )
    if info.groups > 1:
        raise CompassError(
            f"'{info.kernel}' runs on all cores, but the vendor's builder launches a kernel on one",
            code="grid",
            help=f"build it for {info.target.partition('MP')[0]}, or leave out S.get_group_id and S.get_num_groups",
        )
    for role in ("input", "output"):
        if not info.by_role(role):
            raise CompassError(
                f"'{info.kernel}' has no {role}, which the vendor's builder demands of a graph",
                code="vendor-open",
                help=f"give the kernel a pointer parameter that it {'reads' if role == 'input' else 'writes'}",
            )


_OTHER = {"cc": _cc, "gbuild": _gbuild}
VENDOR_STAGES: tuple[Stage[Build], ...] = tuple(
    Stage(s.name, s.reads, s.writes, s.load, _OTHER.get(s.name, s.run)) for s in STAGES
)
