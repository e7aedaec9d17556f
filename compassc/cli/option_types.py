"""What options of commands are called among the values that click hands over, and what these are.

An option of one name means the same for all commands that have it; none has all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict


class Passes(TypedDict, total=False):
    """`options.pass_options` and its like."""

    print_before: tuple[str, ...]
    print_after: tuple[str, ...]
    print_changed: bool
    functions: tuple[str, ...]
    dump_dir: Path | None
    time_passes: bool
    disabled: tuple[str, ...]
    limit: int | None
    verify: bool
    passes: str | None
    print_pipeline: bool


class Calibration(TypedDict, total=False):
    """`quantizing.quantize_option` and `quantizing.calibration_options`."""

    quantize: str | None
    calibrate: str | None
    samples: int | None
    mean: tuple[float, ...] | None
    std: tuple[float, ...] | None
    size: tuple[int, int] | None
    settings: Path | None
    min_cosine: float | None
    min_sqnr: float | None


class Options(Passes, Calibration, total=False):
    """Those of commands that build, tune, evaluate and check, but for the files and what is done with them."""

    values: dict[str, float]
    shapes: dict[str, tuple[int, ...]]
    consts: dict[str, Path]
    outputs: tuple[str, ...]
    batch: int
    states: dict[str, str] | str
    stop_after: str
    save_temps_dir: Path | None
    save_temps: bool
    depfile: Path | None
    aiff: bool
    clang: str | None
    cc_options: tuple[str, ...]
    no_cache: bool
    toolchain: str | None
    dry_run: bool
    strict: bool
    # graphs
    plugins: tuple[Path, ...]
    libraries: tuple[Path, ...]
    launches: Path | None
    no_fuse: bool
    cycles: bool
    profile: Path | None
    # evaluations and searches
    data: str
    labels: Path | None
    metric: str
    no_reference: bool
    reference_samples: int | None
    top: int
    trials: int
    seconds: float | None
    patience: int | None
    strategy: str
    seed: int
    cold: bool
    timeout: float
    jobs: int
    scheduler: str | None
    html: Path | None
    as_json: bool
    # where things run
    remote: str | None
    tracker: str | None
    key: str
    wait: float | None


class Graphs(Options, total=False):
    """Those that take a graph's constants from another file, too."""

    weights: Path | None


class Given(Graphs, total=False):
    """All of them."""

    target: str
    entry: str | None
    output: Path | None
