"""Text in, text out: run one pass or a pipeline on the body of a function written as IR text."""

from __future__ import annotations

import pytest
from module_text import body_text, module_text

from compassc import pass_manager
from compassc.ir import parse_module
from compassc.ir.verify import verify


@pytest.fixture
def transform():
    """transform(pass names, body, params) -> printed body, verified before and after."""

    def go(names: str, body: str, params: str = "") -> str:
        module = parse_module(module_text(body, params))
        options = pass_manager.PassOptions(verify=True)
        return body_text(pass_manager.run_pipeline(pass_manager.parse_pipeline(names), module, options))

    return go


@pytest.fixture
def check(transform):
    """check(pass names, params, body, expected body): the printed results are equal; expected None: nothing changes."""

    def go(names: str, params: str, before: str, after: str | None = None) -> None:
        module = parse_module(module_text(before if after is None else after, params))
        verify(module)
        assert transform(names, before, params) == body_text(module)

    return go
