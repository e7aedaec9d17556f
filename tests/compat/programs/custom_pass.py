"""A pass that makes vectors of loops, by itself and among those of lowering."""

import tvm
from tvm import te

n = tvm.tir.const(96, "int32")
a, b = te.placeholder((n,), name="a"), te.placeholder((n,), name="b")
c = te.compute((n,), lambda i: a[i] + b[i], name="c")
schedule = te.create_schedule(c.op)


@tvm.tir.transform.prim_func_pass(opt_level=0)
def vectors_of_4(function, mod, ctx):
    found = []

    def look(node):
        if isinstance(node, tvm.tir.For) and isinstance(node.extent, tvm.tir.IntImm) and node.extent.value % 4 == 0:
            found.append(node)

    def change(node):
        if node not in found:
            return None
        name = node.loop_var.name
        outer, inner = te.var(name + ".outer"), te.var(name + ".inner")
        body = tvm.tir.stmt_functor.substitute(node.body, {node.loop_var: outer * 4 + inner})
        body = tvm.tir.For(inner, 0, 4, tvm.tir.ForKind.VECTORIZED, body)
        return tvm.tir.For(outer, 0, node.extent.value // 4, tvm.tir.ForKind.SERIAL, body)

    tvm.tir.stmt_functor.post_order_visit(function.body, look)
    return function.with_body(tvm.tir.stmt_functor.ir_transform(function.body, None, change, ["tir.For"]))


assert "vectorized" in str(vectors_of_4(tvm.lower(schedule, [a, b, c])))
with tvm.transform.PassContext(config={"tir.add_lower_pass": [(1, vectors_of_4)]}):
    assert "vectorized" in str(tvm.lower(schedule, [a, b, c], simple_mode=True))
