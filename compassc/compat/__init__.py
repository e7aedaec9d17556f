"""The vendor's import names, so that programs written for its packages run unchanged.

    python -m compassc.compat script.py [args]

or, in a program of one's own, `install()` before the first of these imports.
"""

from __future__ import annotations


def install(shadow: bool = False) -> bool:
    """Make the vendor's names importable in this process; returns whether they are.

    Where a package `tvm` is really installed nothing happens, unless `shadow` is given.
    """
    from . import modules

    if modules.installed():
        return True
    if not shadow and modules.real_package() is not None:
        return False
    modules.take_names()
    return True
