"""c = a + b on 2048 halves: every TEC brings its quarter into its LSRAM, adds there and writes it back."""

from compassc.dsl import script as S

N = 2048
TECS = 4
PART = N // TECS
LANES = 16


@S.prim_func
def static_add(a: S.ptr("fp16", "global"), b: S.ptr("fp16", "global"), c: S.ptr("fp16", "global")):
    la = S.alloc(PART, "fp16", scope="lsram")
    lb = S.alloc(PART, "fp16", scope="lsram")

    for tec in S.tec_range(0, TECS):
        base = tec * PART
        S.dma_copy(la, a + base, PART)
        S.dma_copy(lb, b + base, PART)
        for i in range(0, PART, LANES):
            S.vstore(S.vadd(S.vload(la + i), S.vload(lb + i)), la + i)
        S.dma_copy(c + base, la, PART)
