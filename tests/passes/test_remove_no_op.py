P = 'p: T.ptr("int32", "global"), n: T.int32'


def test_unused_values(check):
    check(
        "RemoveNoOp",
        P,
        """
        a: T.int32 = (n + 1)
        b: T.int32 = (a + 1)
        c: T.int32 = S.f(n, dtype="int32")
        q: T.ptr("int32", "global") = T.addr(p, n)
        (n + 2)
        t = T.alloc((8,), "int32", "lsram")
        """,
        'S.f(n, dtype="int32")\nT.addr(p, n)',
    )


def test_empty_blocks(check):
    check(
        "RemoveNoOp",
        P,
        """
        c: T.int32 = (n + 1)
        for i in T.serial(0, n, 1):
            if (i < c):
                (c + 1)
        for j in T.serial(4, 4, 1):
            p[j] = 1
        if (n < 3):
            pass
        else:
            p[0] = 1
        p[n] = p[n]
        """,
        "if (3 <= n):\n    p[0] = 1",
    )


def test_must_stay(check):
    check("RemoveNoOp", P, "a: T.int32 = n\na = 5")
    check("RemoveNoOp", P, "p[n] = p[(n + 1)]")
    check("RemoveNoOp", P, 'for i in T.serial(0, n, 1):\n    S.f(i, dtype="void")')
