"""YAML from files: what is invalid, nested too deeply or says one thing at several places is refused with its line."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from compass_core.errors import CompassError, Span
from compass_core.reading.limits import JSON_DEPTH


def parse(text: str, where: str, code: str, what: str) -> Any:
    """The value of a YAML text from the file `where`: mappings, lists, text, numbers, true, false, nothing, dates.
    CompassError with `code` at the line that is wrong; `what` the text is to be."""
    import yaml

    try:
        return yaml.load(text, _loader())
    except RecursionError:
        raise JSON_DEPTH.error(where, found="it nests deeper") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = Span(where, mark.line + 1, mark.column + 1) if mark else Span(where, 1)
        said = error.problem or error.context
        raise CompassError(f"{what} is no YAML: {said}", place, code=code) from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # dates that are none, numbers of thousands of digits
        raise CompassError(f"{what} is no YAML: {str(error)[:300]}", Span(where, 1), code=code) from None


@cache
def _loader() -> Any:
    import yaml

    class Loader(yaml.SafeLoader):
        """Refuses parts that stand for others: a few lines of them mean more than any memory holds."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                peek: Callable[[], Any] = self.peek_event
                found = peek()
                raise yaml.MarkedYAMLError(
                    problem=f"the alias *{found.anchor} is not taken: write it out", problem_mark=found.start_mark
                )
            return super().compose_node(parent, index)

    return Loader
