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

    if not shadow and other_package() is not None:
        return False
    if not modules.installed():
        modules.take_names()
    return True


def other_package() -> str | None:
    """The path of another package that has the names; None if there is none, or the names are ours."""
    from . import modules

    return None if modules.installed() else modules.real_package()
