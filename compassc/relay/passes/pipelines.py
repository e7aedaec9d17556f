"""Which passes run when."""

from __future__ import annotations

STAGES: dict[str, tuple[str, ...]] = {
    "optimize": (
        "RemoveUnusedFunctions",
        "ToBasicBlockNormalForm",
        "SimplifyInference",
        "EliminateCommonSubexpr",
        "CombineParallelConv2D",
        "CombineParallelDense",
        "CombineParallelBatchMatmul",
        "FoldConstant",
        "BackwardFoldScaleAxis",
        "ForwardFoldScaleAxis",
        "FoldConstant",
        "SimplifyExpr",
        "CanonicalizeOps",
        "InferType",
        "FastMath",
        "FoldConstant",
        "FuseOps",
        "InferType",
        "Inline",
        "InferType",
    )
}
"""The passes of a build, in order; of these the level of the context chooses."""
