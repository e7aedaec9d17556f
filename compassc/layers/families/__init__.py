"""One folder per family of layer types: its declarations, `reference.py` in NumPy, and `kernels.py`."""

from __future__ import annotations

TYPES: dict[str, str] = {
    "activation": (
        "Activation Sigmoid Tanh GELU Silu Swish Hardswish HardSigmoid MISH ELU SELU CELU Softplus Softsign SHRINK "
        "THRESHOLDEDRELU Exp Log Erf Square Floor Ceil Trunc Round Tan Sinh Cosh Asin Acos Atan Asinh Acosh Atanh "
        "RELU RELU6 Clip LeakyRELU PRELU Sqrt Rsqrt Reciprocal BNLL Sine Cosine Abs Negative Sign"
    ),
    "attention": "RotaryEmbedding SDPAttention",
    "control": "If Loop Switch",
    "counting": "InTopK ZeroFraction Count",
    "detection": (
        "PostNMS2 HeatmapMaxKeypoint RefineDetDetection NMS DecodeBox DetectionOutput BoundingBox "
        "MultiboxTransformLoc Proposal Region RegionFuse GenerateProposals FilterBoxes GetValidCount PostNMS1"
    ),
    "eltwise": (
        "Eltwise Div DivMod Mod Pow SquaredDifference BitShift Bitwise Logical Where Select IsNaN IsInf Cast "
        "FixedPoint Quantize DeQuantize FakeQuantWithMinMaxVars Add Sub Mul"
    ),
    "images": "YuvToRgb RgbToYuv Preprocess Dilation Erosion",
    "linear": (
        "Convolution DepthwiseConv Convolution3D ConvTranspose ConvTranspose3D FullyConnected MatMul Gemm "
        "MatMulInteger ConvInteger BatchNorm BiasAdd"
    ),
    "movement": (
        "Reshape Squeeze Unsqueeze Flatten Transpose Permute Concat Split Slice StridedSlice Crop Tile Pad Repeat "
        "ReverseSequence Meshgrid Compress Filter Gather GatherElements GatherND ScatterElements ScatterND "
        "DepthToSpace SpaceToDepth BatchToSpace BatchToSpaceND DataStride SpaceToBatch BatchToDepth ChannelShuffle "
        "OneHot Constant ConstantOfShape Shape Input NoOp Dummy Col2Im CacheUpdate"
    ),
    "normalise": "LayerNorm InstanceNorm GroupNorm RMSNorm MVN Moments Normalization LRN NormalizedMoments",
    "pooling": (
        "Pooling GlobalPool Pooling3D MaxPoolingWithArgMax MaxUnpool UpsampleByIndex AdaptivePool FractionalPool"
    ),
    "recurrent": "BasicLSTM GRUv1 GRUv3 RNN",
    "reduce": "Reduce ArgMinMax TopK Sort Cumulate",
    "regions": "RoiAlign MaxRoiPool CropAndResize PyramidROIAlign ROIPooling",
    "resize": "Resize Interp",
    "rows": (
        "OverlapAdd SegmentReduce EmbeddingLookupSparse SlotUpdate QueryRebatch CollapseRepeated CTCGreedyDecoder "
        "AccidentalHits"
    ),
    "sampling": "GridSample AffineGrid",
    "softmax": "Softmax LogSoftmax Hardmax",
}
"""The layer types of each family, in the order of declaration: a program imports the families of its layers alone."""
FAMILY_OF = {name: family for family, names in TYPES.items() for name in names.split()}
"""The family of each layer type."""
