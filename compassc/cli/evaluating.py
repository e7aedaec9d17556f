"""What `compassc evaluate` does with its options."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from compass_core import files
from compass_core.progress import time_left
from compassc.cli.console import Console, artifact
from compassc.cli.models import built_model
from compassc.cli.option_types import Given
from compassc.cli.quantizing import pictures_of
from compassc.cli.remote import asked_session
from compassc.evaluation.evaluating import check, evaluate
from compassc.evaluation.metrics import metric_named
from compassc.evaluation.page import page
from compassc.evaluation.table import text


def run(console: Console, source: Path, given: Given) -> None:
    """Builds what is not built yet, evaluates it, prints tables or JSON, and writes the page."""

    metric = metric_named(given["metric"])
    console.inputs.append(source)
    session = asked_session(console, given)
    model = built_model(console, source, given)
    model.rpc_sess = session

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
        files.write(given["html"], page(found))
        console.made(given["html"])
    check(found)
