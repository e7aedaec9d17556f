"""What `compassc tune` takes besides kernels: expressions without a schedule, and a template."""

from compassc import te, topi
from compassc.tuning.templates import template


@te.kernel
def doubled_rows(rows=16, columns=64):
    x = te.placeholder((rows, columns), "int32", name="x")
    return [x, topi.add(x, x)]


@te.kernel
def scheduled():
    x = te.placeholder((64,), "int32", name="x")
    y = te.compute((64,), lambda i: x[i] + 1, name="y")
    return te.create_schedule(y), [x, y]


@template
def tiled(cfg, n, factor=2):
    a = te.placeholder((n,), "int32", name="a")
    b = te.compute((n,), lambda i: a[i] * factor, name="b")
    s = te.create_schedule(b)
    cfg.define_split("tile", b.op.axis[0], candidate=[[-1, 16], [-1, 32]], policy="candidate")
    _, inner = cfg["tile"].apply(s, b, b.op.axis[0])
    s[b].vectorize(inner)
    return s, [a, b]
