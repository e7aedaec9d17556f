"""Laws of statistics, strategies, scales and rounding."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compassc.quantizer.numbers import MODES, common_shift, extremes, factor, levels, limits_of
from compassc.quantizer.rounding import adaptive, mean_error, output_error
from compassc.quantizer.statistics import Calibration, Moments, NotFinite, Record
from compassc.quantizer.strategies import STRATEGIES, parse

REALS = st.floats(-1e4, 1e4, width=32)


def values(seed: int, size: int = 5000) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


@given(REALS, REALS, st.sampled_from(MODES), st.sampled_from([8, 12, 16]), st.booleans())
def test_every_number_of_the_range_is_near_its_integer(a, b, mode, bits, signed):
    low, high = min(a, b, 0.0), max(a, b, 0.0)
    if mode != "asymmetric" and not signed:
        low = 0.0
    found = levels(low, high, mode, bits, signed)
    assert (found.low, found.high) == limits_of(bits, signed, mode)
    real = np.linspace(low, high, 33, dtype=np.float32)
    back = (found.of(real) + found.zero) / float(found.scale)
    # the zero point is limited, which may cost a part of a range that lies on one side
    bound = (1 << (bits - 1)) - 1
    if abs(found.zero) < bound:
        assert np.abs(back - real).max() <= 1.01 / float(found.scale) + 1e-6 * max(abs(low), high)
    assert (found.of(np.zeros(1, np.float32)) + found.zero == 0).all() or abs(found.zero) == bound


@given(st.floats(1e-6, 1e6), st.sampled_from([8, 13, 16]))
def test_a_factor_is_the_ratio_to_its_bits(ratio, bits):
    made = factor(ratio, bits)
    exact = float(made.multiplier) / 2.0 ** float(made.shift)
    assert abs(exact - ratio) <= ratio * 2.0 ** -(min(bits, 15) - 1) or made.shift == 31
    assert 0 <= int(made.multiplier) < 1 << min(bits, 15)


@pytest.mark.parametrize("ratio", [0.0, np.inf, np.nan, -1.0])
def test_no_factor_is_made_up(ratio):
    with pytest.raises(OverflowError):
        factor(ratio, 8)


def test_channels_share_a_shift_and_keep_their_factors():
    weights = values(0, 16 * 9).reshape(16, 9) * np.logspace(-2, 1, 16)[:, None]
    low, high = extremes(weights)
    found, made = common_shift(low, high, 16, MODES[1], 8, lambda s: np.float32(3) / s, 8)
    assert len(set(made.shift.tolist())) == 1
    assert 0 < made.multiplier.min() <= made.multiplier.max() <= 32767
    ratio = made.multiplier / 2.0**made.shift * found.scale / 3
    np.testing.assert_allclose(ratio[high > 0.1], 1, rtol=0.05)


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("seed", range(3))
def test_ranges_include_zero_and_lie_in_the_extrema(name, seed):
    record = Record.of(values(seed) + seed)
    low, high = parse(name).range(record, 8, seed % 2 == 0)
    assert low <= 0 <= high
    if name != "weighted_scale_param":
        assert record.least - 1e-5 <= low or record.least > 0
        assert high <= record.most + 1e-5


@pytest.mark.parametrize("name", ["kld", "99.9percentile", "aciq_gauss", "2std"])
def test_outliers_are_cut(name):
    data = values(1)
    data[0] = 100.0
    low, high = parse(name).range(Record.of(data), 8, True)
    assert max(-low, high) < 50


def test_the_range_of_the_smallest_error_has_it():
    data = np.random.default_rng(3).laplace(size=20000).astype(np.float32)
    record = Record.of(data)

    def error(text: str) -> float:
        found = levels(*parse(text).range(record, 4, True), "symmetric_full_range", 4, True)
        return float((((found.of(data) + found.zero) / found.scale - data) ** 2).mean())

    assert error("mse") <= min(error(name) for name in ("extrema", "3std", "99percentile")) * 1.02


@pytest.mark.parametrize("text", ["", "extremes", "3", "percentile3", "101percentile", "weighted_scale_param[a]"])
def test_other_words_are_no_strategies(text):
    with pytest.raises(ValueError):
        parse(text)


def test_histograms_do_not_depend_on_the_order_of_samples():
    parts = [values(i, 500) * 10.0**i for i in range(4)]
    first, second = Record(), Record()
    for part in parts:
        first.observe(part, histogram=True)
    whole = np.concatenate(parts)
    second.observe(whole, histogram=True)
    assert (first.least, first.most) == (second.least, second.most)
    assert first.counts.sum() == second.counts.sum() == whole.size
    counts, centres = first.histogram()
    assert abs((counts * centres).sum() / counts.sum() - whole.mean()) < first.bound / 1000


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_no_statistics_of_what_is_no_number(wrong):
    with pytest.raises(NotFinite):
        Record.of(np.array([0.0, wrong], np.float32))


def test_a_calibration_reads_back_equal(tmp_path):
    records = {name: Record.of(values(i)) for i, name in enumerate(("a/b", "c"))}
    moments = {"conv": Moments(np.ones((1, 3)), np.eye(3)[None], 5), "fc": Moments(np.zeros((2, 2)), None, 7)}
    Calibration(records, moments, 12).save(tmp_path / "s.npz")
    again = Calibration.load(tmp_path / "s.npz")
    assert again.samples == 12
    for name, record in records.items():
        other = again.records[name]
        assert [getattr(record, f) for f in ("least", "most", "mean", "std", "batches", "bound")] == [
            getattr(other, f) for f in ("least", "most", "mean", "std", "batches", "bound")
        ]
        np.testing.assert_array_equal(record.counts, other.counts)
    np.testing.assert_array_equal(again.moments["conv"].products, np.eye(3)[None])
    assert again.moments["fc"].products is None


@pytest.mark.parametrize("groups", [1, 2])
def test_adaptive_rounding_never_makes_sums_worse(groups):
    random = np.random.default_rng(groups)
    weights = random.standard_normal((8, 12)).astype(np.float32)
    rows = random.standard_normal((groups, 400, 12)).astype(np.float32) @ random.standard_normal((12, 12)).astype(
        np.float32
    )
    moments = Moments(np.zeros((groups, 12)), np.zeros((groups, 12, 12)))
    moments.observe(rows, True)
    found = levels(-np.abs(weights).max(1), np.abs(weights).max(1), MODES[1], 4, True)
    nearest = found.of(weights)
    better = adaptive(weights, nearest, found, moments)
    assert output_error(weights, better, found, moments) < output_error(weights, nearest, found, moments)
    exact = weights * found.scale[:, None]
    assert (np.abs(better - exact) < 1 + 1e-5).all(), "up or down"
    # what the biases make up for is the mean of what rounding takes away
    lost = np.concatenate([rows[g] @ (weights - nearest / found.scale[:, None])[g * 8 // groups : (g + 1) * 8 // groups].T
                           for g in range(groups)], 1)  # fmt: skip
    np.testing.assert_allclose(mean_error(weights, nearest, found, moments), lost.mean(0), atol=1e-4)
