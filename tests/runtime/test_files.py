"""Tensor files: which numbers become those of a tensor, and which names tensors have."""

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from compass_core.errors import CompassError
from compass_runtime.files import own_name, read_array
from compass_runtime.quantisation import NOT_QUANTISED


def info(dtype):
    return SimpleNamespace(
        name="x_0",
        numpy_dtype=np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype),
        dtype=SimpleNamespace(name=dtype, size=2),
        quantisation=NOT_QUANTISED,
        raw=False,
    )


def read(tmp_path, values, given, dtype, real=False):
    np.save(tmp_path / "x.npy", np.asarray(values, given))
    return read_array(tmp_path / "x.npy", info(dtype), real=real)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [("int64", "int32"), ("int64", "uint8"), ("float64", "float32"), ("float64", "bfloat16"), ("int64", "float16")],
)
def test_the_widest_types_become_others_where_no_number_changes(tmp_path, given, dtype):
    made = read(tmp_path, [0, 1, 100], given, dtype)
    assert made.dtype == info(dtype).numpy_dtype and made.tolist() == [0, 1, 100]
    with pytest.raises(CompassError, match="has elements of type"):
        read(tmp_path, [2**40 + 1] if given == "int64" else [0.1], given, dtype)


def test_nan_stays_what_it_is(tmp_path):
    assert np.isnan(read(tmp_path, [np.nan, 1], "float64", "float32")[0])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("given", ["float64", "float32", "int32"])
def test_real_numbers_are_rounded_when_that_is_asked_for(tmp_path, given, dtype):
    values = np.asarray([0.1, -3.7, 200.3], given)
    assert (read(tmp_path, values, given, dtype, real=True) == values.astype(info(dtype).numpy_dtype)).all()


def test_real_numbers_beyond_a_type_are_refused(tmp_path):
    with pytest.raises(CompassError, match="beyond float16"):
        read(tmp_path, [1e6], "float32", "float16", real=True)
    with pytest.raises(CompassError, match="has elements of type float32"):
        read(tmp_path, [1.5], "float32", "float16")


def test_tensors_go_by_the_names_of_the_model_too():
    names = ["image_0", "mask", "mask_0"]
    assert [own_name(n, names) for n in ("image", "image_0", "mask", "other")] == [
        "image_0",
        "image_0",
        "mask",
        "other",
    ]
