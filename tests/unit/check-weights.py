#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-weights.py TRAINER: checkpoints are evaluated and exported, their
learning rates follow schedules, and data sets are read as they are distributed.

PyTorch, if it is installed, loads the exported file and computes the same
outputs.
"""

import gzip
import json
import math
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

TRAINER = os.path.abspath(sys.argv[1])
DEBIANS = "/usr/bin/python3"
N_CLASSES = 10


def trainer(command, *options, status=0):
    """Returns what it prints, or its lines on standard error."""
    done = subprocess.run([TRAINER, command, *map(str, options)],
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=120)
    assert done.returncode == status, (command, options, done)
    return done.stderr.splitlines() if status else done.stdout


def train(*options, status=0):
    """Returns the last event, or the lines on standard error."""
    out = trainer("train", "--backend", "cpu", "--format", "json", *options,
                  status=status)
    return out if status else json.loads(out.splitlines()[-1])


def evaluate(*options, status=0):
    out = trainer("evaluate", "--backend", "cpu", "--format", "json", *options,
                  status=status)
    return out if status else json.loads(out)


def pixels(rng, n):
    return bytes(rng.randrange(256) for _ in range(n))


def idx(dims, data):
    return (struct.pack(">I", 0x800 | len(dims))
            + b"".join(struct.pack(">I", n) for n in dims) + data)


def write_mnist(folder, opens=open, suffix="", n=48, n_held=12):
    """Writes digits of noise as the four files of MNIST.  Returns the images
    for validation."""
    rng = random.Random(1)
    folder.mkdir(parents=True)
    for name, count in ("train", n), ("t10k", n_held):
        images = pixels(rng, 784 * count)
        labels = bytes(rng.randrange(N_CLASSES) for _ in range(count))
        for kind, dims, data in (("images-idx3", (count, 28, 28), images),
                                 ("labels-idx1", (count,), labels)):
            with opens(folder / f"{name}-{kind}-ubyte{suffix}", "wb") as file:
                file.write(idx(dims, data))
    return [images[784 * i:784 * (i + 1)] for i in range(n_held)]


def write_cifar(folder, opens=open, suffix="", n=24, n_held=6):
    """Likewise, as the binary version of CIFAR-10."""
    rng = random.Random(2)
    folder.mkdir(parents=True)
    for name, count in ("data_batch_1", n), ("test_batch", n_held):
        images = [pixels(rng, 3072) for _ in range(count)]
        with opens(folder / f"{name}.bin{suffix}", "wb") as file:
            for image in images:
                file.write(bytes([rng.randrange(N_CLASSES)]) + image)
    return images


def read_tensors(torch, file):
    """Reads the format by its description, without its library."""
    data = pathlib.Path(file).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    assert length % 8 == 0, length
    header = json.loads(data[8:8 + length])
    values = data[8 + length:]
    assert header.pop("__metadata__")["format"] == "pt"
    assert max(e["data_offsets"][1] for e in header.values()) == len(values)
    return {name: torch.frombuffer(
                bytearray(values[slice(*entry["data_offsets"])]),
                dtype=torch.float32).reshape(entry["shape"]).clone()
            for name, entry in header.items() if entry["dtype"] == "F32"}


def nets_of(torch):
    """Returns PyTorch's form of each model, with the names of the export."""
    nn = torch.nn
    relu, pool = nn.functional.relu, nn.functional.max_pool2d

    class Mlp(nn.Module):
        def __init__(self):
            super().__init__()
            self.dense1 = nn.Linear(784, 32)
            self.dense2 = nn.Linear(32, N_CLASSES)

        def forward(self, x):
            return self.dense2(relu(self.dense1(x.flatten(1))))

    class CifarNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2d(3, 64, 5, padding=2)
            self.conv2 = nn.Conv2d(64, 64, 5, padding=2)
            self.dense1 = nn.Linear(64 * 8 * 8, 256)
            self.dense2 = nn.Linear(256, N_CLASSES)

        def forward(self, x):
            x = pool(relu(self.conv1(x)), 2)
            x = pool(relu(self.conv2(x)), 2)
            return self.dense2(relu(self.dense1(x.flatten(1))))

    class ResNet32(nn.Module):
        def __init__(self):
            super().__init__()
            n_in = 3
            for i in range(1, 32):
                n_out = 16 << max(i - 2, 0) // 10
                stride = 2 if i in (12, 22) else 1
                self.add_module(f"conv{i}", nn.Conv2d(
                    n_in, n_out, 3, stride, 1, bias=False))
                self.add_module(f"norm{i}", nn.BatchNorm2d(n_out))
                n_in = n_out
            self.dense1 = nn.Linear(64, N_CLASSES)

        def part(self, i, x):
            return getattr(self, f"norm{i}")(getattr(self, f"conv{i}")(x))

        def forward(self, x):
            x = relu(self.part(1, x))
            for i in range(2, 32, 2):
                y = self.part(i + 1, relu(self.part(i, x)))
                if y.shape != x.shape:  # Zeros on both sides of the channels.
                    more = (y.shape[1] - x.shape[1]) // 2
                    x = nn.functional.pad(x[:, :, ::2, ::2],
                                          (0, 0, 0, 0, more, more))
                x = relu(x + y)
            return self.dense1(x.mean((2, 3)))

    return {"mlp": Mlp, "cifarnet": CifarNet, "resnet32": ResNet32}


