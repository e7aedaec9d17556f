"""Texts of tensors (`save_json`) that were changed, or made by somebody else."""

from __future__ import annotations

import base64
import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compass_core.errors import UsageError
from compassc import te
from compassc.compat import te_saving


def _saved() -> bytes:
    a, k = te.placeholder((8, te.var("n")), name="a"), te.reduce_axis((0, 8), name="k")
    total = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="total")
    schedule = te.create_schedule(total.op)
    schedule[total].split(total.op.axis[0], 4)
    outside = te.extern((8,), [total], lambda ins, outs: te.call_packed("f", ins[0], outs[0]))
    return base64.b64decode(te_saving.packed([a, total, schedule, outside]))


SAVED = _saved()


@settings(max_examples=80, deadline=None)
@given(
    places=st.lists(st.tuples(st.integers(0, 4000), st.binary(max_size=4)), min_size=1, max_size=4), cut=st.booleans()
)
def test_changed_texts_are_refused(places, cut):
    """A text that was changed is not read at all."""
    data = bytearray(SAVED)
    for at, put in places:
        at %= len(data)
        data[at : len(data) if cut else at + 1] = put
        if not data:
            break
    text = base64.b64encode(data).decode()
    if bytes(data) == SAVED:
        te_saving.unpacked(text)
        return
    with pytest.raises(UsageError, match="no saved tensors: the text was changed"):
        te_saving.unpacked(text)


@pytest.mark.parametrize(
    "payload",
    [
        b"\x80\x05Nr" + (1 << 30).to_bytes(4, "little") + b".",
        b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b".",
        pickle.dumps(te.compute),
        pickle.dumps(te_saving.is_of_tensors),
        b"ccompassc.ir.exprs\n_real\n(F1\nt\x85R.",
    ],
    ids=["memo", "buffer", "function", "other function", "call"],
)
def test_texts_that_take_memory_or_name_functions_are_no_tensors(payload):
    with pytest.raises(UsageError, match="no saved tensors"):
        te_saving.unpacked(te_saving.sealed(payload))


def test_what_is_not_base64_is_no_text_of_tensors():
    with pytest.raises(UsageError, match="no saved tensors"):
        te_saving.unpacked("{}")
