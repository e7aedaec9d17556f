import pytest

P = 'n: T.int32, o: T.ptr("int32", "global")'
LOOP = """
        for i in T.serial(0, n, 1):
            a = T.alloc(({0},), "int32", "{1}")
            a[0] = n
            o[0] = a[0]
        """


def test_arrays_of_different_lifes_are_one(check):
    check(
        "StorageRewrite",
        P,
        LOOP.format(64, "lsram") + 'b = T.alloc((96,), "int32", "lsram")\n        b[1] = n\n        o[1] = b[1]',
        """
        a = T.alloc((96,), "int32", "lsram")
        for i in T.serial(0, n, 1):
            a[0] = n
            o[0] = a[0]
        a[1] = n
        o[1] = a[1]
        """,
    )


def keeps_two(transform, body):
    assert transform("StorageRewrite", body, P).count("T.alloc") == 2


def test_must_not_share(transform):
    second = 'b = T.alloc((64,), "{}", "{}")\n        b[1] = {}\n        '
    keeps_two(transform, LOOP.format(64, "lsram") + second.format("int16", "lsram", "T.int16(1)"))
    keeps_two(transform, LOOP.format(64, "lsram") + second.format("int32", "shared", "n"))
    keeps_two(transform, LOOP.format(64, "private") + second.format("int32", "private", "n"))
    keeps_two(transform, LOOP.format(1, "lsram") + second.format("int32", "lsram", "n"))


def test_a_pointer_in_a_variable_keeps_the_array(transform):
    keeps_two(
        transform,
        """
        a = T.alloc((64,), "int32", "lsram")
        q: T.ptr("int32", "lsram") = T.addr(a, 0)
        b = T.alloc((64,), "int32", "lsram")
        b[0] = n
        o[0] = b[0]
        """,
    )


@pytest.mark.parametrize(
    ("use", "arrays"),
    [
        ('v = S.vadd(v, S.vload(T.addr(a, 0), dtype="int32x8"), dtype="int32x8", saturate=False)', 1),
        ('w: T.int32x8 = S.vload(T.addr(a, 0), dtype="int32x8")', 1),
        ("p = T.addr(a, 8)", 2),
        ('w: T.int32 = T.reinterpret(T.addr(a, 0), "int32")', 2),
    ],
)
def test_what_is_loaded_through_a_pointer_is_none(transform, use, arrays):
    body = f"""
        v: T.int32x8 = T.splat(0, 8)
        p: T.ptr("int32", "lsram") = T.addr(c, 0)
        a = T.alloc((64,), "int32", "lsram")
        {use}
        b = T.alloc((64,), "int32", "lsram")
        b[0] = n
        o[0] = b[0]
        """
    made = transform("StorageRewrite", body, f'{P}, c: T.ptr("int32", "lsram")')
    assert made.count("T.alloc") == arrays


def test_an_array_of_an_outer_block_lives_through_the_loop(transform):
    keeps_two(
        transform,
        """
        a = T.alloc((64,), "int32", "lsram")
        for i in T.serial(0, n, 1):
            o[0] = a[0]
            b = T.alloc((64,), "int32", "lsram")
            b[0] = n
            o[1] = b[0]
        """,
    )


def test_an_array_under_asynchronous_dma_is_kept(transform):
    keeps_two(
        transform,
        """
        a = T.alloc((64,), "int32", "lsram")
        S.async_dma_copy(T.addr(a, 0), T.addr(o, 0), n, n, n, n, 1, dtype="void")
        b = T.alloc((64,), "int32", "lsram")
        b[0] = n
        """,
    )


def test_shared_memory_needs_a_barrier(transform):
    second = 'b = T.alloc((64,), "int32", "shared")\n        b[1] = n\n        '
    keeps_two(transform, LOOP.format(64, "shared") + second)
    body = LOOP.format(64, "shared") + 'S.barrier(dtype="void")\n        ' + second
    assert transform("StorageRewrite", body, P).count("T.alloc") == 1


def test_hoisted_in_order_of_use(check):
    check(
        "StorageRewrite",
        P,
        """
        if (n < 4):
            b = T.alloc((4,), "int32", "private")
            b[0] = n
        a = T.alloc((4,), "int32", "private")
        a[0] = n
        """,
        """
        b = T.alloc((4,), "int32", "private")
        a = T.alloc((4,), "int32", "private")
        if (n < 4):
            b[0] = n
        a[0] = n
        """,
    )
