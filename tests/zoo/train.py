"""`python -m tests.zoo.train [NAME...]` trains the zoo's networks anew and writes them as ONNX files, each in a minute or two.
It needs `pip install "compassc[torch]" scikit-learn`; tests take the files as they are."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import onnx
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.zoo import networks
from tests.zoo.data import BLANK
from tests.zoo.tasks import MODELS, TASKS, TEST, TRAINING


def _classes(made: Tensor, answers: Tensor) -> Tensor:
    return F.cross_entropy(made.flatten(0, -2), answers.flatten())


def _columns(made: Tensor, answers: Tensor) -> Tensor:
    assert made.shape[-1] == BLANK + 1
    return _classes(made, answers)


def _mask(made: Tensor, answers: Tensor) -> Tensor:
    return F.binary_cross_entropy(made[:, 0], answers.float())


def _pictures(made: Tensor, answers: Tensor) -> Tensor:
    return F.mse_loss(made, answers) * 100


def _boxes(made: tuple[Tensor, Tensor], answers: Tensor) -> Tensor:
    boxes, scores = made
    rows = torch.arange(len(answers))
    cell = (answers[:, 1] // 4 * 8 + answers[:, 0] // 4).long()
    wanted = torch.zeros_like(scores)
    wanted[rows, cell, answers[:, 4].long()] = 1
    own = boxes[rows, cell]
    far = F.smooth_l1_loss(own[:, :2], answers[:, :2]) + F.smooth_l1_loss(own[:, 2:], answers[:, 2:4])
    return F.binary_cross_entropy(scores.clamp(1e-6, 1 - 1e-6), wanted, reduction="sum") / len(rows) + far


class Recipe(NamedTuple):
    """How a network is trained: what makes it, what it minimises, samples, epochs and the largest rate."""

    make: Callable[[], nn.Module]
    loss: Callable[[Any, Tensor], Tensor]
    samples: int
    epochs: int
    rate: float = 3e-3


RECIPES: dict[str, Recipe] = {
    "digits-cnn": Recipe(networks.digits_cnn, _classes, 1197, 40),
    "mobilenet": Recipe(networks.mobilenet, _classes, 4000, 14, 5e-3),
    "vit": Recipe(networks.Vit, _classes, 1197, 50, 2e-3),
    "crnn": Recipe(networks.Crnn, _columns, 3000, 10),
    "unet": Recipe(networks.Unet, _mask, 2000, 8),
    "words": Recipe(networks.Words, _classes, 3000, 15),
    "detector": Recipe(networks.Detector, _boxes, 3000, 14, 5e-3),
    "larger": Recipe(networks.Larger, _pictures, 1500, 10),
    "autoencoder": Recipe(networks.autoencoder, _pictures, 1197, 200),
}


def train(name: str) -> nn.Module:
    """A network after its epochs with Adam, whose rate rises and falls."""
    task, recipe = TASKS[name], RECIPES[name]
    torch.manual_seed(0)
    model = recipe.make()
    inputs, answers = (torch.from_numpy(a) for a in task.samples(TRAINING, recipe.samples))
    batch = 64
    steps = recipe.epochs * (len(inputs) // batch)
    optimizer = torch.optim.AdamW(model.parameters(), recipe.rate, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, recipe.rate, total_steps=steps)
    for _ in range(recipe.epochs):
        order = torch.randperm(len(inputs))
        for i in range(len(inputs) // batch):
            chosen = order[i * batch : (i + 1) * batch]
            optimizer.zero_grad()
            loss = recipe.loss(model(inputs[chosen]), answers[chosen])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return model.eval()


def score(name: str, model: nn.Module) -> float:
    """How good a network's answers are."""
    task = TASKS[name]
    inputs, answers = task.samples(TEST, 500)
    with torch.no_grad():
        made = model(torch.from_numpy(inputs))
    outputs = [t.numpy() for t in (made if isinstance(made, tuple) else (made,))]
    return task.score(outputs, np.asarray(answers))


def export(name: str, model: nn.Module) -> None:
    """Writes a network for one sample, by PyTorch's exporter; what that notes of its source files goes."""
    MODELS.mkdir(exist_ok=True)
    example = torch.from_numpy(TASKS[name].samples(TRAINING, 1)[0][:1])
    names = ["boxes", "scores"] if name == "detector" else ["y"]
    program = torch.onnx.export(model, (example,), dynamo=True, input_names=["x"], output_names=names, verbose=False)
    assert program is not None
    onnx.save(without_notes(program.model_proto), MODELS / f"{name}.onnx")


def without_notes(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model without what its exporter noted of where nodes and values come from."""
    del model.metadata_props[:]
    graph = model.graph
    for part in (graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer):
        del part.metadata_props[:]
    return model


if __name__ == "__main__":
    torch.set_num_threads(1)
    for chosen in sys.argv[1:] or list(RECIPES):
        start = time.monotonic()
        trained = train(chosen)
        print(
            f"{chosen}: {score(chosen, trained):.2f} {TASKS[chosen].unit}, {time.monotonic() - start:.0f} s", flush=True
        )
        export(chosen, trained)
