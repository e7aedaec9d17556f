"""`NAME.params.json`: what a kernel's parameters are. The same JSON travels in aipu.bin as the note `compassc`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

from compass_core import PARAMS_FORMAT
from compass_core.aipubin.dtypes import DType, element_dtype
from compass_core.dataclass import dataclass
from compass_core.errors import CompassError
from compass_core.reading import jsontext, names

if TYPE_CHECKING:
    from typing_extensions import NotRequired

    from compass_core.extents.structure import Program

Role = Literal["input", "output", "const", "descriptor", "attr"]
ROLES: tuple[str, ...] = get_args(Role)
MAX_RANK = 32
MAX_GROUPS = 64
MAX_BYTES = 1 << 32


class ParamFields(TypedDict):
    """A parameter in `NAME.params.json`, see `Param`: a scalar has a value, a pointer the rest."""

    name: str
    kind: str
    dtype: str
    role: str
    scope: NotRequired[str]
    index: NotRequired[int]
    read: NotRequired[bool]
    shape: NotRequired[list[int] | None]
    dims: NotRequired[list[int | str]]
    value: NotRequired[float | None]


class KernelFields(TypedDict):
    """The content of `NAME.params.json`, see `KernelInfo`."""

    format: str
    kernel: str
    target: str
    uses_printf: bool
    stack_size: int
    params: list[ParamFields]
    extents: Program | None
    groups: NotRequired[int]


@dataclass(frozen=True)
class Param:
    """One kernel parameter. `index` counts within the role; `read`: an output that the kernel also loads from.

    `shape` (scalar elements) is None when the sizes are not known at build time, `value` None for a run-time scalar.
    `dims`: the shape that the kernel gives the tensor, with names of scalars that are sizes; None when it says nothing.
    """

    name: str
    kind: str
    dtype: str
    role: str
    index: int = 0
    scope: str = "global"
    read: bool = False
    shape: tuple[int, ...] | None = None
    value: int | float | None = None
    dims: tuple[int | str, ...] | None = None

    @property
    def is_tensor(self) -> bool:
        return self.role in ("input", "output", "const")

    @property
    def element(self) -> DType:
        """The scalar type the tensor is made of."""
        return element_dtype(self.dtype)

    @property
    def nbytes(self) -> int | None:
        """Bytes of the tensor, None when its shape is not known."""
        return None if self.shape is None else self.element.size * math.prod(self.shape)


@dataclass(frozen=True)
class KernelInfo:
    """The parameters of one kernel. `extents` is a program of `compass_core.extents`, or None; `groups`: how many groups of
    TECs run it, one on each core."""

    kernel: str
    target: str
    params: tuple[Param, ...]
    uses_printf: bool = False
    stack_size: int = 0x10000
    extents: Program | None = None
    groups: int = 1
    extra: Mapping[str, object] = field(default_factory=dict)

    def by_role(self, role: str) -> tuple[Param, ...]:
        """The parameters of a role, ordered by their index."""
        return tuple(sorted((p for p in self.params if p.role == role), key=lambda p: p.index))

    def to_json(self) -> dict[str, object]:
        """The JSON object that `from_json` reads back equal. CompassError for names that it would refuse."""
        for text, what in ((self.kernel, "kernel"), *((p.name, "parameter") for p in self.params)):
            names.name(text, what)
        out: dict[str, object] = dict(self.extra)
        out |= {"format": PARAMS_FORMAT, "kernel": self.kernel, "target": self.target, "uses_printf": self.uses_printf}
        out |= {"stack_size": self.stack_size, "params": [_param_json(p) for p in self.params]}
        return out | {"extents": self.extents} | ({"groups": self.groups} if self.groups > 1 else {})

    @classmethod
    def from_json(cls, data: Any, where: str) -> KernelInfo:
        """Checks and reads the JSON object; `where` names its origin in errors (CompassError)."""
        data = _typed(data, dict, where, "the whole")
        if data.get("format") != PARAMS_FORMAT:
            raise CompassError(f"{where}: format is {data.get('format')!r}, expected '{PARAMS_FORMAT}'")
        items = _typed(data.get("params"), list, where, "params")
        params = tuple(_param(item, where, i) for i, item in enumerate(items))
        _check_indices(params, where)
        extents = data.get("extents")
        if extents is not None:
            _typed(extents, dict, where, "extents")
        known = {"format", "kernel", "target", "uses_printf", "stack_size", "params", "extents", "groups"}
        stack = _typed(data.get("stack_size", 0x10000), int, where, "stack_size")
        if not 0 < stack <= 1 << 28:
            raise CompassError(f"{where}: stack_size {stack} is not in 1 .. {1 << 28}")
        groups = _typed(data.get("groups", 1), int, where, "groups")
        if not 1 <= groups <= MAX_GROUPS:
            raise CompassError(f"{where}: groups {groups} is not in 1 .. {MAX_GROUPS}")
        return cls(
            kernel=_name(data.get("kernel"), where, "kernel"),
            target=_name(data.get("target"), where, "target"),
            params=params,
            uses_printf=_typed(data.get("uses_printf", False), bool, where, "uses_printf"),
            stack_size=stack,
            extents=extents,
            groups=groups,
            extra={k: v for k, v in data.items() if k not in known},
        )

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> KernelInfo:
        """`from_json` of JSON text; CompassError when it is not JSON."""
        return cls.from_json(jsontext.parse(data, where), where)


def _param_json(param: Param) -> dict[str, object]:
    data = dict(vars(param))
    for absent in ("value",) if param.role != "attr" else ("shape", "scope", "read", "index"):
        del data[absent]
    if param.dims is None:
        del data["dims"]
    return data


def _typed(value: object, kind: type | tuple[type, ...], where: str, name: str) -> Any:
    """`value` when it is of the JSON type `kind`; a bool is no number."""
    wrong = isinstance(value, bool) and kind is not bool
    if wrong or not isinstance(value, kind):
        wanted = kind.__name__ if isinstance(kind, type) else " or ".join(k.__name__ for k in kind)
        raise CompassError(f"{where}: '{name}' is {value!r:.60}, expected {wanted}")
    return value


def _name(value: object, where: str, name: str) -> str:
    """`value` when a kernel, a parameter or a target may be called that."""
    if not names.is_name(_typed(value, str, where, name)):
        raise CompassError(f"{where}: '{name}' is {value!r:.60}, which is no identifier")
    return str(value)


def _param(data: dict[str, int | str | list[int] | None], where: str, position: int) -> Param:
    at = f"params[{position}]"
    data = _typed(data, dict, where, at)
    role = data.get("role")
    if role not in ROLES:
        raise CompassError(f"{where}: '{at}.role' is {role!r:.60}, expected one of {', '.join(ROLES)}")
    kind = data.get("kind")
    if kind != ("scalar" if role == "attr" else "pointer"):
        raise CompassError(f"{where}: '{at}.kind' is {kind!r:.60}, which does not go with role '{role}'")
    value = data.get("value")
    if value is not None:
        value = _typed(int(value) if isinstance(value, bool) else value, (int, float), where, f"{at}.value")
    param = Param(
        name=_name(data.get("name"), where, f"{at}.name"),
        kind=kind,
        dtype=_typed(data.get("dtype"), str, where, f"{at}.dtype"),
        role=role,
        index=_typed(data.get("index", 0), int, where, f"{at}.index"),
        scope=_typed(data.get("scope", "global"), str, where, f"{at}.scope"),
        read=_typed(data.get("read", False), bool, where, f"{at}.read"),
        shape=_shape(data.get("shape"), where, f"{at}.shape"),
        value=value,
        dims=_dims(data.get("dims"), where, f"{at}.dims"),
    )
    if param.element.size * math.prod(param.shape or ()) > MAX_BYTES:
        raise CompassError(f"{where}: '{at}.shape' {list(param.shape or ())} is larger than the device's memory")
    return param


def _shape(value: object, where: str, name: str) -> tuple[int, ...] | None:
    dims = _dims(value, where, name)
    return None if dims is None else tuple(_typed(dim, int, where, name) for dim in dims)


def _dims(value: object, where: str, name: str) -> tuple[int | str, ...] | None:
    """Dimensions, each a size or the name of a scalar."""
    if value is None:
        return None
    dims = _typed(value, list, where, name)
    if len(dims) > MAX_RANK:
        raise CompassError(f"{where}: '{name}' has {len(dims)} dimensions; at most {MAX_RANK} are possible")
    for dim in dims:
        if isinstance(_typed(dim, (int, str), where, name), str):
            _name(dim, where, name)
        elif not 0 <= dim <= MAX_BYTES:
            raise CompassError(f"{where}: '{name}' has the impossible dimension {dim}")
    return tuple(dims)


def _check_indices(params: tuple[Param, ...], where: str) -> None:
    """Names are unique, and the indices of inputs and of outputs are dense from 0."""
    seen: set[str] = set()
    for param in params:
        if param.name in seen:
            raise CompassError(f"{where}: two parameters are named '{param.name}'")
        seen.add(param.name)
    for role in ("input", "output"):
        have = sorted(p.index for p in params if p.role == role)
        if have != list(range(len(have))):
            raise CompassError(f"{where}: the indices of the {role}s are {have}, expected 0 .. {len(have) - 1}")
