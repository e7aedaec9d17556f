"""What shells complete the words of commands to."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from compass_core import targets
from compassc.cli.main import cli

COMPLETED = {
    ("build", "-t"): ("x3p", [name for name in targets.names() if name.startswith("X3P")]),
    ("tune", "--strategy"): ("r", ["random"]),
    ("explain",): ("vect", ["vectorize", "vector-cast"]),
    ("ops",): ("dma_c", ["dma_copy"]),
    ("layers",): ("soft", ["Softmax"]),
    ("lower", "--print-after"): ("pipe", ["PipelineLoops"]),
    (): ("gbu", ["gbuild"]),
}


@pytest.mark.parametrize("words", COMPLETED)
def test_words_are_completed_to_names(words):
    begun, names = COMPLETED[words]
    completer = ShellComplete(cli, {}, "compassc", "_COMPASSC_COMPLETE")
    found = [item.value for item in completer.get_completions(list(words), begun)]
    assert names and set(names) <= set(found) and all(name.lower().startswith(begun) for name in found)
