"""Layers of detectors, and of images: known, and refused with the reason."""

from __future__ import annotations

from compassc.layers.declare import Attribute, Constant, DeclaredType, declare_table
from compassc.layers.families.detection.boxes import (
    bounding_box,
    decode_box,
    detection_output,
    multibox,
    proposal,
    quantised_decode_box,
)
from compassc.layers.families.detection.fixed import (
    HEAD_TABLES,
    quantised_bounding_box,
    quantised_detection_output,
    quantised_multibox,
    quantised_proposal,
    quantised_region,
    quantised_region_fuse,
)
from compassc.layers.families.detection.generating import generate_proposals, quantised_generate_proposals
from compassc.layers.families.detection.suppression import METHODS, nms
from compassc.layers.families.detection.yolo import filter_boxes, get_valid_count, post_nms, region, region_fuse
from compassc.operators.patterns import PatternKind

REFUSED = {
    "PostNMS2": (
        "The boxes of a list of classes that a suppression kept.",
        "rare",
        "the format leaves open how its lists are addressed",
    ),
    "HeatmapMaxKeypoint": (
        "The place and score of a heat map's maximum.",
        "rare",
        "the step of its quadratic fit is not defined exactly; compute it behind the network",
    ),
    "RefineDetDetection": ("Boxes refined in two steps.", "rare", "the format leaves open what it computes"),
}


def no_integers(left_open: str) -> str:
    """Why a layer has no form in integers."""
    return f"of its fixed-point form {left_open}; keep the layer in floats (`unquantifiable=true`)"


THRESHOLD = Attribute("score_threshold", "float", "boxes with a score above it are kept")
VARIANCE = Attribute("variance", "floats", "divisors of the offsets y, x, h, w", "10, 10, 5, 5")
IMAGE = (
    Attribute("image_height", "measure", "largest y of a box"),
    Attribute("image_width", "measure", "largest x of a box"),
)
ANCHORS = tuple(
    Constant(name, "[boxes]", f"{what} of the anchors")
    for name, what in (("ycenter", "y"), ("xcenter", "x"), ("ha", "heights"), ("wa", "widths"))
)
TABLES = tuple(
    Constant(f"t{a}_lut", "[2^n]", f"the decoded {a} by offset, of 16 bits", form="quantised") for a in "yxhw"
)
LEAST = Attribute(
    "score_threshold_value", "int", "the quantised threshold; or `score_threshold_uint8`", "the other one", "quantised"
)
SIDES = (
    Attribute("height", "int", "largest y of a box, in the boxes' units", form="quantised"),
    Attribute("width", "int", "largest x of a box, in the boxes' units", form="quantised"),
)


def scaled_boxes(of: str, many: int) -> tuple[Attribute, ...]:
    """The attributes of multipliers and shifts of quantised boxes."""
    return (
        Attribute("box_scale_value", "ints", f"multipliers of {of}", form="quantised"),
        Attribute("box_shift_value", "ints", "their shifts", form="quantised"),
        Attribute(
            "delta_shift",
            "ints" if many > 1 else "int",
            "how far the first products are shifted" if many > 1 else "how far sizes times the multipliers are shifted",
            form="quantised",
        ),
    )


CENTRES = (
    "Quantised, sizes are limited to the image's and corners cut at it, as in floats; a product of two factors is rounded up "
    "from its half on."
)
OF_REGIONS = "Quantised, centres are limited to what the type of the regions holds; results are parts of 32767."
LISTED = (
    "Boxes come by class, and in the order of the input within a class. Classes without boxes are left out of the lists of "
    "numbers and labels; labels count from 0. What is not taken is 0."
)

