"""Mixed precision: the layers with the largest errors of their own get another form, as few as needed, until the outputs are
near enough to the float graph's; of several forms the one that takes the fewest cycles."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import escape

from compass_core import progress
from compass_core.errors import CompassError
from compass_core.namedtuple import NamedTuple
from compassc.graph import Graph, Layer, LayerError
from compassc.layers.costs import cost_of
from compassc.quantizer.compare import Compared, against, known_outputs
from compassc.quantizer.convert import quantize_with_reasons
from compassc.quantizer.data import Samples
from compassc.quantizer.job import is_float
from compassc.quantizer.model import Outcome
from compassc.quantizer.settings import Settings
from compassc.quantizer.statistics import Calibration
from compassc.quantizer.verdict import own_losses

TRIED = 4
"""Samples that layers are ordered by; mixtures are measured on as many as a verdict."""
FORMS = ("w8a16", "int16", "float16", "float32")
"""What layers get, by the names of presets or of a float type; the last one where no other is near enough."""
OF_FORM = ("activation_bits", "weight_bits", "bias_bits", "table_bits", "force_signed", "float")
"""Settings that belong to a form."""
LEFT_OUT = 4
"""Layers that are tried in their first form again, those of the most operations."""
WIDE, WIDEST = 2, 4
"""Cycles of an operation to those of one of bytes: of 16-bit numbers with bytes; of those with each other, and of floats."""

SECONDS = 300.0
"""After which a search ends: with the mixture that holds, or, where none does yet, the first that does with a form for all
layers."""

Cycles = Callable[[Graph], float]


class Wanted(NamedTuple):
    """The least similarity of each output to the float graph's: cosine, and signal to error in dB."""

    cosine: float = 0.999
    sqnr: float = float("-inf")

    def holds(self, rows: Sequence[Compared]) -> bool:
        return all(row.cosine >= self.cosine and row.sqnr >= self.sqnr for row in rows)

    def __str__(self) -> str:
        return f"a cosine of {self.cosine}" + (f" and {self.sqnr:g} dB" if self.sqnr > float("-inf") else "")


class Tried(NamedTuple):
    """A mixture: what came out, how near its outputs are, and whether that is near enough."""

    outcome: Outcome
    rows: Sequence[Compared]
    holds: bool

    @property
    def cosine(self) -> float:
        return min(row.cosine for row in self.rows)


class _Search:
    def __init__(
        self,
        graph: Graph,
        samples: Samples,
        calibration: Calibration,
        settings: Settings,
        wanted: Wanted,
        cycles: Cycles,
    ) -> None:
        self.graph, self.samples, self.calibration, self.settings = graph, samples, calibration, settings
        self.wanted, self.cycles = wanted, cycles
        self.layers = {layer.name: layer for layer in graph.layers}
        self.known = known_outputs(graph, samples)
        self.until = time.monotonic() + SECONDS
        self.tries = 0

    @property
    def is_late(self) -> bool:
        """Whether the search has taken as long as it may."""
        return time.monotonic() > self.until

    def searched(self, raised: Mapping[str, str]) -> Tried:
        """`tried` as one of those that a search asks for."""
        most = 2 * len(FORMS) * 2 * len(self.layers).bit_length()
        progress.tell("mixtures of forms, at most", min(self.tries, most), most, _forms_of(raised) or "as asked")
        self.tries += 1
        return self.tried(raised)

    def tried(self, raised: Mapping[str, str]) -> Tried:
        """The mixture in which some layers have another form, by name."""
        chosen = self.settings.overridden({escape(n): self._form(self.layers[n], form) for n, form in raised.items()})
        made = quantize_with_reasons(self.graph, self.calibration, chosen)
        rows = against(self.graph, made.graph, self.known)
        outcome = Outcome(made.graph, self.calibration, made.floats, chosen, dict(raised))
        found = Tried(outcome, rows, self.wanted.holds(rows))
        outcome.cosine = found.cosine
        return found

    def _form(self, layer: Layer, form: str) -> dict[str, object]:
        if form.startswith("float"):
            return {"float": form}
        own, base = Settings.preset(form).of(layer), self.settings.of(layer).activation_strategy
        room = {"activation_strategy": own.activation_strategy} if base == "extrema" else {}
        return {key: getattr(own, key) for key in OF_FORM} | room

    def mixtures(self, first: Tried) -> Iterator[Tried]:
        """Of each form the mixture with the fewest layers of it that holds. Where none does, all layers have it, and the next
        forms are tried for some of these."""
        order, most = self.order(first), len(self.layers)
        wholes: list[Tried] = []
        held = False
        for form in FORMS:
            if held and form == FORMS[-1] or self.is_late and (held or form != FORMS[-1]):
                continue
            found = self.fewest({}, order, form, most)
            yield found
            held = held or found.holds
            if found.holds:  # a form that costs more is worth it for fewer layers alone
                most = min(most, len(found.outcome.raised))
            for whole in () if self.is_late else wholes:
                yield self.fewest(whole.outcome.raised, self.order(whole), form, most)
            wholes += [] if found.holds or form == FORMS[-1] else [found]

    def order(self, found: Tried) -> list[str]:
        """The layers that lose something, the one that loses most first."""
        losses = own_losses(self.graph, found.outcome.graph, self.samples.first(TRIED))
        return [loss.layer.name for loss in sorted(losses, key=lambda loss: loss.sqnr)]

    def fewest(self, base: Mapping[str, str], order: Sequence[str], form: str, most: int) -> Tried:
        """`base` with a form for the first layers in an order, as few as hold, at most so many."""
        return fewest(
            lambda many: self.searched({**base, **dict.fromkeys(order[:many], form)}),
            min(most, len(order)),
            lambda: self.is_late,
        )

    def without_needless(self, found: Tried) -> Tried:
        """The mixture without layers that need not have another form, the costliest first."""
        named = sorted(found.outcome.raised, key=lambda name: -operations(self.layers[name]))[:LEFT_OUT]
        for name in progress.told("layers tried in their first form again", named, len(named)):
            if len(found.outcome.raised) < 2 or self.is_late:
                break
            fewer = self.tried({n: form for n, form in found.outcome.raised.items() if n != name})
            found = fewer if fewer.holds else found
        return found


