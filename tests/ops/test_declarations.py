"""Every operation has its documented signature, a C form for every type it accepts, and a page."""

from __future__ import annotations

import re

import pytest

from compassc.ir import exprs as E
from compassc.ops import core, docs, spelling
from tests.choosing import some

SIGNATURES = """
vadd(x, y, mask=None, saturate=False, out_sign=None, r=None)
vsub(x, y, mask=None, saturate=False, out_sign=None, r=None)
vaddh(x, y)
vsubh(x, y)
abs(x, mask=None, saturate=False)
rint(x, mask=None)
clip(x, min_val, max_val, mask=None)
vmul(x, y, mask=None, out_sign=None, r=None)
vmull(x, y, mask=None, out_sign=None, r=None)
vmulh(x, y, mask=None, out_sign=None, r=None)
vdiv(x, y, mask=None)
vmod(x, y, mask=None)
vdot(x, y, mask=None)
vqdot(x, y, mask=None)
vdpa(acc, x, y, mask=None)
vqdpa(acc, x, y, mask=None)
vrpadd(x, mask=None)
fma(acc, x, y, mask=None)
vfmae(acc, x, y, mask=None)
vfmao(acc, x, y, mask=None)
vmml(ptr, x, y)
vmma(acc_ptr, x, y)
vceq(x, y, mask=None)
vcneq(x, y, mask=None)
vcge(x, y, mask=None)
vcgt(x, y, mask=None)
vcle(x, y, mask=None)
vclt(x, y, mask=None)
isnan(x, mask=None)
isinf(x, mask=None)
isfinite(x, mask=None)
max(x, y, mask=None, r=None)
min(x, y, mask=None, r=None)
vmaxh(x, y)
vminh(x, y)
vrpmax(x, mask=None, return_idx=False)
vrpmin(x, mask=None, return_idx=False)
vand(x, y, mask=None)
vor(x, y, mask=None)
vxor(x, y, mask=None)
vinv(x, mask=None)
vall(mask)
vany(mask)
vnsr(x, shift, mask=None, saturate=False, out_sign=None, with_round=False, to_h=False)
vnsrsr(x, shift, mask=None, out_sign=None, to_h=False)
vsr(x, shift, mask=None, with_round=False, r=None)
vsl(x, shift, mask=None, saturate=False, r=None)
vror(x, shift, mask=None)
vcls(x, mask=None, out_sign=None)
clz(x, mask=None)
vbrevs(x, mask=None)
vpcnt(x, mask=None, out_sign=None)
exp(x)
exp2(x)
log(x)
tanh(x)
sin(x)
cos(x)
erf(x)
sqrt(x)
rsqrt(x)
floor(x)
ceil(x)
pow(x, exponent)
ceildiv(x, y)
""".split("\n")[1:-1]
NAMES = [s.partition("(")[0] for s in SIGNATURES]
VALUE_NAMES = [n for n in NAMES if n not in ("vmml", "vmma")]


@pytest.mark.parametrize("signature", SIGNATURES)
def test_signature_is_the_documented_one(signature):
    assert docs.usage(core.get(signature.partition("(")[0])) == f"S.{signature}"


@pytest.mark.parametrize("name", NAMES)
def test_page_tells_meaning_types_and_c(name):
    op = core.get(name)
    page = docs.page(op)
    assert op.doc.splitlines()[0] in page and len(op.doc) > 30
    assert op.special or all(option in page for option in op.options)
    assert op.special or "| yes |" in page


def test_table_has_every_operation_once():
    rows = docs.table()
    assert sorted(row.name for row in rows) == sorted(core.load())
    assert next(row for row in rows if row.name == "vdiv").dtypes == "integers, float32"


def calls(name):
    """A call of the operation for every accepted type and form, without a mask and with one."""
    op = core.get(name)
    for t, row in docs.forms(op).items():
        for form, result in row.items():
            operands = docs.operands_of(op, t, form)
            args = [E.Var(n, kind) for n, kind in zip(op.operands, operands, strict=True)]
            yield op, result, op.build(*args)
            if op.has_mask and form != "scalar":
                yield op, result, op.build(*args, mask="1T1F", **({"r": 1} if op.r == "param" else {}))


@pytest.mark.parametrize("name", VALUE_NAMES)
def test_accepted_types_build_and_have_a_c_form(name):
    for op, result, call in some(calls(name)):
        assert call.dtype is result
        if isinstance(call, E.Call):
            template = spelling.template_of(call)
            assert template, (name, call)
            fields = set(re.findall(r"{(\w+)}", template))
            assert fields <= {*op.operands, "r", "m", "T"}
            assert set(op.operands) <= fields
            assert call.mask is None or "m" in fields
            assert ("r" in fields) <= (op.r != "none")
        else:
            assert result.is_scalar


@pytest.mark.parametrize("name", [n for n in VALUE_NAMES if n not in ("vall", "vany")])
def test_mask_has_the_lanes_of_the_named_operand(name):
    op = core.get(name)
    if not op.has_mask:
        return
    for t, row in some(docs.forms(op).items()):
        for form in some(row):
            operands = docs.operands_of(op, t, form)
            if not operands[-1].is_scalar:
                lanes = (row[form] if op.mask_like < 0 else operands[op.mask_like]).lanes
                args = [E.Var(n, kind) for n, kind in zip(op.operands, operands, strict=True)]
                call = op.build(*args, mask=E.Var("m", core.bool_of(lanes)), **({"r": 1} if op.r == "param" else {}))
                assert call.mask.dtype.lanes == lanes
