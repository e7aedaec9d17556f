"""Tries a wheel as a user has it: `python wheel.py FILE.whl`.

In an environment of its own, with an empty home, and a PATH that has no compiler, README.md's tour is followed in an
empty folder. Standard library only. Prints how long it took and how much the environment holds.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = ("sh", "bash", "ls", "env")
"""All that PATH has beside the environment's own programs."""
COMPILERS = ("cc", "gcc", "clang", "c++", "tcc", "ld")


def main(wheel: str) -> int:
    with tempfile.TemporaryDirectory(prefix="compassc-wheel-") as place:
        folder = Path(place)
        environment, home, work, tools = (folder / name for name in ("venv", "home", "work", "tools"))
        for made in (home, work, tools):
            made.mkdir()
        for name in TOOLS:
            (tools / name).symlink_to(Path(shutil.which(name) or name).resolve())
        begun = time.monotonic()
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        pip = [environment / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", "install"]
        subprocess.run([*pip, f"{Path(wheel).resolve()}[clang]"], check=True)
        subprocess.run([environment / "bin/python", "-c", ""], check=True)  # the clang wheel puts its programs in place
        size = sum(f.stat().st_blocks * 512 for f in environment.rglob("*") if not f.is_symlink())
        print(f"installed in {time.monotonic() - begun:.0f} s, {size / 1e6:.0f} MB")
        path = f"{environment / 'bin'}:{tools}"
        found = [name for name in COMPILERS if shutil.which(name, path=str(tools))]
        assert not found, f"{found} on PATH"
        return subprocess.run(
            [environment / "bin/python", ROOT / "tests/docs/pages.py", ROOT / "README.md"],
            cwd=work,
            env={"HOME": str(home), "PATH": path, "LANG": os.environ.get("LANG", "C.UTF-8")},
            check=False,
        ).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
