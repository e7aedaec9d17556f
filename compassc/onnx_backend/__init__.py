"""The interface `onnx.backend` on the simulator: `prepare`, `run_model`, `run_node`, `supports_device`.

    from compassc import onnx_backend

    onnx_backend.run_model(onnx.load("model.onnx"), [x])

`device` is a target such as X2_1204, "CPU" (the target of COMPASS_TARGET), or "REFERENCE": the NumPy references of layers
instead of the simulator.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import ModelProto, NodeProto, defs, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from compass_core import switches, targets
from compass_core.errors import CompassError
from compassc.importers.onnx.protobuf import elem_type
from compassc.onnx_backend.running import Runnable, as_array, by_references, on_simulator

REFERENCE = "REFERENCE"


class CompassRep(BackendRep):
    """A model that is ready to run. It is imported and built when its inputs are given for the first time."""

    def __init__(self, runnable: Runnable) -> None:
        self.runnable = runnable

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs by name and place, for a list of arrays or one of them, or a dictionary by name."""
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name in self.runnable.inputs]
        elif not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        found = self.runnable(inputs)
        named: tuple[Any, ...] = namedtupledict("Outputs", self.runnable.outputs)(*found)
        return named


class CompassBackend(Backend):
    """ONNX's backend interface."""

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: object) -> CompassRep:
        """The model ready to run. CompassError when it is not valid."""
        made = by_references if device == REFERENCE else on_simulator(_target(device))
        return CompassRep(Runnable(model, made))

    @classmethod
    def run_node(
        cls, node: NodeProto, inputs: object, device: str = "CPU", outputs_info: Any = None, **kwargs: Any
    ) -> tuple[object, ...]:
        """The outputs of one node. `outputs_info`: type and shape of each; without it ONNX infers them."""
        opset = int(kwargs.get("opset_version", defs.onnx_opset_version()))
        arrays = [as_array(v) for v in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
        names = [name for name in node.input if name]
        given = [
            helper.make_tensor_value_info(n, elem_type(a.dtype), a.shape) for n, a in zip(names, arrays, strict=True)
        ]
        outputs = [
            helper.make_tensor_value_info(n, elem_type(i[0]), i[1])
            for n, i in zip([o for o in node.output if o], outputs_info or (), strict=False)
        ]
        model = _model_of(node, given, outputs, opset)
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether `device` is one of the targets, CPU or REFERENCE."""
        if device == REFERENCE:
            return True
        try:
            _target(device)
        except CompassError:
            return False
        return True


def _target(device: str) -> str:
    return targets.load(switches.TARGET.get() if device.partition(":")[0] == "CPU" else device).name


def _model_of(node: NodeProto, inputs: Sequence[Any], outputs: Sequence[Any], opset: int) -> ModelProto:
    """A model of one node."""
    from onnx import shape_inference

    names = [o for o in node.output if o]
    ends = list(outputs) if len(outputs) == len(names) else [helper.make_empty_tensor_value_info(n) for n in names]
    graph = helper.make_graph([node], node.op_type, list(inputs), ends)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(node.domain, opset)])
    return model if outputs else shape_inference.infer_shapes(model)


prepare = CompassBackend.prepare
run_model = CompassBackend.run_model
run_node = CompassBackend.run_node
supports_device = CompassBackend.supports_device
is_compatible = CompassBackend.is_compatible
