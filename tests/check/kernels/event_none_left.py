"""Events are allocated in a loop and never freed; how often it runs is known at run time alone."""

from check_data import ints, zeros

from compassc.dsl import script as S

ARGUMENTS = (ints(64), zeros(64), 8)


@S.prim_func
def wrong(a: S.ptr("i32", "global"), b: S.ptr("i32", "global"), n: S.i32):
    buf = S.alloc_buffer((8,), "int32", "lsram")
    if S.get_local_id() == 0:
        for i in range(n):
            ev = S.alloc_events(1)  # check-dma: TEC 0 allocates an event, but all 4 are in use
            if i < 4:
                S.async_dma_copy(buf, a + i * 8, 8, event=ev)
                S.wait_events(ev)
                S.vstore(S.vload(buf), b + i * 8)
