"""ONNX Runtime's CPU execution, which networks are held against. Needs the packages `onnx` and `onnxruntime`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from compass_core.arrays import Array


def session(model: onnx.ModelProto, threads: int) -> onnxruntime.InferenceSession:
    """The model, to be run on so many threads."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


class _Reader(CalibrationDataReader):
    def __init__(self, samples: Iterable[Mapping[str, Array]]) -> None:
        self.samples = iter(samples)

    def get_next(self) -> Mapping[str, Array] | None:
        return next(self.samples, None)


def quantised(model: onnx.ModelProto, samples: Iterable[Mapping[str, Array]]) -> onnx.ModelProto:
    """The model with QuantizeLinear and DequantizeLinear around its tensors, by ONNX Runtime's quantiser, in the form that it
    is fastest with: constants are folded before, activations are uint8, weights int8 with a scale per channel."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        given, folded, made = (Path(folder, f"{name}.onnx") for name in ("given", "folded", "made"))
        onnx.save(model, given)
        quant_pre_process(given, folded, skip_symbolic_shape=True)
        quantize_static(
            folded, made, _Reader(samples), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        return onnx.load(made)
