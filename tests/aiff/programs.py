"""Programs for the AIFF, and what they compute in NumPy: pooling, a table over bytes, 1x1 convolutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from compass_core.aiff.weights import GROUP, pack
from compassc.dsl import Aiff

SURFACE = 32


def planes(image: np.ndarray[Any, Any], width: int | None = None) -> np.ndarray[Any, Any]:
    """An image (height, width, channels) in surfaces of 32 bytes a pixel, rows `width` pixels long."""
    height, used, channels = image.shape
    each = SURFACE // image.itemsize
    room = np.zeros((-(-channels // each), height, width or used, each), image.dtype)
    for c in range(channels):
        room[c // each, :, :used, c % each] = image[:, :, c]
    return room


def image_of(surfaces: np.ndarray[Any, Any], channels: int) -> np.ndarray[Any, Any]:
    """The inverse of `planes`."""
    return surfaces.transpose(1, 2, 0, 3).reshape(*surfaces.shape[1:3], -1)[:, :, :channels]


@dataclass
class Pool:
    """A pooling by maxima of a random image, on X2."""

    height: int
    width: int
    channels: int = 32
    kernel: tuple[int, int] = (2, 2)
    stride: tuple[int, int] = (2, 2)
    dtype: str = "uint8"
    row: int = 0
    """Pixels from row to row; 0: as many as there are."""
    nhwc: bool = False
    tile_rows: int = 0

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.height * 1000 + self.width)
        info = np.iinfo(self.dtype)
        shape = (self.height, self.width, self.channels)
        self.image = rng.integers(info.min, int(info.max) + 1, shape).astype(self.dtype)
        self.input = planes(self.image, self.row or self.width)
        (kh, kw), (sh, sw) = self.kernel, self.stride
        self.out_height, self.out_width = (self.height - kh) // sh + 1, (self.width - kw) // sw + 1
        empty = np.zeros((self.out_height, self.out_width, self.channels), self.dtype)
        self.output = empty if self.nhwc else planes(empty)

    def aiff(self) -> Aiff:
        aiff = Aiff("X2_1204")
        size = self.input.itemsize
        aiff.mtp.twin_ctrl = 3
        ptp = aiff.ptp
        ptp.iact_addr = self.input
        ptp.mode.mode, ptp.mode.op_fmt = 2, {"uint8": 0, "uint16": 1, "int8": 4, "int16": 5}[self.dtype]
        (ptp.kernel.kernel_h, ptp.kernel.kernel_w), (ptp.kernel.stride_h, ptp.kernel.stride_w) = (
            self.kernel,
            self.stride,
        )
        ptp.w_step.w_step_in = ptp.w_step.w_step_len = self.width
        ptp.h_step.h_step_in = ptp.h_step.h_step_len = self.tile_rows or self.height
        ptp.step_out.w_step_out, ptp.step_out.h_step_out = self.out_width, self.out_height
        ptp.c_step.c_step_out = 1
        ptp.act_c_ctrl.iact_chan = ptp.act_c_ctrl.oact_chan = self.channels
        ptp.act_w_ctrl.iact_width, ptp.act_w_ctrl.oact_width = self.width, self.out_width
        ptp.act_h_ctrl.iact_height, ptp.act_h_ctrl.oact_height = self.height, self.out_height
        ptp.iact_w_stride = self.input.strides[1]
        ptp.iact_surf_stride = self.input.strides[0]
        ptp.iact_batch_stride = self.input.nbytes
        wrb = aiff.wrb
        wrb.region1_oact_addr = self.output
        wrb.mode_ctrl.region_en, wrb.mode_ctrl.region1_size, wrb.mode_ctrl.region1_alloc = 2, 8, 1
        wrb.mode_ctrl.fmt_trans, wrb.mode_ctrl.region_bypass = int(self.nhwc), 0 if self.nhwc else 3
        pixel, row = (self.channels * size, self.output.strides[0]) if self.nhwc else self.output.strides[1::-1]
        wrb.region1_oact_l_stride, wrb.region1_oact_s_stride = pixel, row
        return aiff

    def result(self) -> np.ndarray[Any, Any]:
        return self.output if self.nhwc else image_of(self.output, self.channels)

    def expected(self) -> np.ndarray[Any, Any]:
        (kh, kw), (sh, sw) = self.kernel, self.stride
        windows = np.lib.stride_tricks.sliding_window_view(self.image, (kh, kw), axis=(0, 1))
        return windows[::sh, ::sw].max(axis=(3, 4))


def _post(aiff: Aiff, u: int, height: int, width: int, channels: int) -> Any:
    """What all programs with MTPs set of an ITP; all stages of it are left out."""
    itp = aiff.itp[u]
    itp.m0_ccfg.byp = itp.m1_ccfg.byp = itp.e_ccfg.byp = itp.lut_ocfg.byp = 1
    itp.ocvt_mul_cfg.k = itp.act_ccfg1.op_mode = 1
    itp.act_ccfg0.act_height, itp.act_ccfg0.act_width, itp.act_ccfg1.act_chan = height, width, channels
    return itp


def _mtp(aiff: Aiff, u: int, data: np.ndarray[Any, Any], channels: tuple[int, int]) -> Any:
    """The geometry of an MTP over planes."""
    mtp = aiff.mtp[u]
    mtp.ctrl.w_region_id, mtp.iact_addr = u, data
    mtp.act_c_ctrl.iact_chan, mtp.act_c_ctrl.oact_chan = channels
    mtp.act_w_ctrl.iact_width = mtp.act_w_ctrl.oact_width = data.shape[2]
    mtp.act_h_ctrl.iact_height = mtp.act_h_ctrl.oact_height = data.shape[1]
    mtp.iact_w_stride, mtp.iact_s_stride = data.strides[1], data.strides[0]
    if aiff._generation.name == "X2":
        mtp.batch_stride = data.nbytes
    return mtp


def _both(aiff: Aiff, mode: int) -> None:
    """Both MTPs work, and both regions are written."""
    aiff.mtp.twin_ctrl.twin_output, aiff.mtp.twin_ctrl.twin_op_mode = 1, mode
    aiff.ptp.mode.mode = 7
    aiff.wrb.mode_ctrl.region_en = 3
    if aiff._generation.name != "X2":
        aiff.itp.sfu_ccfg0.sfu_byp = aiff.itp.sfu_ccfg1.sfu_byp = 1


class Table:
    """Bytes through a table of 257 entries, on two MTPs: one image each."""

    def __init__(self, data: np.ndarray[Any, Any], table: np.ndarray[Any, Any], target: str, height: int) -> None:
        self.data, self.table, self.target, self.height = data, table, target, height
        self.output = np.zeros(data.size, np.int8)

    def add_to(self, aiff: Aiff, first: int) -> None:
        """The last configuration works on two images from byte `first` on."""
        is_x2 = aiff._generation.name == "X2"
        _both(aiff, 0)
        size = self.height * 2 * SURFACE
        for u in (0, 1):
            at = slice(first + u * size, first + (u + 1) * size)
            surfaces = self.data[at].reshape(1, self.height, 2, SURFACE)
            mtp = _mtp(aiff, u, surfaces, (SURFACE, SURFACE))
            mtp.ctrl.op_mode = 2
            itp = _post(aiff, u, self.height, 2, SURFACE)
            itp.lut_ocfg.byp = itp.e_ccfg.byp = 0
            itp.e_ccfg.alu_byp = itp.e_mul_pcvt_ccfg.cvt_byp = 1
            itp.e_mul_pcfg.mul_pval = 256 if is_x2 else 65536
            setattr(aiff.wrb, f"region{u}_oact_addr", self.output[at])
            setattr(aiff.wrb, f"region{u}_oact_l_stride", 2 * SURFACE)
            setattr(aiff.wrb, f"region{u}_oact_s_stride", size)
        mode = aiff.itp.mode_ccfg
        mode.lut0_ft_en = mode.lut1_ft_en = 1
        if is_x2:
            mode.lut_glb_mode, aiff.itp.lut_mcfg = 1, self.table
        else:
            mode.fp_nan_en, aiff.itp.lut_mcfg0, aiff.itp.lut_mcfg1 = 1, self.table, self.table

    def aiff(self) -> Aiff:
        aiff = Aiff(self.target)
        self.add_to(aiff, 0)
        return aiff

    def expected(self) -> np.ndarray[Any, Any]:
        return self.table[self.data].astype(np.int8)


class Convolution:
    """A 1x1 convolution of int8 planes to NHWC, `outputs` channels per MTP, two MTPs a node."""

    FACTOR, SHIFT = 189, 15

    def __init__(self, height: int, width: int, inputs: int, outputs: tuple[int, ...], seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.inputs, self.outputs = inputs, outputs
        self.image = rng.integers(-128, 128, (height, width, inputs)).astype(np.int8)
        self.surfaces = planes(self.image)
        spread = 40 / math.sqrt(inputs)
        self.weights = [np.clip(rng.normal(0, spread, (inputs, n)).round(), -128, 127).astype(np.int8) for n in outputs]
        self.streams = [np.frombuffer(pack(w), np.uint8).copy() for w in self.weights]
        self.biases = [rng.integers(-3000, 3000, n).astype(np.int16) for n in outputs]
        self.output = np.zeros((height, width, sum(outputs)), np.int8)

    def aiff(self) -> Aiff:
        aiff = Aiff("X2_1204")
        for node in range(len(self.outputs) // 2):
            if node:
                aiff.add_new_register_config()
            _both(aiff, 2)
            for u in (0, 1):
                self._configure(aiff, u, 2 * node + u)
        return aiff

    def _configure(self, aiff: Aiff, u: int, part: int) -> None:
        height, width = self.image.shape[:2]
        outputs = self.outputs[part]
        mtp = _mtp(aiff, u, self.surfaces, (self.inputs, outputs))
        mtp.ctrl.op_fmt, mtp.ctrl.ich_gsize = 4, 3
        kernel = mtp.kernel_ctrl
        kernel.kernel_w = kernel.kernel_h = kernel.stride_w = kernel.stride_h = 1
        mtp.weight_sparse.weight_sparse, mtp.wt_compress.compression_format = 2, 6
        mtp.wt_compress.wt_size, mtp.weight_addr = self.streams[part].size // 32, self.streams[part]
        itp = _post(aiff, u, height, width, outputs)
        m0 = itp.m0_ccfg
        m0.byp, m0.alu_psrc, m0.alu_psrc_prec, m0.relu_byp = 0, 1, 1, 1
        m0.mul_psrc_dtype, m0.mul_trsh = 1, self.SHIFT
        itp.m0_mul_pcfg, itp.m0_alu_mcfg = self.FACTOR, self.biases[part]
        first = sum(self.outputs[:part])
        setattr(aiff.wrb, f"region{u}_oact_addr", self.output.reshape(-1)[first:])
        setattr(aiff.wrb, f"region{u}_oact_l_stride", self.output.strides[1])
        setattr(aiff.wrb, f"region{u}_oact_s_stride", self.output.strides[0])
        mode = aiff.wrb.mode_ctrl
        mode.fmt_trans, mode.region_bypass, mode.region_out_buf = 1, 0, 3

    def sums(self) -> np.ndarray[Any, Any]:
        """The exact sums with biases, before they are scaled."""
        parts = [self.image.astype(np.int64) @ w.astype(np.int64) for w in self.weights]
        return np.concatenate(parts, axis=-1) + np.concatenate(self.biases).astype(np.int64)

    def expected(self) -> np.ndarray[Any, Any]:
        return (self.sums() * self.FACTOR + (1 << self.SHIFT - 1) >> self.SHIFT).astype(np.int8)


assert GROUP == SURFACE