def pytorch_loads_the_export(folder):
    try:
        import torch
    except ImportError:
        if sys.executable != DEBIANS:   # That of the package python3-torch.
            subprocess.run([DEBIANS, __file__, TRAINER, "torch"], check=True)
        else:
            print("skip: no PyTorch")
        return
    digits = write_mnist(folder / "mnist")
    photos = write_cifar(folder / "cifar")
    for model, net in nets_of(torch).items():
        mlp = model == "mlp"
        options = ["--model", model, "--shape", "784,32,10", "--data",
                   f"mnist:{folder}/mnist" if mlp
                   else f"cifar10:{folder}/cifar"]
        kept = ["--checkpoint", folder / model]
        train(*options, *kept, "--servers", 2, "--batch", 8, "--iterations", 6,
              "--eval-every", 6, "--learning-rate", 0.01)
        trainer("export", *options, *kept, "--output", folder / "w")
        ours = evaluate(*options, *kept, "--outputs")["outputs"]
        loaded = net()
        loaded.load_state_dict(read_tensors(torch, folder / "w"))
        loaded.eval()
        raw = torch.tensor([list(x) for x in (digits if mlp else photos)])
        x = ((raw / 255 - 0.13) / 0.31 if mlp
             else (raw.reshape(-1, 3, 32, 32) / 255 - 0.47) / 0.25)
        with torch.no_grad():
            theirs = loaded(x)
        apart = (theirs - torch.tensor(ours)).abs().max().item()
        spread = theirs.std().item()
        assert apart < 1e-4 and spread > 0.01, (model, apart, spread)
        print(f"{model}: outputs differ by {apart:.1e} of {spread:.2f}")
    kept = ["--model", "linear", "--features", 7, "--checkpoint", folder / "l"]
    train(*kept, "--iterations", 3)
    trainer("export", *kept, "--output", folder / "w")
    torch.nn.Linear(7, 1).load_state_dict({
        name.removeprefix("linear."): values
        for name, values in read_tensors(torch, folder / "w").items()})


