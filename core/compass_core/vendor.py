"""What programs written for the vendor's packages expect to be otherwise, once its names are in use."""

from __future__ import annotations

from collections.abc import Sequence

from compass_core.errors import ArgumentError

names_in_use = False
"""Whether the vendor's import names were imported in this process."""


def wrong_argument_count(kernel: str, names: Sequence[str], given: int) -> ArgumentError:
    """The error of a call with more or fewer arguments than a kernel has parameters (`names`)."""
    if names_in_use:
        message = f'The function "{kernel}" expect {len(names)} args, but got: "{given}".'
    else:
        message = f"{kernel} takes {len(names)} arguments, {given} given"
    return ArgumentError(message, code="argument-count", help="one per kernel parameter: " + ", ".join(names))
