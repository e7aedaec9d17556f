"""`S.prim_func` and `S.macro`: the decorators that make a Python function a kernel, and how PySim runs it when it is called."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import overload

from compass_core.errors import CompassError

from ..language.dispatch import LOCAL
from ..language.functions import Macro, PyPrimFunc, SignatureError
from ..settings.options import control_options


def _run_kernel(func: PyPrimFunc, args: tuple[object, ...], kwargs: dict[str, object]) -> object:
    """A call in Python: of a sub-function by the kernel that this thread runs, else of an entry."""
    from ..pysim import call_sub, run_entry

    if LOCAL.tec is not None:
        return call_sub(func.py_func, func.params, func.ret_type, args, kwargs)
    if kwargs:
        raise CompassError(
            f"{func.__name__}: an entry function takes positional arguments only",
            code="arguments",
            help="give its arguments in order, without names",
        )
    run_entry(func.py_func, func.params, args, func.target, func.output_dir)

    if control_options().dumps:
        from .dumps import write_pysim_outputs

        write_pysim_outputs(func.__name__, func.output_dir, func.param_infos, args)
    return None


def _run_macro(macro: Macro, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
    """A call of a macro that PySim has not pasted."""
    from ..pysim.macros import run_macro

    frame = sys._getframe(2)  # of the caller of Macro.__call__
    run_macro(macro, args, kwargs, {**frame.f_globals, **frame.f_locals})


@overload
def prim_func(func: Callable[..., object], is_entry: bool = False, is_inline: bool | None = None) -> PyPrimFunc: ...
@overload
def prim_func(
    func: None = None, is_entry: bool = False, is_inline: bool | None = None
) -> Callable[[Callable[..., object]], PyPrimFunc]: ...
def prim_func(
    func: Callable[..., object] | None = None, is_entry: bool = False, is_inline: bool | None = None
) -> Callable[..., object] | PyPrimFunc:
    """Decorator of kernels and sub-functions.

    `is_inline`: True or False asks the C compiler to inline the function or not. `is_entry` is accepted for
    compatibility; the entry is the function given to the build.
    """
    if is_inline not in (None, True, False):
        raise SignatureError(
            f"is_inline is True, False or None, got {is_inline!r}",
            code="signature",
            help="leave it out to let the C compiler choose",
        )
    if func is None:
        return lambda f: PyPrimFunc(f, _run_kernel, is_inline)
    return PyPrimFunc(func, _run_kernel, is_inline)


@overload
def macro(func: Callable[..., object], *, hygienic: bool = True) -> Macro: ...
@overload
def macro(func: None = None, *, hygienic: bool = True) -> Callable[[Callable[..., object]], Macro]: ...
def macro(func: Callable[..., object] | None = None, *, hygienic: bool = True) -> object:
    """Decorator of macros: statements pasted at the call. `hygienic=False` resolves names at the call site."""
    if func is None:
        return lambda f: Macro(f, _run_macro, hygienic)
    return Macro(func, _run_macro, hygienic)
