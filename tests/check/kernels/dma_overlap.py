"""A transfer moves a tensor within itself."""

from check_data import zeros

from compassc.dsl import script as S

ARGUMENTS = (zeros(64),)


@S.prim_func
def wrong(b: S.ptr("i32", "global")):
    if S.get_local_id() == 0:
        S.dma_copy(b + 8, b, 32)  # check-dma: overlaps its own source
