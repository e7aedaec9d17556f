def test_kernels_with_events_start_with_a_reset(check):
    event = 'e: T.int32 = S.alloc_event(dtype="int32")\nS.free_events(e, dtype="void")'
    check("InitializeEventState", "", event, 'S.init_event_state(dtype="void")\n' + event)


def test_others_stay(check):
    check("InitializeEventState", "n: T.int32", 'S.free_events(n, dtype="void")')
