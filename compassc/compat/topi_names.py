"""Names of the framework's operators of tensors and what stands behind each; a part of `names`."""

from __future__ import annotations

from .module_names import Names
from .relay_names import PADS

_HOME = "compassc.compat.topi"
_NN = (
    *(f"{_HOME}.{part}" for part in ("convolutions", "layers", "bits", "recurrent", "by_numpy")),
    "compassc.topi.nn",
)
_NN_PARTS = """batch_matmul batch_norm bitserial_conv2d bitserial_dense bitserial_util bnn conv1d conv1d_transpose conv2d
    conv2d_transpose conv3d conv3d_transpose correlation deformable_conv2d dense depth_to_space depthwise_conv2d dilate elemwise
    fifo_buffer flatten group_conv2d_transpose group_norm instance_norm layer_norm local_response_norm loss lstm mapping pad pooling
    qnn rms_norm softmax space_to_depth sparse upsampling"""
_PARTS = """argwhere broadcast einsum math reduction scan scatter scatter_elements searchsorted signal sort tensor transform
    unique"""
_PICTURES = "image image.grid_sample image.resize vision vision.nms vision.rcnn vision.ssd"
_FAMILIES = "adreno arm_cpu bifrost cuda generic gpu hexagon hls intel_graphics mali rocm x86"
_TAGS = "BROADCAST COMM_REDUCE COMM_REDUCE_IDX ELEMWISE INJECTIVE is_broadcast is_injective"
_ELEMENTS = (*(f"{_HOME}.{part}" for part in ("elements", "shapes", "by_numpy")), "compassc.topi")
_WORKLOADS = {"_get_workload": "compassc.compat.topi_utils:get_workload", "Workload": "compassc.compat.topi_utils:"}
_CODES = {"SQNN_DTYPE_TO_CODE": "compassc.relay.ops.quantised:CODES"}
_OWN = {"conv2d": _WORKLOADS, "qnn": _CODES}
"""What modules have that the others of layers do not have."""

TOPI: dict[str, Names] = {
    "tvm.topi": Names({kind: "compassc.compat.topi_schedules:" for kind in _FAMILIES.split()}, like=_ELEMENTS),
    "tvm.topi.nn": Names(
        {"softmax_common": "compassc.topi:softmax", **_CODES},
        like=_NN,
    ),
    **{f"tvm.topi.nn.{part}": Names(_OWN.get(part, {}), like=_NN) for part in _NN_PARTS.split()},
    **{f"tvm.topi.{part}": Names(like=_ELEMENTS) for part in _PARTS.split()},
    **{f"tvm.topi.{part}": Names(like=(f"{_HOME}.pictures",)) for part in _PICTURES.split()},
    "tvm.topi.random": Names(like=(f"{_HOME}.random",)),
    "tvm.topi.sparse": Names({n: f"{_HOME}.by_numpy:" for n in ("csrmm", "csrmv", "dense")}),
    "tvm.topi.nn.utils": Names({n: "compassc.compat.topi_utils:" for n in PADS.split()}),
    "tvm.topi.utils": Names(like=("compassc.compat.topi_utils",)),
    "tvm.topi.testing": Names(
        like=("compassc.compat.topi_testing", "compassc.compat.topi_references", "compassc.compat.topi_evaluated")
    ),
    "tvm.topi.tag": Names({n: "compassc.compat.topi_utils:" for n in _TAGS.split()}),
}
