"""VerifyMemory: what takes more SRAM than there is, is refused with a table."""

from __future__ import annotations

import pytest

from compassc.te import LowerError

PARAMS = 'p: T.ptr("int32", "global")'
USE = "\n{0}[0] = 1\np[0] = {0}[0]"


def arrays(size: int, scope: str) -> str:
    return f'a = T.alloc(({size},), "int32", "{scope}")\nb = T.alloc(({size},), "int32", "{scope}")'


@pytest.mark.parametrize(("size", "scope"), [(5000, "lsram"), (40000, "shared")])
def test_the_table_says_what_takes_how_much(transform, size, scope):
    body = arrays(size, scope) + "\na[0] = 1\nb[0] = 2\np[0] = (a[0] + b[0])"
    with pytest.raises(
        LowerError, match=rf"on X2_1204 has .* bytes, the schedule needs {8 * size:,}:\n +{4 * size:,}  a\n"
    ):
        transform("VerifyMemory", body, PARAMS)


def test_arrays_that_do_not_live_together_share_it(check):
    check("VerifyMemory", PARAMS, arrays(5000, "lsram") + USE.format("a") + USE.format("b"))
