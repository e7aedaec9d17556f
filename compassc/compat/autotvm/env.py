"""What holds for all of `tvm.autotvm`."""

from __future__ import annotations

from .contexts import FallbackContext


class AutotvmGlobalScope:
    """`in_tuning`: whether a search is under way; `silent`: whether a missing configuration is not told of."""

    def __init__(self) -> None:
        self.in_tuning = False

    @property
    def silent(self) -> bool:
        return FallbackContext.silent

    @silent.setter
    def silent(self, value: bool) -> None:
        FallbackContext.silent = value


GLOBAL_SCOPE = AutotvmGlobalScope()
