"""What is remembered has a bound."""

from compass_core.bounded import Bounded
from compassc.layers import layer_kernel


def test_it_is_emptied_before_it_holds_more_than_it_may():
    held = Bounded[int, str](3)
    for key in range(10):
        held[key] = str(key)
        assert held[key] == str(key) and len(held) <= 3
    assert dict(held) == {9: "9"}


def test_what_is_in_it_is_replaced_without_loss():
    held = Bounded[str, int](2)
    held["a"], held["b"] = 1, 2
    held["a"] = 3
    assert held == {"a": 3, "b": 2}
    other = held.copy()
    other["c"] = 4
    assert other == {"c": 4} and other.most == 2 and len(held) == 2


def test_parts_of_kernels_are_made_anew_after_they_were_dropped(monkeypatch):
    monkeypatch.setattr(layer_kernel, "_PARTS", Bounded(2))
    made: list[int] = []
    for key in (0, 1, 2, 3, 0):
        k = layer_kernel.LayerKernel()
        assert k.part(key, lambda key=key: made.append(key)) is None
    assert made == [0, 1, 2, 3, 0] and len(layer_kernel._PARTS) <= 2
