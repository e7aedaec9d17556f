from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global"), n: S.i32):
    hist = S.alloc_buffer((16,), "i32", "lsram")
    for i in range(16):
        hist[i] = 0
    for i in range(16):
        hist[i - 1] = hist[i]  # expect: out-of-bounds
    for i in range(n):
        y[i] = hist[i % 16]
