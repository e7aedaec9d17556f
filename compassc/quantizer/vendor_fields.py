"""Fields of the vendor's configuration files: what each becomes here, and why some change nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from compassc.quantizer.numbers import ASYMMETRIC, FULL, MODES, RESTRICTED
from compassc.quantizer.settings import RANGES
from compassc.quantizer.strategies import parse

Taken = Callable[[str], Mapping[str, Any]]
"""The settings that a field's text stands for; ValueError with what was expected instead."""


def whole(key: str, empty: int | None = None) -> Taken:
    """A field that is a number of bits."""

    def taken(text: str) -> Mapping[str, object]:
        if not text and empty is not None:
            return {key: empty}
        least, most = RANGES[key]
        if not re.fullmatch("[0-9]{1,9}", text) or not least <= int(text) <= most:
            raise ValueError(f"a whole number from {least} to {most}")
        return {key: int(text)}

    return taken


def _mode(text: str) -> tuple[bool, str]:
    """(whether it is per channel, the mode)."""
    for prefix, each in (("per_tensor_", False), ("per_channel_", True)):
        if text.startswith(prefix) and text.removeprefix(prefix) in MODES:
            return each, text.removeprefix(prefix)
    raise ValueError(f"per_tensor_ or per_channel_ with {FULL}, {RESTRICTED} or {ASYMMETRIC}")


def _weights(text: str) -> Mapping[str, object]:
    each, mode = _mode(text)
    return {"per_channel": each, "weight_mode": mode}


def _activations(text: str) -> Mapping[str, object]:
    # outputs have no axis of channels there either
    return {"activation_mode": _mode(text)[1]}


def strategy(key: str) -> Taken:
    def taken(text: str) -> Mapping[str, object]:
        parse(text)
        return {key: text}

    return taken


def _float(text: str) -> Mapping[str, object]:
    name = text.removesuffix("!")
    if name == "disable":
        return {"float": ""}
    kind = name.removesuffix("_preferred")
    if kind not in ("float16", "bfloat16", "float32") or kind == name:
        raise ValueError("disable, or float16_preferred, bfloat16_preferred or float32_preferred, with ! or without")
    return {"float": kind}


def _quant_type(text: str) -> Mapping[str, object]:
    """Names of widths have no effect in the vendor's tool either, but for 8-bit floats."""
    if "fp8" in text or "fp4" in text:
        raise ValueError("no 8-bit or 4-bit floats, which have no kernels here")
    return {}


PER_LAYER: dict[str, Taken] = {
    "quantize_method_for_weight": _weights,
    "quantize_method_for_activation": _activations,
    "weight_bits": whole("weight_bits"),
    "activation_bits": whole("activation_bits"),
    "bias_bits": whole("bias_bits"),
    "bias_effective_bits": whole("bias_effective_bits", 0),
    "lut_items_in_bits": whole("table_bits"),
    "multiplier_bits": whole("multiplier_bits", 0),
    "calibration_strategy_for_activation": strategy("activation_strategy"),
    "calibration_strategy_for_weight": strategy("weight_strategy"),
    "trigger_float_op": _float,
    "quant_type": _quant_type,
}
"""Fields that layers may have values of their own of."""
DEFAULTS = {
    "quantize_method_for_weight": "per_tensor_symmetric_restricted_range",
    "quantize_method_for_activation": "per_tensor_symmetric_full_range",
    "calibration_strategy_for_activation": "mean",
    "trigger_float_op": "disable & <[RMSNorm]:float16_preferred!>",
}
"""Where they are not those of `LayerSettings`."""
TAKEN = (
    "graph bin model_name out_ir_name quant_ir_name output_dir dataset calibration_data calibration_batch_size "
    "min_compatible_zhouyi_target statistic_file save_statistic_info opt_config global_calibration "
    "running_statistic_momentum unify_scales_for_concat unify_scales_for_concat_threshold"
).split()
"""Fields about all of the graph."""
_MEASURED = "a graph is measured by `compassc evaluate`"
_OWN = "kernels here take what the quantiser makes"
WITHOUT_EFFECT: dict[str, str] = {
    **dict.fromkeys(
        "metric data label metric_batch_size data_batch_dim label_batch_dim dataloader_workers eval_original_model "
        "eval_optimized_model similarity_data_num write_similarity_to_ir record_debug_acc_info dump dump_dir "
        "just_for_display fake_quant_scopes_for_debug fake_quant_operators_for_debug".split(),
        _MEASURED,
    ),
    **dict.fromkeys(
        "cast_dtypes_for_lib perf_mode_for_lib force_shift_positive unify_shifts_for_aiff with_winograd remain_shift "
        "enable_pass_tune_op_complicated_activations enable_pass_tune_op_softmax optimize_wdc_for_x2 "
        "weight_block_size activation_block_size activation_perchannel_min_elements "
        "regularize_activation_perchannel_scales".split(),
        _OWN,
    ),
    **dict.fromkeys(
        "enable_pass_merge_matmul_mul enable_pass_convert_resize_to_convolution "
        "enable_pass_decompose_nonmonotonic_activations enable_pass_split_qkv_fc_in_transformer "
        "enable_pass_detect_inf_mask_nodes enable_pass_deeply_set_unquantifiable "
        "enable_pass_scaled_dot_product_attention unify_scales_for_concat_max_depth unify_scales_for_multi_inputs_operators unify_scales_for_kvc_concat "
        "bias_effective_bits_auto_adaption featuremap_tiling_param featuremap_splits_item_x featuremap_splits_item_y "
        "featuremap_splits_concat_blk featuremap_splits_overlap_rate featuremap_splits_sram_size tiling".split(),
        "the graph passes of `compassc optimize` do what helps here",
    ),
    **dict.fromkeys(("calibration_shuffe", "histc_bins"), "every sample counts, in histograms of one range"),
    "ignore_missing_statistic": "missing statistics are an error",
}  # fmt: skip
"""Fields that change nothing, with the reason."""
REFUSED: dict[str, tuple[str, ...]] = {
    "skip_optimization": ("", "false"),
    "qconfig": ("",),
    "modify_batch_dim": ("", "false"),
    "export_parallel_batch": ("", "false"),
    "without_batch_dim": ("", "false"),
    "enable_ds": ("", "false"),
    "ds_output_shape_constant": ("", "disable"),
    "ds_parameter_constant": ("", "disable"),
    "force_dtype_int": ("", "false"),
    "resize_degrade_to_nearest": ("", "false"),
    "set_qinvariant_for_start_nodes": ("",),
    "trim_infinity_before_statistic": ("", "clip(-inf,inf)"),
    "mixed_precision_auto_search": ("", "0,0.,l", "0,0,l"),
    "compat_quantized_model": ("", "false"),
}
"""Fields of which only these values are known here."""
GLOBAL_METHODS = {
    "none": {},
    "adaround": {"rounding": "adaptive"},
    "adaquant_zy": {"rounding": "adaptive"},
    "gptq_zy": {"rounding": "adaptive"},
}
"""Methods of `global_calibration`, as settings of all layers."""
