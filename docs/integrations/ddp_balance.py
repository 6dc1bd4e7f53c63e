#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Data-parallel training with PyTorch whose batches follow the speeds of the
# workers.  The four lines with "balance" are all that it takes.  The
# rendezvous is what launchers set: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
#
# --slow RANK: this worker computes each gradient three times, as a machine of
# a third of the speed would take.
import argparse

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from stagecoach_balance import DdpBalance

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=60)
parser.add_argument("--batch", type=int, default=1536)
parser.add_argument("--slow", type=int, default=-1)
args = parser.parse_args()


def train():
    model = DistributedDataParallel(torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 256), torch.nn.Tanh(),
        torch.nn.Linear(256, 10)))
    balance = DdpBalance(args.batch)
    model.register_comm_hook(balance, DdpBalance.hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    loss_of = torch.nn.CrossEntropyLoss()

    # Ten classes that a line through the inputs tells apart.  All workers
    # draw the same batches; a reader of files would load only its own part.
    truth = torch.randn(64, 10)
    for iteration in range(args.iterations):
        x = torch.randn(args.batch, 64)
        y = (x @ truth).argmax(dim=1)
        part = balance.begin()
        for _ in range(2 if dist.get_rank() == args.slow else 0):
            torch.autograd.grad(loss_of(model.module(x[part]), y[part]),
                                model.parameters())
        loss = loss_of(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        balance.end()
        if iteration % 10 == 9 and dist.get_rank() == 0:
            print("iteration %d samples %d loss %.4f" % (
                iteration + 1, part.stop - part.start, loss.item()), flush=True)


torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
train()
# The model uses the group, and is gone: the group's threads end here.  A thread
# that frees a tensor while the interpreter ends would abort the process.
dist.destroy_process_group()
