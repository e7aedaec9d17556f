"""Configurations of whole operations: pooling, a table over bytes, 1x1 convolutions. Each fills the registers of the last
configuration of an `Aiff` with what the model of the unit runs (docs/aiff.md).

Images are NumPy arrays (height, width, channels), or planes: (surfaces, height, width, elements of 32 bytes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from compass_core.arrays import Array

from .config import UnitView

if TYPE_CHECKING:
    from . import Aiff

SURFACE = 32
"""Bytes of a pixel in a surface."""
FORMATS = {"uint8": 0, "uint16": 1, "int8": 4, "int16": 5}
"""`op_fmt` of the PTP; the signed ones are an assumption (`signed-pool`)."""


def planes(image: Array, row: int = 0) -> Array:
    """An image in planes. `row`: pixels from row to row; 0: as many as there are."""
    height, width, channels = image.shape
    each = SURFACE // image.itemsize
    found = np.zeros((-(-channels // each), height, row or width, each), image.dtype)
    padded = np.zeros((height, width, found.shape[0] * each), image.dtype)
    padded[:, :, :channels] = image
    found[:, :, :width] = padded.reshape(height, width, -1, each).transpose(2, 0, 1, 3)
    return found


def image_of(surfaces: Array, channels: int) -> Array:
    """The image in planes: the inverse of `planes`."""
    height, width = surfaces.shape[1:3]
    return surfaces.transpose(1, 2, 0, 3).reshape(height, width, -1)[:, :, :channels]


def _first(image: Array) -> Array:
    """The first pixel of an image, whose address is the image's whatever its strides are."""
    found: Array = image[(0,) * (image.ndim - 1)]
    return found


def _write(aiff: Aiff, region: int, output: Array) -> None:
    """The output of a region: planes, or a view (height, width, channels) whose strides count."""
    surface, line = output.strides[:2]
    setattr(aiff.wrb, f"region{region}_oact_addr", _first(output))
    setattr(aiff.wrb, f"region{region}_oact_l_stride", line)
    setattr(aiff.wrb, f"region{region}_oact_s_stride", surface)


def configure_pool(
    aiff: Aiff,
    data: Array,
    output: Array,
    shape: tuple[int, int, int],
    kernel: tuple[int, int] = (2, 2),
    stride: tuple[int, int] = (2, 2),
) -> None:
    """The largest element of each window (height, width) of an image of `shape` in planes. `output`: planes, or NHWC with
    three dimensions; uint8 or uint16 as the input."""
    height, width, channels = shape
    nhwc = output.ndim == 3
    out_height, out_width = output.shape[:2] if nhwc else output.shape[1:3]
    aiff.mtp.twin_ctrl.mtp_0_disen = aiff.mtp.twin_ctrl.mtp_1_disen = 1
    ptp, wrb = aiff.ptp, aiff.wrb
    ptp.iact_addr = data
    ptp.mode.mode, ptp.mode.op_fmt = 2, FORMATS[data.dtype.name]
    (ptp.kernel.kernel_h, ptp.kernel.kernel_w), (ptp.kernel.stride_h, ptp.kernel.stride_w) = kernel, stride
    ptp.w_step.w_step_in = ptp.w_step.w_step_len = width
    ptp.h_step.h_step_in = ptp.h_step.h_step_len = height
    ptp.step_out.w_step_out, ptp.step_out.h_step_out = out_width, out_height
    ptp.c_step.c_step_out = 1
    ptp.act_c_ctrl.iact_chan = ptp.act_c_ctrl.oact_chan = channels
    ptp.act_w_ctrl.iact_width, ptp.act_w_ctrl.oact_width = width, out_width
    ptp.act_h_ctrl.iact_height, ptp.act_h_ctrl.oact_height = height, out_height
    ptp.iact_surf_stride, ptp.iact_w_stride = data.strides[:2]
    ptp.iact_batch_stride = data.nbytes
    wrb.mode_ctrl.region_en, wrb.mode_ctrl.region1_size, wrb.mode_ctrl.region1_alloc = 2, 8, 1
    wrb.mode_ctrl.fmt_trans, wrb.mode_ctrl.region_bypass = int(nhwc), 0 if nhwc else 3
    _write(aiff, 1, output)


def _enable_both(aiff: Aiff, mode: int) -> None:
    """Both MTPs work, and both regions are written."""
    aiff.mtp.twin_ctrl.twin_output, aiff.mtp.twin_ctrl.twin_op_mode = 1, mode
    aiff.ptp.mode.mode = 7
    aiff.wrb.mode_ctrl.region_en = 3
    if "sys" not in aiff.reg_cfgs[-1].generation.units:  # X3: its special functions are left out
        aiff.itp.sfu_ccfg0.sfu_byp = aiff.itp.sfu_ccfg1.sfu_byp = 1


