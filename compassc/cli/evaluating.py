"""What `compassc evaluate` does with its options."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from compassc.cli.console import Console, artifact, shown
from compassc.cli.quantizing import pictures_of, request_of, telling
from compassc.driver.build import STAGE_FOLDER_SUFFIX
from compassc.models.build import ModelRequest, has_other_build, run_model_build

if TYPE_CHECKING:
    from compassc.models.model import Model


def run(console: Console, source: Path, given: dict[str, Any]) -> None:
    """Builds what is not built yet, evaluates it, prints tables or JSON, and writes the page."""
    from compassc.evaluation.evaluating import check, evaluate
    from compassc.evaluation.metrics import metric_named
    from compassc.evaluation.table import text
    from compassc.models.model import Model

    metric = metric_named(given["metric"])
    console.inputs.append(source)
    model = Model.load(source) if source.is_dir() else _built(console, source, given)

    begun = time.monotonic()

    def done(count: int, all: int) -> None:
        if sys.stderr.isatty():
            console.progress(f"{count} of {all} samples{time_left(time.monotonic() - begun, count, all)}")

    found = evaluate(
        model, given["data"], labels=given["labels"], pictures=pictures_of(given), metric=metric, limit=given["limit"],
        reference=not given["no_reference"], reference_samples=given["reference_samples"], detail=given["html"] is not None, jobs=given["jobs"],
        scheduler=given["scheduler"], done=done,
    )  # fmt: skip
    console.clear_progress()
    artifact(json.dumps(found.as_data(), indent=1) + "\n" if given["as_json"] else text(found, given["top"]) + "\n")
    if given["html"] is not None:
        from compass_core import files
        from compassc.evaluation.page import page

        files.write(given["html"], page(found))
        console.made(given["html"])
    check(found)


def time_left(seconds: float, count: int, all: int) -> str:
    """What to say of the time that is left after `count` of `all` took some seconds; nothing of less than two seconds."""
    left = seconds * (all - count) / max(count, 1)
    if left < 2:
        return ""
    return f", {left:.0f} s left" if left < 100 else f", {left / 60:.0f} min left"


def _built(console: Console, source: Path, given: dict[str, Any]) -> Model:
    """Builds a model or a graph, with everything in the folder of its stages; in a temporary one where that has a build of
    another form, which stays as it is."""
    from compassc.models.model import Model

    keep = None
    folder = Path(source.stem + STAGE_FOLDER_SUFFIX)
    request = ModelRequest(
        source=source,
        target=given["target"],
        shapes=given["shapes"],
        quantize=request_of(given),
        folder=folder,
        output=folder / "aipu.bin",
    )
    if has_other_build(request):
        console.say(f"note: {shown(folder)} has another build, which is left alone: this one is not kept")
        keep = TemporaryDirectory(prefix="compassc-")
        request.folder = Path(keep.name)
        request.output = request.folder / "aipu.bin"
    console.folder = request.folder
    with telling(console):
        return Model.of(run_model_build(request, console.stage, console.waiting), keep)
