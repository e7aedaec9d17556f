"""An evaluation as text: accuracy of each subject, and the layers that are farthest from the float graph."""

from __future__ import annotations

import math

from compass_runtime.report import table
from compassc.evaluation.result import Evaluation, LayerResult
from compassc.evaluation.subjects import INTEGERS
from compassc.quantizer.similarity import Similarity

SHOWN = 20
_LONGEST = 44


def text(found: Evaluation, most: int = SHOWN) -> str:
    """Both tables; of the layers the `most` worst."""
    parts = [headline(found), _subjects(found)]
    if words := agreement(found):
        parts.append(words)
    if found.missing:
        parts.append(f"note: {found.missing}")
    parts.append(_layers(found, most))
    return "\n\n".join(parts)


def headline(found: Evaluation) -> str:
    """What was evaluated, and what a run costs."""
    samples = "1 sample" if found.samples == 1 else f"{found.samples} samples"
    samples += f", {found.rows} a run" if found.rows > 1 else ""
    cycles = f"; a run takes {found.profile.cycles:,} cycles (estimated)" if found.profile else ""
    return f"{found.model.name} for {found.model.target}, {samples}{cycles}"


def agreement(found: Evaluation) -> str:
    """Whether the simulator gives what the exact references give."""
    seen = found.agreement
    if not seen.total:
        return ""
    if seen.first is None:
        return f"the simulator's tensors are those of the references, bit for bit ({seen.total} of {seen.total})"
    sample, name = seen.first
    return (
        f"warning: {seen.total - seen.same} of the simulator's {seen.total} tensors are not those of the references; first "
        f"'{name}' of sample {sample}"
    )


def _subjects(found: Evaluation) -> str:
    names = list(dict.fromkeys(name for subject in found.subjects for name in subject.metrics))
    rows = []
    for i, subject in enumerate(found.subjects):
        near = [number(subject.similarity.cosine, 6), decibels(subject.similarity)] if i else ["", ""]
        rows.append([subject.title, *(share(name, subject.metrics.get(name)) for name in names), *near])
    columns = ("", *names, "cosine", "SQNR dB")
    return table(columns, rows, columns[1:])


def _layers(found: Evaluation, most: int) -> str:
    worst = found.worst
    own = any(row.own for row in worst)
    heads = [
        "tensor",
        "type",
        "cosine",
        "SQNR dB",
        *(["own dB"] if own else []),
        "MSE",
        "beyond",
        "worst sample",
        "cycles",
    ]
    rows = [_row(row, own) for row in worst[:most]]
    rest = len(worst) - most
    what = "quantised" if found.baseline == INTEGERS else "simulated"
    title = f"{what} tensors against the float graph, worst first"
    legend = "\nown: the error of the layer alone, for what it got; beyond: float values outside of the chosen range"
    more = f"\n... and {rest} more" if rest > 0 else ""
    return f"{title}\n{table(heads, rows, heads[2:])}{more}{legend if own else ''}"


def _row(row: LayerResult, own: bool) -> list[str]:
    name = row.tensor if len(row.tensor) <= _LONGEST else f"...{row.tensor[3 - _LONGEST :]}"
    near = row.similarity
    cells = [name, row.type, number(near.cosine, 6), decibels(near)]
    cells += [decibels(row.own) if row.own else ""] if own else []
    cells += [f"{near.mse:.3g}", f"{100 * row.outside:.2f}%" if row.limits else "", str(near.at)]
    return [*cells, f"{row.cycles:,.0f}" if row.run else ""]


def number(value: float, places: int) -> str:
    return f"{value:.{places}f}" if math.isfinite(value) else "not finite"


def decibels(similarity: Similarity) -> str:
    """Signal to noise; `equal` where nothing differs."""
    value = similarity.sqnr
    if value == math.inf:
        return "equal"
    return f"{value:.1f}" if math.isfinite(value) else "-inf" if value == -math.inf else "not finite"


def share(name: str, value: float | None) -> str:
    """A metric: shares of samples as percents."""
    if value is None:
        return ""
    return f"{100 * value:.2f}%" if name.startswith(("top-", "mAP")) else f"{value:.6g}"
