"""What operations and transfers cost on each generation, estimated: the files `configurations/cost`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from compass_core import targets
from compass_core.errors import CompassError


@lru_cache(maxsize=16)
def estimates(name: str) -> dict[str, Any]:
    """A file by its name, such as a generation's; its entries override those of the file that it is based on.
    CompassError where there is no such file. The result is shared: nobody changes it."""
    import yaml

    path = targets.folder() / "cost" / f"{name}.yaml"
    if not path.is_file():
        raise CompassError(f"there is no cost model for {name}", code="bad-target-file", help=f"it would be {path}")
    fastest = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    content: dict[str, Any] = yaml.load(path.read_text(encoding="utf-8"), fastest)
    return {**estimates(content.pop("based_on")), **content} if "based_on" in content else content
