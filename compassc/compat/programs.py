"""The framework's programs for remote sessions, as commands of this toolchain: `python -m tvm.exec.rpc_server` and the others."""

from __future__ import annotations

import sys
from functools import partial

from compassc.cli.main import main


def _run(command: str, ignored: tuple[str, ...] = ()) -> None:
    """Runs a command with the words of this program's command line; `ignored`: options that mean nothing here."""
    sys.argv[:] = ["compassc", command, *(word for word in sys.argv[1:] if word not in ignored)]
    main()


rpc_server = partial(_run, "rpc-server", ("--no-fork",))
rpc_tracker = partial(_run, "rpc-tracker")
rpc_proxy = partial(_run, "rpc-proxy", ("--example-rpc",))
query_rpc_tracker = partial(_run, "rpc-query")
