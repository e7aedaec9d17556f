"""Kernels in notebooks: `%load_ext compassc.jupyter` gives the cell magic `%%compass`.

    %%compass [-t TARGET] [NAME(ARGUMENTS)]

The cell is Python, run in the notebook's namespace like any other, whose kernels are built: below it stands the C of the
kernel, and, where the line has a call of it, the table and the page of a profile of that call. Its outputs are changed in
place as by any call. It needs IPython (`pip install ipython`, in every notebook).
"""

from __future__ import annotations

import ast
import itertools
import shlex
import tempfile
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from compass_core.dataclass import dataclass
from compass_core.errors import CompassError, UsageError, render
from compass_runtime.profile.page import page
from compass_runtime.profile.table import text
from compassc.dsl import BuildManager
from compassc.language.functions import PyPrimFunc
from compassc.language.kernel_files import called_names

if TYPE_CHECKING:
    from compassc.dsl import Executor

USAGE = "%%compass [-t TARGET] [NAME(ARGUMENTS)]"
_HEIGHT = 640
"""Pixels of the frame of a profile."""
_cells = itertools.count(1)
_folder: tempfile.TemporaryDirectory[str] | None = None


@dataclass(frozen=True)
class Line:
    """The line of the magic: the target (empty: the default one) and the call, if any."""

    target: str = ""
    call: ast.Call | None = None

    @classmethod
    def parse(cls, text: str) -> Line:
        """UsageError for anything but options and a call of a name."""
        target, rest = "", text.strip()
        while rest.startswith("-"):
            words = rest.split(maxsplit=2)
            if words[0] not in ("-t", "--target") or len(words) < 2:
                raise _usage(f"unknown option '{words[0]}'")
            target, rest = shlex.split(words[1])[0], words[2] if len(words) > 2 else ""
        if not rest:
            return cls(target)
        try:
            call = ast.parse(rest, mode="eval").body
        except SyntaxError as error:
            raise _usage(f"'{rest}' is no call: {error.msg}") from None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
            raise _usage(f"'{rest}' is no call of a kernel with its arguments in order")
        return cls(target, call)

    @property
    def kernel(self) -> str | None:
        """The name of the kernel that is called."""
        return self.call.func.id if self.call is not None and isinstance(self.call.func, ast.Name) else None

    def arguments(self, namespace: dict[str, object]) -> list[object]:
        """The values of the call's arguments."""
        call = ast.Expression(ast.Tuple(self.call.args if self.call is not None else [], ast.Load()))
        return list(eval(compile(ast.fix_missing_locations(call), "<%%compass>", "eval"), namespace))


def _usage(message: str) -> UsageError:
    return UsageError(f"%%compass: {message}", code="usage", help=USAGE)


def compass(line: str, cell: str, namespace: dict[str, object]) -> list[object]:
    """What the magic shows: objects with a form as HTML and one as text. CompassError for mistakes in line or cell."""
    wanted = Line.parse(line)
    kernel = _kernel(cell, wanted.kernel, namespace)
    built = BuildManager(wanted.target or None).build(kernel)
    shown: list[object] = [Shown(_code_page(built, kernel.__name__), built.c_code)]
    if wanted.call is not None:
        shown.append(_profiled(built, wanted.arguments(namespace)))
    return shown


def _kernel(cell: str, name: str | None, namespace: dict[str, object]) -> PyPrimFunc:
    """Run the cell, and give the kernel to build: the one called, or the only one that no other kernel of the cell calls."""
    path = _file(cell)
    exec(compile(cell, str(path), "exec", dont_inherit=True), namespace)  # noqa: S102 - a cell is the user's own program
    if name is not None:
        found = namespace.get(name)
        if not isinstance(found, PyPrimFunc):
            raise UsageError(f"there is no kernel '{name}'", code="entry", help="decorate it with @S.prim_func")
        return found
    mine = {n: k for n, k in namespace.items() if isinstance(k, PyPrimFunc) and k.span.file == str(path)}
    called = set().union(*map(called_names, mine.values())) if mine else set()
    roots = [kernel for n, kernel in mine.items() if n not in called]
    if len(roots) != 1:
        what = "several kernels" if roots else "no kernel"
        raise UsageError(f"the cell defines {what}", code="entry", help=f"name one: {USAGE}")
    return roots[0]


def _file(cell: str) -> Path:
    """The cell as a file, which errors, profiles and debuggers can show; it lives as long as the notebook's kernel."""
    global _folder
    if _folder is None:
        _folder = tempfile.TemporaryDirectory(prefix="compass-cells-")
    path = Path(_folder.name, f"cell_{next(_cells)}.py")
    path.write_text(cell, encoding="utf-8")
    return path


@dataclass(frozen=True)
class Shown:
    """Something to display: as HTML in notebooks, as text elsewhere."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return self.html

    def __repr__(self) -> str:
        return self.text


def _code_page(built: Executor, name: str) -> str:
    return f"<details open><summary>C of {escape(name)}</summary><pre>{escape(built.c_code)}</pre></details>"


def _profiled(built: Executor, arguments: list[object]) -> Shown:
    """Run the kernel with a profile: its table, and its page in a frame, whose style is its own."""
    built.profile(*arguments)
    profile = built.latest_profile
    assert profile is not None, "the run before made it"
    table = text(profile)
    frame = (
        f'<iframe srcdoc="{escape(page(profile))}" sandbox="allow-scripts" title="profile of {escape(profile.name)}" '
        f'style="width:100%; height:{_HEIGHT}px; border:0"></iframe>'
    )
    return Shown(f"<pre>{escape(table)}</pre>{frame}", table)


class Shell(Protocol):
    """What the extension asks of IPython's shell."""

    user_ns: dict[str, object]

    def register_magic_function(self, func: Callable[[str, str], None], kind: str, name: str) -> None: ...


def load_ipython_extension(shell: Shell) -> None:
    """Registers the magic; `%load_ext compassc.jupyter` calls it."""

    def magic(line: str, cell: str) -> None:
        from IPython.display import display

        try:
            shown = compass(line, cell, shell.user_ns)
        except CompassError as error:
            said = render(error).splitlines()
            error._render_traceback_ = lambda: said  # type: ignore[attr-defined]  # what IPython shows of it
            raise
        for one in shown:
            display(one)

    shell.register_magic_function(magic, "cell", "compass")
