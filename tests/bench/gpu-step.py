#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0

"""gpu-step.py: runs gpu-step and the same models in PyTorch, if it is
installed and finds a GPU, and prints the JSON object of the bench; see
gpu-step.sh."""

import json
import os
import statistics
import subprocess
import sys
import time

try:
    import torch
    from torch import nn
    from torch.nn import functional
except ImportError:
    torch = None

SKIPPED = 77
WARM_S = 0.5
# Convolutions and products in TF32.
PRECISIONS = {"fp32": (False, False), "mixed": (True, False),
              "tf32": (True, True)}


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


def make_step(name):
    """Returns a function that does a step, and one that queues it."""
    make, batch, shape = CASES[name]
    model = make().to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = torch.randn(batch, *shape, device="cuda")
    labels = torch.randint(10, (batch,), device="cuda")

    def queue():
        optimizer.zero_grad(set_to_none=True)
        functional.cross_entropy(model(x), labels).backward()
        optimizer.step()

    def step():
        queue()
        torch.cuda.synchronize()

    return step, queue


def make_graph(queue):
    """Returns a function that does a step as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            queue()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        queue()

    def step():
        graph.replay()
        torch.cuda.synchronize()

    return step


def measure(step, steps):
    """Returns the median milliseconds of a step."""
    times = []
    end = time.monotonic() + WARM_S
    while time.monotonic() < end:
        step()
    for _ in range(steps):
        begin = time.monotonic()
        step()
        times.append(1e3 * (time.monotonic() - begin))
    return statistics.median(times)


def measure_torch(precision, steps):
    """Returns the milliseconds of each case, eager and as a graph."""
    convolutions, products = PRECISIONS[precision]
    torch.backends.cudnn.allow_tf32 = convolutions
    torch.backends.cuda.matmul.allow_tf32 = products
    torch.backends.cudnn.benchmark = True
    result = {}
    for name in CASES:
        step, queue = make_step(name)
        result[name] = {"eager_ms": round(measure(step, steps), 4),
                        "graph_ms": round(measure(make_graph(queue), steps),
                                          4)}
        print(f"gpu-step: PyTorch, {precision}, {name}: {result[name]}",
              file=sys.stderr)
    return result


def measure_ours(backend, precision, steps):
    """Returns what gpu-step prints, or None if it failed."""
    run = subprocess.run(["build/tests/gpu/gpu-step", backend, str(steps),
                          precision], stdout=subprocess.PIPE, text=True)
    if run.returncode == SKIPPED and not os.environ.get("REQUIRE_GPU"):
        sys.exit(SKIPPED)
    if run.returncode:
        print(f"gpu-step: {precision}: exit status {run.returncode}",
              file=sys.stderr)
        return None
    print(f"gpu-step: ours, {precision}: {run.stdout}", file=sys.stderr)
    return json.loads(run.stdout)


def main():
    steps = int(os.environ.get("STEPS", 200))
    backend = os.environ.get("BACKEND", "cuda")
    figures, baseline, failed = {}, {}, False
    compares = torch is not None and torch.cuda.is_available()
    if compares:
        baseline["torch"] = torch.__version__
        baseline["cudnn"] = torch.backends.cudnn.version()
        baseline["device"] = torch.cuda.get_device_name()
    else:
        print("gpu-step: no PyTorch that sees a GPU, no comparison",
              file=sys.stderr)
    for precision in ("mixed", "fp32", "tf32"):
        ours = measure_ours(backend, precision, steps)
        theirs = measure_torch(precision, steps) if compares else None
        failed = failed or not ours
        if ours:
            baseline[f"backend_{precision}"] = ours["backend"]
        for name in CASES:
            key = f"{name}_{precision}"
            if ours:
                for figure in ("step_ms", "gradient_ms"):
                    figures[f"{key}_{figure}"] = ours[name][figure]
            if ours and precision == "mixed":
                figures[f"{name}_hidden"] = ours[name]["hidden"]
            if theirs:
                baseline[key] = theirs[name]
            if ours and theirs:
                for kind in ("eager", "graph"):
                    figures[f"{key}_vs_{kind}"] = round(
                        ours[name]["step_ms"] / theirs[name][kind + "_ms"], 4)
    print(json.dumps({"bench": "gpu-step", "figures": figures,
                      "baseline": baseline}))
    sys.exit(failed)


main()
