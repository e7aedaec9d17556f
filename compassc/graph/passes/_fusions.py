"""The patterns of activations and normalisations that models spell out, and the rules that go with them."""

from __future__ import annotations

from compassc.graph.edit import Rule
from compassc.graph.passes import _activations as activations
from compassc.graph.passes import _normalisations as normalisations
from compassc.graph.patterns import by_type

PATTERNS: dict[str, list[Rule]] = by_type([*activations.FUSIONS, *normalisations.FUSIONS])