def _input(aiff: Aiff, u: int, data: Array, outputs: int) -> UnitView:
    """The geometry of an MTP over all of an image in planes."""
    mtp = aiff.mtp[u]
    mtp.ctrl.w_region_id, mtp.iact_addr = u, _first(data)
    mtp.act_c_ctrl.iact_chan = data.shape[0] * data.shape[3]
    mtp.act_c_ctrl.oact_chan = outputs
    mtp.act_w_ctrl.iact_width = mtp.act_w_ctrl.oact_width = data.shape[2]
    mtp.act_h_ctrl.iact_height = mtp.act_h_ctrl.oact_height = data.shape[1]
    mtp.iact_s_stride, mtp.iact_w_stride = data.strides[:2]
    if "sys" in aiff.reg_cfgs[-1].generation.units:
        mtp.batch_stride = data.nbytes
    return mtp


def _post(aiff: Aiff, u: int, data: Array, outputs: int) -> UnitView:
    """An ITP whose stages are all left out."""
    itp = aiff.itp[u]
    itp.m0_ccfg.byp = itp.m1_ccfg.byp = itp.e_ccfg.byp = itp.lut_ocfg.byp = 1
    itp.ocvt_mul_cfg.k = itp.act_ccfg1.op_mode = 1
    itp.act_ccfg0.act_height, itp.act_ccfg0.act_width = data.shape[1:3]
    itp.act_ccfg1.act_chan = outputs
    return itp


def configure_tables(
    aiff: Aiff, data: Sequence[Array], table: Array, outputs: Sequence[Array], factor: int | None = None
) -> None:
    """Two images of uint8 in planes through a table of 257 int16, to int8 in planes: `table[x]`.

    `factor`: what a byte is multiplied by before it is looked up; default: so that each byte has an entry.
    """
    is_x2 = "sys" in aiff.reg_cfgs[-1].generation.units
    _enable_both(aiff, 0)
    for u, (image, output) in enumerate(zip(data, outputs, strict=True)):
        channels = image.shape[0] * SURFACE
        _input(aiff, u, image, channels).ctrl.op_mode = 2
        itp = _post(aiff, u, image, channels)
        itp.lut_ocfg.byp = itp.e_ccfg.byp = 0
        itp.e_ccfg.alu_byp = itp.e_mul_pcvt_ccfg.cvt_byp = 1
        itp.e_mul_pcfg.mul_pval = factor or (1 << 8 if is_x2 else 1 << 16)
        _write(aiff, u, output)
    aiff.itp.mode_ccfg.lut0_ft_en = aiff.itp.mode_ccfg.lut1_ft_en = 1
    if is_x2:
        aiff.itp.mode_ccfg.lut_glb_mode, aiff.itp.lut_mcfg = 1, table
    else:
        aiff.itp.lut_mcfg0 = aiff.itp.lut_mcfg1 = table


def _one_tile(mtp: UnitView, itp: UnitView, data: Array) -> None:
    """The image is one tile, as in the program that the model is known from, where its fields hold that."""
    height, width = (min(size, 255) for size in data.shape[1:3])
    mtp.w_step.w_step_in = mtp.w_step.w_step_out = mtp.w_step.w_step_len = width
    mtp.h_step.h_step_in = mtp.h_step.h_step_out = mtp.h_step.h_step_len = height
    itp.act_step_ccfg.act_wstep_in = itp.act_step_ccfg.act_wstep_len = width
    itp.act_step_ccfg.act_hstep_in = itp.act_step_ccfg.act_hstep_len = height


def configure_convolutions(
    aiff: Aiff,
    data: Array,
    streams: Sequence[Array],
    biases: Sequence[Array],
    outputs: Sequence[Array],
    factor: int,
    shift: int,
) -> None:
    """Two 1x1 convolutions of an int8 image in planes, on X2.

    `streams`: packed weights (`compass_core.aiff.weights.pack`), uint8; `biases`: int16 per output channel; `outputs`: int8
    views (height, width, channels) of one or two arrays, whose strides count. Each result is
    `((sum + bias) * factor + 2^(shift-1)) >> shift`.
    """
    _enable_both(aiff, 2)
    for u, (stream, bias, output) in enumerate(zip(streams, biases, outputs, strict=True)):
        mtp = _input(aiff, u, data, bias.size)
        mtp.ctrl.op_fmt, mtp.ctrl.ich_gsize = 4, 3
        mtp.iact_total_stride, mtp.weight_size = data.nbytes, 1
        _one_tile(mtp, aiff.itp[u], data)
        kernel = mtp.kernel_ctrl
        kernel.kernel_w = kernel.kernel_h = kernel.stride_w = kernel.stride_h = 1
        mtp.weight_sparse.weight_sparse, mtp.wt_compress.compression_format = 2, 6
        mtp.wt_compress.wt_size, mtp.weight_addr = stream.size // SURFACE, stream
        itp = _post(aiff, u, data, bias.size)
        m0 = itp.m0_ccfg
        m0.byp, m0.alu_psrc, m0.alu_psrc_prec, m0.relu_byp = 0, 1, 1, 1
        m0.mul_psrc_dtype, m0.mul_trsh = 1, shift
        itp.m0_mul_pcfg, itp.m0_alu_mcfg = factor, bias
        _write(aiff, u, output)
    mode = aiff.wrb.mode_ctrl
    mode.fmt_trans, mode.region_bypass, mode.region_out_buf = 1, 0, 3
