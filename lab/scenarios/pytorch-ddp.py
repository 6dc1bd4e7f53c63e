#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Plain data-parallel training with PyTorch over gloo, as any framework's user
# would write it: nothing here knows who watches its traffic.  The rendezvous
# is what launchers set: RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT.
#
# --times FILE: rank 0 appends the time of each iteration's end, to compare
# with what others say.  --step-ms: an iteration computes for so long at least,
# as it would with a larger model on an accelerator.
import argparse
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--iterations", type=int, default=60)
parser.add_argument("--width", type=int, default=384)
parser.add_argument("--batch", type=int, default=32)
parser.add_argument("--learning-rate", type=float, default=0.05)
parser.add_argument("--bucket-mb", type=float, default=25)
parser.add_argument("--step-ms", type=float, default=0)
parser.add_argument("--times")
args = parser.parse_args()

torch.set_num_threads(1)
torch.manual_seed(1)
dist.init_process_group("gloo")
rank = dist.get_rank()

model = torch.nn.Sequential(
    torch.nn.Linear(64, args.width), torch.nn.ReLU(),
    torch.nn.Linear(args.width, args.width), torch.nn.ReLU(),
    torch.nn.Linear(args.width, args.width), torch.nn.ReLU(),
    torch.nn.Linear(args.width, 10))
model = DistributedDataParallel(model, bucket_cap_mb=args.bucket_mb)
optimizer = torch.optim.SGD(model.parameters(), lr=args.learning_rate, momentum=0.9)
loss_of = torch.nn.CrossEntropyLoss()

# Ten classes that a line through the inputs tells apart; each rank has its
# own part of the samples.
truth = torch.randn(64, 10)
generator = torch.Generator().manual_seed(100 + rank)
times = open(args.times, "a") if args.times and rank == 0 else None
for iteration in range(1, args.iterations + 1):
    began = time.monotonic()
    x = torch.randn(args.batch, 64, generator=generator)
    y = (x @ truth).argmax(dim=1)
    loss = loss_of(model(x), y)
    time.sleep(max(0, args.step_ms / 1000 - (time.monotonic() - began)))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if times:
        print(iteration, time.time(), file=times, flush=True)
    if rank == 0 and iteration % 10 == 0:
        print("iteration %d loss %.4f" % (iteration, loss.item()), flush=True)
dist.destroy_process_group()
