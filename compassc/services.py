"""What a lower package asks of a higher one, which it must not import: functions by name.

Each is called like the function that it stands for. `compassc/__init__.py`, above all packages, says which function that is; its
module is imported at the first call.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Service:
    """A function that a higher package has."""

    _home = ("", "")

    def given_by(self, module: str, name: str) -> None:
        """From now on it is this function."""
        self._home = module, name

    def function(self) -> Any:
        """The function itself."""
        module, name = self._home
        return getattr(import_module(module), name)

    def __call__(self, *args: object, **options: object) -> Any:
        return self.function()(*args, **options)


take_vendor_names = Service()
"""`()`: the vendor's names can be imported from now on."""
other_package = Service()
"""`() -> str | None`: the path of another package that has the vendor's names."""
autotune = Service()
"""`S.autotune`."""
apply_history_best = Service()
"""`(*paths)`, a context: builds take the best of these records too."""
best_choices = Service()
"""`(layers, target) -> Mapping[str, str] | None`: the choices of a kernel that are best on record."""
are_others_on_record = Service()
"""`() -> bool`: whether builds take other records than those of the package."""
best_schedule = Service()
"""`(outputs, target) -> Schedule | None`: the schedule of operators that is best on record."""
default_schedule = Service()
"""`(outputs, target) -> Schedule`: the schedule of operators for which the user gives none."""
tensor_operator = Service()
"""`(name, *operands) -> Tensor`: the expression of an operator."""
create_prim_func = Service()
"""`(ops, index_dtype_override) -> PrimFunc`: the function of blocks that computes tensors."""
lower_blocks = Service()
"""`(module, target) -> IRModule`: a module without blocks, for a target."""
tune_program = Service()
"""`(model, target, records, **options) -> str`: the file of records of a model's kernels for the host, searched for here."""
compile_program = Service()
"""`(model, target, tuning_records=None, **options)`: a package of a model, its kernels from such records."""
machine = Service()
"""`(target) -> Machine`: what schedules are lowered for, for a target (None: the current one)."""
build = Service()
"""`(inputs, args, target, name) -> Module`: a schedule, a function or a module as something to call, for a target."""
layer_type = Service()
"""`(name) -> LayerType | None`: a declared layer type."""
layer_types = Service()
"""`() -> Mapping[str, LayerType]`: the declared layer types by name."""
layer_shapes = Service()
"""`(layer) -> list[Shape] | None`: the shapes of a layer's outputs; None where they do not follow from its inputs."""
evaluate_layer = Service()
"""`(layer, inputs) -> list[Array]`: the outputs of a layer by its reference; LayerError for one that it refuses."""
layer_cost = Service()
"""`(layer) -> Cost`: the elements that the reference of a layer holds, and what it computes."""
layer_library = Service()
"""`(options, target) -> Library`: the built-in layers for a build of a graph."""
own_library = Service()
"""`(name, text) -> OwnLibrary`: a C text of ours as a library of this machine."""
npu_module = Service()
"""`(module, target) -> Module`: the program of an IR module for an NPU, to be called."""
