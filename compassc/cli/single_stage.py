"""Running one stage by itself: from the file of the stage before (or `-`) to `-o FILE` (or stdout)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from compass_core import files
from compassc.cli.console import Console, artifact
from compassc.cli.outputs import STDIO, hand_over, is_apart
from compassc.driver import Build, Request, run_stage, stage_named
from compassc.driver.build import STAGE_FOLDER_SUFFIX, new_build
from compassc.driver.files import stage_files
from compassc.driver.stages import Stage


def run_arrow(
    console: Console, name: str, source: Path, output: Path | None, request: Request, params: Path | None = None
) -> None:
    """Run the stage `name` on the file `source` and say what was made.

    Without `output` the result lies beside its input (parse: in `kernel.compass/`), or goes to stdout when the input
    is stdin. On stdout only the main artifact appears.
    """
    stage = stage_named(name)
    request = replace(request, stop_after=name)
    if output is None and source == STDIO and not request.dry_run:
        output = STDIO
    with _scratch(needed=source == STDIO or is_apart(output)) as scratch:
        real_source = _from_stdin(scratch, stage) if source == STDIO else source
        build = _new_build(stage, real_source, output, request, scratch)
        if params is not None:
            build.files[".params.json"] = params
        console.inputs.append(real_source)
        console.folder = build.folder
        with stage_files(build.folder, lambda: console.waiting(build.folder)):
            stage.load(build, real_source)
            run_stage(build, stage, console.stage)
        _deliver(console, build, output)


def _deliver(console: Console, build: Build, output: Path | None) -> None:
    """Hand over the main artifact, or the commands of a dry run."""
    console.clear_progress()
    console.detail(build.warnings.rstrip())
    if build.commands:
        artifact("".join(f"{line}\n" for line in build.commands))
    else:
        hand_over(console, build.result, output)


@contextmanager
def _scratch(needed: bool) -> Iterator[Path | None]:
    """A temporary folder for a stage that reads stdin or writes stdout; None when none is needed."""
    if not needed:
        yield None
        return
    import tempfile

    with tempfile.TemporaryDirectory(prefix="compassc-") as folder:
        yield Path(folder)


def _from_stdin(scratch: Path | None, stage: Stage[Build]) -> Path:
    """Stdin as a file, for stages read files."""
    assert scratch is not None, "reading stdin needs a scratch folder"
    path = scratch / f"stdin{stage.reads}"
    files.write(path, files.read_stream(sys.stdin.buffer, "stdin"))
    return path


def _new_build(stage: Stage[Build], source: Path, output: Path | None, request: Request, scratch: Path | None) -> Build:
    """The build of a single stage, its folder and file names as `output` (or else the input) says."""
    if is_apart(output):
        assert scratch is not None, "an output that lies apart needs a scratch folder"
        return new_build(replace(request, output=scratch / "aipu.bin"), scratch)
    if stage.name == "gbuild":  # its stage files stay beside the object; `output` is the aipu.bin alone
        return new_build(replace(request, output=output or Path("aipu.bin")), source.parent)
    if output is None:
        beside = Path(source.stem + STAGE_FOLDER_SUFFIX) if stage.name == "parse" else source.parent
        return new_build(request, beside)
    build = new_build(request, output.parent)
    build.name = output.name.removesuffix(stage.writes) if output.name.endswith(stage.writes) else output.stem
    build.files[stage.writes] = output
    return build
