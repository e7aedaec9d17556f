"""PyTorch programs against PyTorch, where it is installed; what is said where it is not, and of other files."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest

from compass_core.errors import CompassError, UsageError
from compassc.importers import import_model
from compassc.importers import torch as importer

INSTALLED = all(importlib.util.find_spec(name) for name in importer.PACKAGES)
needs_torch = pytest.mark.skipif(not INSTALLED, reason="torch and onnxscript are not installed")


def test_missing_packages_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(importer, "PACKAGES", ("onnx", "no_such_torch", "no_such_script"))
    (tmp_path / "m.pt2").write_bytes(b"")
    with pytest.raises(CompassError, match="needs no_such_torch and no_such_script") as caught:
        import_model(tmp_path / "m.pt2")
    assert caught.value.code == "missing-package" and "compassc[torch]" in caught.value.help


@pytest.mark.parametrize(("name", "help"), [("m.pth", "torch.export.save"), ("m.h5", "TFLite"), ("m.x", "")])
def test_files_of_other_kinds_are_told_what_to_do(name, help, tmp_path):
    with pytest.raises(CompassError, match="known are .onnx, .tflite, .pt2") as caught:
        import_model(tmp_path / name)
    assert help in (caught.value.help or "")


def networks():
    import torch
    from torch import nn

    torch.manual_seed(0)

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(6, 8, batch_first=True)
            self.out = nn.Linear(8, 3)

        def forward(self, x):
            return torch.log_softmax(self.out(self.lstm(x)[0][:, -1]), -1)

    return {
        "convolutions": (
            nn.Sequential(
                nn.Conv2d(3, 8, 3, padding=1),
                nn.BatchNorm2d(8),
                nn.SiLU(),
                nn.MaxPool2d(2),
                nn.Conv2d(8, 8, 3, groups=8),
                nn.Hardswish(),
                nn.AdaptiveAvgPool2d(1),
                nn.Flatten(),
                nn.Linear(8, 5),
            ),
            torch.randn(1, 3, 16, 16),
        ),
        "transformer": (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), torch.randn(1, 7, 16)),
        "lstm": (Recurrent(), torch.randn(1, 5, 6)),
    }


@needs_torch
@pytest.mark.parametrize("name", ["convolutions", "transformer", "lstm"])
def test_programs_compute_what_pytorch_computes(name, tmp_path, chained):
    import torch

    model, x = networks()[name]
    model.eval()
    torch.export.save(torch.export.export(model, (x,)), tmp_path / "m.pt2")
    graph = import_model(tmp_path / "m.pt2")
    with torch.no_grad():
        want = model(x).numpy()
    np.testing.assert_allclose(chained(graph, x.numpy())[0], want, rtol=1e-4, atol=1e-5)


@needs_torch
def test_dynamic_dimensions_are_given(tmp_path, chained):
    import torch

    model, x = torch.nn.Linear(4, 3).eval(), torch.randn(2, 5, 4)
    shapes = {"input": {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}}
    torch.export.save(torch.export.export(model, (x,), dynamic_shapes=shapes), tmp_path / "m.pt2")
    with pytest.raises(CompassError, match="open") as caught:
        import_model(tmp_path / "m.pt2")
    assert re.search(r"--shape input=1x\w+x4", caught.value.help)
    graph = import_model(tmp_path / "m.pt2", {"input": (2, 9, 4)})
    assert graph.outputs[0].shape == (2, 9, 3)


@needs_torch
def test_programs_in_memory_are_imported_too():
    import torch

    from compassc.importers import import_object

    program = torch.export.export(torch.nn.Linear(4, 3).eval(), (torch.randn(2, 4),))
    assert import_object(program).outputs[0].shape == (2, 3)


@needs_torch
def test_damaged_programs_are_refused(tmp_path):
    (tmp_path / "m.pt2").write_bytes(b"PK\3\4 not a program")
    with pytest.raises(CompassError, match="no program of torch.export"):
        import_model(tmp_path / "m.pt2")


@needs_torch
def test_modules_are_compiled_with_example_inputs():
    import torch

    import compassc

    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    module[1].eval()
    x = torch.randn(2, 3, 8, 8)
    model = compassc.compile(module, "X2_1204", example_inputs=(x[:1],))
    assert [part.training for part in module.modules()] == [True, True, False, True]
    with torch.no_grad():
        np.testing.assert_allclose(model(x.numpy()), module.eval()(x).numpy(), atol=1e-5)
    for given, help in (({}, "example_inputs="), ({"target": (x,)}, "example_inputs=")):
        with pytest.raises(CompassError) as caught:
            compassc.compile(module, **given)
        assert help in caught.value.help
    with pytest.raises(CompassError, match="no torch.nn.Module"):
        compassc.compile(3, example_inputs=(x,))


def odd_examples():
    """(module, example_inputs, what is said) by name: calls that a module does not take."""
    import torch

    linear, x = torch.nn.Linear(4, 3), torch.randn(1, 4)
    return {
        "one tensor": (linear, x, "example_inputs is a Tensor, expected a tuple"),
        "names": (linear, {"input": x}, "example_inputs is a dict"),
        "text": (linear, ("x",), r"example_inputs\[0\] is a str"),
        "nested": (linear, ([x],), r"example_inputs\[0\] is a list"),
        "too few": (torch.nn.Bilinear(4, 4, 3), (x,), r"Bilinear does not take the example_inputs \(float32 1x4\)"),
        "too many": (linear, (x, x), "Linear does not take"),
        "shape": (linear, (torch.randn(1, 5),), r"\(float32 1x5\)"),
        "integers": (linear, (torch.ones(1, 4, dtype=torch.int64),), r"\(int64 1x4\).*dtype"),
        "class": (torch.nn.Linear, (x,), "the class Linear is no torch.nn.Module"),
        "TorchScript": (torch.jit.trace(linear, x), (x,), "module of TorchScript"),
    }


@needs_torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name",
    ["one tensor", "names", "text", "nested", "too few", "too many", "shape", "integers", "class", "TorchScript"],
)
def test_examples_that_a_module_does_not_take_are_refused_with_help(name):
    import compassc

    module, given, said = odd_examples()[name]
    with pytest.raises(UsageError, match=said) as caught:
        compassc.compile(module, "X2_1204", example_inputs=given)
    assert caught.value.help


@needs_torch
def test_refused_modules_are_left_as_they_are_and_named_with_their_line(capfd):
    import torch

    class Branches(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            return x + 1 if x.sum() > 0 else x - 1

    module = Branches()
    with pytest.raises(CompassError, match=rf"cannot export Branches.*{Path(__file__).name}:\d+\)") as caught:
        importer.exported(module, (torch.ones(1, 4),))
    assert "torch.where" in caught.value.help and module.training and module.calls == 0
    assert capfd.readouterr() == ("", "")


@needs_torch
def test_integers_and_several_outputs_are_taken():
    import torch

    import compassc

    class Several(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.rows = torch.nn.Embedding(10, 4)

        def forward(self, which, scale):
            return self.rows(which), [scale * 2, {"sum": self.rows(which) + scale}]

    module, which, scale = Several(), np.array([[1, 7]]), np.float32([[3]])
    found, doubled, total = compassc.compile(module, "X2_1204", example_inputs=(which, scale))(which, scale)
    rows = module.rows.weight.detach().numpy()[which]
    np.testing.assert_array_equal(found, rows)
    np.testing.assert_array_equal(doubled, scale * 2)
    np.testing.assert_array_equal(total, rows + scale)
