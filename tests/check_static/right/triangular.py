from compassc.dsl import script as S

N = 16


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    m = S.alloc_buffer((N, N), "fp32", "lsram")
    a = S.match_buffer(x, (N, N))
    for i in range(N):
        for j in range(i + 1):
            m[i, j] = a[i, j]
        for j in range(i + 1, N):
            m[i, j] = a[j, i]
    for i in range(1, N):
        for j in range(N):
            m[i, j] = m[i, j] + m[i - 1, j]
    for i in range(N - 1, N):
        S.vstore(m[i, 0:8], y)
        S.vstore(m[i, 8:16], y + 8)
    tid = S.get_local_id()
    if tid == 3:
        y[N - 1] = m[N - 1, N - 1]
    flag = S.i32(0)
    for i in range(N):
        if m[i, i] > 3.0:
            flag = 1
            break
    y[N] = S.fp32(flag)
