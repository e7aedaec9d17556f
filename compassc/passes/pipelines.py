"""The two pipelines, as data. A name may occur more than once."""

from __future__ import annotations

LOWER: tuple[str, ...] = (
    "SubstituteSizeVar",
    "FoldConstant",
    "FlattenBuffer",
    "Simplify",
    "HoistIfThenElse",
    "RemoveIfInVecFor",
    "RemoveNoOp",
    "VectorizeLoop",
    "StorageRewrite",
    "UnrollLoop",
    "Simplify",
    "RemoveNoOp",
    "HoistIfThenElse",
    "RenameForLoopVar",
)

CODEGEN: tuple[str, ...] = (
    "RenameUtilsFnames",
    "RenameConstBufferVar",
    "InitializeEventState",
    "EliminateGetLocalID",
    "CanonicalizeDivMod",
    "CommonSubexprElim",
    "FreezeLoopBounds",
    "LowerStandard",
    "FoldConstant",
    "ExchangeConstantToRight",
    "SimplifyVirtualIsa",
    "LowerVirtualVectorPointer",
    "LowerTag",
    "HandleSubFuncReturnFWV",
    "AlignVectorWidth",
    "CombineInstructions",
    "ReviseParamR",
    "LowerVirtualIsa",
    "IsaAwareRewrite",
    "LowerVectorCast",
    "CombineInstructions",
    "ReviseParamR",
    "LowerPred",
    "Revert2Standard",
    "UniquifyVarName",
)

STAGES: dict[str, tuple[str, ...]] = {"lower": LOWER, "codegen": CODEGEN}
