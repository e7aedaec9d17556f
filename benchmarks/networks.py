"""Networks that are measured: those of `tests.networks.models` in the sizes that people use, with random weights.

All forms come from one ONNX model: ours by the importer and the quantiser, Relay modules by its frontend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnx import ModelProto

INVERTED_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)
"""Expansion, channels, blocks and first stride of the stages of MobileNetV2."""
_BLOCKS = [(e, channels, 1 if i else first) for e, channels, n, first in INVERTED_STAGES for i in range(n)]


@dataclass(frozen=True)
class Network:
    """A network: its name in tables, and the function of `tests.networks.models` that makes it, by name, with its sizes."""

    title: str
    maker: str
    sizes: Mapping[str, object]

    def model(self) -> ModelProto:
        """The network in float32, of one sample. ImportError without the package `onnx`."""
        from tests.networks.models import MODELS

        return MODELS[self.maker](**self.sizes)


NETWORKS = {
    "resnet18": Network(
        "ResNet-18", "resnet18", {"side": 224, "widths": (64, 128, 256, 512), "classes": 1000}
    ),
    "mobilenet": Network(
        "MobileNetV2", "mobilenet_v2",
        {"side": 224, "first": 32, "blocks": _BLOCKS, "last": 1280, "classes": 1000, "likely": False},
    ),
    "encoder": Network(
        "encoder as BERT", "bert", {"steps": 128, "width": 256, "heads": 4, "layers": 4, "words": 8192, "wide": 4}
    ),
    "yolo": Network("YOLO, 320x320", "yolo", {"side": 320, "stem": (16, 32), "fine": 64, "deep": 128, "classes": 80}),
    "gru": Network(
        "two GRUs", "translation_gru",
        {"steps": 32, "size": 128, "hidden": 256, "words": 1000, "spread": 256**-0.5, "likely": False},
    ),
}  # fmt: skip
