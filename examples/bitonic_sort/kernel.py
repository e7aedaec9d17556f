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
        x = S.vload(low)
        y = S.vload(high)
        if (i // distance * distance + i) // run % 2 == 0:
            S.vstore(S.min(x, y), low)
            S.vstore(S.max(x, y), high)
        else:
            S.vstore(S.max(x, y), low)
            S.vstore(S.min(x, y), high)


@S.prim_func
def exchange_near(data: S.ptr("i32", "shared"), size: S.i32, run: S.i32, distance: S.i32):
    """The same within a vector: every lane meets the lane whose number differs in one bit."""
    lanes = S.i32x8([0, 1, 2, 3, 4, 5, 6, 7])
    partners = S.cast(lanes ^ distance, "int16")
    for i in range(S.get_local_id() * LANES, size, S.get_local_size() * LANES):
        x = S.vload(data + i)
        y = S.vload_gather(data + i, partners)
        number = lanes + i
        descending = (number & run) != 0
        takes_smaller = ((number & distance) == 0) ^ descending
        S.vstore(S.vsel(S.min(x, y), S.max(x, y), takes_smaller), data + i)


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

    run = S.i32(2)
    while run <= size:
        distance = run // 2
        while distance > 0:
            if distance >= LANES:
                exchange_far(data, size, run, distance)
            else:
                exchange_near(data, size, run, distance)
            S.barrier()
            distance = distance // 2
        run = run * 2

    if tec == 0:
        S.dma_copy(dst, data, n)
