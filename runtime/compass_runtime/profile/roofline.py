"""The roofline of the page, as SVG: operations per cycle over operations per byte, with a point for the kernel and for
each line that computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from compass_core.dataclass import dataclass
from compass_core.namedtuple import NamedTuple
from compass_runtime.profile.regions import Location
from compass_runtime.profile.result import Profile

WIDTHS = (1180, 640)
"""Of the drawing for wide windows and for narrow ones, in units that are pixels there."""
_HEIGHT = 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 24, 16, 46
_CHARACTER, _LINE = 6.8, 14
"""Width and height of a character of a label: estimates that hold for the fonts of browsers, rather too large."""
_CLOSE = 9
"""Points nearer than this share a label."""


class Point(NamedTuple):
    """The kernel, whose place is None, or a line: operations per byte (infinite where no byte moves), and per cycle."""

    name: str
    place: Location | None
    intensity: float
    speed: float

    @property
    def title(self) -> str:
        moved = "moves no bytes" if math.isinf(self.intensity) else f"{self.intensity:.3g} operations per byte"
        return f"{self.name}: {moved}, {self.speed:.3g} operations per cycle"


def points(profile: Profile) -> list[Point]:
    """The kernel against device memory, and the lines that compute against all bytes that they move."""
    total, tecs = profile.total, len(profile.tecs) or 1
    out: list[Point] = []
    for place, cost in profile.lines.items():
        if not (cost.total.arithmetic and cost.active):
            continue
        moved = cost.total.bytes + cost.dma_bytes
        intensity = cost.total.arithmetic / moved if moved else math.inf
        name = _lines([place])
        out.append(Point(name, place, intensity, cost.total.arithmetic / cost.active * tecs))
    if total.total.arithmetic and profile.cycles:
        intensity = total.total.arithmetic / total.external_bytes if total.external_bytes else math.inf
        out.append(Point(profile.name, None, intensity, total.total.arithmetic / profile.timeline.cycles))
    return out


def _lines(places: Sequence[Location]) -> str:
    """Lines as `kernel.py:3-5, 9`."""
    files: dict[str, list[int]] = {}
    for file, line in places:
        files.setdefault(Path(file).name if file else "-", []).append(line)
    words = []
    for file, lines in files.items():
        runs: list[list[int]] = []
        for line in sorted(set(lines)):
            if runs and line == runs[-1][1] + 1:
                runs[-1][1] = line
            else:
                runs.append([line, line])
        words.append(f"{file}:" + ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs))
    return " and ".join(words)


Place = Callable[[float, float], tuple[float, float]]


@dataclass(frozen=True)
class _Scale:
    """Logarithmic axes on a drawing of a width."""

    width: int
    x_low: float
    x_high: float
    y_low: float
    y_high: float

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        across = math.log(min(x, self.x_high) / self.x_low) / math.log(self.x_high / self.x_low)
        up = math.log(y / self.y_low) / math.log(self.y_high / self.y_low)
        return self.left + across * (self.right - self.left), self.bottom - up * (self.bottom - _TOP)

    left, bottom = _LEFT, _HEIGHT - _BOTTOM

    @property
    def right(self) -> int:
        return self.width - _RIGHT


def roofline(profile: Profile) -> str:
    """The drawing, for each of `WIDTHS`; the page shows the one that suits the window."""
    found = points(profile)
    return "".join(
        _drawing(profile, found, width, kind) for width, kind in zip(WIDTHS, ("wide", "narrow"), strict=True)
    )


def _drawing(profile: Profile, found: Sequence[Point], width: int, kind: str) -> str:
    model = profile.model
    peak, element = _peak(profile)
    roofs = (
        (model.target.vector_bytes * model.units["memory"] * model.tecs, "SRAM"),
        (model.device_memory_bytes_per_cycle, "device memory"),
    )
    finite = [p.intensity for p in found if math.isfinite(p.intensity)]
    scale = _Scale(
        width,
        min([*finite, peak / roofs[0][0] / 4]) / 2,
        max([*finite, peak / roofs[1][0] * 4]) * 2,
        min([p.speed for p in found] + [peak / 100]) / 2,
        peak * 2,
    )
    parts, taken = [*_axes(scale)], list[_Box]()
    dots = [_Box(x - 7, y - 7, x + 7, y + 7) for x, y in (scale(p.intensity, p.speed) for p in found)]
    for bandwidth, name in roofs:
        parts += _roof(scale, bandwidth, peak, f"{name}: {bandwidth:g} bytes per cycle", taken, dots)
    (x, y), words = scale(scale.x_high, peak), f"peak: {peak:,.0f} operations per cycle on {element}-byte elements"
    parts.append(_text(x - 4, y - 7, words, "axis", "end"))
    taken.append(_Box(x - 4 - len(words) * _CHARACTER, y - 7 - _LINE, x, y))
    taken += dots
    parts += _dots(found, scale, taken)
    label = "roofline: operations per cycle over operations per byte"
    return (
        f'<svg class="chart {kind}" viewBox="0 0 {width} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _peak(profile: Profile) -> tuple[float, int]:
    """The peak for the widest elements that the kernel computes with, and their size."""
    sizes = {size for task in profile.tasks for size in task.elements}
    element = max(sizes, default=4)
    return profile.model.peak(element), element


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _roof(
    scale: _Scale, bandwidth: float, peak: float, name: str, taken: list[_Box], dots: Sequence[_Box]
) -> Iterator[str]:
    """A roof and its name, which stands where it hides no dot if there is room; `taken` gets where they are."""
    knee, low = peak / bandwidth, max(scale.x_low, scale.y_low / bandwidth)
    (x1, y1), (x2, y2), (x3, _) = scale(low, low * bandwidth), scale(knee, peak), scale(scale.x_high, peak)
    yield f'<polyline class="roof" points="{x1:.1f},{y1:.1f} {x2:.1f},{y2:.1f} {x3:.1f},{y2:.1f}"/>'
    angle = -math.degrees(math.atan2(y1 - y2, x2 - x1))
    taken += _along(x1, y1, x2, y2, 3) + _along(x2, y2, x3, y2, 3)
    half = min(1.0, len(name) * _CHARACTER / math.dist((x1, y1), (x2, y2))) / 2

    def boxes(place: tuple[float, float]) -> list[_Box]:
        ends = (place[0] - half, place[0] + half)
        (ax, ay), (bx, by) = ((x1 + t * (x2 - x1) + place[1], y1 + t * (y2 - y1) + place[1] - 4) for t in ends)
        return _along(ax, ay, bx, by, 8)

    def hidden(place: tuple[float, float]) -> int:
        return sum(any(a.meets(b) for a in boxes(place)) for b in dots)

    middles = [0.5 + sign * step / 20 * (0.5 - half) for step in range(21) for sign in (1, -1)]
    place = min(((middle, side) for side in (-5, 11) for middle in middles), key=hidden)
    taken += boxes(place)
    x, y = x1 + place[0] * (x2 - x1) + place[1], y1 + place[0] * (y2 - y1) + place[1] - 2
    yield (
        f'<text class="axis" text-anchor="middle" transform="translate({x:.1f},{y:.1f}) '
        f'rotate({angle:.1f})">{escape(name)}</text>'
    )


def _axes(scale: _Scale) -> Iterator[str]:
    left, bottom, right = scale.left, scale.bottom, scale.right
    for power in range(math.ceil(math.log10(scale.x_low)), math.floor(math.log10(scale.x_high)) + 1):
        x, _ = scale(10.0**power, scale.y_low)
        yield _line(x, _TOP, x, bottom, "grid") + _text(x, bottom + 17, f"{10.0**power:g}", "axis", "middle")
    for power in range(math.ceil(math.log10(scale.y_low)), math.floor(math.log10(scale.y_high)) + 1):
        _, y = scale(scale.x_low, 10.0**power)
        yield _line(left, y, right, y, "grid") + _text(left - 8, y + 4, f"{10.0**power:g}", "axis", "end")
    yield _text((left + right) / 2, bottom + 38, "operations per byte", "label", "middle")
    yield (
        f'<text class="label" text-anchor="middle" transform="translate(16,{(_TOP + bottom) / 2:.0f}) rotate(-90)">'
        "operations per cycle</text>"
    )


# -------------------------------------------------------------------------------------------------------------- points


class _Box(NamedTuple):
    """A rectangle of the drawing that is taken."""

    x1: float
    y1: float
    x2: float
    y2: float

    def meets(self, other: _Box) -> bool:
        return self.x1 < other.x2 and other.x1 < self.x2 and self.y1 < other.y2 and other.y1 < self.y2


def _along(x1: float, y1: float, x2: float, y2: float, half: float) -> list[_Box]:
    """Boxes along a line, so close that no label fits in between."""
    count = max(1, math.ceil(math.dist((x1, y1), (x2, y2)) / (2 * half)))
    places = ((x1 + (x2 - x1) * i / count, y1 + (y2 - y1) * i / count) for i in range(count + 1))
    return [_Box(x - half, y - half, x + half, y + half) for x, y in places]


def _dots(found: Sequence[Point], scale: _Scale, taken: list[_Box]) -> Iterator[str]:
    """A dot for each point, and a label for each group of points that lie so close that labels would hide each other."""
    at = [scale(p.intensity, p.speed) for p in found]
    groups: list[list[int]] = []
    for index in reversed(range(len(found))):  # the kernel first: it stays alone
        near = (g for g in groups if found[g[0]].place and math.dist(at[g[0]], at[index]) < _CLOSE)
        group = next(near, None)
        groups.append([index]) if group is None else group.append(index)
    for index, point in enumerate(found):
        (x, y), kind = at[index], "dot" if point.place else "kernel"
        size = 5 if point.place else 7
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" class="{kind}"><title>{escape(point.title)}</title></circle>'
    for group in groups:
        places = [place for i in group if (place := found[i].place)]
        words = _lines(places) if places else found[group[0]].name
        yield from _label(_shortened(words, scale), *at[group[0]], scale, taken)


def _shortened(words: str, scale: _Scale) -> str:
    """A label that takes no more than about half of the drawing; the titles of the dots and the table have the rest."""
    most = int((scale.right - scale.left) / 2 / _CHARACTER)
    return words if len(words) <= most else words[: most - 1] + "…"


def _label(words: str, x: float, y: float, scale: _Scale, taken: list[_Box]) -> Iterator[str]:
    """The label of a point at the nearest free place, with a line to it where that is not beside it."""
    width = len(words) * _CHARACTER
    for left, base in _candidates(x, y, width):
        box = _Box(left - 2, base - _LINE + 3, left + width + 2, base + 4)
        inside = scale.left <= box.x1 and box.x2 <= scale.width and _TOP - 6 <= box.y1 and box.y2 <= scale.bottom
        if inside and not any(box.meets(other) for other in taken):
            taken.append(box)
            if abs(base - 4 - y) > _LINE:
                yield _line(x, y, min(max(x, box.x1), box.x2), base - 4, "lead")
            yield _text(left, base, words, "inside point")
            return


def _candidates(x: float, y: float, width: float) -> Iterable[tuple[float, float]]:
    """Where the label may stand, its left end and its base line: beside the point first, then ever further away."""
    for step in range(30):
        for down in (step, -step) if step else (0,):
            for left in (x + 11, x - 11 - width, x - width / 2):
                if left != x - width / 2 or step:
                    yield left, y + 4 + down * _LINE
