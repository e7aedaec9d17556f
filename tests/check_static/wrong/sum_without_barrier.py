from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    sums = S.alloc_buffer((4,), "i32", "shared")
    tid = S.get_local_id()
    s = S.i32(0)
    for i in range(16):
        s += x[tid * 16 + i]
    sums[tid] = s
    if tid == 0:
        total = S.i32(0)
        for j in range(4):
            total += sums[j]  # expect: missing-barrier
        y[0] = total
