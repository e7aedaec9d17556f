"""AssignPassthru: what inactive lanes hold where the program does not say."""

from __future__ import annotations

from vector_text import W, after, c_of, store, unchanged

DIVIDE = 'S.vdiv({}, y, dtype="int32x8", mask=T.mask("3T5F"){})'
ZERO = ", r=T.splat(0, 8)"


def test_a_definition_takes_the_variable_itself():
    self = ', r=S.__self(dtype="int32x8")'
    assert after("AssignPassthru", W + f"z: T.int32x8 = {DIVIDE.format('x', '')}")[-1] == (
        f"z: T.int32x8 = {DIVIDE.format('x', self)}"
    )


def test_an_operand_inside_another_takes_zero():
    inner, outer = DIVIDE.format("x", ZERO), DIVIDE.format(DIVIDE.format("x", ""), "")
    line = after("AssignPassthru", W + store(outer))[-1]
    assert DIVIDE.format(inner, ZERO) in line


def test_a_source_that_the_program_gives_stays():
    assert unchanged("AssignPassthru", W + f"z: T.int32x8 = {DIVIDE.format('x', ', r=x')}")


def test_inactive_lanes_by_context():
    divide = 'S.vdiv({}, y, dtype="int32x8", mask=T.mask("3T5F"))'
    body = (
        W
        + f"z: T.int32x8 = {divide.format('x')}\nz = {divide.format('z')}\n"
        + store(divide.format(divide.format("z")))
    )
    lines = c_of(body)
    mask = "__vmov_w(0x00000111)"
    assert lines[2:4] == [f"int8 z = __vdiv(z, x, y, {mask});", f"z = __vdiv((int8)0, z, y, {mask});"]
    assert lines[4].startswith(f"__vstore(__vdiv((int8)0, __vdiv((int8)0, z, y, {mask}), y, {mask}), ")


def test_operations_without_a_source_are_left_alone():
    assert unchanged("AssignPassthru", W + 'z: T.int32x8 = S.vadd(x, y, dtype="int32x8", saturate=False)')


def test_a_masked_integer_product_is_selected():
    body = W + 'z: T.int32x8 = S.vmul(x, y, dtype="int32x8", mask=T.tail(n, 8), r=x)'
    assert c_of(body)[-1].startswith("int8 z = __vsel((x * y), x, __vmov_w(")