def evaluates_checkpoints(folder):
    kept = ["--checkpoint", folder / "a"]
    done = train(*kept, "--shape", "16,8,10", "--iterations", 20, "--servers",
                 3)
    small = [*kept, "--shape", "16,8,10"]
    got = evaluate(*small)
    assert (got["iteration"], got["samples"]) == (20, 512), got
    assert math.isclose(got["loss"], done["loss"], rel_tol=1e-4), (got, done)
    assert math.isclose(got["accuracy"], done["accuracy"], rel_tol=1e-4)
    assert "outputs" not in got
    assert trainer("evaluate", *small, "--validation", 100).startswith(
        "iteration 20, 100 samples: loss ")

    path = folder / "a/shard-1-of-3.20"
    for options, error in (
            (["--checkpoint", folder / "none"],
             f"{folder}/none: no checkpoint; expected a folder of \"train\" "
             "or \"server --checkpoint\""),
            (kept, f"{folder}/a/shard-0-of-3.20: 226 parameters, 0 "
                   "statistics; expected 85002 and 0, as --model has"),
            ([*kept, "--model", "resnet32"],
             f"{folder}/a/shard-0-of-3.20: 226 parameters, 0 statistics; "
             "expected 464154 and 4544, as --model has"),
            (small, f"{path}: damaged: its sum is wrong")):
        if options == small:
            path.write_bytes(path.read_bytes()[:-9] + b"123456789")
        for command, more in ("evaluate", []), ("export", ["--output", "/w"]):
            assert trainer(command, *options, *more, status=1) == [
                f"stagecoach-trainer {command}: {error}"], options
    assert trainer("export", *small, status=2) == [
        "stagecoach-trainer export: --output: required option is missing"]
    train(*kept, "--shape", "16,8,10", "--no-resume", "--iterations", 1)
    assert trainer("export", *small, "--output", folder, status=1) == [
        f"stagecoach-trainer export: {folder}: Is a directory"]


def rates_follow_schedules(folder):
    """A rate that is 0 from an iteration on changes nothing after it; one that
    a checkpoint interrupts continues."""
    small = ["--shape", "16,8,10", "--samples", 256, "--eval-every", 1]
    cosine = ["--schedule", "cosine", "--schedule-period", 10,
              "--schedule-factor", 0]

    def loss_of(*options, command="train"):
        return train(*small, *options)["loss"]

    for sync in "bsp", "ssp", "groups", "lbbsp-cpu":
        workers = ["--sync", sync, "--workers", 1]
        at_end = loss_of(*workers, *cosine, "--optimiser", "sgd",
                         "--iterations", 10)
        later = loss_of(*workers, *cosine, "--optimiser", "sgd",
                        "--iterations", 20)
        assert math.isclose(at_end, later, rel_tol=1e-3), (sync, at_end, later)
    assert not math.isclose(loss_of("--iterations", 10),
                            loss_of("--iterations", 20), rel_tol=1e-3)

    # Two steps by 0.5 of the rate are one with a quarter; a warm-up of one
    # iteration is none.
    step = ["--schedule", "step", "--schedule-period", 5,
            "--schedule-factor", 0.5]
    local = json.loads([line for line in subprocess.run(
        [TRAINER, "local", *map(str, small + step), "--iterations", "20",
         "--backend", "cpu"], stdin=subprocess.DEVNULL, check=True,
        capture_output=True, text=True).stdout.splitlines()
        if '"done"' in line][0])["loss"]
    assert math.isclose(loss_of(*step, "--iterations", 20), local,
                        rel_tol=1e-4)
    assert loss_of("--iterations", 5, "--warm-up", 1) == loss_of(
        "--iterations", 5)
    assert loss_of("--iterations", 5, "--warm-up", 5) > loss_of(
        "--iterations", 5)

    for number, sync in enumerate(("bsp", "asp", "groups")):
        def part(name, iterations, *more, status=0, rate=cosine):
            return train(*small, *rate, "--warm-up", 3, "--workers", 1,
                         "--sync", sync, "--optimiser", "adam",
                         "--checkpoint", folder / f"{number}{name}",
                         "--iterations", iterations, *more, status=status)

        whole = part("whole", 8)["loss"]
        part("part", 4)
        assert math.isclose(part("part", 8)["loss"], whole, rel_tol=1e-5), sync
        [error] = part("part", 9, "--learning-rate", 0.3, status=1)
        assert error.endswith(
            f"{folder}/{number}part/shard-0-of-1.8: of learning rate 0.05, or "
            "another schedule; expected the same, or --new-rate; the last "
            "checkpoint is that of iteration 8"), error
        [error] = part("part", 9, rate=step, status=1)
        assert "expected the same, or --new-rate" in error, error
        part("part", 9, "--learning-rate", 0.3, "--new-rate")
        part("part", 10, "--learning-rate", 0.3)
        [error] = part("part", 12, "--new-rate", "--momentum", 0.5, status=1)
        assert "of another training" in error, error

    for options, error in (
            (["--schedule", "foo"],
             "--schedule: \"foo\" is not one of \"constant\", \"step\", "
             "\"cosine\""),
            (["--schedule", "step"],
             "--schedule-period: missing; expected the iterations of the "
             "schedule")):
        assert trainer("train", *options, status=2) == [
            f"stagecoach-trainer train: {error}"]


