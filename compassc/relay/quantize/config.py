"""How quantisation is done: `with qconfig(nbit_weight=8, ...):`."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import fields
from enum import IntEnum
from types import TracebackType

from compass_core.dataclass import dataclass
from compass_core.errors.suggest import help_for
from compassc.ir.dtypes import dtype as data_type
from compassc.ir.errors import ExpressionError

CALIBRATE_MODES = ("global_scale", "kl_divergence", "percentile")
_CHOICES = {
    "calibrate_mode": CALIBRATE_MODES,
    "weight_scale": ("power2", "max"),
    "rounding": ("UPWARD", "TONEAREST"),
    "partition_conversions": ("disabled", "enabled", "fully_integral"),
}


class QAnnotateKind(IntEnum):
    """What a tensor is for the operator that takes it: nothing special, an input, a weight, what it accumulates in."""

    IDENTITY = 0
    INPUT = 1
    WEIGHT = 2
    ACTIVATION = 3


def kind2str(kind: int) -> str:
    """The name of a kind in lower case. ValueError for other numbers."""
    return QAnnotateKind(kind).name.lower()


@dataclass(frozen=True)
class QConfig:
    """The settings of quantisation, a context manager; fields cannot be assigned.

    `nbit_*`, `dtype_*`: bits and element types of inputs of operators, of weights, and of what is accumulated. `calibrate_mode`: how
    the largest magnitude of an input is found: `global_scale` is that number for all, `kl_divergence` and `percentile` look at a
    data set. `weight_scale`: the largest magnitude of a weight (`max`), or the next power of two (`power2`). `skip_dense_layer`,
    `skip_conv_layers` (numbers of `nn.conv2d` in the order of evaluation), `debug_enabled_ops` (None: all): what stays in floats.
    `do_simulation`: the result is a program of floats that rounds as the one of integers. `round_for_shift`: shifts to the
    right round to the nearest, halves up. `rounding`: of other factors. `calibrate_chunk_by`: how many tensors are looked at
    in one run, -1 for all. `partition_conversions`: "enabled" divides the result into the functions `quantize_inputs`,
    `quantized_main` and `dequantize_outputs`; "fully_integral" also refuses floats in `quantized_main`.
    """

    nbit_input: int = 8
    nbit_weight: int = 8
    nbit_activation: int = 32
    dtype_input: str = "int8"
    dtype_weight: str = "int8"
    dtype_activation: str = "int32"
    calibrate_mode: str = "global_scale"
    global_scale: float = 8.0
    weight_scale: str = "power2"
    skip_dense_layer: bool = True
    skip_conv_layers: tuple[int, ...] | list[int] | None = (0,)
    do_simulation: bool = False
    round_for_shift: bool = True
    debug_enabled_ops: tuple[str, ...] | list[str] | None = None
    rounding: str = "UPWARD"
    calibrate_chunk_by: int = -1
    partition_conversions: str = "disabled"

    def __post_init__(self) -> None:
        for name, known in _CHOICES.items():
            if getattr(self, name) not in known:
                raise ExpressionError(
                    f"qconfig: {name} is {getattr(self, name)!r}", help_for(str(getattr(self, name)), known, "values")
                )
        if not self.global_scale > 0:
            raise ExpressionError(
                f"qconfig: global_scale is {self.global_scale}", "give the largest magnitude, above 0"
            )
        if self.calibrate_chunk_by == 0 or self.calibrate_chunk_by < -1:
            raise ExpressionError("qconfig: calibrate_chunk_by counts tensors", "give 1 or more, or -1 for all at once")
        for kind in (QAnnotateKind.INPUT, QAnnotateKind.WEIGHT, QAnnotateKind.ACTIVATION):
            self._check(kind)

    def _check(self, kind: QAnnotateKind) -> None:
        dtype, bits = data_type(self.get_dtype_by_kind(kind)), self.get_nbit_by_kind(kind)
        name = kind2str(kind)
        if not dtype.is_int or dtype.bits > 32:
            raise ExpressionError(f"qconfig: dtype_{name} is {dtype}", "quantised numbers are int8, int16 or int32")
        if not 2 <= bits <= dtype.bits:
            raise ExpressionError(
                f"qconfig: {dtype} has no room for nbit_{name}={bits}", f"give 2 to {dtype.bits} bits"
            )

    def get_nbit_by_kind(self, kind: int) -> int:
        """The bits of tensors of a kind."""
        found: int = getattr(self, f"nbit_{kind2str(kind)}")
        return found

    def get_dtype_by_kind(self, kind: int) -> str:
        """The element type of tensors of a kind."""
        found: str = getattr(self, f"dtype_{kind2str(kind)}")
        return found

    def __enter__(self) -> QConfig:  # noqa: PYI034 - typing.Self is younger than Python 3.10
        _settings.set((*_settings.get(), self))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        _settings.set(_settings.get()[:-1])


_settings: ContextVar[tuple[QConfig, ...]] = ContextVar("quantisation of programs", default=(QConfig(),))
"""Those of a thread, the innermost last."""


def current_qconfig() -> QConfig:
    """The settings of the innermost `qconfig`, the defaults outside."""
    return _settings.get()[-1]


def qconfig(**settings: object) -> QConfig:
    """Settings, those that are not given by their defaults: a context manager. ExpressionError for unknown names and values that
    do not fit."""
    known = [f.name for f in fields(QConfig)]
    for name in settings:
        if name not in known:
            raise ExpressionError(f"qconfig has no setting '{name}'", help_for(name, known, "settings"))
    return QConfig(**settings)  # type: ignore[arg-type]  # values are checked above
