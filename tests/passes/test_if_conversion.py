P = 'p: T.ptr("int32", "global"), n: T.int32, k: T.int32'


def test_guard_of_a_vectorized_loop(check):
    check(
        "IfConversion",
        P,
        """
        for i in T.serial(0, 16, 1):
            for j in T.vectorized(0, 8, 1):
                if (((i * 8) + j) < n):
                    p[((i * 8) + j)] = 1
        """,
        """
        for i in T.serial(0, 16, 1):
            for j in T.vectorized(0, T.max(T.min((n - (i * 8)), 8), 0), 1):
                p[((i * 8) + j)] = 1
        """,
    )


def test_serial_loop_where_nothing_wraps(check):
    check(
        "IfConversion",
        P,
        "for i in T.serial(2, 64, 1):\n    if ((i + 5) < (n % 32)):\n        p[i] = 1",
        "for i in T.serial(2, T.min(((n % 32) - 5), 64), 1):\n    p[i] = 1",
    )


def test_must_stay(check):
    loop = "for i in T.{}(0, n, 1):\n    if {}:\n        p[i] = 1"
    check("IfConversion", P, loop.format("serial", "(i < k)"))
    check("IfConversion", P, loop.format("serial", "((i + 5) < k)"))
    check("IfConversion", P, loop.format("vectorized", "(i < p[0])"))
    check("IfConversion", P, loop.format("vectorized", "(i < (i * k))"))
    check("IfConversion", P, loop.format("vectorized", "(i < k)") + "\n    else:\n        p[i] = 2")
    check("IfConversion", P, loop.format("vectorized", "(i < k)") + "\n    p[0] = 2")
