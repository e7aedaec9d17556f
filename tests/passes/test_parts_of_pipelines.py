"""Kernels of which some passes did not run: they have C all the same, or are refused, and no refusal is a defect."""

from __future__ import annotations

import pytest

from compass_core.errors import CompassError
from compassc import codegen, passes, te, topi
from compassc.analysis.interface import interface_of
from compassc.pass_manager import PassOptions, pipeline_names
from tests.choosing import chosen

PASSES = [*pipeline_names("loops"), *pipeline_names("lower"), *pipeline_names("legalize")]


def text_of(options):
    x = te.placeholder((3, 20), name="x")
    y = topi.nn.softmax(x)
    plain = te.lower(topi.schedule([y], "X2_1204"), [x, y], "k", "X2_1204", simple_mode=True)
    lowered = passes.lower(plain, options)
    return codegen.emit(passes.legalize(lowered, options), interface_of(lowered)).text


@pytest.mark.parametrize("limit", range(0, len(PASSES) - 12, 12))
def test_the_first_passes_alone_make_no_c(limit):
    with pytest.raises(CompassError, match="has no C form|is not one vector register"):
        text_of(PassOptions(limit=limit))


@pytest.mark.parametrize("name", sorted({"FlattenBuffer", "LegalizeVectorWidth", *chosen(set(PASSES), 10)}))
def test_a_pass_that_is_left_out_is_needed_or_not(name):
    try:
        assert "__kernel" in text_of(PassOptions(disabled=frozenset({name})))
    except CompassError as error:
        assert name in f"{error} {error.help}", error
