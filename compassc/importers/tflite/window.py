"""Windows over images, as options of operators say them."""

from __future__ import annotations

from compass_core.namedtuple import NamedTuple
from compassc.importers.onnx.window import Asked, Ints, Window
from compassc.importers.tflite.source import names_of
from compassc.importers.values import Refused

PADDING = {"SAME": "SAME_UPPER", "VALID": "VALID"}


def padding_of(number: int) -> str:
    name = names_of("Padding").get(number, str(number))
    if name not in PADDING:
        raise Refused(f"its padding {name} is not known")
    return PADDING[name]


class Steps(NamedTuple):
    """How a window moves, by the names of options."""

    padding: int
    stride_w: int
    stride_h: int
    dilation_w_factor: int = 1
    dilation_h_factor: int = 1

    def over(self, sizes: Ints, kernel: Ints) -> Window:
        """The window over an image of these sizes."""
        strides, dilations = (self.stride_h, self.stride_w), (self.dilation_h_factor, self.dilation_w_factor)
        return Asked(None, strides, dilations, None, padding_of(self.padding)).over(sizes, kernel)
