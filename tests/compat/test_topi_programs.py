"""Operators by the framework's names: their signatures, and what they compute on the host against NumPy."""

from __future__ import annotations

import inspect
import itertools
import math

import numpy as np
import pytest

pytestmark = pytest.mark.usefixtures("names")
RNG = np.random.default_rng(3)


def real(*shape, dtype="float32", low=-1.0, high=1.0):
    return RNG.uniform(low, high, shape).astype(dtype)


def whole(high, *shape, dtype="int32"):
    return RNG.integers(0, high, shape).astype(dtype)


def built(define, *arrays, schedule=None):
    """What an operator computes of arrays, by a schedule as programs choose one."""
    import tvm
    import tvm.topi.testing
    from tvm import te, topi

    tensors = [te.placeholder(a.shape, dtype=str(a.dtype), name=f"p{i}") for i, a in enumerate(arrays)]
    with tvm.target.Target("llvm -opt-level=0"):
        out = define(*tensors)
        outs = list(out) if isinstance(out, (list, tuple)) else [out]
        s = (schedule or topi.testing.get_injective_schedule("llvm"))(out)
    run = tvm.build(s, [*tensors, *outs], "llvm -opt-level=0")
    made = [tvm.nd.array(np.zeros(topi.utils.get_const_tuple(o.shape), o.dtype)) for o in outs]
    run(*map(tvm.nd.array, arrays), *made)
    return [m.numpy() for m in made]


def same(found, expected, **options):
    wanted = expected if isinstance(expected, (list, tuple)) else [expected]
    assert len(found) == len(wanted)
    for f, w in zip(found, wanted):
        np.testing.assert_allclose(f, w, **{"rtol": 1e-4, "atol": 1e-4, **options})


