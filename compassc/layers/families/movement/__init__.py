"""Layers that move elements without computing with them. Scale and zero point go along, so one reference serves both forms."""

from __future__ import annotations

from compassc.graph import Layer
from compassc.graph.values import Value
from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table, layer_type
from compassc.layers.families.movement.bodies import (
    concat_body,
    crop_body,
    depth_to_space_body,
    no_op_body,
    pad_body,
    reshape_body,
    slice_body,
    split_body,
    tile_body,
    transpose_body,
)
from compassc.layers.families.movement.reference import (
    PAD_MODES,
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
from compassc.operators.patterns import PatternKind


def axes_of_size_one(layer: Layer) -> Value | None:
    """The axes that a Squeeze drops or an Unsqueeze adds, as they are given where they are right."""
    if layer.type not in ("Squeeze", "Unsqueeze") or not layer.has("axis") or not layer.outputs:
        return None
    longer, shorter = layer.input.shape, layer.output.shape
    if layer.type == "Unsqueeze":
        longer, shorter = shorter, longer
    given = layer.integers("axis")
    axes = {a + len(longer) if a < 0 else a for a in given}
    if tuple(n for i, n in enumerate(longer) if i not in axes or n != 1) == shorter and len(longer) - len(axes) == len(
        shorter
    ):
        return list(given)
    found, left = [], list(shorter)
    for i, n in enumerate(longer):
        if left and left[0] == n:
            left.pop(0)
        else:
            found.append(i)
    return found


AXIS = Attribute("axis", "int", "the axis")
INDEX = Attribute("axis", "int", "the axis", "0")
BEGINS = (
    Attribute("begin", "ints", "the first index per axis"),
    Attribute("end", "ints", "the index behind the last"),
    Attribute("strides", "ints", "the step per axis"),
)
BLOCK = (Attribute("block_size_x", "count", "block width"), Attribute("block_size_y", "count", "block height"))
REDUCTION = Attribute("reduction", "word", "NONE, ADD, MUL, MAX or MIN", "NONE")
SCATTERED = "x, index, updates"
TABLE = (
    DeclaredType(
        "Reshape Squeeze Unsqueeze Flatten",
        "The same elements in another shape.",
        "common",
        reshape,
        (
            Attribute(
                "shape",
                "ints",
                "the shape, as the output has it",
                "the output's",
                told=lambda layer: list(layer.output.shape),
            ),
            Attribute(
                "axis",
                "ints",
                "of Squeeze and Unsqueeze: the dimensions of size 1",
                "by the shapes",
                told=axes_of_size_one,
            ),
        ),
        body=reshape_body,
    ),
    DeclaredType(
        "Transpose Permute",
        "The axes in another order.",
        "common",
        transpose,
        (Attribute("perm", "ints", "the input's axis for each output axis"),),
        body=transpose_body,
    ),
    DeclaredType(
        "Concat",
        "Tensors joined along an axis.",
        "common",
        (concat, quantised_concat),
        (AXIS,),
        inputs="x...",
        body=concat_body,
    ),
    DeclaredType(
        "Split",
        "A tensor cut along an axis.",
        "common",
        split,
        (AXIS, Attribute("splits", "ints", "the sizes")),
        outputs="y...",
        body=split_body,
    ),
    DeclaredType(
        "Slice StridedSlice",
        "A part of a tensor, by first index, end and step per axis.",
        "common",
        slices,
        BEGINS,
        inputs="x[, begin, end, axes, steps]",
        body=slice_body,
    ),
    DeclaredType(
        "Crop",
        "A part of a tensor.",
        "common",
        crop,
        (Attribute("crops", "pairs", "first index and end per axis"),),
        body=crop_body,
    ),
    DeclaredType(
        "Tile",
        "A tensor repeated along its axes.",
        "common",
        tile,
        (Attribute("repeats", "ints", "how often per axis"),),
        body=tile_body,
    ),
    DeclaredType(
        "Pad",
        "A tensor with a border.",
        "common",
        pad,
        (
            Attribute("mode", "word", ", ".join(PAD_MODES), "CONSTANT"),
            Attribute("pads", "pairs", "elements before and after per axis"),
            Attribute("constant_value", "float", "of CONSTANT: the border's value", "0"),
        ),
        body=pad_body,
    ),
    DeclaredType(
        "Repeat",
        "Elements repeated by counts.",
        "rare",
        repeat,
        (Attribute("axis", "int", "the axis", "none: flattened"),),
        inputs="x, counts",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "ReverseSequence",
        "The first elements of sequences in reverse order.",
        "rare",
        reverse_sequence,
        (Attribute("batch_axis", "int", "the batch", "0"), Attribute("time_axis", "int", "the time", "1")),
        inputs="x[, lengths]",
        same_shape=True,
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Meshgrid",
        "Coordinate grids of two vectors.",
        "rare",
        meshgrid,
        (
            Attribute("indexing", "word", "xy or ij", "xy"),
            Attribute("sparse", "flag", "axes of one element stay", "false"),
            Attribute("copy", "flag", "whether the grids are new tensors; they always are", "true"),
        ),
        inputs="a, b",
        outputs="y0, y1",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Compress",
        "Slices whose condition holds.",
        "rare",
        compress,
        (INDEX,),
        inputs="x, condition",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Filter",
        "Slices whose selector is set, at the front.",
        "rare",
        filter_rows,
        (
            INDEX,
            Attribute("num", "int", "tensors that are filtered", "inputs", told=lambda layer: len(layer.inputs) - 1),
        ),
        inputs="x..., selector",
        outputs="y..., count",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Gather",
        "Slices at indices of an axis.",
        "common",
        gather,
        (
            INDEX,
            Attribute("batch_dims", "int", "leading axes in common", "0"),
            Attribute("method", "word", "IDX_LUT: of one input, `lut` holds the index, else the data", "no word"),
        ),
        inputs="x[, index]",
        constants=(Constant("lut", "any", "the index, or the data, of a layer with one input", True),),
    ),
    DeclaredType(
        "GatherElements", "Elements at indices along an axis.", "common", gather_elements, (INDEX,), inputs="x, index"
    ),
    DeclaredType(
        "GatherND",
        "Slices addressed by several indices.",
        "common",
        gather_nd,
        (Attribute("batch_dims", "int", "leading axes in common", "0"),),
        inputs="x, index",
    ),
    DeclaredType(
        "ScatterElements",
        "A tensor with updates at indices along an axis.",
        "sometimes",
        (scatter_elements, quantised_scatter_elements),
        (INDEX, REDUCTION),
        inputs=SCATTERED,
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "ScatterND",
        "A tensor with updates at places addressed by several indices.",
        "sometimes",
        (scatter_nd, quantised_scatter_nd),
        (REDUCTION,),
        inputs=SCATTERED,
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "DepthToSpace",
        "Channels spread over blocks of the image.",
        "common",
        depth_to_space,
        (*BLOCK, Attribute("mode", "word", "DCR or CRD", "DCR")),
        body=depth_to_space_body,
    ),
    DeclaredType(
        "SpaceToDepth",
        "Blocks of the image gathered in channels.",
        "common",
        space_to_depth,
        (
            BLOCK[0],
            Attribute(
                "block_size_y",
                "count",
                "block height; blocks are square",
                "the width",
                told=lambda layer: layer.integer("block_size_x"),
            ),
        ),
    ),
    DeclaredType("BatchToSpace", "Images of a batch spread over blocks.", "rare", batch_to_space, BLOCK),
    DeclaredType(
        "BatchToSpaceND",
        "Images of a batch spread over blocks of two or three axes.",
        "rare",
        batch_to_space_nd,
        (
            Attribute("block_size", "counts", "the block along z, y and x"),
            Attribute("crops", "pairs", "elements taken off before and behind each axis", "none"),
        ),
    ),
    DeclaredType(
        "DataStride",
        "The windows of an image side by side.",
        "rare",
        data_stride,
        tuple(
            Attribute(f"{key}_{axis}", "int", f"{key} along {axis}") for key in ("kernel", "stride") for axis in "xy"
        ),
    ),
    DeclaredType("SpaceToBatch", "Blocks of an image gathered in the batch.", "rare", space_to_batch, BLOCK),
    DeclaredType(
        "BatchToDepth",
        "Images of a batch gathered in channels.",
        "rare",
        batch_to_depth,
        (Attribute("block_size", "count", "images per result"),),
    ),
    DeclaredType(
        "ChannelShuffle",
        "The channels of groups interleaved.",
        "common",
        channel_shuffle,
        (Attribute("group", "count", "groups", "2"), Attribute("splits", "count", "outputs", "1")),
        outputs="y...",
    ),
    DeclaredType(
        "OneHot",
        "One value at an index, another elsewhere.",
        "sometimes",
        one_hot,
        (
            Attribute("depth", "int", "elements of the new axis"),
            Attribute("values", "floats", "the value elsewhere, and the one at the index", "0, 1"),
            Attribute("axis", "int", "the new axis", "-1"),
        ),
        inputs="index",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Constant",
        "A constant tensor.",
        "common",
        constant,
        inputs="",
        constants=(Constant("weights", "the output's", "the values"),),
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "ConstantOfShape",
        "A tensor of one value.",
        "rare",
        constant_of_shape,
        (Attribute("value", "float", "the value"),),
        inputs="shape",
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType(
        "Shape",
        "The dimensions of a tensor.",
        "rare",
        shape_of,
        (Attribute("start", "int", "the first axis", "0"), Attribute("end", "int", "the axis behind the last", "rank")),
        pattern=PatternKind.OPAQUE,
    ),
    DeclaredType("Input", "An input of the graph.", "common", graph_input, inputs="", pattern=PatternKind.OPAQUE),
    DeclaredType(
        "NoOp Dummy",
        "The input itself.",
        "rare",
        no_op,
        body=no_op_body,
    ),
)
declare_table(TABLE, PatternKind.INJECTIVE)
for _name, _summary, _reason in (
    ("Col2Im", "Columns summed up to an image.", "the format leaves open where its result has the channels"),
    (
        "CacheUpdate",
        "Rows written to a cache.",
        "it changes its input, and the size of its result follows from a value",
    ),
):
    layer_type(_name, summary=_summary, use="rare", refused=_reason)
