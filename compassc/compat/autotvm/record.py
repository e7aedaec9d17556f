"""Records of measurements as lines of JSON: written, read, and the best of them picked."""

from __future__ import annotations

import base64
import json
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from compass_core import files
from compassc.targets import Target, TargetError

from .contexts import deserialized, keys_of
from .measure import MeasureInput, MeasureResult
from .space import ConfigEntity
from .task import Task, serialize_args

AUTOTVM_LOG_VERSION = 0.2
_WRITTEN_BY = "0.14.0"
_FAILED = 1e9
_log = logging.getLogger("autotvm")


def target_text(target: Target) -> str:
    """A target as records have it: its kind, its keys, its options."""
    kind, _, options = str(target).partition(" ")
    return " ".join(filter(None, [kind, f"-keys={','.join(keys_of(target)[:-1]) or 'cpu'}", options]))


def target_of(text: str) -> Target | None:
    """The target in a record; None where there is none like it here. Options that are not known are left out."""
    words = text.replace("-target=", "-mtriple=").split()
    while words:
        try:
            return Target(" ".join(w for w in words if not w.startswith("-keys")))
        except TargetError:
            if len(words) == 1:
                return None
            words.pop()
    return None


def measure_str_key(inp: MeasureInput, include_config: bool = True) -> str:
    """What an input is known by."""
    config = str(inp.config) if include_config else ""
    return "".join([str(inp.target), inp.task.name, str(inp.task.args), str(inp.task.kwargs), config])


def encode(inp: MeasureInput, result: MeasureResult, protocol: str = "json") -> str:
    """A measurement as a line. RuntimeError for protocols other than `json` and `pickle`."""
    failed = result.error_no != 0
    if protocol == "json":
        costs = [_FAILED] if failed else [float(c) for c in result.costs]
        return json.dumps(
            {
                "input": [target_text(inp.target), inp.task.name, list(inp.task.args), inp.task.kwargs],
                "config": inp.config.to_json_dict(),
                "result": [costs, int(result.error_no), float(result.all_cost), float(result.timestamp)],
                "version": AUTOTVM_LOG_VERSION,
                "tvm_version": _WRITTEN_BY,
            }
        )
    if protocol == "pickle":
        parts = [
            target_text(inp.target), inp.task.name, (inp.task.args, inp.task.kwargs), inp.config.to_json_dict(),
            ([_FAILED] if failed else list(result.costs), int(result.error_no), result.all_cost, result.timestamp),
            (AUTOTVM_LOG_VERSION, _WRITTEN_BY),
        ]  # fmt: skip
        return "\t".join(base64.b64encode(json.dumps(part).encode()).decode() for part in parts)
    raise RuntimeError(f"Invalid log protocol: {protocol}")


def decode(row: str, protocol: str = "json") -> tuple[MeasureInput, MeasureResult] | None:
    """The measurement of a line; None for records of the oldest version and of targets that there are not. RuntimeError for
    protocols other than `json` and `pickle`."""
    if protocol == "json":
        content = json.loads(row)
        if "v" in content or content.get("version") == 0.1:
            _log.warning("AutoTVM log version 0.1 is no longer supported.")
            return None
        target, name, args, _ = content["input"]
        return _measured(target, name, args, content["config"], content["result"])
    if protocol == "pickle":
        target, name, (args, _), config, result, _ = (
            json.loads(base64.b64decode(x)) for x in row.rstrip("\n").split("\t")
        )
        return _measured(target, name, args, config, result)
    raise RuntimeError(f"Invalid log protocol: {protocol}")


def _measured(
    target: str, name: str, args: Iterable[object], config: Mapping[str, Any], result: Sequence[Any]
) -> tuple[MeasureInput, MeasureResult] | None:
    if "-target=" in target:
        _log.warning('"-target" is deprecated, use "-mtriple" instead.')
    made = target_of(target)
    if made is None:
        _log.warning("a record is for the target %s, which there is not here", target)
        return None
    task = Task(name, serialize_args(deserialized(args)))
    task.target = made
    entity = ConfigEntity.from_json_dict(config)
    costs, error, spent, when = result
    measured = MeasureResult(tuple(costs), int(error), float(spent), float(when))
    entity.cost = float(np.mean(costs))
    return MeasureInput(made, task, entity), measured


def load_from_buffer(file: Iterable[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements of lines; empty lines and those that begin with `#` are none."""
    for row in file:
        if row.strip() and not row.startswith("#"):
            found = decode(row)
            if found is not None:
                yield found


def load_from_file(filepath: str | os.PathLike[str]) -> Iterator[tuple[MeasureInput, MeasureResult]]:
    """The measurements of a file."""
    with Path(filepath).open(encoding="utf-8") as file:
        yield from load_from_buffer(file)


def pick_best(in_file: str | os.PathLike[str], out_file: str | os.PathLike[str]) -> None:
    """Writes the best measurement of each workload and target of a file; what is in the other file already counts, too."""
    found = list(load_from_file(in_file))
    if Path(out_file).is_file():
        found += load_from_file(out_file)
    best: dict[str, tuple[MeasureInput, MeasureResult]] = {}
    for inp, result in found:
        key = measure_str_key(inp, include_config=False)
        if result.error_no == 0 and (key not in best or np.mean(result.costs) < np.mean(best[key][1].costs)):
            best[key] = inp, result
    files.write(Path(out_file), "".join(encode(*pair) + "\n" for pair in best.values()))


def split_workload(in_file: str | os.PathLike[str], clean: bool = True) -> None:
    """Writes a file for each workload of a file, named after it with a number. `clean`: each configuration once."""
    groups: dict[str, dict[str, tuple[MeasureInput, MeasureResult]]] = {}
    for i, (inp, result) in enumerate(load_from_file(in_file)):
        key = measure_str_key(inp) if clean else str(i)
        groups.setdefault(measure_str_key(inp, include_config=False), {})[key] = inp, result
    for number, group in enumerate(groups.values()):
        text = "".join(encode(*pair) + "\n" for pair in group.values())
        files.write(Path(f"{in_file}.{number:03d}.wkl"), text)


def main(words: list[str] | None = None) -> None:
    """`python -m tvm.autotvm.record --mode read|pick|split --i FILE [--o FILE] [--begin 0 --end 5]`."""
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--mode", choices=["read", "pick", "split"], default="read")
    parser.add_argument("--i", required=True)
    parser.add_argument("--o")
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=5)
    given = parser.parse_args(words)
    if given.mode == "pick":
        pick_best(given.i, given.o or f"{given.i}.best.log")
    elif given.mode == "split":
        split_workload(given.i)
    else:
        for i, (inp, result) in enumerate(load_from_file(given.i)):
            if given.begin <= i < given.end:
                print(inp.target, inp.task, inp.config, result, sep="\n")
