"""What `compassc build` does with a model: import, then the graph builder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compass_core import switches, targets
from compass_core.errors import UsageError
from compassc.cli.console import Console
from compassc.cli.outputs import hand_over, place
from compassc.driver.build import STAGE_FOLDER_SUFFIX

NOT_OF_MODELS = ("entry", "values", "consts", "depfile", "dry_run", "passes", "print_pipeline")
"""Options of `compassc build` that are about kernels."""


def build_file(console: Console, source: Path, given: dict[str, Any]) -> None:
    """Builds the model in a file: its graph, then aipu.bin."""
    from compassc.gbuilder.build import GraphOptions, build_model
    from compassc.graph.files import save
    from compassc.importers import import_model

    for name in NOT_OF_MODELS:
        if given.get(name):
            raise UsageError(f"--{name.replace('_', '-')} is about kernels, not about models", code="usage")
    target = targets.load(given["target"] or switches.TARGET.get()).name
    console.inputs.append(source)
    with place(given["output"]) as made:
        folder = given["save_temps_dir"] or made.parent / f"{source.stem}{STAGE_FOLDER_SUFFIX}"
        console.folder = folder
        graph = folder / "float.txt"
        weights = save(import_model(source, given["shapes"]), graph)
        built = build_model(graph, weights, made, target, GraphOptions(work_dir=folder))
        console.clear_progress()
        console.say(built.summary())
        hand_over(console, made, given["output"])