SIGNATURES = {
    "nn.conv2d": "input filter strides padding dilation data_layout kernel_layout out_dtype",
    "nn.conv2d_NCHWc": "data kernel stride padding dilation layout out_layout out_dtype",
    "nn.depthwise_conv2d_nhwc": "Input Filter stride padding dilation kernel_layout out_dtype",
    "nn.batch_matmul": """tensor_a tensor_b oshape out_dtype transpose_a transpose_b auto_scheduler_rewritten_layout
        meta_schedule_original_shape""",
    "nn.batch_norm": "data gamma beta moving_mean moving_var axis epsilon center scale training momentum",
    "nn.pool2d": "data kernel stride dilation padding pool_type ceil_mode layout count_include_pad",
    "nn.pad": "data pad_before pad_after pad_value name attrs",
    "nn.bitserial_dense": "data weight data_bits weight_bits pack_dtype out_dtype unipolar",
    "one_hot": "indices on_value off_value depth axis dtype",
    "topk": "data k axis ret_type is_ascend dtype",
    "take": "a indices axis batch_dims mode",
    "image.grid_sample": "data grid method layout padding_mode align_corners",
    "vision.non_max_suppression": """data valid_count indices max_output_size iou_threshold force_suppress top_k coord_start
        score_index id_index return_indices invalid_to_bottom""",
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_have_the_frameworks_names_and_order(name):
    from tvm import topi

    found = topi
    for part in name.split("."):
        found = getattr(found, part)
    assert list(inspect.signature(found).parameters) == SIGNATURES[name].split()


def test_functions_hide_the_modules_of_their_names():
    import tvm.topi.nn.conv2d
    from tvm.topi import nn
    from tvm.topi.nn.conv2d import _get_workload, conv2d_nchw

    assert nn.conv2d is tvm.topi.nn.conv2d and inspect.isfunction(nn.conv2d) and conv2d_nchw is nn.conv2d_nchw
    from tvm import te

    workload = _get_workload(te.placeholder((1, 8, 9, 7)), te.placeholder((4, 4, 3, 3)), 2, "SAME", 1, "int32")
    assert workload == ("float32", "int32", 9, 7, 8, 2, 4, 3, 3, 1, 1, 1, 1, 1, 1, 2, 2)


def test_ways_to_compute_of_other_machines_are_refused_when_they_are_called():
    """Programs have tables of functions for all kinds of targets, and call one."""
    from tvm import topi

    from compass_core.errors import UsageError

    assert callable(topi.gpu.dense_large_batch)
    with pytest.raises(UsageError, match="no operator or way to compute one 'conv2d_nchw_spatial_pack'"):
        topi.mali.conv2d_nchw_spatial_pack(None)


X, W = real(1, 4, 6, 6), real(8, 4, 3, 3)


def test_convolutions_of_all_layouts_are_the_same_sums():
    from tvm import topi

    expected = topi.testing.conv2d_nchw_python(X, W, 1, 1)
    nn = topi.nn

    def layouts(x, w):
        packed = topi.layout_transform(x, "NCHW", "NCHW2c"), topi.layout_transform(w, "OIHW", "OIHW2i4o")
        moved, turned = topi.transpose(x, (0, 2, 3, 1)), topi.transpose(w, (2, 3, 1, 0))
        made = topi.layout_transform(nn.conv2d_NCHWc(*packed, 1, 1, 1, "NCHW2c", "NCHW4c"), "NCHW4c", "NCHW")
        return [
            made,
            topi.transpose(nn.conv2d(moved, turned, 1, 1, 1, "NHWC"), (0, 3, 1, 2)),
            topi.transpose(nn.conv2d_hwcn(topi.transpose(x, (2, 3, 1, 0)), turned, 1, 1, 1), (3, 2, 0, 1)),
            topi.x86.conv2d_nchw(x, w, 1, 1, 1, "float32"),
        ]

    same(built(layouts, X, W), [expected] * 4)


def test_gradients_of_depthwise_convolutions_add_up():
    """A convolution is linear: its results times their gradients are its data (or windows) times the gradients of these."""
    from tvm import topi

    x, w, g = real(1, 7, 7, 2), real(3, 3, 2, 2), real(1, 4, 4, 4)
    nn = topi.nn
    made, of_data, of_weight = built(
        lambda x, w, g: [
            nn.depthwise_conv2d_nhwc(x, w, 2, 1, 1),
            nn.depthwise_conv2d_backward_input_nhwc(w, g, g.shape, x.shape, 2, 1),
            nn.depthwise_conv2d_backward_weight_nhwc(x, g, g.shape, w.shape, 2, 1),
        ],
        x, w, g,
    )  # fmt: skip
    total = (made * g).sum()
    np.testing.assert_allclose([(of_data * x).sum(), (of_weight * w).sum()], [total, total], rtol=1e-4)


def test_products_of_bits_are_products_of_numbers():
    from tvm import topi

    a, w = np.sign(real(3, 64)), np.sign(real(5, 64))
    pack = topi.nn.binarize_pack
    same(built(lambda a, w: topi.nn.binary_dense(pack(a), pack(w)), a, w), a @ w.T)
    a, w = whole(4, 3, 32, dtype="uint32"), whole(4, 5, 32, dtype="uint32")
    signed = 2 * (w & 1).astype(int) - 1 + 2 * (2 * (w >> 1).astype(int) - 1)  # each bit is 1 or -1
    found = built(lambda a, w: [topi.nn.bitserial_dense(a, w, 2, 2, "uint32", "int32", u) for u in (False, True)], a, w)
    same(found, [a.astype(int) @ w.T.astype(int), a.astype(int) @ signed.T])
    image, window = whole(4, 1, 32, 4, 4, dtype="uint32"), whole(2, 2, 32, 3, 3, dtype="uint32")
    last = image.transpose(0, 2, 3, 1).copy(), window.transpose(2, 3, 1, 0).copy()
    expected = topi.testing.conv2d_nchw_python(image.astype("int32"), window.astype("int32"), 1, 1)
    options = (1, 1, 2, 1, "uint32", "int32", False)
    same(built(lambda x, w: topi.nn.bitserial_conv2d_nchw(x, w, *options), image, window), expected)
    same(built(lambda x, w: topi.nn.bitserial_conv2d_nhwc(x, w, *options), *last), expected.transpose(0, 2, 3, 1))


def test_norms_and_pooling():
    from tvm import topi

    nn, testing = topi.nn, topi.testing
    g, b, more = real(4), real(4), real(4)
    found = built(
        lambda x, g, b, m: [
            nn.group_norm(x, g, b, 2, 1, [2, 3]), nn.instance_norm(x, g, b, [2, 3]), nn.rms_norm(x, g, m, 1),
            *nn.batch_norm(x, g, b, g, b, 1, 0.1, True, True, True, 0.3), nn.pool2d(x, 3, 2, 1, (1, 0, 0, 1), "avg", True),
            nn.scale_shift_nchw(x, g, b),
        ],
        X, g, b, more,
    )  # fmt: skip
    wide = (4, 1, 1)
    same(found, [
        testing.group_norm_python(X, g, b, 2, 1, [2, 3]), testing.instance_norm_python(X, g, b, (2, 3)),
        testing.rms_norm_python(X, g, more, 1), *testing.batch_norm(X, g, b, g, b, 1, 0.1, True, True, True, 0.3),
        testing.poolnd_python(X, [3, 3], [2, 2], [1, 1], [1, 0], [0, 1], "avg", True, True), X * g.reshape(wide) + b.reshape(wide),
    ])  # fmt: skip


def test_operators_without_an_expression_are_computed_by_their_references():
    """Between other stages, of numbers and lists, with several results."""
    from tvm import topi

    values, places = whole(6, 12), np.array([1, 5], "int32")
    found = built(lambda v: topi.unique(topi.add(v, 1), True, True), values)
    distinct, first, which, often = np.unique(values + 1, return_index=True, return_inverse=True, return_counts=True)
    count = len(distinct)
    same([f[:count] for f in (found[0], found[1], found[4])], [distinct, first, often])
    same([found[2], found[3]], [which, [count]])
    expected = np.full(8, 3.0)
    expected[places] = 4.0
    same(
        built(lambda p: topi.multiply(topi.sparse_to_dense(p, [8], topi.full((2,), "float32", 4), 3), 1), places),
        expected,
    )
    same(built(lambda x: topi.strided_set(x, topi.full((4, 2), "float32", 0), [0, 1], [4, 5], [1, 2]), X[0, 0]), [
        np.where((np.arange(6)[:, None] < 4) & np.isin(np.arange(6), (1, 3)), 0, X[0, 0])
    ])  # fmt: skip


def test_layers_of_memory_are_steps():
    from tvm import te, topi

    cells = 3  # four gates each; two hidden units
    shapes = [(3, 2, 4), (12, 4), (12, 2), (12,), (12,), (2, 2), (2, cells), (2, cells), (cells,), (cells,), (cells,)]
    arrays = [real(*shape) for shape in shapes]
    found = built(lambda *t: topi.nn.lstm(*t), *arrays, schedule=lambda o: te.create_schedule([t.op for t in o]))
    same(found, topi.testing.lstm_python(*arrays))


def test_sparse_matrices():
    import tvm
    from tvm import te, topi
    from tvm.contrib import sparse

    dense, x = np.maximum(real(5, 6), 0), real(6, 3)
    rows, n = te.var("rows"), te.var("n")
    a, b = sparse.placeholder((rows, 6), n, name="a"), te.placeholder((6, 3), name="b")
    out = topi.sparse.csrmm(a, b)
    run = tvm.build(te.create_schedule(out.op), [rows, a.data, a.indices, a.indptr, b, out], "llvm")
    given, made = sparse.array(dense), tvm.nd.array(np.zeros((5, 3), "float32"))
    np.testing.assert_array_equal(given.numpy(), dense)
    run(5, given.data, given.indices, given.indptr, tvm.nd.array(x), made)
    np.testing.assert_allclose(made.numpy(), dense @ x, rtol=1e-5, atol=1e-6)


def test_elements_of_all_types():
    """Reals of 64 bits, remainders and bits of reals; expressions without tensors."""
    import tvm
    from tvm import te, topi

    x, y = real(9, low=0.1, high=0.9), real(9, low=-3, high=3)
    double = x.astype("float64")
    functions = {
        "exp": math.exp,
        "atan": math.atan,
        "asin": math.asin,
        "log2": math.log2,
        "cosh": math.cosh,
        "erf": math.erf,
    }
    found = built(lambda x: [getattr(topi, name)(x) for name in functions], double)
    same(found, [np.vectorize(f)(double) for f in functions.values()], rtol=1e-14, atol=0)
    found = built(
        lambda x, y: [topi.mod(y, x), topi.floor_mod(y, x), topi.floor_divide(y, x), topi.reinterpret(x, "int32")], x, y
    )
    same(found, [np.fmod(y, x), np.mod(y, x), np.floor_divide(y, x), x.view("int32")], rtol=0, atol=0)
    assert isinstance(topi.add(te.var("i"), 1), tvm.tir.PrimExpr)


def test_pictures_of_schedules_have_all_stages_loops_and_relations(tmp_path):
    from tvm import te
    from tvm.contrib import tedd

    a = te.placeholder((8, 8), name="a")
    b = te.compute((8, 8), lambda i, j: a[i, j] + 1, name="b")
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((8,), lambda i: te.sum(b[i, k], axis=k), name="c")
    s = te.create_schedule(c.op)
    outer, inner = s[c].split(c.op.axis[0], factor=4)
    s[b].compute_at(s[c], outer)
    s[c].vectorize(inner)
    flow = tedd.viz_dataflow_graph(s, output_dot_string=True)
    assert all(f'"{x}" -> "{y}"' in flow for x, y in ("ab", "bc")) and flow.count("->") == 2
    tree = tedd.viz_schedule_tree(s, output_dot_string=True)
    chain = ["root", *(f"c/{axis.name}" for axis in s[c].leaf_iter_vars), "c"]
    assert all(f'"{x}" -> "{y}"' in tree for x, y in itertools.pairwise(chain)) and f'"c/{outer.name}" -> "b/' in tree
    made = tedd.viz_itervar_relationship_graph(s, dot_file_path=str(tmp_path / "axes.dot"))
    text = (tmp_path / "axes.dot").read_text()
    assert made is None and text.count("label=split") == 2 and "vectorize" in text


@pytest.mark.parametrize("window", [(3, 4), (2, 2), (1, 5), (4, 1)])
def test_padding_by_name_is_what_the_helper_says(window):
    import tvm
    from tvm import te, topi
    from tvm.topi.nn.utils import get_pad_tuple

    top, left, down, right = get_pad_tuple("SAME", window)
    data, weight = te.placeholder((1, 1, 6, 6), name="data"), te.placeholder((1, 1, *window), name="weight")
    found = topi.nn.conv2d_nchw(data, weight, 1, "SAME", 1)
    assert [int(n) for n in found.shape] == [1, 1, 6, 6]
    padded = topi.nn.conv2d_nchw(data, weight, 1, (top, left, down, right), 1)
    rng = np.random.default_rng(0)
    a, w = rng.random((1, 1, 6, 6), "float32"), rng.random((1, 1, *window), "float32")
    results = []
    for out in (found, padded):
        built = tvm.build(te.create_schedule(out.op), [data, weight, out], "llvm")
        results.append(tvm.nd.empty((1, 1, 6, 6)))
        built(tvm.nd.array(a), tvm.nd.array(w), results[-1])
    np.testing.assert_array_equal(*(r.numpy() for r in results))


@pytest.mark.parametrize("is_ascend", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
def test_elements_beyond_the_count_of_a_row_stay_where_they_are(is_ascend, dtype):
    """The least and the largest numbers of the type, too, and as many of them as there may be."""
    from tvm import topi

    x = whole(3, 2, 4, 3).astype(dtype)
    x[0] = np.inf if dtype == "float32" else np.iinfo(dtype).max
    x[1, 1:] = -np.inf if dtype == "float32" else np.iinfo(dtype).min
    counts, expected = np.arange(6, dtype="int32") % 5, np.zeros(x.shape, "int32")
    for n, (row, column) in enumerate(itertools.product(range(2), range(3))):
        keys = x[row, : counts[n], column].astype("float64")
        order = np.argsort(keys if is_ascend else -keys, kind="stable")
        expected[row, :, column] = [*order, *range(counts[n], 4)]
    same(built(lambda t, v: topi.argsort(t, v, 1, is_ascend, "int32"), x, counts), expected)


def test_sizes_of_results_may_be_given():
    import tvm
    from tvm import te, topi

    x = real(1, 2, 3, 4)
    by_factor, by_size = (
        built(
            lambda t, o=o: topi.nn.upsampling3d(
                t, 2, 2, 2, coordinate_transformation_mode="asymmetric", output_shape=o
            ),
            x[None],
        )
        for o in (None, (4, 6, 8))
    )
    same(by_size, by_factor)
    resized = built(lambda t: topi.image.resize2d(t, [0.0] * 4, (6, 8), "NCHW", output_shape=(1, 2, 6, 8)), x)
    same(resized, built(lambda t: topi.image.resize2d(t, [0.0] * 4, (6, 8), "NCHW"), x))
    with pytest.raises(tvm.TVMError, match="not \\(1, 2, 8, 6\\)|not \\[1, 2, 8, 6\\]"):
        topi.image.resize2d(te.placeholder(x.shape), [0.0] * 4, (6, 8), "NCHW", output_shape=(1, 2, 8, 6))


RESHAPED = {
    "n * 2, 6, m": (6, 6, 4), "n, -1": (3, 48), "-1, 6": (24, 6), "-1": (144,), "m, n * 12": (4, 36), "2, n * m, -1": (2, 12, 6),
    "m * 3, 4, n": (12, 4, 3),
}  # fmt: skip


def test_open_sizes_are_reshaped_where_all_elements_have_a_place():
    """A tensor (n, 12, m) for n = 3, m = 4, in shapes that NumPy gives, and none that fits some sizes alone."""
    import tvm
    from tvm import te, topi

    n, m = te.var("n"), te.var("m")
    a = te.placeholder((n, 12, m), name="a")
    shapes = [eval(f"({text},)", {"n": n, "m": m}) for text in RESHAPED]
    made = [*(topi.reshape(a, shape) for shape in shapes), topi.nn.flatten(a)]
    run = tvm.build(te.create_schedule([t.op for t in made]), [a, *made], "llvm")
    x = real(3, 12, 4)
    expected = [x.reshape(shape) for shape in (*RESHAPED.values(), (3, 48))]
    found = [tvm.nd.array(np.zeros_like(e)) for e in expected]
    run(tvm.nd.array(x), *found)
    for f, e in zip(found, expected):
        np.testing.assert_array_equal(f.numpy(), e)
    for wrong in ((n, 12), (36, m), (n, m), (5, -1), (m, -1, 7), (n * n, 4, m), (n, -2, m)):
        with pytest.raises(tvm.TVMError, match="elements"):
            topi.reshape(a, wrong)