TABLE = (
    *(
        DeclaredType(
            _name,
            _summary,
            _use,
            None,
            pattern=PatternKind.OPAQUE,
            refused=_reason,
        )
        for _name, (_summary, _use, _reason) in REFUSED.items()
    ),
    DeclaredType(
        "NMS",
        "Boxes without those that overlap a better one.",
        "common",
        nms,
        attributes=(
            Attribute("method", "word", ", ".join(METHODS), "HARD"),
            Attribute("iou_threshold", "float", "the largest overlap; quantised, times 2^iou_thresh_shift", "0.6"),
            Attribute("score_threshold", "float", "boxes with a score above it are kept", "none"),
            Attribute("max_output_size", "measure", "boxes kept of a class", "rows of the output"),
            Attribute("soft_nms_sigma", "float", "how steeply GAUSSIAN lowers scores; quantised, tables say it", "0"),
            Attribute("center_point_box", "int", "1, boxes of centres and sizes, is refused", "0"),
            Attribute("areas_shift", "int", "bits that quantised areas lose", "13", "quantised"),
            Attribute("iou_thresh_shift", "int", "fraction bits of the overlap", "8", "quantised"),
            Attribute("scale_value", "int", "multiplier of the boxes", "1", "quantised"),
            Attribute("shift_value", "int", "shift of the boxes", "0", "quantised"),
        ),
        constants=tuple(
            Constant(f"gaussian_{key}_lut", "[256]", f"{what} of scores by 255 steps of the overlap", True, "quantised")
            for key, what in (("scale", "multipliers"), ("shift", "shifts"))
        ),
        inputs="boxes (y0, x0, y1, x1), boxes per class, classes, scores",
        outputs="boxes, boxes per class, scores, indices within the class",
        notes="Of boxes with equal scores the first comes first. Boxes for which the output has no room are not counted. "
        "GAUSSIAN suppression lowers the scores of all others whenever a box is taken; quantised, each time by a table, rounded "
        "down. The TECs share the boxes of a "
        "class; up to 24,576 (GAUSSIAN: 6,144) fit.",
    ),
    DeclaredType(
        "DecodeBox",
        "Boxes from anchors and their offsets, by class.",
        "sometimes",
        (decode_box, quantised_decode_box),
        attributes=(
            THRESHOLD,
            VARIANCE,
            Attribute("class_num", "int", "the last columns of the scores, which count", "all"),
            Attribute("proposal_normalized", "flag", "boxes are parts of the image", "true", "float"),
            Attribute("clip", "flag", "boxes are cut at the image", "true"),
            *IMAGE,
            Attribute("box_shift", "int", "fraction bits of the tables", form="quantised"),
            Attribute("score_threshold_uint8", "int", "the quantised threshold", form="quantised"),
        ),
        inputs="scores, offsets (y, x, h, w), anchors (y, x, h, w; or constants)",
        outputs="boxes, boxes per class, classes, scores, labels",
        constants=(
            *ANCHORS,
            *(Constant(f"t{a}_lut", "[2^n]", f"the decoded {a} by offset", form="quantised") for a in "yxhw"),
        ),
        notes=LISTED
        + " Where there is no room for all, those with the lowest scores are given, in the order of their scores, "
        "as the reference of the format does. Scores are looked at 32 at a time; boxes that are kept are decoded one by one.",
    ),
    DeclaredType(
        "DetectionOutput",
        "Boxes from proposals and their offsets, by class.",
        "sometimes",
        (detection_output, quantised_detection_output),
        attributes=(
            THRESHOLD,
            VARIANCE,
            *IMAGE,
            Attribute("bbox_xform_clip", "float", "the largest offset of a height or width", "inf", "float"),
            Attribute("anchor_mode", "word", "caffe_detection: rows hold x before y", ""),
            LEAST,
            *SIDES,
            *scaled_boxes("heights and widths, of centres, and of the proposals", 3),
        ),
        constants=TABLES,
        inputs="scores, offsets, proposals",
        outputs="scores, boxes, boxes per class, labels, classes",
        notes=LISTED + " The first column of the scores, the background, does not count. " + CENTRES,
    ),
    DeclaredType(
        "BoundingBox",
        "Boxes from proposals and their offsets.",
        "sometimes",
        (bounding_box, quantised_bounding_box),
        attributes=(
            Attribute("std_div", "floats", "divisors of the offsets", "10, 10, 5, 5", "float"),
            *scaled_boxes("y, x, heights, widths and of corners", 1),
        ),
        constants=TABLES[2:],
        inputs="regions (y0, x0, y1, x1), offsets (y, x, h, w)",
        notes="Boxes are cut at 0 and 1. A box after the other, shared by the TECs. " + OF_REGIONS,
    ),
    DeclaredType(
        "MultiboxTransformLoc",
        "Boxes from prior boxes, with the best class of each.",
        "sometimes",
        (multibox, quantised_multibox),
        attributes=(
            THRESHOLD,
            VARIANCE,
            Attribute("clip", "flag", "boxes are cut at 0 and 1", "true"),
            LEAST,
            Attribute("scale_value", "int", "multiplier of the scores", form="quantised"),
            Attribute("shift_value", "int", "its shift", form="quantised"),
            *scaled_boxes("y, x, heights, widths and of corners", 1),
        ),
        constants=TABLES[2:],
        inputs="probabilities, offsets (x, y, w, h), anchors (x0, y0, x1, y1)",
        outputs="rows (class, score, x0, y0, x1, y1), number of rows",
        notes="Class 0, the background, does not count; classes of the result count from 0 without it. Rows that are not taken "
        "hold -1. " + OF_REGIONS + " The threshold is compared with the scores as they come.",
    ),
    DeclaredType(
        "Proposal",
        "Regions with their scores from anchors.",
        "sometimes",
        (proposal, quantised_proposal),
        attributes=(
            THRESHOLD,
            Attribute("height", "float", "largest y of a box; quantised it must be there, in the boxes' units", "600"),
            Attribute("width", "float", "largest x of a box; quantised it must be there, in the boxes' units", "600"),
            LEAST,
            Attribute(
                "box_shift_value", "int", "fraction bits of the tables; or `box_shift`", "the other one", "quantised"
            ),
        ),
        inputs="scores, offsets (y, x, h, w)",
        outputs="scores, boxes, number of boxes, 1",
        constants=(*ANCHORS, *TABLES),
        notes="The second column of the scores counts. Boxes come in the order of the input. Instead of four constants one, "
        "`anchors`, may hold rows of (y, x, h, w). Quantised, sizes are limited to the image's, corners are rounded to even where half a size "
        "has a fraction, then cut.",
    ),
    DeclaredType(
        "Region",
        "Boxes of a YOLO head.",
        "sometimes",
        (region, quantised_region),
        attributes=(
            Attribute("grid_height", "int", "rows", "13"),
            Attribute("grid_width", "int", "columns", "13"),
            Attribute("box_per_grid", "int", "boxes of a cell", "5"),
            Attribute("class_num", "int", "classes", "20"),
            Attribute(
                "obj_thresh",
                "float",
                "boxes with a score above it are kept; quantised with as many fraction bits as the input has",
                "0.3",
            ),
            Attribute("anchors", "floats", "width and height of each of a cell's boxes, in cells; or a constant"),
            Attribute("grid_compensate", "flag", "boxes of even grids lie half a cell before", "true", "float"),
            *(
                Attribute(key, "int", doc, default, "quantised")
                for key, doc, default in (
                    ("col_shift", "fraction bits of columns", None),
                    ("row_shift", "fraction bits of rows", None),
                    ("grid_w_scale", "2^15 over the columns", None),
                    ("grid_h_scale", "2^15 over the rows", None),
                    ("grid_w_shift", "shift of what is multiplied by it", "15"),
                    ("grid_h_shift", "shift of what is multiplied by it", "15"),
                    ("anchors_exp_w_shift", "fraction bits of the anchors' widths", None),
                    ("anchors_exp_h_shift", "fraction bits of the anchors' heights", None),
                    ("wh_exp_scale", "multiplier of sizes", None),
                    ("wh_exp_shift", "its shift", None),
                    ("conf_sigmoid_shift", "fraction bits of the trust; 15", "15"),
                )
            ),
        ),
        constants=(
            Constant("qanchors_lut", "[2 boxes]", "quantised anchors", form="quantised"),
            *(
                Constant(key, "[2^n]", f"a table of {low} to {high}", form="quantised")
                for key, (low, high) in HEAD_TABLES.items()
            ),
        ),
        inputs="x [N, rows, columns, boxes, 5 + classes] (x, y, w, h, trust, classes)",
        outputs="scores, boxes, boxes per class, labels, classes",
        notes=LISTED
        + " Where there is no room for all, those with the best scores are given. Classes of a cell are looked at 32 "
        "at a time, cells one after the other; the TECs share the images. Quantised, scores have the bits of the input, and between entries of a table of 16 bits lie straight lines; boxes with a score of 0 are left out, and corners cut at the image.",
    ),
    DeclaredType(
        "RegionFuse",
        "Boxes of several YOLO heads.",
        "sometimes",
        (region_fuse, quantised_region_fuse),
        attributes=(Attribute("class_num", "int", "classes; informative", "0"),),
        inputs="of two lists: scores, boxes, boxes per class, labels, classes, each of the first and of the second",
        outputs="scores, boxes, boxes per class, labels, classes",
        notes="Per class, in ascending order of labels, the boxes of the first list stand before those of the second. Quantised, scores lose a part of 2^bits, and boxes are brought to the scale of the result; this "
        "holds for every image, though the format's reference stops after the first.",
    ),
    DeclaredType(
        "GenerateProposals",
        "Regions from anchors, after suppression.",
        "sometimes",
        (generate_proposals, quantised_generate_proposals),
        attributes=(
            Attribute("pre_nms_topn", "count", "anchors with the best scores that are looked at", "6000"),
            Attribute("post_nms_topn", "count", "regions at most", "300"),
            Attribute("iou_threshold", "float", "the largest overlap; quantised with 11 fraction bits", "0.7"),
            Attribute(
                "min_size",
                "float",
                "what height and width must exceed; quantised, what they less a pixel must, in steps",
                "16",
            ),
            Attribute("anchor_scale", "int", "steps of a pixel, of anchors and boxes", form="quantised"),
            Attribute("delta_shift", "int", "fraction bits of the tables", form="quantised"),
            Attribute("roi_last_shift", "int", "bits that stored boxes lose", "0", "quantised"),
            Attribute("image_height", "measure", "height of the image, without the input that tells it", "600"),
            Attribute("image_width", "measure", "width of the image, without the input that tells it", "600"),
        ),
        inputs="scores [N, rows, columns, A], offsets [N, rows, columns, 4 A] (x, y, w, h)[, image (height, width, ...)]",
        outputs="scores, boxes (x0, y0, x1, y1), indices (0), number of boxes",
        constants=(
            Constant("weights", "[rows columns A, 4]", "anchors (width, height, x, y); quantised, in steps"),
            Constant("xy_lut", "[2^n]", "offsets of centres by what stands for them", form="quantised"),
            Constant("wh_lut", "[2^n]", "factors of sizes by what stands for their offsets", form="quantised"),
        ),
        notes="A box from 0 to 4 is 5 wide: sides are counted with both ends. Of boxes with equal scores the first comes first. "
        "What is not taken is 0. The TECs share the anchors of an image, of which 24,576 fit (quantised 16,384); boxes that are kept "
        "are stored one by one. Quantised, areas have no ends and lose 15 bits; strides are in the anchors already.",
    ),
    DeclaredType(
        "FilterBoxes",
        "Boxes with enough score and size.",
        "rare",
        filter_boxes,
        attributes=(
            Attribute("score_threshold", "float", "boxes with a score above it are kept", "-inf"),
            Attribute("min_size", "floats", "least height and width", "0"),
            Attribute("maxnum", "measure", "boxes of an image", "5000"),
        ),
        inputs="boxes, scores, boxes per class, labels, classes",
        outputs="boxes, scores, boxes per class, labels, classes",
        notes="Classes without boxes are left out. Boxes one after the other.",
    ),
    DeclaredType(
        "GetValidCount",
        "Rows with enough score, packed.",
        "rare",
        get_valid_count,
        attributes=(
            Attribute("score_threshold", "float", "rows with a score above it are kept", "0"),
            Attribute("score_index", "int", "where the score is in a row", "1"),
            Attribute("id_index", "int", "where the id is, which must not be negative; -1: nowhere", "-1"),
        ),
        outputs="number, rows, places",
        notes="What is not taken holds -1. Rows one after the other.",
    ),
    DeclaredType(
        "PostNMS1",
        "The boxes that a suppression kept.",
        "rare",
        (post_nms, None),
        attributes=(*IMAGE, Attribute("proposal_cnt", "int", "boxes of an image", "those of the output")),
        inputs="boxes, kept places, kept boxes per class",
        outputs="boxes, boxes as parts of the image",
        notes="A class begins as many boxes behind the one before it as that kept.",
        no_integers=no_integers(
            "the format leaves open how boxes become parts of the image where the product needs over 32 bits"
        ),
    ),
)
declare_table(TABLE, PatternKind.OPAQUE)
