def test_row_major(check):
    check(
        "FlattenBuffer",
        'a: T.ptr("int32", "global"), h: T.int32, w: T.int32, i: T.int32, j: T.int32',
        """
        b = T.match_buffer(a, (h, w), "int32")
        c = T.match_buffer(a, (2, h, w), "int32")
        t = T.alloc((4, 8), "int32", "lsram")
        b[i, j] = c[i, j, 3]
        t[1, j] = b[j, i]
        """,
        """
        t = T.alloc((32,), "int32", "lsram")
        a[((i * w) + j)] = a[((((i * h) + j) * w) + 3)]
        t[((1 * 8) + j)] = a[((j * w) + i)]
        """,
    )


def test_flat_accesses_stay(check):
    check("FlattenBuffer", 'a: T.ptr("int32", "global")', 't = T.alloc((8,), "int32", "lsram")\nt[1] = a[2]')
