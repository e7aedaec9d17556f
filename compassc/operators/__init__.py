"""The registry of operators: each is declared once, and `compassc.topi` and the layers of graphs are views of it.

Objects:

* `Operator` (`declare`): name, pattern kind, type rule, expression, NumPy reference, samples, documentation. The
  expression is a function of tensors (`compassc.te`) with Python arguments as attributes; its docstring is the
  documentation, and what it makes of placeholders is the type rule. A module per family (`elementwise`, ...).
* `PatternKind` (`patterns`): what an operator may share a loop with. Passes and schedules ask for it, not for names.
* Implementations: how a kind of target computes an operator. Default schedules of expressions are in
  `compassc.topi.schedules`, kernels by hand in `compassc.layers`.

Views:

* `compassc.topi`: expressions under their names, for programs that build them.
* `compassc.layers`: a layer type of Compass IR is an operator with the attributes and tensors of the file, and with an
  integer form of its own.
"""
