"""Examples that are graphs: generate, build and run as their README says; the result is what NumPy gives."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
GRAPHS = sorted(path.parent.name for path in EXAMPLES.glob("*/graph.py"))
RUN = [sys.executable, "-c", "import sys; from compass_runtime.cli import main; sys.exit(main())"]
PROGRAMS = {"python": [sys.executable], "compassc": [sys.executable, "-m", "compassc"], "compass-run": RUN}


@pytest.mark.parametrize("name", GRAPHS)
def test_the_commands_of_the_readme(name: str, tmp_path: Path) -> None:
    lines = re.findall(r"^\$ (.*)$", (EXAMPLES / name / "README.md").read_text(), re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        program, *args = line.replace("graph.py", str(EXAMPLES / name / "graph.py")).split()
        done = subprocess.run([*PROGRAMS[program], *args], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    assert "as expected" in done.stdout + done.stderr
