from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    for i in range(8):
        if x[i] == 3:
            break
    else:
        y[1] = -1  # expect: unreachable
    y[0] = 1
