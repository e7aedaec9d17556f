"""Parts of an evaluation on several processes, or on machines of a Dask cluster (the package `distributed`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from compass_core.errors import CompassError
from compassc.evaluation.data import DataSet
from compassc.evaluation.metrics import Metric
from compassc.evaluation.running import Content, Part, run_elsewhere
from compassc.models.model import Model

WAIT_SECONDS = 30


def run_parts(
    model: Model, framework: bytes | None, given: DataSet, groups: Sequence[Sequence[int]], metric: Metric | None,
    detail: bool, jobs: int, scheduler: str | None,
) -> Iterator[Part]:  # fmt: skip
    """The parts as they are done: by `jobs` processes of this machine, or by the workers of a scheduler, which need this
    package as well. CompassError when there is no such scheduler, or no workers."""
    try:
        from distributed import as_completed
    except ImportError:
        raise CompassError(
            "evaluating with several processes needs the package distributed",
            code="missing-package",
            help='pip install "compassc[distributed]"',
        ) from None
    content = Content.of(model, framework)
    with ExitStack() as stack:
        client = _client(stack, jobs, scheduler)
        sent = client.scatter(content, broadcast=True, hash=False)
        futures = [
            client.submit(run_elsewhere, sent, content.key, given.part(numbers), metric, detail, pure=False)
            for numbers in groups
        ]
        for future in as_completed(futures):
            yield future.result()


def _client(stack: ExitStack, jobs: int, scheduler: str | None) -> Any:
    """A client of the scheduler, or of processes that end with this evaluation."""
    from distributed import Client, LocalCluster

    if scheduler is None:
        cluster = stack.enter_context(
            LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                dashboard_address=None,
                memory_limit=0,
                silence_logs=logging.CRITICAL,
            )
        )
        return stack.enter_context(Client(cluster))
    try:
        client = stack.enter_context(Client(scheduler, timeout=WAIT_SECONDS))
        client.wait_for_workers(1, timeout=WAIT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise CompassError(
            f"no Dask scheduler with workers answers at {scheduler}: {error}",
            code="no-scheduler",
            help="dask scheduler; dask worker tcp://HOST:8786",
        ) from None
    return client
