"""What is ours through the stages: well formed after each pass, and the same when its text is read."""

from __future__ import annotations

from typing import Any

import pytest
from test_assertions import promised, stated
from test_atomics import meet
from test_constants_and_statements import jumps, known_numbers, targets
from test_lane_operations import over_lanes, while_sorting

from compassc import pass_manager, passes
from compassc.analysis.wellformed import verify_stage
from compassc.dsl import parse
from compassc.ir import parse_module, print_module
from compassc.ir.equal import structural_equal

KERNELS = (known_numbers, jumps, targets, meet, stated, promised, while_sorting, over_lanes("float16")[0])


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.__name__)
def test_text_and_guarantees_of_each_stage(kernel: Any) -> None:
    options = pass_manager.PassOptions(verify=True)
    parsed = parse(kernel, "X2_1204")
    lowered = passes.lower(parsed, options)
    legalised = passes.legalize(lowered, options)
    for module, stage in ((parsed, "parsed"), (lowered, "lowered"), (legalised, "legalised")):
        verify_stage(module, stage)
        assert structural_equal(parse_module(print_module(module)), module)
