"""Operator expressions computed twice become cse_var_N; everything else stays."""

P = 'p: T.ptr("int32", "global"), q: T.ptr("float32", "global"), a: T.int32, b: T.int32, c: T.int32, d: T.int32'


def cse(check, before, after=None):
    check("CommonSubexprElim", P, before, after)


def test_defined_where_its_operands_are(check):
    cse(
        check,
        """
        x: T.int32 = p[a]
        y: T.int32 = p[b]
        p[(a * b)] = y
        p[(x + b)] = (x + b)
        for i in T.serial(0, a, 1):
            p[(a * b)] = 3
            p[(i * b)] = (i * b)
        """,
        """
        x: T.int32 = p[a]
        cse_var_1: T.int32 = (x + b)
        y: T.int32 = p[b]
        p[(a * b)] = y
        p[cse_var_1] = cse_var_1
        for i in T.serial(0, a, 1):
            cse_var_2: T.int32 = (i * b)
            p[(a * b)] = 3
            p[cse_var_2] = cse_var_2
        """,
    )


def test_larger_ones_are_numbered_first_and_use_smaller_ones(check):
    cse(
        check,
        "p[((a * b) + c)] = 1\np[((a * b) + c)] = 2\np[(a * b)] = 3",
        """
        cse_var_2: T.int32 = (a * b)
        cse_var_1: T.int32 = (cse_var_2 + c)
        p[cse_var_1] = 1
        p[cse_var_1] = 2
        p[cse_var_2] = 3
        """,
    )


def test_parts_of_what_is_not_yet_known_come_first(check):
    cse(
        check,
        "x: T.int32 = p[a]\np[((a * b) + x)] = ((a * b) + x)",
        """
        cse_var_1: T.int32 = (a * b)
        x: T.int32 = p[a]
        cse_var_2: T.int32 = (cse_var_1 + x)
        p[cse_var_2] = cse_var_2
        """,
    )


def test_both_branches_count(check):
    cse(
        check,
        "if (c < d):\n    p[0] = (a * b)\nelse:\n    p[1] = (a * b)",
        "cse_var_1: T.int32 = (a * b)\nif (c < d):\n    p[0] = cse_var_1\nelse:\n    p[1] = cse_var_1",
    )


def test_a_variable_of_the_kernel_is_reused_inside(check):
    cse(
        check,
        "x: T.int32 = (a * b)\nfor i in T.serial(0, a, 1):\n    p[i] = (a * b)",
        "x: T.int32 = (a * b)\nfor i in T.serial(0, a, 1):\n    p[i] = x",
    )


def test_names_in_use_are_skipped(check):
    cse(
        check,
        "cse_var_1: T.int32 = p[0]\np[(a * b)] = (a * b)",
        "cse_var_2: T.int32 = (a * b)\ncse_var_1: T.int32 = p[0]\np[cse_var_2] = cse_var_2",
    )


def test_must_stay(check):
    cse(check, "p[0] = (a << b)\np[1] = (a << b)")
    cse(check, "p[0] = (a & b)\np[1] = (a & b)")
    cse(check, "p[0] = (p[a] + 1)\np[1] = (p[a] + 1)")
    cse(check, 'p[0] = (S.f(a, dtype="int32") + 1)\np[1] = (S.f(a, dtype="int32") + 1)')
    cse(check, "p[0] = T.select((a < b), a, c)\np[1] = T.select((b < a), a, c)")
    cse(check, "if (c < d):\n    p[0] = (a * b)\np[1] = (c * b)")
    cse(check, "p[0] = (a * b)\na = 5\np[1] = (a * b)")


def test_a_division_by_a_number_other_than_zero_is_moved_freely(check):
    """It has a result for every dividend, also the least one by -1, and no run reports it."""
    divide = "p[0] = T.div(a, -1)\np[1] = T.div(a, -1)"
    early = "if (b == 0):\n    return\n"
    cse(check, early + divide, "cse_var_1: T.int32 = T.div(a, -1)\n" + early + "p[0] = cse_var_1\np[1] = cse_var_1")
    cse(check, early + divide.replace("-1", "0"))


def test_a_division_is_not_moved_past_the_test_that_protects_it(check):
    divide = "p[0] = T.div(a, b)\np[1] = T.div(a, b)"
    cse(check, "if (b == 0):\n    return\n" + divide)
    cse(
        check,
        "p[0] = T.select((b != 0), T.div(a, b), 0)\np[1] = T.select((b != 0), T.div(a, b), 1)".replace(
            "(b != 0)", "(b < c)", 1
        ),
    )
    cse(check, divide, "cse_var_1: T.int32 = T.div(a, b)\np[0] = cse_var_1\np[1] = cse_var_1")


def test_element_stores_and_addresses_block(check):
    vector = 'v: T.int32x8, o: T.ptr("int32x8", "global")'
    check("CommonSubexprElim", vector, "o[0] = (v + v)\nT.set_element(v, 1, 5)\no[1] = (v + v)")
    scalar = 'x: T.int32 = p[0]\np[0] = (x + a)\nS.f(T.address_of(x), dtype="void")\np[1] = (x + a)'
    cse(check, scalar)
