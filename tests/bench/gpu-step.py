#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""gpu-step.py STEPS TF32: compares the results of gpu-step, in $OURS, with the
same models in PyTorch in eager mode, if it is installed and finds a GPU.
Prints the JSON object of the bench."""

import json
import os
import statistics
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    torch = None

N_WARM = 10


def make_mlp():
    return nn.Sequential(nn.Linear(784, 1024), nn.ReLU(),
                         nn.Linear(1024, 1024), nn.ReLU(),
                         nn.Linear(1024, 10))


def make_cifarnet():
    return nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(),
                         nn.MaxPool2d(2),
                         nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(),
                         nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(4096, 256), nn.ReLU(), nn.Linear(256, 10))


def make_resnet32():
    class Block(nn.Module):
        def __init__(self, n_in, n_out, stride):
            super().__init__()
            self.n_pad, self.stride = (n_out - n_in) // 2, stride
            self.convolve1 = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
            self.norm1 = nn.BatchNorm2d(n_out)
            self.convolve2 = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
            self.norm2 = nn.BatchNorm2d(n_out)

        def forward(self, x):
            y = functional.relu(self.norm1(self.convolve1(x)))
            y = self.norm2(self.convolve2(y))
            x = x[:, :, ::self.stride, ::self.stride]
            x = functional.pad(x, (0, 0, 0, 0, self.n_pad, self.n_pad))
            return functional.relu(x + y)

    layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16),
              nn.ReLU()]
    n_in = 16
    for stage in range(3):
        for block in range(5):
            n_out = 16 << stage
            layers.append(Block(n_in, n_out, 2 if stage and not block else 1))
            n_in = n_out
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)]
    return nn.Sequential(*layers)


CASES = {
    "mlp": (make_mlp, 256, (784,)),
    "cifarnet": (make_cifarnet, 128, (3, 32, 32)),
    "resnet32": (make_resnet32, 128, (3, 32, 32)),
}


def measure_torch(name, steps, device):
    """Returns the median milliseconds of a step."""
    make, batch, shape = CASES[name]
    model = make().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(batch, *shape, device=device)
    labels = torch.randint(10, (batch,), device=device)
    times = []
    for i in range(N_WARM + steps):
        begin = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(x), labels).backward()
        optimizer.step()
        if device == "cuda":
            torch.cuda.synchronize()
        if i >= N_WARM:
            times.append(1e3 * (time.monotonic() - begin))
    return statistics.median(times)


def main():
    steps, tf32 = int(sys.argv[1]), sys.argv[2] == "1"
    ours = json.loads(os.environ["OURS"])
    figures, baseline = {}, {}
    device = None
    if torch is not None and torch.cuda.is_available():
        device = "cuda"
        torch.backends.cuda.matmul.allow_tf32 = tf32
        torch.backends.cudnn.allow_tf32 = tf32
        torch.backends.cudnn.benchmark = True
    else:
        print("gpu-step: no PyTorch that sees a GPU, no comparison",
              file=sys.stderr)
    for name in CASES:
        step = statistics.median(ours[name]["step_ms"])
        figures[name + "_step_ms"] = round(step, 4)
        figures[name + "_gradient_ms"] = round(
            statistics.median(ours[name]["gradient_ms"]), 4)
        figures[name + "_vs_torch"] = None
        if device:
            baseline[name + "_step_ms"] = round(
                measure_torch(name, steps, device), 4)
            figures[name + "_vs_torch"] = round(
                step / baseline[name + "_step_ms"], 4)
    figures["overlap"] = {name: ours[name]["hidden"] for name in CASES}
    print(json.dumps({"bench": "gpu-step", "figures": figures,
                      "baseline": baseline}))


main()
