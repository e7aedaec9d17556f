"""How the values of a tensor are spread, and the range that was chosen for it, as SVG."""

from __future__ import annotations

import math
from html import escape

from compassc.evaluation.measures import Histogram

WIDTH, HEIGHT, GROUND, TOP = 400, 120, 100, 6


def histogram(values: Histogram, limits: tuple[float, float] | None) -> str:
    """Bars as high as the logarithm of their counts; those beyond the range in another colour."""
    edges = values.edges()
    low, high = (min(edges[0], limits[0]), max(edges[-1], limits[1])) if limits else (edges[0], edges[-1])
    span = (high - low) or 1.0

    def x(value: float) -> float:
        return WIDTH * (value - low) / span

    most = math.log1p(int(values.counts.max())) or 1.0
    parts = []
    if limits:
        left, right = x(limits[0]), x(limits[1])
        parts.append(f'<rect class="range" x="{left:.1f}" y="0" width="{right - left:.1f}" height="{GROUND}"/>')
    for i, count in enumerate(values.counts.tolist()):
        if not count:
            continue
        left, right = edges[i], edges[i + 1]
        height = (GROUND - TOP) * math.log1p(count) / most
        cut = limits is not None and (right <= limits[0] or left >= limits[1])
        parts.append(
            f'<rect class="{"cut" if cut else "bar"}" x="{x(left):.2f}" y="{GROUND - height:.2f}" '
            f'width="{max(x(right) - x(left) - 0.5, 0.5):.2f}" height="{height:.2f}">'
            f"<title>{count:,} from {left:.5g} to {right:.5g}</title></rect>"
        )
    for value in limits or ():
        parts.append(f'<line class="edge" x1="{x(value):.1f}" y1="0" x2="{x(value):.1f}" y2="{GROUND}"/>')
    ends = ((low, "start", 0), (high, "end", WIDTH))
    parts += [
        f'<text class="axis" x="{at}" y="{HEIGHT - 5}" text-anchor="{anchor}">{escape(f"{value:.4g}")}</text>'
        for value, anchor, at in ends
    ]
    label = "how often values occur, on a logarithmic scale, and the chosen range"
    return (
        f'<svg class="histogram" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'
    )
