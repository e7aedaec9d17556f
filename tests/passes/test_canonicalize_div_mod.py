P = 'p: T.ptr("int32", "global"), q: T.ptr("int32x8", "global"), n: T.int32, v: T.int32x8'


def test_powers_of_two_shift_and_mask(check):
    check("CanonicalizeDivMod", P, "p[(n // 16)] = (n % 16)", "p[(n >> 4)] = (n & 15)")


def test_others_truncate(check):
    check("CanonicalizeDivMod", P, "p[(n // 3)] = (3 % n)", "p[T.div(n, 3)] = T.truncmod(3, n)")
    check("CanonicalizeDivMod", P, "q[0] = (v // T.splat(4, 8))", "q[0] = T.div(v, T.splat(4, 8))")


def test_truncating_operators_stay(check):
    check("CanonicalizeDivMod", P, "p[0] = T.div(n, 4)")
