"""What can be said of Relay programs without running them."""

from compassc.relay.analysis.calibration import get_calibration_data
from compassc.relay.analysis.call_graph import CallGraph
from compassc.relay.analysis.counts import (
    all_dtypes,
    count_layers,
    extract_intermdeiate_expr,
    get_total_mac_number,
    list_fake_quantized_op_freqs,
    list_op_freqs,
    post_order_visit,
    search_fc_transpose,
)
from compassc.relay.analysis.features import Feature, detect_feature
from compassc.relay.analysis.typing import (
    check_basic_block_normal_form,
    check_kind,
    extract_fused_functions,
    unmatched_cases,
)
from compassc.relay.analysis.wellformed import check_constant, well_formed
from compassc.relay.variables import (
    all_type_vars,
    all_vars,
    bound_type_vars,
    bound_vars,
    free_type_vars,
    free_vars,
)

__all__ = [
    "CallGraph",
    "Feature",
    "all_dtypes",
    "all_type_vars",
    "all_vars",
    "bound_type_vars",
    "bound_vars",
    "check_basic_block_normal_form",
    "check_constant",
    "check_kind",
    "count_layers",
    "detect_feature",
    "extract_fused_functions",
    "extract_intermdeiate_expr",
    "free_type_vars",
    "free_vars",
    "get_calibration_data",
    "get_total_mac_number",
    "list_fake_quantized_op_freqs",
    "list_op_freqs",
    "post_order_visit",
    "search_fc_transpose",
    "unmatched_cases",
    "well_formed",
]
