"""ONNX models whose tensors lie in other files: only in those of the model's folder, and only what the tensors need."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from compass_core.errors import CompassError
from compassc.importers import import_model
from compassc.importers.onnx import import_model as import_object
from compassc.importers.onnx.external import external_tensors, tensors_of
from compassc.importers.onnx.source import load
from tests.words import CHARACTERS

COUNT = 6
CONTENT = np.arange(1, COUNT + 1, dtype=np.float32)


def tensor(location: str, kind: int = TensorProto.FLOAT, dims=(COUNT,), **place: object) -> TensorProto:
    """A tensor whose content lies in a file."""
    one = TensorProto(name="w", data_type=kind, dims=dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **place}.items():
        one.external_data.add(key=key, value=str(value))
    return one


def graph(nodes=(), initializer=(), sparse=()) -> onnx.GraphProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [COUNT])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [COUNT])
    nodes = [*nodes, helper.make_node("Add", ["x", "w"], ["y"])]
    return helper.make_graph(nodes, "g", [x], [y], initializer, sparse_initializer=sparse)


def model(given: onnx.GraphProto, functions=()) -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]
    return helper.make_model(given, opset_imports=opsets, functions=functions, ir_version=9)


def sparse(values: TensorProto, indices: TensorProto) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[COUNT])


def constant(**attribute: object) -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["w"], **attribute)


FLOATS, NUMBERS = ("outside.bin",), ("outside.bin", TensorProto.INT64)
INLINE = helper.make_tensor("w", TensorProto.FLOAT, [COUNT], CONTENT)
PLACES = helper.make_tensor("i", TensorProto.INT64, [COUNT], range(COUNT))


def in_a_body() -> onnx.ModelProto:
    inner = helper.make_graph(
        [constant(value=tensor(*FLOATS))], "b", [], [helper.make_tensor_value_info("w", 1, [COUNT])]
    )
    yes = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    chosen = helper.make_node("If", ["c"], ["w"], then_branch=inner, else_branch=inner)
    return model(graph([chosen], [yes]))


def in_a_function() -> onnx.ModelProto:
    made = helper.make_function("f", "F", [], ["w"], [constant(value=tensor(*FLOATS))], [helper.make_opsetid("", 17)])
    return model(graph([helper.make_node("F", [], ["w"], domain="f")]), [made])


SITES = {
    "initializer": lambda: model(graph(initializer=[tensor(*FLOATS)])),
    "sparse values": lambda: model(graph(sparse=[sparse(tensor(*FLOATS), PLACES)])),
    "sparse indices": lambda: model(graph(sparse=[sparse(INLINE, tensor(*NUMBERS))])),
    "constant": lambda: model(graph([constant(value=tensor(*FLOATS))])),
    "sparse constant": lambda: model(graph([constant(sparse_value=sparse(tensor(*FLOATS), PLACES))])),
    "sparse constant's indices": lambda: model(graph([constant(sparse_value=sparse(INLINE, tensor(*NUMBERS)))])),
    "body": in_a_body,
    "function": in_a_function,
}


@pytest.fixture
def folders(tmp_path: Path, monkeypatch) -> Path:
    """A folder for a model, and the current one, in which a file lies that no model may read."""
    here = tmp_path / "here"
    (tmp_path / "models").mkdir()
    here.mkdir()
    (here / "outside.bin").write_bytes(bytes(8 * COUNT))
    monkeypatch.chdir(here)
    return tmp_path / "models"


@pytest.mark.parametrize("site", SITES)
def test_no_tensor_comes_from_the_current_folder(folders, site):
    """Wherever it stands in the model, in a file or in memory; what lies beside the model is read."""
    made = SITES[site]()
    assert sum(t.data_location == t.EXTERNAL for t in tensors_of(made)) >= 1
    path = folders / "m.onnx"
    path.write_bytes(made.SerializeToString())
    for refused in (lambda: import_model(path), lambda: import_object(made)):
        with pytest.raises(CompassError) as caught:
            refused()
        assert caught.value.code == "onnx-external-data"
    is_place = "indices" in site
    content = np.arange(COUNT, dtype=np.int64) if is_place else CONTENT
    (folders / "outside.bin").write_bytes(content.tobytes())
    whole = load(path)
    assert not list(external_tensors(whole))
    assert any(t.raw_data == content.tobytes() for t in tensors_of(whole))
    import_model(path)


def refusal(folder: Path, one: TensorProto) -> CompassError:
    path = folder / "m.onnx"
    path.write_bytes(model(graph(initializer=[one])).SerializeToString())
    with pytest.raises(CompassError) as caught:
        load(path)
    assert "'w'" in caught.value.message and "m.onnx" in caught.value.message
    return caught.value


LOCATIONS = ["", ".", "..", "../here/outside.bin", "a/../../here/outside.bin", "link", "a/linked/outside.bin", "pipe"]


@pytest.mark.parametrize(
    "location", [*LOCATIONS, "zero", "no file", "a", "/dev/zero", "ABSOLUTE", "x" * 300, "m.onnx\0"]
)
def test_only_files_of_the_folder_are_read(folders, location):
    (folders / "a").mkdir()
    (folders / "link").symlink_to("../here/outside.bin")
    (folders / "a" / "linked").symlink_to("../../here")
    (folders / "zero").symlink_to("/dev/zero")
    os.mkfifo(folders / "pipe")
    location = str(folders.parent / "here" / "outside.bin") if location == "ABSOLUTE" else location
    assert refusal(folders, tensor(location)).code == "onnx-external-data"


def test_a_store_of_files_that_are_links_is_read(folders):
    """As tools keep them that share files between versions: the model and its data are links to files of one folder."""
    store = folders.parent / "store"
    store.mkdir()
    (store / "1").write_bytes(model(graph(initializer=[tensor("data")])).SerializeToString())
    (store / "2").write_bytes(CONTENT.tobytes())
    (folders / "m.onnx").symlink_to("../store/1")
    (folders / "data").symlink_to("../store/2")
    assert load(folders / "m.onnx").graph.initializer[0].raw_data == CONTENT.tobytes()


def test_only_what_a_tensor_needs_is_read(folders):
    """Of a file of a terabyte, which takes no room on the disk."""
    with (folders / "huge").open("wb") as file:
        file.truncate(1 << 40)
    path = folders / "m.onnx"
    path.write_bytes(model(graph(initializer=[tensor("huge", offset=1 << 39)])).SerializeToString())
    assert load(path).graph.initializer[0].raw_data == bytes(4 * COUNT)
    path.write_bytes(model(graph(initializer=[tensor("huge", dims=(1 << 35,))])).SerializeToString())
    with pytest.raises(CompassError, match="may have 4 GiB at most"):
        load(path)


WORDS = st.one_of(
    st.integers(-(2**70), 2**70).map(str),
    st.integers(0, 8 * COUNT).map(str),
    st.text(CHARACTERS, max_size=4),
    st.just(str(4 * COUNT)),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offset=st.none() | WORDS, length=st.none() | WORDS, dims=st.lists(st.integers(-1, 3), max_size=3))
@example(offset="", length="9" * 5000, dims=[COUNT])
@example(offset="1_0", length=None, dims=[2])
@example(offset="0", length=str(4 * COUNT), dims=[COUNT])
@example(offset=None, length="", dims=[2**40, 2**40])
def test_places_are_right_or_refused(folders, offset, length, dims):
    """What is read are the bytes that the place says, as many as the shape asks."""
    file = bytes(range(8 * COUNT))
    (folders / "data").write_bytes(file)
    place = {key: text for key, text in (("offset", offset), ("length", length)) if text is not None}
    path = folders / "m.onnx"
    path.write_bytes(model(graph(initializer=[tensor("data", dims=dims, **place)])).SerializeToString())
    whole = onnx.load(path, load_external_data=False)
    from compassc.importers.onnx.external import load_external

    try:
        load_external(whole, path)
    except CompassError as error:
        assert error.code == "onnx-external-data"
        return
    start, needed = int(offset or 0), 4 * int(np.prod(dims, dtype=object))
    assert int(length or needed) == needed
    assert whole.graph.initializer[0].raw_data == file[start : start + needed] and start + needed <= len(file)


@pytest.mark.parametrize("name", sorted(set(TensorProto.DataType.keys()) - {"UNDEFINED", "STRING"}))
@pytest.mark.parametrize("count", [1, 3, 8])
def test_every_type_has_the_size_that_onnx_gives_it(name, count):
    from onnx import numpy_helper

    from compassc.importers.onnx.external import size_of

    kind = TensorProto.DataType.Value(name)
    array = np.zeros(count, helper.tensor_dtype_to_np_dtype(kind))
    assert size_of(numpy_helper.from_array(array)) == len(numpy_helper.from_array(array).raw_data)
