#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mf-torch.py FILE RATE BATCH EPOCHS: a rank of PyTorch that factorises the
ratings of a file of MovieLens' form; RANK, WORLD_SIZE and so on are set.

DistributedDataParallel over gloo has two embeddings with sparse gradients.  A
batch has BATCH ratings of each rank.  Initial values, loss and the validation
ratings, one in twenty, are as those of stagecoach-trainer.  Rank 0 prints a
JSON object after each epoch: the seconds of training until then, and the root
mean square error of the validation ratings."""
import json
import sys
import time

import numpy
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

DIMENSION = 100


class Factors(torch.nn.Module):
    def __init__(self, n_rows, n_columns):
        super().__init__()
        self.rows = torch.nn.Embedding(n_rows, DIMENSION, sparse=True)
        self.columns = torch.nn.Embedding(n_columns, DIMENSION, sparse=True)
        for one in self.rows, self.columns:
            torch.nn.init.normal_(one.weight, std=DIMENSION ** -0.5)

    def forward(self, rows, columns):
        return (self.rows(rows) * self.columns(columns)).sum(1)


def main():
    path, rate, batch, n_epochs = sys.argv[1:]
    batch = int(batch)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    dist.init_process_group("gloo")
    world, rank = dist.get_world_size(), dist.get_rank()
    lines = numpy.loadtxt(path, delimiter="\t")
    places = torch.tensor(lines[:, :2].astype(numpy.int64))
    values = torch.tensor(lines[:, 2].astype(numpy.float32))
    held = torch.arange(len(values)) % 20 == 0
    mine = (~held).nonzero().flatten()[rank::world]
    model = DistributedDataParallel(Factors(*(places.max(0)[0] + 1).tolist()))
    optimizer = torch.optim.SGD(model.parameters(), float(rate))
    seconds = 0.0
    n = len(mine) // batch * batch      # As many batches on all ranks.
    for _ in range(int(n_epochs)):
        dist.barrier()
        began = time.monotonic()
        for part in mine[torch.randperm(len(mine))][:n].split(batch):
            error = model(*places[part].T) - values[part]
            optimizer.zero_grad()
            (world * error.square().sum()).backward()    # DDP makes a mean.
            optimizer.step()
        seconds += time.monotonic() - began
        if rank == 0:
            with torch.no_grad():
                error = model.module(*places[held].T) - values[held]
            print(json.dumps({"seconds": seconds, "rmse": float(
                error.square().mean().sqrt())}), flush=True)


main()
