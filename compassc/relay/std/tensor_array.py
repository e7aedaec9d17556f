"""Arrays of tensors as data: lists of tensors of any number of dimensions (up to six) and of one type of elements, with functions
that read, write, split, join and stack them. They are defined in a module when they are asked for first.

A tensor of k dimensions is `tensorK_DTYPE(Tensor[(?, ...), DTYPE])` of the type `tensor_DTYPE_t`; an element that was never
written is `tensor_nil_DTYPE`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from compassc.relay.types import Dim, Open

MOST_RANKS = 7
"""Tensors have 0 to 6 dimensions."""


def _shape(rank: int) -> str:
    return f"({', '.join('?' * rank)}{',' if rank == 1 else ''})"


def _tensor(rank: int, dtype: str) -> str:
    return f"Tensor[{_shape(rank)}, {dtype}]"


def _cases(name: str, ranks: Iterable[int], of: Callable[[int], str], d: str) -> str:
    """Arms of a match over the dimensions of `name`."""
    return " ".join(f"tensor{k}_{d}({name}) => {{ {of(k)} }}," for k in ranks)


def definitions(d: str) -> str:
    """The text of the type and of all functions for a type of elements."""
    t, every, some = f"tensor_{d}_t", range(MOST_RANKS), range(1, MOST_RANKS)
    kinds = ", ".join([f"tensor_nil_{d}", *(f"tensor{k}_{d}({_tensor(k, d)})" for k in every)])
    joined = _cases(
        "%x", some,
        lambda k: f"match? (%b) {{ tensor{k}_{d}(%y) => {{ tensor{k}_{d}(concatenate((%x, %y), axis=0)) }}, }}", d,
    )  # fmt: skip
    cut = 'dyn.strided_slice(%x, reshape(%from, newshape=[1]), reshape(%to, newshape=[1]), ones(shape=[1], dtype="int32"), begin=None, end=None)'
    taken = _cases("%x", some, lambda k: f"tensor{k}_{d}({cut})", d)
    wider = _cases("%x", range(MOST_RANKS - 1), lambda k: f"tensor{k + 1}_{d}(expand_dims(%x, axis=0))", d)
    unstacked = "\n".join(
        _unstacked(f"unstack_tensor{k}_{d}", f"unstack_tensor{k}_from_{d}", _tensor(k, d), t, f"tensor{k - 1}_{d}")
        for k in some
    )
    return f"""#[version = "0.0.5"]
type {t} {{ {kinds}, }}
def @tensor_concatenate_{d}(%a: {t}[], %b: {t}[]) -> {t}[] {{ match? (%a) {{ {joined} }} }}
def @tensor_take_{d}(%a: {t}[], %from: int32, %to: int32) -> {t}[] {{ match? (%a) {{ {taken} }} }}
def @tensor_expand_dims_{d}(%a: {t}[]) -> {t}[] {{ match? (%a) {{ {wider} }} }}
{_joins(t, d)}
def @tensor_array_stack_{d}(%xs: List[{t}[]]) -> {t}[] {{
  @tensor_array_concat_{d}(@map(@tensor_expand_dims_{d}, %xs))
}}
{_gathers(t, d, t)}
def @tensor_array_split_from_{d}(%xs: List[{t}[]], %v: {t}[], %lengths: Tensor[(?,), int32], %from: int32, %at: int32, %end: int32) -> List[{t}[]] {{
  if (%at == %end) {{ %xs }} else {{
    let %to = %from + take(%lengths, %at);
    let %more = @update(%xs, %at, @tensor_take_{d}(%v, %from, %to));
    @tensor_array_split_from_{d}(%more, %v, %lengths, %to, %at + 1, %end)
  }}
}}
def @tensor_array_split_{d}(%xs: List[{t}[]], %v: {t}[], %lengths: Tensor[(?,), int32]) -> List[{t}[]] {{
  @tensor_array_split_from_{d}(%xs, %v, %lengths, 0, 0, {_count("%lengths")})
}}
{unstacked}
{_lists(t, d)}"""


def fixed_type(d: str, shape: Sequence[Dim]) -> str:
    """The text of the type of tensors of one shape, and of the functions that join those of any length."""
    e, t, kind = _ending(d, shape), _fixed(d, shape), _fixed_tensor(d, shape)
    joins = f"""
def @tensor_concatenate_{e}(%a: {t}[], %b: {t}[]) -> {t}[] {{
  tensor_constructor_{e}(concatenate((@tensor_get_data_{e}(%a), @tensor_get_data_{e}(%b)), axis=0))
}}
{_joins(t, e)}"""
    return f"""#[version = "0.0.5"]
type {t} {{ tensor_nil_{e}, tensor_constructor_{e}({kind}), }}
def @tensor_get_data_{e}(%x: {t}[]) -> {kind} {{ match? (%x) {{ tensor_constructor_{e}(%y) => {{ %y }}, }} }}{joins if long(shape) else ""}"""


def fixed_definitions(d: str, shape: Sequence[Dim]) -> str:
    """The text of the functions of arrays of tensors of one shape. The types of `related` shapes are defined before."""
    e, t, stack = _ending(d, shape), _fixed(d, shape), (Open(), *shape)
    w, of_stack = _fixed(d, stack), _ending(d, stack)
    made = f"""#[version = "0.0.5"]
{_lists(t, e)}
def @tensor_expand_dims_{e}(%x: {t}[]) -> {w}[] {{ tensor_constructor_{of_stack}(expand_dims(@tensor_get_data_{e}(%x), axis=0)) }}
def @tensor_array_stack_{e}(%xs: List[{t}[]]) -> {w}[] {{ @tensor_array_concat_{of_stack}(@map(@tensor_expand_dims_{e}, %xs)) }}
{_gathers(t, e, w)}"""
    if not shape:
        return made
    part = shape[1:]
    made += "\n" + _unstacked(
        f"unstack_{e}",
        f"unstack_from_{e}",
        _fixed_tensor(d, shape),
        _fixed(d, part),
        f"tensor_constructor_{_ending(d, part)}",
    )
    if long(shape):
        return made
    j, of_joined = _fixed(d, (Open(), *part)), _ending(d, (Open(), *part))
    return f"""{made}
