from compassc.dsl import script as S


@S.prim_func
def first(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    a = S.alloc(4096, "fp32", "lsram")
    S.dma_copy(a, x, 4096)
    S.dma_copy(y, a, 4096)


@S.prim_func
def second(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global")):
    b = S.alloc(6000, "fp32", "lsram")
    S.dma_copy(b, x, 6000)
    S.dma_copy(y, b, 6000)


@S.prim_func
def k(x: S.ptr("fp32", "global"), y: S.ptr("fp32", "global"), n: S.i32):
    if n > 3:
        first(x, y)
    else:
        second(x, y)
