"""Sort up to 32768 integers in shared memory: a bitonic network, the four TECs sharing the work of each step."""

from compassc.dsl import script as S

LANES = 8
LIMIT = 32768  # elements, 128 KiB
HIGHEST = 2**31 - 1


@S.prim_func
def exchange_far(data: S.ptr("i32", "shared"), size: S.i32, run: S.i32, distance: S.i32):
    """Order elements `distance` apart, at least a vector: whole vectors are compared with each other.

    Runs of `run` elements are to become sorted, by turns ascending and descending.
    """
    for i in range(S.get_local_id() * LANES, size // 2, S.get_local_size() * LANES):
        low = data + (i // distance * distance + i)
        high = low + distance
        small, large = S.min(S.vload(low), S.vload(high)), S.max(S.vload(low), S.vload(high))
        if (i // distance * distance + i) // run % 2 != 0:
            small, large = large, small
        S.vstore(small, low)
        S.vstore(large, high)


@S.prim_func
def sort_vectors(data: S.ptr("i32", "shared"), size: S.i32, run: S.i32):
    """The steps within a vector, all at once."""
    for i in range(S.get_local_id() * LANES, size, S.get_local_size() * LANES):
        x = S.vload(data + i)
        S.vstore(S.vsort(x) if i & run == 0 else S.vsort(x, descending=True), data + i)


@S.prim_func
def bitonic_sort(src: S.ptr("i32", "global"), dst: S.ptr("i32", "global"), n: S.i32):
    data = S.alloc(LIMIT, "i32", scope="shared")
    tec = S.get_local_id()

    # The network needs a power of two: what is missing is filled with the largest integer, which sorts to the end.
    size = S.i32(LANES)
    while size < n:
        size = size * 2
    if tec == 0:
        for i in range(n // LANES * LANES, size, LANES):
            S.vstore(S.i32x8(HIGHEST), data + i)
        S.dma_copy(data, src, n)
    S.barrier()

    run = S.i32(LANES)
    while run <= size:
        distance = run // 2
        while distance >= LANES:
            exchange_far(data, size, run, distance)
            S.barrier()
            distance = distance // 2
        sort_vectors(data, size, run)
        S.barrier()
        run = run * 2

    if tec == 0:
        S.dma_copy(dst, data, n)
