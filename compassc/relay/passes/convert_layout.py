"""Bring operators into the layouts that are wanted.

Before: a typed module without `nn.bias_add`.
After: calls of the operators in `desired_layouts` are in these layouts, what follows them too where it can be; elsewhere stand
transformations of layouts. `desired_layouts`: for each operator the layout of its data, and of convolutions that of the kernel
("default": what goes with the data).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from compassc.ir.errors import ExpressionError, ExpressionTypeError
from compassc.relay.attributes import Attrs
from compassc.relay.builders import build
from compassc.relay.expr import Call, Expr
from compassc.relay.layouts import layout
from compassc.relay.module import IRModule
from compassc.relay.operators import Op, get
from compassc.relay.passes._functions import on_functions
from compassc.relay.passes._layouts import Layouts
from compassc.relay.types import TensorType, Type

if TYPE_CHECKING:
    from typing_extensions import Self

NAME = "ConvertLayout"
LEVEL = 3
REQUIRED = ("InferType", "CanonicalizeOps")
DEFAULT = "default"
Converter = Callable[[Attrs, Sequence[Expr], Sequence[Type], Sequence[str]], Expr]
"""The call of an operator in other layouts: of attributes, arguments, their types and the layouts that are wanted."""


def run(module: IRModule, desired_layouts: Mapping[str, Sequence[str]]) -> IRModule:
    wanted = {name: [str(n) for n in given] for name, given in desired_layouts.items()}
    for name in wanted:
        _converter(get(name))
    return on_functions(module, lambda f, _: Layouts(f, lambda e, args: _converted(e, args, wanted)).function())


class LayoutConfig:
    """A context in which ConvertLayout leaves some convolutions alone: those with the numbers `skip_layers`, from the first one
    of a module on."""

    current: ClassVar[LayoutConfig | None] = None

    def __init__(self, skip_layers: Sequence[int] | None = None) -> None:
        self.skip_layers = list(skip_layers or ())
        self.skip_counter = 0
        self._outer: LayoutConfig | None = None

    def check_skip(self) -> bool:
        """Whether the next convolution is left alone."""
        self.skip_counter += 1
        return self.skip_counter - 1 in self.skip_layers

    def reset(self) -> None:
        """Count from the first convolution again, and leave none alone."""
        self.skip_counter, self.skip_layers = 0, []

    def __enter__(self) -> Self:
        self._outer, LayoutConfig.current = LayoutConfig.current, self
        return self

    def __exit__(self, *failure: object) -> None:
        LayoutConfig.current = self._outer


def _converter(op: Op) -> Converter:
    found: Converter | None = op.get_attr("FTVMConvertOpLayout") or CONVERTERS.get(op.name)
    if found is None:
        raise ExpressionError(
            f"{op.name} has no other layouts",
            f"operators that have: {', '.join(CONVERTERS)}; register_convert_op_layout adds one",
        )
    return found


def _converted(e: Call, args: Sequence[Expr], wanted: Mapping[str, Sequence[str]]) -> Call:
    assert isinstance(e.op, Op)
    same = Call(e.op, args, e.attrs, e.type_args, e.span)
    if e.op.name not in wanted or e.attrs is None:
        return same
    skipped = "conv" in e.op.name and LayoutConfig.current is not None and LayoutConfig.current.check_skip()
    found = same if skipped else _converter(e.op)(e.attrs, args, [a.checked_type for a in e.args], wanted[e.op.name])
    if not isinstance(found, Call):
        raise ExpressionTypeError(f"{e.op.name} in another layout is a {type(found).__name__}", "give a Call")
    return found


def _data_layout(name: str, wanted: Sequence[str]) -> str:
    if not wanted or wanted[0] == DEFAULT:
        raise ExpressionError(f"{name} is given no layout of its data", f'say which: {{"{name}": ["NHWC", "default"]}}')
    return wanted[0]


def _windows(name: str, kernels: Mapping[str, str]) -> Converter:
    """The converter of a convolution, by the kernels that go with layouts of data."""

    def convert(attrs: Attrs, args: Sequence[Expr], types: Sequence[Type], wanted: Sequence[str]) -> Expr:
        data = _data_layout(name, wanted)
        kernel = wanted[1] if len(wanted) > 1 else DEFAULT
        blocked = any(a.factor for a in layout(data).axes)
        if kernel == DEFAULT:
            if data not in kernels:
                raise ExpressionError(
                    f"{name} has no layout '{data}' with a kernel of its own",
                    f"give {', '.join(kernels)}, or a layout of the kernel, too",
                )
            kernel = "HWOI" if kernels[data] == "HWIO" and _is_depthwise(name, attrs, types) else kernels[data]
        new = {**attrs, "data_layout": data, "kernel_layout": kernel}
        made = build("nn.contrib_conv2d_nchwc" if blocked and name == "nn.conv2d" else name, *args, **new)
        assert isinstance(made, Expr)
        return made

    return convert


def _is_depthwise(name: str, attrs: Attrs, types: Sequence[Type]) -> bool:
    data = types[0]
    if "transpose" in name or attrs["groups"] == 1 or not isinstance(data, TensorType):
        return False
    return bool(data.shape[layout(str(attrs["data_layout"])).index_of("C")] == attrs["groups"])


def _told(name: str) -> Converter:
    """The converter of an operator that is told its layout."""

    def convert(attrs: Attrs, args: Sequence[Expr], types: Sequence[Type], wanted: Sequence[str]) -> Expr:
        data = _data_layout(name, wanted)
        layouts = {n: data for n in ("layout", "out_layout") if n in attrs}
        return Call(get(name), args, attrs.changed(**layouts))

    return convert


_PICTURES = {"NCHW": "OIHW", "NHWC": "HWIO"}
_TRANSPOSED = {"NCHW": "IOHW", "NHWC": "HWIO"}
_VOLUMES = {"NCDHW": "OIDHW", "NDHWC": "DHWIO"}
CONVERTERS: Mapping[str, Converter] = {
    **{name: _windows(name, _PICTURES | {"HWNC": "HWOI"}) for name in ("nn.conv2d", "qnn.conv2d")},
    "nn.deformable_conv2d": _windows("nn.deformable_conv2d", _PICTURES),
    **{name: _windows(name, _TRANSPOSED) for name in ("nn.conv2d_transpose", "qnn.conv2d_transpose")},
    "nn.conv3d": _windows("nn.conv3d", _VOLUMES),
    "nn.conv3d_transpose": _windows("nn.conv3d_transpose", {"NCDHW": "IODHW", "NDHWC": "DHWIO"}),
    **{
        name: _told(name)
        for name in (
            "nn.max_pool2d nn.avg_pool2d nn.global_max_pool2d nn.global_avg_pool2d qnn.avg_pool2d "
            "image.resize1d image.resize2d vision.roi_align vision.roi_pool"
        ).split()
    },
}
"""What brings operators into other layouts. What programs register (`register_convert_op_layout`) holds against it."""
