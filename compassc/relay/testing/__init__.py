"""Networks to try compilers on: `resnet.get_workload(...)` is a module and random parameters. Their parts (`layers`) make
variables for weights by name, which `init` gives values. `check_grad` holds gradients against differences."""

from __future__ import annotations

from compassc.relay.testing import (
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    resnet,
    squeezenet,
    synthetic,
    vgg,
)
from compassc.relay.testing.gradients import check_grad
from compassc.relay.testing.init import create_workload

__all__ = [
    "check_grad",
    "create_workload",
    "dcgan",
    "densenet",
    "dqn",
    "inception_v3",
    "init",
    "layers",
    "lstm",
    "mlp",
    "mobilenet",
    "resnet",
    "squeezenet",
    "synthetic",
    "vgg",
]
