"""The zoo's networks, in PyTorch, as people write them. Only training needs them: `python -m tests.zoo.train`."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tests.zoo.data import BLANK, SHAPES, WORDS


def conv(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, act: type = nn.ReLU
) -> nn.Module:
    """A convolution with batch normalisation and an activation."""
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        act(),
    )


def digits_cnn() -> nn.Module:
    """Two convolutions, mean pooling and a linear layer."""
    return nn.Sequential(
        conv(1, 16),
        conv(16, 32),
        nn.AvgPool2d(2),
        conv(32, 32),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


class Excite(nn.Module):
    """Squeeze and excitation."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, channels // 4, 1), nn.Conv2d(channels // 4, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return x * nn.functional.hardsigmoid(self.up(torch.relu(self.down(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    """The block of MobileNetV3."""

    def __init__(self, inputs: int, wide: int, outputs: int, kernel: int, stride: int, excite: bool, act: type) -> None:
        super().__init__()
        self.same = stride == 1 and inputs == outputs
        self.body = nn.Sequential(
            conv(inputs, wide, 1, act=act),
            conv(wide, wide, kernel, stride, wide, act=act),
            Excite(wide) if excite else nn.Identity(),
            nn.Conv2d(wide, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.body(x) if self.same else self.body(x)


def mobilenet() -> nn.Module:
    """MobileNetV3, narrow."""
    return nn.Sequential(
        conv(3, 12, 3, 2, act=nn.Hardswish),
        Inverted(12, 24, 16, 3, 1, True, nn.ReLU),
        Inverted(16, 48, 24, 3, 2, False, nn.ReLU),
        Inverted(24, 64, 24, 5, 1, True, nn.Hardswish),
        Inverted(24, 64, 32, 5, 2, True, nn.Hardswish),
        conv(32, 96, 1, act=nn.Hardswish),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 64),
        nn.Hardswish(),
        nn.Linear(64, len(SHAPES)),
    )


class Block(nn.Module):
    """An encoder block of a transformer."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, steps, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(n, steps, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(width // self.heads), -1) @ v
        x = x + self.out(seen.transpose(1, 2).reshape(n, steps, width))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """Two encoder blocks over patches of 2x2."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 2, 2)
        self.place = nn.Parameter(torch.randn(1, 16, width) * 0.02)
        self.first = nn.Parameter(torch.zeros(1, 1, width))
        self.blocks = nn.Sequential(Block(width, 4), Block(width, 4))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2) + self.place
        x = self.blocks(torch.cat([self.first.expand(x.shape[0], -1, -1), x], 1))
        return self.head(self.norm(x)[:, 0])


class Crnn(nn.Module):
    """Convolutions over a line of digits, a bidirectional LSTM along it."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(1, 16), conv(16, 24), nn.MaxPool2d(2), conv(24, 32), nn.MaxPool2d(2))
        self.lstm = nn.LSTM(64, 32, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, BLANK + 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x).permute(0, 3, 1, 2).flatten(2)
        return self.head(self.lstm(x)[0])


class Unet(nn.Module):
    """Down twice and up twice, with what was seen on the way."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = conv(3, 12), conv(12, 24), conv(24, 32)
        self.up1, self.d = nn.ConvTranspose2d(32, 24, 2, 2), conv(48, 24)
        self.e, self.head = conv(36, 12), nn.Conv2d(12, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        a = self.a(x)
        b = self.b(nn.functional.max_pool2d(a, 2))
        c = self.c(nn.functional.max_pool2d(b, 2))
        d = self.d(torch.cat([self.up1(c), b], 1))
        up = nn.functional.interpolate(d, scale_factor=2.0, mode="bilinear", align_corners=False)
        return torch.sigmoid(self.head(self.e(torch.cat([up, a], 1))))


class Words(nn.Module):
    """A discrete Fourier transform by convolution, the logarithm of its power, a GRU over its frames."""

    def __init__(self, frame: int = 128, bins: int = 48) -> None:
        super().__init__()
        at = torch.arange(frame) * 2 * math.pi / frame
        window = torch.hann_window(frame)
        waves = torch.stack([wave(at * k) * window for wave in (torch.cos, torch.sin) for k in range(1, bins + 1)])
        self.register_buffer("waves", waves[:, None])
        self.bins, self.hop = bins, frame // 2
        self.norm = nn.BatchNorm1d(bins)
        self.gru = nn.GRU(bins, 32, batch_first=True)
        self.head = nn.Linear(32, WORDS)

    def forward(self, x: Tensor) -> Tensor:
        spectrum = nn.functional.conv1d(x, self.waves, stride=self.hop)
        real, imaginary = spectrum[:, : self.bins], spectrum[:, self.bins :]
        power = torch.log(real * real + imaginary * imaginary + 1e-3)
        states, _ = self.gru(self.norm(power).transpose(1, 2))
        return self.head(states[:, -1])


class Detector(nn.Module):
    """A grid of 8x8 cells: whether the middle of a shape is in it, which one, and where its box lies (of an anchor)."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv(3, 16, act=nn.SiLU), conv(16, 24, stride=2, act=nn.SiLU), conv(24, 40, stride=2, act=nn.SiLU),
            conv(40, 40, 5, groups=40, act=nn.SiLU), conv(40, 48, 1, act=nn.SiLU), conv(48, 48, 5, groups=48, act=nn.SiLU),
            conv(48, 48, 1, act=nn.SiLU),
        )  # fmt: skip
        self.head = nn.Conv2d(48, 5 + len(SHAPES), 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        made = self.head(self.body(x)).flatten(2).transpose(1, 2)
        places = torch.stack(torch.meshgrid(torch.arange(8), torch.arange(8), indexing="ij"), -1).flip(-1)
        corner = (places.reshape(1, 64, 2) * 4).float()
        middle = corner + torch.sigmoid(made[..., :2]) * 4
        size = torch.exp(made[..., 2:4]) * 12
        scores = torch.sigmoid(made[..., 4:5]) * torch.softmax(made[..., 5:], -1)
        return torch.cat([middle, size], -1), scores


class Larger(nn.Module):
    """Pictures twice as large: convolutions, and channels that become pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 24, 5, padding=2), nn.PReLU(24), nn.Conv2d(24, 24, 3, padding=1), nn.PReLU(24),
            nn.Conv2d(24, 24, 3, padding=1), nn.PReLU(24), nn.Conv2d(24, 12, 3, padding=1), nn.PixelShuffle(2),
        )  # fmt: skip

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.interpolate(x, scale_factor=2.0, mode="nearest") + self.body(x)


def autoencoder() -> nn.Module:
    """Pictures through 24 numbers and back."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, 2, 1), nn.ELU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ELU(), nn.Flatten(), nn.Linear(128, 24), nn.Tanh(),
        nn.Linear(24, 128), nn.ELU(), nn.Unflatten(1, (32, 2, 2)), nn.ConvTranspose2d(32, 16, 2, 2), nn.ELU(),
        nn.ConvTranspose2d(16, 1, 2, 2), nn.Sigmoid(),
    )  # fmt: skip
