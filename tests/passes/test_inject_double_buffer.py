"""InjectDoubleBuffer: transfers a turn ahead, into the half of an array that nobody reads."""

from __future__ import annotations

import pytest
from module_text import body_text, module_text

from compassc import pass_manager
from compassc.ir import parse_module

COPY = 'S.dma_copy(T.addr(a, 0), T.addr(p, (i * 16)), 64, 64, 64, 64, dtype="void")'
USE = "q[i] = a[3]"


def after(*body: str, names: str = "['a']"):
    head = f'@T.func(scalar_loops={names})\ndef k(p: T.ptr("int32", "global"), q: T.ptr("int32", "global")) -> T.void:'
    lines = [
        'a = T.alloc((16,), "int32", "lsram")',
        "for i in T.serial(0, 8, 1, nonneg=True):",
        *("    " + s for s in body),
    ]
    module = parse_module(module_text("\n".join([head, *("    " + line for line in lines)])))
    return pass_manager.run_pipeline(("InjectDoubleBuffer",), module, pass_manager.PassOptions(verify=True))


def test_transfers_into_an_array_are_a_turn_ahead():
    module = after(COPY, USE)
    text = body_text(module)
    assert 'T.alloc((2, 16), "int32", "lsram")' in text and "S.dma_copy(" not in text
    assert text.count("S.async_dma_copy(") == 2 and text.count("S.wait_events(") == 1
    assert text.index("S.async_dma_copy(") < text.index("for i") < text.index("S.wait_events(")
    assert not module.entry_func.attr("scalar_loops")


@pytest.mark.parametrize("body", [(USE, COPY), (COPY, USE, COPY), (USE,), (COPY, "a[0] = 1", "p[(i + 1) * 16] = a[0]")])
def test_an_array_that_the_loop_does_not_begin_with_filling_stays(body):
    assert "(2, 16)" not in body_text(after(*body)) or body[-1] == COPY


def test_an_array_that_is_not_named_stays():
    assert COPY in body_text(after(COPY, USE, names="[]"))
