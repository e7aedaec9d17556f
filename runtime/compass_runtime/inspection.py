"""What `compass-run` does with the tensors inside a graph: `--dump-layers` and `--compare`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from compass_core.arrays import Array
from compass_core.dataclass import dataclass
from compass_core.errors import UsageError

if TYPE_CHECKING:
    from compass_runtime.cli import Options
    from compass_runtime.job import After, Job
    from compass_runtime.tensors import Comparison, Dump

    Arrays = dict[str, Array]


@dataclass
class TensorInspection:
    """Options of looking at tensors: what is done with those of the first run."""

    dump: Dump | None
    comparison: Comparison | None
    folder: Path | None
    verbose: bool = False

    @classmethod
    def from_options(cls, options: Options) -> TensorInspection | None:
        """What the command line asks for, if anything; UsageError when another option needs a run of another kind."""
        if options.dump_layers is None and options.compared is None:
            return None
        option = "--compare" if options.compared else "--dump-layers"
        profiled = options.profile or options.profile_html or options.trace
        others = {"--debug": options.debugs, "a profile": profiled}
        if other := next((name for name, given in others.items() if given), None):
            raise UsageError(
                f"{option} does not go with {other}",
                code="layer-options",
                help="these runs are not stopped between launches; make two",
            )
        from compass_runtime.tensors import Comparison, Dump

        return cls(
            Dump(options.dump_layers, options.real) if options.dump_layers else None,
            Comparison(options.compared, options.rtol, options.atol) if options.compared else None,
            options.dump_layers,
            options.verbose,
        )

    def run(self, job: Job, run: Callable[[After], Arrays]) -> Arrays:
        """Runs launch by launch and looks at what each one made; gives the outputs."""
        from compass_runtime.progress import Progress
        from compass_runtime.tensors import TensorObserver, inner_tensors

        observer = TensorObserver(job, [taker for taker in (self.dump, self.comparison) if taker is not None])
        progress = Progress(job.program) if Progress.wanted(job.program, self.verbose) else None

        def after(done: int) -> None:
            observer.after(done)
            if progress is not None:
                progress.after(done)

        try:
            outputs = run(after)
        finally:
            if progress is not None:
                progress.clear()
        observer.finish(outputs)
        inside = len(inner_tensors(job.program))
        if inside:
            print(
                f"note: {inside} tensors exist inside kernels only; compassc gbuild --no-fuse makes a launch of each "
                "layer",
                file=sys.stderr,
            )
        if job.program.note is None and len(job.program.content.subgraphs) > 1:
            print("note: the file does not say where its tensors lie: only outputs are seen", file=sys.stderr)
        return outputs

    def finish(self) -> Comparison | None:
        """The comparison, when there is one. CompassError when no name of a known array is a tensor's."""
        if self.dump is not None:
            print(f"{self.dump.count} tensors written to {self.folder}", file=sys.stderr)
        if self.comparison is not None:
            self.comparison.check()
        return self.comparison
