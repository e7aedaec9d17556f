"""Layers that move elements without computing with them. Scale and zero point go along, so one reference serves both forms."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, Fusion, layer_type
from compassc.layers.families.movement.reference import (
    PAD_MODES,
    _moves,
    batch_to_depth,
    batch_to_space,
    batch_to_space_nd,
    channel_shuffle,
    compress,
    concat,
    constant,
    constant_of_shape,
    crop,
    data_stride,
    depth_to_space,
    filter_rows,
    gather,
    gather_elements,
    gather_nd,
    graph_input,
    meshgrid,
    no_op,
    one_hot,
    pad,
    quantised_concat,
    quantised_scatter_elements,
    quantised_scatter_nd,
    repeat,
    reshape,
    reverse_sequence,
    scatter_elements,
    scatter_nd,
    shape_of,
    slices,
    space_to_batch,
    space_to_depth,
    split,
    tile,
    transpose,
)

AXIS = Attribute("axis", "int", "the axis")
INDEX = Attribute("axis", "int", "the axis", "0")
BEGINS = (
    Attribute("begin", "ints", "the first index per axis"),
    Attribute("end", "ints", "the index behind the last"),
    Attribute("strides", "ints", "the step per axis"),
)
BLOCK = (Attribute("block_size_x", "int", "block width"), Attribute("block_size_y", "int", "block height"))
REDUCTION = Attribute("reduction", "word", "NONE, ADD, MUL, MAX or MIN", "NONE")
SCATTERED = "x, index, updates"
for _name in ("Reshape", "Squeeze", "Unsqueeze", "Flatten"):
    _moves(
        _name,
        reference=reshape,
        summary="The same elements in another shape.",
        use="common",
        fusion=Fusion.INJECTIVE,
        attributes=(Attribute("shape", "ints", "the shape, as the output has it", "the output's"),),
    )
_moves(
    "Transpose",
    "Permute",
    reference=transpose,
    summary="The axes in another order.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=(Attribute("perm", "ints", "the input's axis for each output axis"),),
)
layer_type(
    "Concat",
    summary="Tensors joined along an axis.",
    use="common",
    fusion=Fusion.INJECTIVE,
    inputs="x...",
    attributes=(AXIS,),
    float=concat,
    quantised=quantised_concat,
)
_moves(
    "Split",
    reference=split,
    summary="A tensor cut along an axis.",
    use="common",
    fusion=Fusion.INJECTIVE,
    outputs="y...",
    attributes=(AXIS, Attribute("splits", "ints", "the sizes")),
)
_moves(
    "Slice",
    "StridedSlice",
    reference=slices,
    summary="A part of a tensor, by first index, end and step per axis.",
    use="common",
    fusion=Fusion.INJECTIVE,
    inputs="x[, begin, end, axes, steps]",
    attributes=BEGINS,
)
_moves(
    "Crop",
    reference=crop,
    summary="A part of a tensor.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=(Attribute("crops", "pairs", "first index and end per axis"),),
)
_moves(
    "Tile",
    reference=tile,
    summary="A tensor repeated along its axes.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=(Attribute("repeats", "ints", "how often per axis"),),
)
_moves(
    "Pad",
    reference=pad,
    summary="A tensor with a border.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=(
        Attribute("mode", "word", ", ".join(PAD_MODES), "CONSTANT"),
        Attribute("pads", "pairs", "elements before and after per axis"),
        Attribute("constant_value", "float", "of CONSTANT: the border's value", "0"),
    ),
)
_moves(
    "Repeat",
    reference=repeat,
    summary="Elements repeated by counts.",
    use="rare",
    inputs="x, counts",
    attributes=(Attribute("axis", "int", "the axis", "none: flattened"),),
)
_moves(
    "ReverseSequence",
    reference=reverse_sequence,
    same_shape=True,
    summary="The first elements of sequences in reverse order.",
    use="rare",
    inputs="x[, lengths]",
    attributes=(Attribute("batch_axis", "int", "the batch", "0"), Attribute("time_axis", "int", "the time", "1")),
)
_moves(
    "Meshgrid",
    reference=meshgrid,
    summary="Coordinate grids of two vectors.",
    use="rare",
    inputs="a, b",
    outputs="y0, y1",
    attributes=(
        Attribute("indexing", "word", "xy or ij", "xy"),
        Attribute("sparse", "flag", "axes of one element stay", "false"),
    ),
)
_moves(
    "Compress",
    reference=compress,
    summary="Slices whose condition holds.",
    use="rare",
    inputs="x, condition",
    attributes=(INDEX,),
)
_moves(
    "Filter",
    reference=filter_rows,
    summary="Slices whose selector is set, at the front.",
    use="rare",
    inputs="x..., selector",
    outputs="y..., count",
    attributes=(INDEX,),
)
_moves(
    "Gather",
    reference=gather,
    summary="Slices at indices of an axis.",
    use="common",
    fusion=Fusion.INJECTIVE,
    inputs="x, index",
    attributes=(INDEX, Attribute("batch_dims", "int", "leading axes in common", "0")),
)
_moves(
    "GatherElements",
    reference=gather_elements,
    summary="Elements at indices along an axis.",
    use="common",
    fusion=Fusion.INJECTIVE,
    inputs="x, index",
    attributes=(INDEX,),
)
_moves(
    "GatherND",
    reference=gather_nd,
    summary="Slices addressed by several indices.",
    use="common",
    fusion=Fusion.INJECTIVE,
    inputs="x, index",
    attributes=(Attribute("batch_dims", "int", "leading axes in common", "0"),),
)
layer_type(
    "ScatterElements",
    summary="A tensor with updates at indices along an axis.",
    use="sometimes",
    inputs=SCATTERED,
    attributes=(INDEX, REDUCTION),
    float=scatter_elements,
    quantised=quantised_scatter_elements,
)
layer_type(
    "ScatterND",
    summary="A tensor with updates at places addressed by several indices.",
    use="sometimes",
    inputs=SCATTERED,
    attributes=(REDUCTION,),
    float=scatter_nd,
    quantised=quantised_scatter_nd,
)
_moves(
    "DepthToSpace",
    reference=depth_to_space,
    summary="Channels spread over blocks of the image.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=(*BLOCK, Attribute("mode", "word", "DCR or CRD", "DCR")),
)
_moves(
    "SpaceToDepth",
    reference=space_to_depth,
    summary="Blocks of the image gathered in channels.",
    use="common",
    fusion=Fusion.INJECTIVE,
    attributes=BLOCK,
)
_moves(
    "BatchToSpace",
    reference=batch_to_space,
    summary="Images of a batch spread over blocks.",
    use="rare",
    fusion=Fusion.INJECTIVE,
    attributes=BLOCK,
)
_moves(
    "BatchToSpaceND",
    reference=batch_to_space_nd,
    summary="Images of a batch spread over blocks of two or three axes.",
    use="rare",
    fusion=Fusion.INJECTIVE,
    attributes=(
        Attribute("block_size", "ints", "the block along z, y and x"),
        Attribute("crops", "pairs", "elements taken off before and behind each axis", "none"),
    ),
)
_moves(
    "DataStride",
    reference=data_stride,
    summary="The windows of an image side by side.",
    use="rare",
    fusion=Fusion.INJECTIVE,
    attributes=tuple(
        Attribute(f"{key}_{axis}", "int", f"{key} along {axis}") for key in ("kernel", "stride") for axis in "xy"
    ),
)
_moves(
    "SpaceToBatch",
    reference=space_to_batch,
    summary="Blocks of an image gathered in the batch.",
    use="rare",
    fusion=Fusion.INJECTIVE,
    attributes=BLOCK,
)
_moves(
    "BatchToDepth",
    reference=batch_to_depth,
    summary="Images of a batch gathered in channels.",
    use="rare",
    fusion=Fusion.INJECTIVE,
    attributes=(Attribute("block_size", "int", "images per result"),),
)
_moves(
    "ChannelShuffle",
    reference=channel_shuffle,
    summary="The channels of groups interleaved.",
    use="common",
    fusion=Fusion.INJECTIVE,
    outputs="y...",
    attributes=(Attribute("group", "int", "groups", "2"), Attribute("splits", "int", "outputs", "1")),
)
_moves(
    "OneHot",
    reference=one_hot,
    summary="One value at an index, another elsewhere.",
    use="sometimes",
    inputs="index",
    attributes=(
        Attribute("depth", "int", "elements of the new axis"),
        Attribute("values", "floats", "the value elsewhere, and the one at the index", "0, 1"),
        Attribute("axis", "int", "the new axis", "-1"),
    ),
)
_moves(
    "Constant",
    reference=constant,
    summary="A constant tensor.",
    use="common",
    inputs="",
    constants=(Constant("weights", "the output's", "the values"),),
)
_moves(
    "ConstantOfShape",
    reference=constant_of_shape,
    summary="A tensor of one value.",
    use="rare",
    inputs="shape",
    attributes=(Attribute("value", "float", "the value"),),
)
_moves(
    "Shape",
    reference=shape_of,
    summary="The dimensions of a tensor.",
    use="rare",
    attributes=(
        Attribute("start", "int", "the first axis", "0"),
        Attribute("end", "int", "the axis behind the last", "rank"),
    ),
)
_moves("Input", reference=graph_input, summary="An input of the graph.", use="common", inputs="")
_moves("NoOp", "Dummy", reference=no_op, summary="The input itself.", use="rare", fusion=Fusion.INJECTIVE)
for _name, _summary, _reason in (
    ("Col2Im", "Columns summed up to an image.", "the format leaves open where its result has the channels"),
    (
        "CacheUpdate",
        "Rows written to a cache.",
        "it changes its input, and the size of its result follows from a value",
    ),
):
    layer_type(_name, summary=_summary, use="rare", refused=_reason)
