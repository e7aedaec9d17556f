"""What a module of the vendor's import names offers."""

from __future__ import annotations

from dataclasses import field

from compass_core.dataclass import dataclass


@dataclass(frozen=True)
class Names:
    """What one vendor module offers: `given`, name -> home; then all public names of the modules `like`, then the operators of
    Relay below a prefix, "" for those without one.

    A home is `MODULE:NAME`, or `MODULE:` for the same name there. `own`: the names are put into the module when it is imported,
    for tools that look at its dictionary.
    """

    given: dict[str, str] = field(default_factory=dict)
    like: tuple[str, ...] = ()
    operators: str | None = None
    own: bool = False
