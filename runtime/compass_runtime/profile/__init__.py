"""The profiler: what a kernel executed, line by line and TEC by TEC, and how long that may take on the device.

`counting(program)` compiles the kernels again with counters in their text; a recorded run of that program becomes a
`Profile` by `profile_of`, which `table`, `page` and `trace` show.
"""

from compass_runtime.profile.collect import counting
from compass_runtime.profile.result import Profile, profile_of

__all__ = ["Profile", "counting", "profile_of"]
