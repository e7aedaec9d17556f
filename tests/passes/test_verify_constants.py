"""VerifyConstants: what C cannot write is refused."""

from __future__ import annotations

import pytest

from compassc.te import LowerError

PARAMS = 'p: T.ptr("float32", "global")'
CONSTANTS = ("T.float64(0.1)", "T.int64(4294967296)", "T.int64(-2147483649)")


def stored(constant: str) -> str:
    return f'p[0] = T.cast({constant}, "float32")'


@pytest.mark.parametrize("constant", CONSTANTS)
def test_constants_of_64_bits_are_refused(transform, constant):
    with pytest.raises(LowerError, match="cannot write"):
        transform("VerifyConstants", stored(constant), PARAMS)


@pytest.mark.parametrize("constant", ["T.float64(0.5)", "T.int64(2147483647)", "T.int64(-2147483648)"])
def test_others_stay(check, constant):
    check("VerifyConstants", PARAMS, stored(constant))