def @tensor_of_any_length_{e}(%x: {t}[]) -> {j}[] {{ tensor_constructor_{of_joined}(@tensor_get_data_{e}(%x)) }}
def @tensor_concatenate_{e}(%a: {t}[], %b: {t}[]) -> {j}[] {{
  @tensor_concatenate_{of_joined}(@tensor_of_any_length_{e}(%a), @tensor_of_any_length_{e}(%b))
}}
def @tensor_array_concat_{e}(%xs: List[{t}[]]) -> {j}[] {{ @tensor_array_concat_{of_joined}(@map(@tensor_of_any_length_{e}, %xs)) }}"""


def related(shape: Sequence[Dim]) -> list[tuple[Dim, ...]]:
    """A shape, that of a stack of such tensors and, where there is a first dimension, those of several joined and of a part."""
    given = tuple(shape)
    return [given, (Open(), *given)] + ([(Open(), *given[1:]), given[1:]] if given else [])


def long(shape: Sequence[Dim]) -> bool:
    """Whether tensors of a shape have any length along their first dimension, so that several joined have this shape too."""
    return bool(shape) and isinstance(shape[0], Open)


def _ending(d: str, shape: Sequence[Dim]) -> str:
    return f"{d}_{suffix(shape)}"


def _fixed(d: str, shape: Sequence[Dim]) -> str:
    return f"static_tensor_{_ending(d, shape)}_t"


def _fixed_tensor(d: str, shape: Sequence[Dim]) -> str:
    return f"Tensor[({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''}), {d}]"


def suffix(shape: Sequence[Dim]) -> str:
    """What names of tensors of a shape end with: extents, `any` for an open one, `scalar` where there are none."""
    return "_".join("any" if isinstance(n, Open) else str(n) for n in shape) or "scalar"


def _lists(t: str, d: str) -> str:
    """Functions of lists of tensors of a type, whatever their shapes. `d`: what names end with."""
    return f"""def @tensor_array_{d}(%n: int32) -> List[{t}[]] {{
  if (%n == 0) {{ Nil }} else {{ Cons(tensor_nil_{d}, @tensor_array_{d}(%n - 1)) }}
}}
def @tensor_array_read_{d}(%xs: List[{t}[]], %n: int32) -> {t}[] {{ @nth(%xs, %n) }}
def @tensor_array_write_{d}(%xs: List[{t}[]], %n: int32, %v: {t}[]) -> List[{t}[]] {{ @update(%xs, %n, %v) }}
def @tensor_array_scatter_from_{d}(%xs: List[{t}[]], %places: Tensor[(?,), int32], %vs: List[{t}[]], %at: int32, %end: int32) -> List[{t}[]] {{
  if (%at == %end) {{ %xs }} else {{
    @tensor_array_scatter_from_{d}(@update(%xs, take(%places, %at), @nth(%vs, %at)), %places, %vs, %at + 1, %end)
  }}
}}
def @tensor_array_scatter_{d}(%xs: List[{t}[]], %places: Tensor[(?,), int32], %vs: List[{t}[]]) -> List[{t}[]] {{
  @tensor_array_scatter_from_{d}(%xs, %places, %vs, 0, {_count("%places")})
}}"""


def _count(name: str) -> str:
    return f'take(shape_of({name}, dtype="int32"), 0)'


def _joins(t: str, d: str) -> str:
    """The function that joins a list of tensors, of which two joined are of the same type."""
    return f"""def @tensor_array_concat_{d}(%xs: List[{t}[]]) -> {t}[] {{
  match (%xs) {{
    Cons(%x, Nil) => {{ %x }},
    Cons(%x, %rest) => {{ @tensor_concatenate_{d}(%x, @tensor_array_concat_{d}(%rest)) }},
    Nil => {{ tensor_nil_{d} }},
  }}
}}"""


def _gathers(t: str, d: str, stacked: str) -> str:
    """Functions that stack those of a list's tensors that are at given places. `stacked`: the type of the stack."""
    return f"""def @tensor_array_gather_from_{d}(%xs: List[{t}[]], %places: Tensor[(?,), int32], %at: int32, %end: int32) -> List[{t}[]] {{
  if (%at == %end) {{ Nil }} else {{
    Cons(@nth(%xs, take(%places, %at)), @tensor_array_gather_from_{d}(%xs, %places, %at + 1, %end))
  }}
}}
def @tensor_array_gather_{d}(%xs: List[{t}[]], %places: Tensor[(?,), int32]) -> {stacked}[] {{
  @tensor_array_stack_{d}(@tensor_array_gather_from_{d}(%xs, %places, 0, {_count("%places")}))
}}"""


def _unstacked(name: str, step: str, tensor: str, t: str, part: str) -> str:
    """Functions that give the tensors that a tensor consists of: of the type `t`, made by the constructor `part`."""
    return f"""def @tensor_array_{step}(%x: {tensor}, %at: int32, %end: int32) -> List[{t}[]] {{
  if (%at == %end) {{ Nil }} else {{ Cons({part}(take(%x, %at, axis=0)), @tensor_array_{step}(%x, %at + 1, %end)) }}
}}
def @tensor_array_{name}(%x: {tensor}) -> List[{t}[]] {{ @tensor_array_{step}(%x, 0, {_count("%x")}) }}"""
