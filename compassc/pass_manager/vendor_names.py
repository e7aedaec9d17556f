"""The names that the vendor's implementation has for passes: programs disable passes and call them by these.

Several of them may be one pass here, and the vendor's `Simplify` on vectors is `StrengthReduction`, which has no other
name because `Simplify` is taken.
"""

from __future__ import annotations

VENDOR_NAMES: dict[str, str] = {
    "SubstituteSizeVar": "AnnotateNonNegative",
    "FoldConstant": "ConstantPropagation",
    "RemoveIfInVecFor": "IfConversion",
    "RenameForLoopVar": "RenameLoopVariables",
    "RenameUtilsFnames": "MangleFunctionNames",
    "RenameConstBufferVar": "OutlineConstants",
    "EliminateGetLocalID": "LowerThreadLoops",
    "CanonicalizeDivMod": "ExpandDivMod",
    "CommonSubexprElimTIR": "CommonSubexprElim",
    "LowerStandard": "LowerVectorOperators",
    "ExchangeConstantToRight": "CanonicalizeOperandOrder",
    "LowerVirtualVectorPointer": "LegalizeVectorPointers",
    "HandleSubFuncReturnFWV": "LegalizeVectorReturns",
    "AlignVectorWidthBySplit": "LegalizeVectorWidth",
    "AlignVectorWidthByPad": "LegalizeVectorWidth",
    "ReviseParamR": "AssignPassthru",
    "LowerVirtualIsa": "LegalizeOperations",
    "IsaAwareRewrite": "LegalizeSignedness",
    "LowerPred": "LowerPredicates",
    "Revert2Standard": "RaiseVectorAccesses",
}

NOT_NEEDED: tuple[str, ...] = (
    "AlignParamVarWithBuffer",
    "ReassignVarBy0DimBuffer",
    "SimplifyBufferIndex",
    "BufRealizeSimplifier",
    "GenBufferStride",
    "PlanAndUpdateBufferAllocationLocation",
    "ConvertBlocksToOpaque",
    "UnifyThreadBinding",
    "ManifestSharedMemoryLocalStage",
    "MergeForWhere",
    "LowerMatchBuffer",
    "InjectSoftwarePipeline",
    "AddLikelyForLoopPartition",
    "AddDMAPragma",
    "InjectVirtualThread",
    "RenormalizeSplitPattern",
    "RewriteUnsafeSelect",
    "BindTarget",
    "InjectDma",
    "ReassignVarByLet",
    "CanonicalizeRamp",
    "Precodegen",
)
"""Passes of the vendor that this implementation does not need; disabling them does nothing."""
