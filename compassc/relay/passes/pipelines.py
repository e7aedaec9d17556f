"""Which passes run when."""

from __future__ import annotations

STAGES: dict[str, tuple[str, ...]] = {
    "optimize": (
        "RemoveUnusedFunctions",
        "QnnLegalize",
        "QnnCanonicalizeOps",
        "ToBasicBlockNormalForm",
        "Legalize",
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
        "CanonicalizeCast",
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
