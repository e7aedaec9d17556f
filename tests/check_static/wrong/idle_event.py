from compassc.dsl import script as S


@S.prim_func
def k(x: S.ptr("i32", "global"), y: S.ptr("i32", "global")):
    _e = S.alloc_events(1)  # expect: event-not-freed
    y[0] = x[0]
