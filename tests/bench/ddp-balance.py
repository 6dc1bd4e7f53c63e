#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank of the bench ddp-balance; RANK, WORLD_SIZE and so on are set.

Prints one JSON object on rank 0, if there are at least three ranks:

update_error: the greatest difference between the update of weights by all
ranks with an uneven division of a batch, and that by one worker with the whole
batch, as a part of the latter (Euclidean norms).
vs_ideal: of two ranks, the second computes each gradient twice, so that 2:1 is
the ideal division.  Median time of an iteration with the sizes of
libstagecoach-balance, exchange of times and sizes included, as a part of that
with the fixed division 2:1.  vs_equal: as a part of that with equal sizes.

The three divisions alternate every few iterations, and the samples of the
second figure take some times as long as their arithmetic: other load on the
machine hardly changes the speeds.
"""
import copy
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from stagecoach_balance import DdpBalance

UPDATE_BATCH = 192
DIVISIONS = ([64, 64, 64], [1, 95, 96], [190, 1, 1], [17, 128, 47],
             [96, 0, 96], [0, 0, 192])
BATCH = 384
SAMPLE_S = 0.4e-3               # Before its backward pass.
ROUNDS, ITERATIONS = 8, 8
loss_of = torch.nn.CrossEntropyLoss()


def make_model():
    """The activation is smooth: no rounding switches a unit off."""
    torch.manual_seed(1)
    return torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 10))


def weights(model):
    return torch.nn.utils.parameters_to_vector(model.parameters()).detach()


def forward(model, x, y, sample_s=0.0):
    """Returns the loss, after 'sample_s' for each sample at least."""
    end = time.monotonic() + sample_s * len(x)
    loss = loss_of(model(x), y)
    time.sleep(max(0.0, end - time.monotonic()))
    return loss


def step(model, optimizer, x, y, sample_s=0.0):
    optimizer.zero_grad()
    forward(model, x, y, sample_s).backward()
    optimizer.step()


def begin(batch):
    """Returns a model, the same in DDP, its balance and its optimizer."""
    model = make_model()
    parallel = DistributedDataParallel(model)
    balance = DdpBalance(batch)
    parallel.register_comm_hook(balance, DdpBalance.hook)
    return model, parallel, balance, torch.optim.SGD(model.parameters(), 0.1)


def update_error():
    model, parallel, balance, optimizer = begin(UPDATE_BATCH)
    errors = []
    for sizes in DIVISIONS:
        x, y = torch.randn(UPDATE_BATCH, 64), torch.randint(10, (UPDATE_BATCH,))
        before, single = weights(model).clone(), copy.deepcopy(model)
        step(single, torch.optim.SGD(single.parameters(), 0.1), x, y)
        part = balance.begin(sizes)
        step(parallel, optimizer, x[part], y[part])
        errors.append(float((weights(model) - weights(single)).norm()
                            / (weights(single) - before).norm()))
    return float(torch.tensor(errors).max())    # NaN if one is.


def times():
    """Returns the median time of an iteration under each kind of division."""
    model, parallel, balance, optimizer = begin(BATCH)
    fixed = {"balanced": None, "ideal": [BATCH * 2 // 3, BATCH // 3],
             "equal": [BATCH // 2, BATCH // 2]}
    seconds = {kind: [] for kind in fixed}
    x, y = torch.randn(BATCH, 64), torch.randint(10, (BATCH,))
    for kind in list(fixed) * ROUNDS:
        for _ in range(ITERATIONS):
            began = time.monotonic()
            part = balance.begin(fixed[kind])
            if dist.get_rank() == 1:
                torch.autograd.grad(forward(model, x[part], y[part], SAMPLE_S),
                                    model.parameters())
            step(parallel, optimizer, x[part], y[part], SAMPLE_S)
            if not fixed[kind]:
                balance.end()
            seconds[kind].append(time.monotonic() - began)
    return {kind: statistics.median(s) for kind, s in seconds.items()}


torch.set_num_threads(1)
dist.init_process_group("gloo")
error = update_error()
rank = dist.get_rank()
dist.destroy_process_group()
if rank < 2:
    port = int(os.environ["MASTER_PORT"]) + 1
    dist.init_process_group(
        "gloo", f"tcp://{os.environ['MASTER_ADDR']}:{port}", rank=rank,
        world_size=2)
    of = times()
    if rank == 0:
        print(json.dumps({"vs_ideal": of["balanced"] / of["ideal"],
                          "vs_equal": of["balanced"] / of["equal"],
                          "ideal_ms": 1e3 * of["ideal"],
                          "update_error": error}))
    dist.destroy_process_group()
