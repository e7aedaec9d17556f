"""The registry of operators: each is declared once, and `compassc.topi` and the layers of graphs are views of it.

Which file holds what:

* `declare`: an `Operator` has a name, a pattern kind, an expression (a function of tensors whose docstring is the
  documentation, whose arguments with defaults are the attributes, and whose result on placeholders is the type rule), a
  NumPy reference, and samples. A module per family declares them (`elementwise`, `reduction`, ...).
* `patterns`: `PatternKind`, what an operator may share a loop with. Passes and schedules ask for it, not for names.
* `implementations`: other expressions of an operator, for kinds of targets, by condition and priority (`packed` has those
  of the host). Kernels of Relay are made of them.
* `calls`: calls of operators by name, on arrays or (`expressions`) on tensors. What is written in them, such as the body
  of a layer type, is a reference and an expression; `compassc.layers.operator_lanes` adds the lanes of a kernel.

How an operator is computed is said elsewhere, where the target is known: `compassc.topi.schedules` has the default
schedules for each kind of target, the best first, and `compassc.layers.kernels` says of which layers the schedule comes
before the kernel by hand. `docs/internals/declarations.md` follows some operators through all of it.
"""
