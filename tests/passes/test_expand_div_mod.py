import pytest

from compassc.ir.verify import VerifyError

P = 'p: T.ptr("int32", "global"), q: T.ptr("int32x8", "global"), n: T.int32, v: T.int32x8'


def test_powers_of_two_shift_and_mask(check):
    check("ExpandDivMod", P, "p[(n // 16)] = (n % 16)", "p[(n >> 4)] = (n & 15)")


def test_operators_that_cut_towards_zero_stay(check):
    check("ExpandDivMod", P, "p[T.div(n, 3)] = T.truncmod(3, n)")
    check("ExpandDivMod", P, "q[0] = T.div(v, T.splat(4, 8))")
    check("ExpandDivMod", P, "p[0] = T.div(n, 4)")


@pytest.mark.parametrize("divisor", ["3", "0", "-4", "n"])
def test_rounding_down_takes_a_power_of_two(check, divisor):
    with pytest.raises(VerifyError, match="no constant power of two"):
        check("ExpandDivMod", P, f"p[0] = (n // {divisor})")
