"""The compiler of the Compass DSL. Kernel authors import from `compassc.dsl`; `compassc.compile` builds a model. Importing
this package does no work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compass_core import VERSION as __version__
from compassc import services

if TYPE_CHECKING:
    from compass_core.errors import CompassError
    from compassc import evaluation, quantizer
    from compassc.models import Model, compile

_HOMES = {"Model": "compassc.models", "compile": "compassc.models", "CompassError": "compass_core.errors"}
"""Where names of this package are defined; they are imported when they are asked for."""
_PACKAGES = ("evaluation", "quantizer")

services.take_vendor_names.given_by("compassc.compat", "install")
services.other_package.given_by("compassc.compat", "other_package")
services.autotune.given_by("compassc.tuning.kernels", "autotune")
services.apply_history_best.given_by("compassc.tuning.history", "apply_history_best")
services.best_choices.given_by("compassc.tuning", "best_choices")
services.are_others_on_record.given_by("compassc.tuning", "are_others_on_record")
services.best_schedule.given_by("compassc.tuning", "best_schedule")
services.default_schedule.given_by("compassc.topi", "schedule")
services.tensor_operator.given_by("compassc.operators.expressions", "define")
services.create_prim_func.given_by("compassc.tir", "create_prim_func")
services.lower_blocks.given_by("compassc.tir", "lower")
services.tune_program.given_by("compassc.compat.tvmc_tuning", "tune")
services.compile_program.given_by("compassc.compat.tvmc_tuning", "compile")
services.machine.given_by("compassc.targets.target", "machine_of")
services.build.given_by("compassc.targets", "build")
services.layer_type.given_by("compassc.layers.declare", "find_type")
services.layer_types.given_by("compassc.layers.declare", "all_types")
services.layer_shapes.given_by("compassc.layers.shapes", "shapes_of")
services.evaluate_layer.given_by("compassc.layers.declare", "evaluate")
services.layer_cost.given_by("compassc.layers.costs", "cost_of")
services.layer_library.given_by("compassc.layers.library", "library_of")
services.own_library.given_by("compassc.targets.own_library", "OwnLibrary")
services.npu_module.given_by("compassc.dsl.build_manager", "build_module")

__all__ = ["CompassError", "Model", "__version__", "compile", "evaluation", "quantizer"]


def __getattr__(name: str) -> object:
    """What users name of `compassc`, imported when it is asked for."""
    from importlib import import_module

    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
