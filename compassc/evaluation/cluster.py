"""Parts of an evaluation on several processes, or on machines of a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compassc.cluster import need, open_cluster
from compassc.evaluation.data import DataSet
from compassc.evaluation.running import Asked, Content, Item, Part, run_elsewhere
from compassc.models.model import Model

Shared = tuple[Content, str, Asked]


def run_parts(
    model: Model, framework: bytes | None, given: DataSet, groups: Sequence[Sequence[int]], asked: Asked,
    jobs: int, scheduler: str | None,
) -> Iterator[Part]:  # fmt: skip
    """The parts as they are done: by `jobs` processes of this machine, or by the workers of a scheduler. CompassError as
    `open_cluster` raises it, and when a part ends every worker."""
    content = Content.of(model, framework)
    with open_cluster(jobs, scheduler) as cluster:
        shared: Shared = content, content.key, asked
        for number, part in cluster.run(_part, shared, (given.part(numbers) for numbers in groups)):
            yield from need([(number, part)])


def _part(shared: Shared, items: Sequence[Item]) -> Part:
    content, key, asked = shared
    return run_elsewhere(content, key, items, asked)