def raised(
    graph: Graph,
    samples: Samples,
    calibration: Calibration,
    settings: Settings,
    wanted: Wanted,
    cycles: Cycles | None = None,
    *,
    base: str = "the form of the settings",
    demanded: bool = True,
) -> Outcome:
    """The quantised graph whose outputs are as near as `wanted`, in the settings' form but for as few layers as a search by
    the layers' own errors finds.

    `cycles(graph)`: what a quantised graph takes; without it an estimate by operations. CompassError where no form is near
    enough, or where that is not `demanded` the nearest mixture. `base`: what the settings are called.
    """
    search = _Search(graph, samples, calibration, settings, wanted, cycles or estimated_cycles)
    first = search.searched({})
    if first.holds:
        return replace(first.outcome, why=f"{base} keeps {wanted}: the worst output has {first.cosine:.5f}")
    found = list(search.mixtures(first))
    near = [one for one in found if one.holds]
    if not near:
        best = max([first, *found], key=lambda one: one.cosine)
        if demanded:
            raise CompassError(
                f"no choice of bits brings the outputs to {wanted}; the best one has a cosine of {best.cosine:.8f}",
                code="quantize-settings",
                help="ask for less, or for --quantize fp16",
            )
        return replace(best.outcome, why=f"no mixture keeps {wanted}; the nearest one has {best.cosine:.5f}")
    cost = estimated_cycles if search.is_late else search.cycles
    costs = []
    for number, one in enumerate(near, 1):
        with progress.part_of(f"mixture {number} of {len(near)}"):
            costs.append((cost(one.outcome.graph), one))
    least = min(costs, key=lambda pair: pair[0])
    best = search.without_needless(least[1])
    why = [
        f"{base} has a cosine of {first.cosine:.5f}, {wanted} is asked for; estimated cycles of mixtures that keep it:"
    ]
    why += [f"  {_forms_of(one.outcome.raised)}: {cost:,.0f}" for cost, one in costs]
    why += [f"the search ended after {SECONDS:.0f} s: another one might take fewer cycles"] if search.is_late else []
    return replace(best.outcome, why="\n".join(why))


def _forms_of(raised: Mapping[str, str]) -> str:
    """How many layers have which form."""
    counts = Counter(raised.values())
    return ", ".join(f"{counts[form]} layer{'s' * (counts[form] > 1)} {form}" for form in FORMS if counts[form])


def fewest(attempt: Callable[[int], Tried], most: int, is_late: Callable[[], bool] = lambda: False) -> Tried:
    """The attempt with the fewest layers that holds, to a quarter of them, by doubling and halving; the last one where none
    does. Once it `is_late` the one that holds, or that with all layers."""
    low, high = 0, min(1, most)
    found = attempt(high)
    while not found.holds and high < most:
        low, high = high, most if is_late() else min(2 * high, most)
        found = attempt(high)
    if not found.holds:
        return found
    while high - low > max(1, high // 4) and not is_late():
        middle = (low + high) // 2
        tried = attempt(middle)
        if tried.holds:
            high, found = middle, tried
        else:
            low = middle
    return found


def operations(layer: Layer) -> int:
    """What computing a layer takes, from its shapes."""
    try:
        return cost_of(layer).operations
    except LayerError:
        return sum(t.count for t in layer.outputs)


def estimated_cycles(graph: Graph) -> float:
    """What a quantised graph takes, to compare mixtures: operations by the bits of their operands."""
    total = 0.0
    for layer in graph.computing():
        if any(is_float(t) for t in (*layer.inputs, *layer.outputs)):
            factor = WIDEST
        else:
            weights = layer.constants.get("weights")
            narrow = weights is None or weights.dtype.itemsize == 1
            bits = max((t.integer.bits for t in (*layer.inputs, *layer.outputs) if t.is_integer), default=8)
            factor = 1 if bits <= 8 else WIDE if narrow else WIDEST
        total += factor * operations(layer)
    return total
