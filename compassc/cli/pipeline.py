"""The pass options of the command line, checked and turned into PassOptions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compass_core.errors import UsageError
from compassc.cli.arrow import run_arrow
from compassc.cli.talk import Talk, artifact

if TYPE_CHECKING:
    from compassc.passes import PassOptions

EVERY_PASS = "all"


def make_pass_options(given: dict[str, Any]) -> PassOptions:
    """PassOptions from the values of `options.pass_options`; UsageError with the nearest name of an unknown pass."""
    from compassc.passes import PassOptions

    return PassOptions(
        disabled=frozenset(_known(given["disabled"], "--disable-pass")),
        print_before=_known(given["print_before"], "--print-before", EVERY_PASS),
        print_after=_known(given["print_after"], "--print-after", EVERY_PASS),
        print_changed=given["print_changed"],
        dump_dir=given["dump_dir"],
        time_passes=given["time_passes"],
        verify=given["verify"],
    )


def _known(names: Iterable[str], option: str, *further: str) -> tuple[str, ...]:
    """`names`, each the name of a pass (or one of `further`)."""
    names = tuple(names)
    if not names:
        return ()
    from compass_core.suggest import help_for
    from compassc import passes

    known = [name for name, _, _ in passes.describe()]
    for name in names:
        if name not in known and name not in further:
            message = f"{option}: unknown pass '{name}'"
            raise UsageError(message, code="unknown-pass", help=help_for(name, known, "passes"))
    return names


def pipeline_text(stage: str) -> str:
    """The pipeline of a stage as `--passes` takes it."""
    from compassc import passes

    return ",".join(passes.pipeline_names(stage))


def run_pass_stage(talk: Talk, name: str, source: Path | None, output: Path | None, given: dict[str, Any]) -> None:
    """Run `lower` or `codegen` on a file, or only print its pipeline."""
    from compassc.driver import Request

    if given["print_pipeline"]:
        artifact(pipeline_text(name) + "\n")
    elif source is None:
        raise UsageError(f"{name} needs the file to read", code="usage", help=f"`compassc {name} --help` shows how")
    else:
        run_arrow(talk, name, source, output, Request(passes=make_pass_options(given)))
