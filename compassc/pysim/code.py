"""The code objects of kernels and macros, which tracebacks and debuggers treat as user code."""

from __future__ import annotations

import types
import weakref

KERNEL_CODE: weakref.WeakSet[types.CodeType] = weakref.WeakSet()
"""The code objects of the kernels, sub-functions and macros that were run."""

MACRO_CODE: weakref.WeakKeyDictionary[types.CodeType, dict[str, str]] = weakref.WeakKeyDictionary()
"""The code objects of inlined macros, with the arguments of their parameters."""