def says_that_a_loss_rises(_):
    bad = ["--shape", "16,8,10", "--iterations", 60, "--backend", "cpu",
           "--learning-rate", 500, "--eval-every", 5]
    done = subprocess.run([TRAINER, "train", *map(str, bad)], check=True,
                          stdin=subprocess.DEVNULL, capture_output=True,
                          text=True)
    [line] = done.stderr.splitlines()
    assert line.startswith(
        "stagecoach-trainer train: the loss rises to "), line
    done = subprocess.run([TRAINER, "train", "--format", "json",
                           *map(str, bad)], check=True, text=True,
                          stdin=subprocess.DEVNULL, capture_output=True)
    assert 0 < json.loads(done.stdout.splitlines()[-1])["rose_at"] <= 60
    assert train("--shape", "16,8,10", "--iterations", 30)["rose_at"] is None


def reads_data_as_it_is_distributed(folder):
    """All samples count by default, also those in gzip and in the folders of
    torchvision."""
    plain, packed = folder / "plain", folder / "packed/MNIST/raw"
    write_mnist(plain)
    write_mnist(packed, gzip.open, ".gz")
    write_cifar(folder / "c/cifar-10-batches-bin", gzip.open, ".gz")
    mlp = ["--shape", "784,8,10", "--iterations", 9, "--batch", 16,
           "--eval-every", 9]
    losses = [train(*mlp, "--data", f"mnist:{data}", *more)["loss"]
              for data, more in ((plain, []), (folder / "packed", []),
                                 (plain, ["--samples", 48]),
                                 (plain, ["--samples", 47]))]
    assert losses[0] == losses[1] == losses[2] != losses[3], losses
    wide = ["--shape", "3072,8,10", "--iterations", 2]
    train(*wide, "--data", f"cifar10:{folder}/c")

    path = packed / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:20000])
    (folder / "p/cifar-10-batches-py").mkdir(parents=True)
    (folder / "p/cifar-10-batches-py/data_batch_1").touch()
    (folder / "a.gz").write_bytes(gzip.compress(
        b"".join(b"%d %d:1\n" % (i & 1, i % 99 + 1)
                 for i in range(3000)))[:-200])
    for options, error in (
            ([*mlp, "--data", f"mnist:{folder}/packed"],
             f"{str(path)[:-3]}: truncated or damaged; expected all of the "
             "gzip file"),
            (["--model", "linear", "--features", 99, "--data",
              f"libsvm:{folder}/a"],
             f"{folder}/a: truncated or damaged; expected all of the gzip "
             "file"),
            ([*wide, "--data", f"cifar10:{folder}/p"],
             f"{folder}/p: Python's version of CIFAR-10; expected the binary "
             "one, cifar-10-batches-bin")):
        [line] = train(*options, "--workers", 1, status=1)
        assert line == f"stagecoach-trainer train: worker 0 failed: {error}", (
            line, error)


for test in [pytorch_loads_the_export] if len(sys.argv) > 2 else (
        pytorch_loads_the_export, evaluates_checkpoints,
        rates_follow_schedules, says_that_a_loss_rises,
        reads_data_as_it_is_distributed):
    with tempfile.TemporaryDirectory() as name:
        test(pathlib.Path(name))
    print(test.__name__, flush=True)
