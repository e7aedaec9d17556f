"""The compiler of the Compass DSL. Kernel authors import from `compassc.dsl`; importing this package does no work."""

from compass_core import VERSION as __version__

__all__ = ["__version__"]
