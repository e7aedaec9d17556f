"""Rules, postprocessors and mutators by kind of target."""

from __future__ import annotations

from collections.abc import Callable

from . import mutators, postprocs, rules


def _llvm() -> list[rules.ScheduleRule]:
    return [
        rules.ApplyCustomRule(),
        rules.InlineConstantScalars(),
        rules.AutoInline(False, True, True, True, True, True, ["tir.exp"]),
        rules.AddRFactor(16, 64),
        rules.MultiLevelTiling("SSRSRS", None, 64, None, None, rules.ReuseType("may", (1, 2), "global")),
        rules.ParallelizeVectorizeUnroll(16, 64, [0, 16, 64, 512], True),
        rules.RandomComputeLocation(),
    ]


def _c() -> list[rules.ScheduleRule]:
    return [
        rules.ApplyCustomRule(),
        rules.InlineConstantScalars(),
        rules.AutoInline(False, True, True, True, True, True, ["tir.exp"]),
        rules.MultiLevelTiling("SSRSRS", None, 64, None, None, rules.ReuseType("may", (1, 2), "global")),
    ]


RULES: dict[str, Callable[[], list[rules.ScheduleRule]]] = {"llvm": _llvm, "c": _c}


def _known(kind: str) -> str:
    if kind not in RULES:
        raise ValueError(f"Unsupported target: {kind}; there are rules for {', '.join(RULES)}")
    return kind


def rules_for(kind: str) -> list[rules.ScheduleRule]:
    """The rules of a kind of target, in order. ValueError for kinds that there are none for."""
    return RULES[_known(kind)]()


def postprocs_for(kind: str) -> list[postprocs.Postproc]:
    """The postprocessors, in order."""
    _known(kind)
    return [
        postprocs.DisallowDynamicLoop(),
        postprocs.RewriteParallelVectorizeUnroll(),
        postprocs.RewriteReductionBlock(),
        postprocs.RewriteLayout(),
    ]


def mutators_for(kind: str) -> dict[mutators.Mutator, float]:
    """The mutators with their probabilities."""
    _known(kind)
    return {
        mutators.MutateTileSize(): 0.9,
        mutators.MutateComputeLocation(): 0.05,
        mutators.MutateUnroll(): 0.03,
        mutators.MutateParallel(16): 0.02,
    }
