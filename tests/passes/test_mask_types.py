"""The register width of mask variables."""

from __future__ import annotations

import pytest
from vector_text import module

from compassc import pass_manager
from compassc.analysis.mask_types import MaskTypes
from compassc.ir import walk_stmts


def widths(body: str, **kwargs: str) -> dict[str, int]:
    """The width of each mask variable of `k` by its name."""
    m = pass_manager.run_pipeline(("LowerVectorOperators",), module(body, **kwargs))
    types = MaskTypes(m)
    found = [s.var for s in walk_stmts(m["k"].body) if type(s).__name__ == "Let" and s.var.dtype.is_mask]
    return {v.name: types.width(v) for v in found}


LOAD = 'x: T.{0}x16 = S.vload(T.addr(a, 0, "{0}"), 1, dtype="{0}x16"{1})\n'


@pytest.mark.parametrize(("kind", "width"), [("int8", 32), ("int16", 16), ("int32", 8)])
def test_a_comparison_decides(kind, width):
    body = LOAD.format(kind, "") + "m: T.boolx16 = (x > x)\n" + LOAD.replace("x:", "y:").format("int16", ", mask=m")
    assert widths(body) == {"m": width}


def test_the_first_use_decides_for_other_masks():
    body = "m: T.boolx16 = T.tail(n, 16)\n" + LOAD.format("int32", ", mask=m")
    assert widths(body + LOAD.replace("x:", "y:").format("int8", ", mask=m")) == {"m": 8}


def test_it_spreads_to_the_masks_it_was_made_of():
    body = "m: T.boolx16 = T.tail(n, 16)\nk: T.boolx16 = (m & T.tail(3, 16))\n" + LOAD.format("int8", ", mask=k")
    assert widths(body) == {"m": 32, "k": 32}


def test_a_mask_assigned_from_itself_and_an_unused_one():
    assert widths("m: T.boolx16 = T.tail(n, 16)\nm = (m & m)\nu: T.boolx3 = T.tail(n, 3)") == {"m": 16, "u": 8}


def test_an_argument_takes_the_width_of_the_parameter():
    more = """
    @T.func
    def sub(p: T.boolx16, q: T.ptr("int32", "global")) -> T.void:
        S.vstore(T.splat(1, 16), T.addr(q, 0), 1, dtype="void", mask=p)
"""
    assert widths("m: T.boolx16 = T.tail(n, 16)\nModule.sub(m, a)", more=more) == {"m": 8}
