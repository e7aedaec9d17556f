"""Files as an attacker would make them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from compass_core import confine, targets
from compass_core.confine import parent
from compass_core.elf.elf64 import with_section
from compass_core.hostcc.sources import SECTION
from compass_runtime import Program
from compass_runtime.variants import with_object
from compassc.gbuilder import build_from_params
from compassc.toolchain import cc

KERNEL = "#include <compass/dsl.h>\n\n__kernel void k(__global int* a) { for (int i = 0; i < 4; i++) a[i] += 1; }\n"
PARAMS = {
    "format": "compassc-params/1",
    "kernel": "k",
    "target": "X2_1204",
    "params": [
        {
            "name": "a",
            "kind": "pointer",
            "dtype": "int32",
            "scope": "global",
            "role": "output",
            "index": 0,
            "read": True,
            "shape": [4],
        }
    ],
}
DEFINE = targets.load("X2_1204").define


def pytest_collection_modifyitems(config, items):
    """Without --whole each attack comes by one of the means that confine the compiler, by turns."""
    if config.getoption("--whole"):
        return
    folder = str(Path(__file__).parent) + os.sep
    here = [item for item in items if str(item.path).startswith(folder)]
    usable = [one for one in confine.MEANS if confine.available((one,))] or list(confine.MEANS)
    turns = {}
    left_out = set()
    for item in here:
        given = dict(item.callspec.params) if hasattr(item, "callspec") else {}
        if (means := given.pop("means", None)) is not None and given:
            attacks = turns.setdefault(item.function, {})
            turn = attacks.setdefault(str(given), len(attacks))
            if means != usable[turn % len(usable)]:
                left_out.add(id(item))
    items[:] = [item for item in items if id(item) not in left_out]


@pytest.fixture(scope="session")
def cache_folder(tmp_path_factory):
    """A compile cache of these tests alone: what they compile is compiled here."""
    return tmp_path_factory.mktemp("cache")


STARTED = parent._started


@pytest.fixture(autouse=True)
def compiled_here(monkeypatch, cache_folder):
    """What is compiled is compiled now, and confined as users have it: by no clang that was loaded before."""
    monkeypatch.setattr(parent, "_started", STARTED)
    monkeypatch.setenv("COMPASS_CACHE_DIR", str(cache_folder))


@pytest.fixture(scope="session")
def honest(tmp_path_factory):
    """An aipu.bin of four elements, each 1 more than before, and what it was built from beside it."""
    folder = tmp_path_factory.mktemp("honest")
    (folder / "k.cl").write_text(KERNEL)
    built = cc.compile_file(folder / "k.cl", folder / "k.o", cc.CcOptions(targets.load("X2_1204")))
    (folder / "k.params.json").write_text(json.dumps(PARAMS))
    return build_from_params(PARAMS, built.object, folder, folder / "aipu.bin")


@pytest.fixture(scope="session")
def forge(honest):
    """A function that gives the honest program with another text and other words in its head, as a foreign file has."""
    program = Program.load(honest)

    def make(text, **head):
        said = {"name": "k.cc.cl", "define": DEFINE, "macros": [], "options": [], "flags": [], **head}
        content = b"\0".join((json.dumps(said).encode(), text.encode(), b"{}", b""))
        hidden = program.code.elf.replace(b"\0" + SECTION.encode() + b"\0", b"\0" + b"x" * len(SECTION) + b"\0")
        return with_object(program, with_section(hidden, SECTION, content))

    return make
