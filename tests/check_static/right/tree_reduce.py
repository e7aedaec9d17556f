from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    part = S.alloc(4, "i32", "shared")
    tid = S.get_local_id()
    s = S.i32(0)
    for i in range(tid * 64, tid * 64 + 64):
        s += x[i]
    part[tid] = s
    S.barrier()
    if tid < 2:
        part[tid] = part[tid] + part[tid + 2]
    S.barrier()
    if tid == 0:
        y[0] = part[0] + part[1]
