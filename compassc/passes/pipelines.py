"""The pipelines, as data. A name may occur more than once."""

from __future__ import annotations

BLOCKS: tuple[str, ...] = (
    "FlattenNestedBlocks",
    "LowerCrossThreadReduction",
    "LowerInitBlock",
    "CompactBufferAllocation",
    "GuardThreadStores",
    "LowerOpaqueBlock",
)
"""From functions of blocks to loops."""

THREADS: tuple[str, ...] = ("NarrowDataType", "LowerThreadBinding", "LowerFloorDiv")
"""From loops of blocks, and those of stages (te), to what each TEC or thread does."""

GRID: tuple[str, ...] = ("ThreadSync",)
"""What loops for a grid of threads need besides."""

LOOPS: tuple[str, ...] = (
    "VerifyConstants",
    "LowerBoolStorage",
    "HoistIfThenElse",
    "InjectDmaCopy",
    "InjectDoubleBuffer",
    "LoopPartition",
    "Simplify",
    "HoistIfThenElse",
    "IfConversion",
    "UnrollLoop",
    "Simplify",
    "VectorizeReductions",
    "Simplify",
    "CombineDotProducts",
    "CombineHalfProducts",
    "ShareVectors",
    "ReuseLoads",
    "ShareLoads",
    "ShareConversions",
    "DeinterleaveLoads",
    "RemoveNoOp",
    "VerifyMemory",
)
"""What the NPU is fast with, of a function of loops over scalars: transfers, vectors, accumulators."""

LOWER: tuple[str, ...] = (
    "PipelineLoops",
    "AnnotateNonNegative",
    "ConstantPropagation",
    "FlattenBuffer",
    "Simplify",
    "HoistIfThenElse",
    "IfConversion",
    "RemoveNoOp",
    "VectorizeLoop",
    "StorageRewrite",
    "UnrollLoop",
    "Simplify",
    "RemoveNoOp",
    "HoistIfThenElse",
    "RenameLoopVariables",
)

LEGALIZE: tuple[str, ...] = (
    "LowerGrid",
    "MangleFunctionNames",
    "OutlineOperations",
    "OutlineConstants",
    "InitializeEventState",
    "LowerThreadLoops",
    "ExpandDivMod",
    "CommonSubexprElim",
    "FreezeLoopBounds",
    "LowerVectorOperators",
    "ConstantPropagation",
    "CanonicalizeOperandOrder",
    "StrengthReduction",
    "LegalizeVectorPointers",
    "LowerTag",
    "LegalizeVectorReturns",
    "LegalizeVectorWidth",
    "CombineInstructions",
    "AssignPassthru",
    "LegalizeOperations",
    "LegalizeSignedness",
    "LowerVectorCast",
    "CombineInstructions",
    "AssignPassthru",
    "LowerPredicates",
    "RaiseVectorAccesses",
    "UniquifyVarName",
)

STAGES: dict[str, tuple[str, ...]] = {
    "blocks": BLOCKS,
    "threads": THREADS,
    "grid": GRID,
    "loops": LOOPS,
    "lower": LOWER,
    "legalize": LEGALIZE,
}
