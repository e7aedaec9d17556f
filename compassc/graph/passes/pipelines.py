"""The pipelines of graphs, as data. A name may occur more than once."""

from __future__ import annotations

OPTIMIZE: tuple[str, ...] = (
    "FoldConstant",
    "Simplify",
    "CancelMoves",
    "PushMoves",
    "CancelMoves",
    "FoldScalingFactors",
    "JoinActivations",
    "FoldConstant",
    "CommonSubexprElim",
    "RemoveDeadLayers",
)

STAGES: dict[str, tuple[str, ...]] = {
    "import": ("FuseOperators", "FuseLayers"),
    "optimize": OPTIMIZE,
    "equalise": ("EqualiseChannels",),
}
"""`import` ends an import; `equalise` comes before a quantisation whose settings ask for it."""
