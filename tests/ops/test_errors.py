"""What operations refuse, and that the message names the culprit."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError
from compassc.ir import exprs as E
from compassc.ir.dtypes import dtype
from compassc.ops import core


def value(text):
    return E.Var("v", dtype(text))


def build(name, *args, **options):
    args = [value(a) if isinstance(a, str) else a for a in args]
    if isinstance(options.get("r"), str):
        options["r"] = value(options["r"])
    return core.get(name).build(*args, **options)


REFUSED = [
    # scalars only, and operands that are no values
    ("vadd", (1, 2), {}, "scalars"),
    ("vmul", ("int32", 2), {}, "scalars"),
    ("vceq", ("int32", "int32"), {}, "scalars"),
    ("vadd", ("int32x8", [1, 2]), {}, "list is not a value"),
    ("vinv", ("int32",), {}, "must be a vector"),
    ("vrpadd", ("int32",), {}, "must be a vector"),
    ("vall", ([True, False],), {}, "list"),
    ("vall", ("int8x32",), {}, "int8x32"),
    # types that do not agree
    ("vadd", ("int32x8", "int16x16"), {}, "int16x16"),
    ("vadd", ("int32x8", "int32x16"), {}, "int32x16"),
    ("vadd", ("float16x16", "bfloat16x16"), {}, "bfloat16x16"),
    ("vadd", ("int32x8", "uint32x8"), {}, "signed and unsigned"),
    ("vceq", ("uint8x32", -1), {}, "signed and unsigned"),
    ("vsr", ("int8x32", "uint8x32"), {}, "signed and unsigned"),
    ("vdiv", ("int8x32", "uint8x32"), {}, "signed and unsigned"),
    # scalars that do not fit
    ("vadd", ("int8x32", 300), {}, "300"),
    ("vadd", ("int8x32", 1.5), {}, "1.5"),
    ("vadd", ("int16x16", "int32"), {}, "int32"),
    ("vadd", ("float32x8", float("inf")), {}, "inf"),
    ("clip", ("int8x32", 300, 310), {}, "min_val"),
    ("clip", ("int8x32", 0, 2.5), {}, "max_val"),
    ("clip", ("int8x32", "int32", 3), {}, "min_val"),
    # element types and widths the operation does not have
    ("vmul", ("int8x32", "int8x32"), {}, "int8x32"),
    ("vdiv", ("float16x16", 1), {}, "float16x16"),
    ("vmod", ("float32x8", 1), {}, "float32x8"),
    ("vaddh", ("float32x8", "float32x8"), {}, "float32x8"),
    ("vaddh", ("int32x5", "int32x5"), {}, "int32x5"),
    ("vdot", ("int32x8", "int32x8"), {}, "int32x8"),
    ("vmull", ("int32x16", "int32x16"), {}, "int32x16"),
    ("vrpmax", ("int32x16",), {}, "int32x16"),
    ("vnsr", ("int8x32", 1), {}, "int8x32"),
    ("vnsr", ("int16x16", 1), {"to_h": True}, "to_h"),
    ("vcls", ("uint8x32",), {}, "uint8x32"),
    ("vand", ("float32x8", "float32x8"), {}, "float32x8"),
    ("vceq", ("boolx8", "boolx8"), {}, "boolx8"),
    ("sqrt", (4,), {}, "int32"),
    ("sqrt", ("int32x8",), {}, "int32x8"),
    ("exp", ("bfloat16",), {}, "bfloat16"),
    ("abs", ("bfloat16",), {}, "bfloat16"),
    ("max", ("bfloat16", 1), {}, "bfloat16"),
    ("isnan", (1.0,), {}, "expression"),
    ("clip", (5, 1, 9), {}, "expression"),
    ("pow", (2, 3), {}, "int32"),
    ("fma", ("float32", 2, 3), {}, "int32"),
    ("fma", ("float32", "float32x8", 3.0), {}, "acc"),
    ("fma", ("float16x16", "float16x16", 3.0), {}, "float16x16"),
    ("vdpa", ("int32x8", "int8x32", "int8x32"), {}, "int16x16"),
    ("vdpa", ("uint16x16", "int8x32", "uint8x32"), {}, "uint16x16"),
    ("vdpa", (0, "int8x32", "int8x32"), {}, "acc"),
    ("vfmae", ("float32x16", "float16x32", "float16x32"), {}, "float16x32"),
    ("ceildiv", ("int32x8", 3), {}, "int32x8"),
    ("ceildiv", ("float32", 3), {}, "float32"),
    # options
    ("vadd", ("int32x8", 1), {"out_sign": "x"}, "'x'"),
    ("vadd", ("float32x8", 1), {"saturate": True}, "saturate"),
    ("abs", ("int32",), {"saturate": True}, "saturate"),
    ("vsl", ("uint8x32", 1), {"saturate": True}, "saturate"),
    ("vadd", ("int32x8", 1), {"mask": "3T5F", "r": 1.5}, "1.5"),
    ("vadd", ("int8x32", 1), {"mask": "3T5F", "r": "int32x8"}, "int32x8"),
    ("vadd", ("int32x8", 1), {"mask": "9T", "r": 0}, "9 lanes"),
    ("vceq", ("int32x8", 1), {"mask": 255}, "int"),
    ("vceq", ("int32x8", 1), {"mask": [1, 0]}, "int"),
    ("abs", ("int32",), {"mask": "3T"}, "mask"),
    ("rint", ("float32",), {"mask": "3T"}, "mask"),
]


@pytest.mark.parametrize("name, args, options, words", REFUSED)
def test_refused(name, args, options, words):
    with pytest.raises(CompassError) as caught:
        build(name, *args, **options)
    assert words in caught.value.message


def test_unknown_argument_shows_the_signature():
    with pytest.raises(CompassError) as caught:
        build("vadd", "int32x8", 1, masks="3T")
    assert "S.vadd(x, y, mask=None" in caught.value.help


FORMS_OF_TARGETS = [
    ("vrpmax", ("int32x8",), {"return_idx": True}, "X3P", "X2"),
    ("vrpmin", ("float32x8",), {"return_idx": True}, "X3S", "X2"),
    ("vqdpa", ("float32x8", "float16x16", "float16x16"), {}, "X2", "X3P"),
]


@pytest.mark.parametrize("name, args, options, good, bad", FORMS_OF_TARGETS)
def test_target_decides_some_forms(name, args, options, good, bad):
    for target in ("", good):
        token = core.TARGET.set(target)
        build(name, *args, **options)
        core.TARGET.reset(token)
    token = core.TARGET.set(bad)
    with pytest.raises(CompassError, match=bad):
        build(name, *args, **options)
    core.TARGET.reset(token)


ACCEPTED = [
    ("vadd", ("uint8x32", -1), {"out_sign": "u"}, "uint8x32"),
    ("vadd", ("int8x32", 200), {"out_sign": "s"}, "int8x32"),
    ("vsl", ("int8x32", "uint8x32"), {"saturate": True}, "int8x32"),
    ("vnsr", ("int32x16", "uint32x16"), {"out_sign": "u", "to_h": True}, "uint16x32"),
    ("vdot", ("uint8x32", "int8x32"), {}, "int16x16"),
    ("vqdot", ("float16x32", 2), {}, "float32x16"),
    ("vdpa", ("uint16x16", "uint8x32", 3), {}, "uint16x16"),
    ("vdpa", ("int16x16", "uint8x32", "int8x32"), {}, "int16x16"),
    ("vmull", ("int32x8", "int32x8"), {"out_sign": "u"}, "uint32x8"),
    ("vceq", ("int8x100", 3), {}, "boolx100"),
    ("clip", ("float32", 0, float("inf")), {}, "float32"),
    ("clip", ("int16x16", "int8x16", 5), {}, "int16x16"),
    ("max", (3, 4.0), {}, "float32"),
    ("max", ("int8", 3), {"mask": "3T", "r": 1}, "int8"),
    ("vrpadd", ("bfloat16x32",), {}, "float32x16"),
    ("ceildiv", ("uint8", 8), {}, "uint8"),
    ("ceildiv", (7, 8), {}, "int32"),
]


@pytest.mark.parametrize("name, args, options, result", ACCEPTED)
def test_result_type(name, args, options, result):
    assert build(name, *args, **options).dtype is dtype(result)


def test_mask_without_r_is_dropped_and_full_masks_vanish():
    assert build("vadd", "int32x8", 1, mask="3T5F").mask is None
    assert build("vdiv", "int32x8", 1, mask="8T").mask is None
    assert build("vdiv", "int32x8", 1, mask="3T").mask.bits == 7
