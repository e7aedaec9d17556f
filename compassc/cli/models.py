"""What `compassc build` does with a model: import, then the graph builder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compass_core import switches, targets
from compass_core.errors import UsageError
from compass_core.errors.suggest import help_for
from compassc.cli.console import Console
from compassc.cli.outputs import hand_over, place
from compassc.driver.build import STAGE_FOLDER_SUFFIX

STAGES = ("import", "gbuild")
NOT_OF_MODELS = {
    "entry": "--kernel",
    "values": "--set",
    "consts": "--const",
    "depfile": "--depfile",
    "dry_run": "--dry-run",
    "passes": "--passes",
    "print_pipeline": "--print-pipeline",
}
"""Options of `compassc build` that are about kernels, by what they are called in its parameters."""


def build_file(console: Console, source: Path, given: dict[str, Any]) -> None:
    """Builds the model in a file: its graph, then aipu.bin."""
    from compassc.gbuilder.build import GraphOptions, build_model
    from compassc.graph.files import save
    from compassc.importers import import_model

    for name, option in NOT_OF_MODELS.items():
        if given.get(name):
            raise UsageError(f"{option} is about kernels, not about models", code="usage")
    if given["stop_after"] not in STAGES:
        help = help_for(given["stop_after"], STAGES, "stages")
        raise UsageError(f"a model has no stage '{given['stop_after']}'", code="unknown-stage", help=help)
    target = targets.load(given["target"] or switches.TARGET.get()).name
    console.inputs.append(source)
    with place(given["output"]) as made:
        folder = given["save_temps_dir"] or made.parent / f"{source.stem}{STAGE_FOLDER_SUFFIX}"
        console.folder = folder
        graph = folder / "float.txt"
        weights = save(import_model(source, given["shapes"]), graph)
        if given["stop_after"] == "import":
            console.clear_progress()
            console.made(graph)
            return
        built = build_model(graph, weights, made, target, GraphOptions(work_dir=folder))
        console.clear_progress()
        console.say(built.summary())
        hand_over(console, made, given["output"])
