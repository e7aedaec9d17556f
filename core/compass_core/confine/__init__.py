"""Running a program on input that may come from anybody, so that it can do no harm.

`run` starts the file `child`, which confines itself and then becomes the program. The program reads its input from
stdin and the files it was granted, and writes to stdout and stderr. It opens no other file and none to write, starts no
process, has no network, and ends with its parent, at its time limit, or when it writes more than it may.
"""

from compass_core.confine.parent import (
    MEANS,
    Finished,
    Limits,
    NotConfined,
    Permissions,
    available,
    run,
)

__all__ = ["MEANS", "Finished", "Limits", "NotConfined", "Permissions", "available", "run"]
