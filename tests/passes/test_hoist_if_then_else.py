P = 'p: T.ptr("int32", "global"), n: T.int32, m: T.int32'


def test_invariant_condition_moves_out_of_the_nest(check):
    check(
        "HoistIfThenElse",
        P,
        """
        for i in T.serial(0, n, 1):
            for j in T.serial(0, i, 1):
                if (3 < m):
                    p[j] = 1
                else:
                    p[j] = 2
        """,
        """
        if (3 < m):
            for i in T.serial(0, n, 1):
                for j in T.serial(0, i, 1):
                    p[j] = 1
        else:
            for i in T.serial(0, n, 1):
                for j in T.serial(0, i, 1):
                    p[j] = 2
        """,
    )


def test_must_not_move(check):
    loop = "for i in T.serial(0, n, 1):\n    if {}:\n        p[i] = 1"
    for cond in ("(i < m)", "(p[0] < m)", "(T.div(n, m) < 3)", '(S.f(m, dtype="int32") < 3)'):
        check("HoistIfThenElse", P, loop.format(cond))
    check("HoistIfThenElse", P, loop.format("(3 < m)") + "\n    p[0] = 1")
    check("HoistIfThenElse", P, "for i in T.serial(0, n, 1):\n    if (m < 3):\n        m = (m + 1)")
