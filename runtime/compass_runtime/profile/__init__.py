"""The profiler: what a kernel executed, line by line and TEC by TEC, and how long that may take on the device.

`collect.counting` compiles a program's kernels again with counters in their text; a recorded run of that program
becomes a `Profile` by `result.profile_of`, which `table`, `page`, `trace` and `data` show. `run.profiled_call` does it
all for one call.
"""
