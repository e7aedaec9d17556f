P = 'p: T.ptr("int32", "global"), v: T.ptr("int32x8", "global"), n: T.int32'


def test_scalars_splats_and_masks_are_inlined(check):
    check(
        "ConstantPropagation",
        P,
        """
        c: T.int32 = 5
        s: T.int32x8 = T.splat(c, 8)
        m: T.boolx8 = T.splat(True, 8)
        h: T.boolx8 = T.mask("3T5F")
        v[c] = S.vadd(s, s, dtype="int32x8", mask=m, r=s)
        v[1] = S.vadd(s, s, dtype="int32x8", mask=h, r=s)
        """,
        """
        v[5] = S.vadd(T.splat(5, 8), T.splat(5, 8), dtype="int32x8")
        v[1] = S.vadd(T.splat(5, 8), T.splat(5, 8), dtype="int32x8", mask=T.mask("3T5F"), r=T.splat(5, 8))
        """,
    )


def test_changing_variables_stay(check):
    check("ConstantPropagation", P, "c: T.int32 = 5\nc = (c + 1)\np[0] = c")
    check("ConstantPropagation", P, "s: T.int32x8 = T.splat(0, 8)\nT.set_element(s, 1, 2)\nv[0] = s")
    check("ConstantPropagation", P, 'c: T.int32 = 5\nS.f(T.address_of(c), dtype="void")\np[0] = c')
    check("ConstantPropagation", P, 'c: T.int32 = 5\nS.inline_asm(c, dtype="void")')


def test_other_values_stay(check):
    check("ConstantPropagation", P, "c: T.int32 = n\ns: T.int32x8 = T.splat(n, 8)\nv[c] = s")
