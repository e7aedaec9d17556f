"""A kernel is made of a schedule once, and again when anything that it follows from has changed."""

from __future__ import annotations

import pytest

from compassc import te
from compassc.ir import structural_equal
from compassc.ir.iter_vars import Range
from compassc.pass_manager import PassOptions, standing
from compassc.te.schedule.annotation import Annotation
from compassc.te.schedule.record import copied

TARGET, OTHER = "X2_1204", "X3P_1304"


def scheduled():
    x = te.placeholder((64, 32), "int32", name="x")
    y = te.compute((64, 32), lambda i, j: x[i, j] + 1, name="y")
    z = te.compute((64, 32), lambda i, j: y[i, j] * 2, name="z")
    return te.create_schedule(z.op), x, y, z


def same_as_new(s, made, args, name="k", target=TARGET):
    """Whether a module is what a schedule without memory gives."""
    return structural_equal(made, te.lower(copied(s), args, name, target))


def test_a_schedule_that_has_not_changed_is_lowered_once():
    s, x, _, z = scheduled()
    made = te.lower(s, [x, z], "k", TARGET)
    assert te.lower(s, [x, z.op.output(0)], "k", TARGET) is made and same_as_new(s, made, [x, z])
    renamed = te.lower(s, [x, z], "other", TARGET)
    assert renamed.entry == "other" and same_as_new(s, renamed, [x, z], "other")
    assert structural_equal(renamed.entry_func.body, made.entry_func.body, map_free_vars=True)


CHANGES = {
    "a step": lambda s, y, z: s[z].vectorize(z.op.axis[1]),
    "a step on another stage": lambda s, y, z: s[y].compute_inline(),
    "where a stage is computed": lambda s, y, z: setattr(s[y], "attached", (s[z], z.op.axis[0])),
    "the body of a stage": lambda s, y, z: setattr(s[z], "body", (z.op.body[0] + 1,)),
    "the range of an axis": lambda s, y, z: setattr(z.op.axis[0], "dom", Range(16)),
    "an annotation": lambda s, y, z: s[z].annotations.update({z.op.axis[1]: Annotation("vectorize")}),
    "the memory of a stage": lambda s, y, z: setattr(s[y], "scope", "shared"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=list(CHANGES))
def test_what_has_changed_counts(change):
    s, x, y, z = scheduled()
    s[y].set_scope("lsram")
    before = te.lower(s, [x, z], "k", TARGET)
    change(s, y, z)
    made = te.lower(s, [x, z], "k", TARGET)
    assert not structural_equal(made, before), "the change is to be seen"
    assert same_as_new(s, made, [x, z])


def test_an_annotation_that_is_changed_in_place_counts():
    s, x, _, z = scheduled()
    s[z].unroll(z.op.axis[1])
    before = te.lower(s, [x, z], "k", TARGET)
    s[z].annotations[z.op.axis[1]].loop = ""
    assert not structural_equal(te.lower(s, [x, z], "k", TARGET), before)


def test_arguments_and_targets_count():
    s, x, _, z = scheduled()
    te.lower(s, [x, z], "k", TARGET)
    for args, target in (([z, x], TARGET), ([x, z], OTHER), ([x, z], "llvm"), ([x, z], TARGET)):
        assert same_as_new(s, te.lower(s, args, "k", target), args, target=target)


def test_who_watches_passes_sees_them_run():
    s, x, _, z = scheduled()
    te.lower(s, [x, z], "k", TARGET)
    options = PassOptions()
    with standing(options):
        te.lower(s, [x, z], "k", TARGET)
    assert options.runs
