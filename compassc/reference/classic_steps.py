"""Examples of the steps of classic schedules (`compassc.te`)."""

from __future__ import annotations

from typing import Any

from compassc.reference.primitives import Example, Family
from compassc.te import Schedule, Stage, lower

_CHAIN = """
a = te.placeholder((8, 16), "int32", name="a")
b = te.compute((8, 16), lambda i, j: a[i, j] + 1, name="b")
c = te.compute((8, 16), lambda i, j: b[i, j] * 2, name="c")
s = te.create_schedule(c)
args = [a, c]
"""
_MAP = """
a = te.placeholder((100,), "int32", name="a")
b = te.compute((100,), lambda i: a[i] + 1, name="b")
s = te.create_schedule(b)
(i,) = b.op.axis
args = [a, b]
"""
_SQUARE = """
a = te.placeholder((8, 16), "int32", name="a")
b = te.compute((8, 16), lambda i, j: a[i, j] + 1, name="b")
s = te.create_schedule(b)
i, j = b.op.axis
args = [a, b]
"""
_SUM = """
a = te.placeholder((8, 64), "int32", name="a")
k = te.reduce_axis((0, 64), "k")
b = te.compute((8,), lambda i: te.sum(a[i, k], axis=k), name="b")
s = te.create_schedule(b)
args = [a, b]
"""
_DOT = """
from compassc.dsl import script as S


@S.prim_func
def double(x: S.ptr("i32", "lsram"), y: S.ptr("i32", "lsram")):
    S.vstore(S.vload(x) * 2, y)


x = te.placeholder((8,), "int32", name="x")
y = te.compute((8,), lambda i: x[i] * 2, name="y")
intrin = te.decl_tensor_intrin(y, lambda ins, outs: te.call_kernel(double, ins[0], outs[0]), name="double8")
"""
_TENSORIZED = """
a = te.placeholder((8, 16), "int32", name="a")
b = te.compute((8, 16), lambda i, j: a[i, j] * 2, name="b")
s = te.create_schedule(b)
local = s.cache_write(b, "lsram")
s.cache_read(a, "lsram", [local])
outer, inner = s[local].split(local.op.axis[1], factor=8)
args = [a, b]
"""

_WINDOW = """
a = te.placeholder((10,), "int32", name="a")
b = te.compute((10,), lambda i: a[i] + 1, name="b")
k = te.reduce_axis((0, 3), "k")
c = te.compute((8,), lambda i: te.sum(b[i + k], axis=k), name="c")
s = te.create_schedule(c)
args = [a, c]
"""

EXAMPLES = {
    "split": Example(_MAP, "outer, inner = s[b].split(i, factor=16)", "s[b].split(i, factor=16, nparts=4)"),
    "fuse": Example(_SQUARE, "s[b].fuse(i, j)", "outer, inner = s[b].split(j, factor=4)\ns[b].fuse(i, inner)"),
    "reorder": Example(_SQUARE, "s[b].reorder(j, i)", "s[b].reorder(i, i)"),
    "tile": Example(_SQUARE, "s[b].tile(i, j, 4, 8)"),
    "vectorize": Example(
        _MAP,
        "outer, inner = s[b].split(i, factor=8)\ns[b].vectorize(inner)",
        "s[b].vectorize(i)\ns[b].split(i, factor=8)",
        full=True,
    ),
    "unroll": Example(_MAP, "outer, inner = s[b].split(i, factor=4)\ns[b].unroll(inner)", full=True),
    "parallel": Example(_MAP, "s[b].parallel(i)"),
    "pragma": Example(
        _MAP,
        's[b].pragma(s[b].split(i, factor=4)[0], "auto_unroll_max_step", 8)',
        's[b].pragma(i, "import_c")',
    ),
    "bind": Example(
        _MAP,
        'outer, inner = s[b].split(i, factor=16)\ns[b].bind(outer, te.thread_axis("threadIdx.x"))',
        "s[b].bind(i, i)",
    ),
    "compute_at": Example(_CHAIN, "s[b].compute_at(s[c], c.op.axis[0])", "s[c].compute_at(s[b], b.op.axis[0])"),
    "compute_inline": Example(_CHAIN, "s[b].compute_inline()", "s[c].compute_inline()"),
    "compute_root": Example(_CHAIN + "s[b].compute_at(s[c], c.op.axis[0])\n", "s[b].compute_root()"),
    "set_scope": Example(_CHAIN, 's[b].set_scope("shared")', 's[c].set_scope("lsram")'),
    "cache_read": Example(
        _CHAIN,
        'copy = s.cache_read(a, "lsram", [b])\ns[copy].compute_at(s[b], b.op.axis[0])',
        's.cache_read(a, "lsram", [c])',
        full=True,
    ),
    "cache_write": Example(
        _CHAIN,
        'local = s.cache_write(c, "lsram")\ns[local].compute_at(s[c], c.op.axis[0])',
        's.cache_write(c, "nowhere")',
        full=True,
    ),
    "rfactor": Example(
        _SUM, "outer, inner = s[b].split(k, factor=8)\ns.rfactor(b, outer)", "s.rfactor(b, b.op.axis[0])"
    ),
    "double_buffer": Example(
        _MAP + 'copy = s.cache_read(a, "lsram", [b])\n',
        "outer, inner = s[b].split(i, factor=20)\ns[copy].compute_at(s[b], outer)\ns[copy].double_buffer()",
        "s[b].double_buffer()",
        full=True,
    ),
    "prefetch": Example(
        _MAP, "outer, inner = s[b].split(i, factor=20)\ns[b].prefetch(a, outer, 1)", "s[b].prefetch(a, i, 0)", full=True
    ),
    "rolling_buffer": Example(
        _WINDOW, "s[b].compute_at(s[c], c.op.axis[0])\ns[b].rolling_buffer()", "s[c].rolling_buffer()"
    ),
    "storage_align": Example(
        _CHAIN, "s[b].storage_align(b.op.axis[0], 32, 8)", "s[b].storage_align(b.op.axis[1], 32, 8)"
    ),
    "set_store_predicate": Example(_SQUARE, "s[b].set_store_predicate(i + j < 10)", "s[b].set_store_predicate(i + j)"),
    "env_threads": Example(_MAP, 's[b].env_threads([te.thread_axis("threadIdx.x")])', "s[b].env_threads([i])"),
    "tensorize": Example(_DOT + _TENSORIZED, "s[local].tensorize(inner, intrin)", "s[local].tensorize(outer, intrin)"),
    "create_group": Example(
        _CHAIN.replace('name="b")', 'name="b0")\nb = te.compute((8, 16), lambda i, j: b0[i, j] - 3, name="b")').replace(
            "b = te.compute((8, 16), lambda i, j: a", "b0 = te.compute((8, 16), lambda i, j: a"
        ),
        "group = s.create_group(outputs=b, inputs=a)\ngroup.compute_at(s[c], c.op.axis[0])",
        "s.create_group(outputs=b, inputs=c)",
    ),
}


def _show(variables: dict[str, Any], full: bool) -> str:
    """The loops of the schedule `s` with the arguments `args`, without what every kernel begins with."""
    module = lower(variables["s"], variables["args"], "kernel", "X2_1204", simple_mode=not full)
    lines = module.entry_func.script().split("-> T.void:\n")[1].rstrip().splitlines()
    return "\n".join(line[8:] for line in lines if "match_buffer" not in line)


FAMILY = Family("Steps of schedules of tensor expressions", "te", (Stage, Schedule), _show, EXAMPLES)
