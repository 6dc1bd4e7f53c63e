#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-train.py TRAINER: "stagecoach-trainer train" shows what it does,
continues from its checkpoints, names what died, and leaves no process.
"""

import fcntl
import json
import math
import os
import pathlib
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

TRAINER = os.path.abspath(sys.argv[1])
SMALL = ["--shape", "16,32,10", "--samples", "512", "--backend", "cpu"]
SLOW = SMALL + ["--sample-cost-us", "2000", "--iterations", "5000"]
SCHEMES = ["bsp", "asp", "ssp", "essp", "backup", "static,ratios=1:2",
           "lbbsp-cpu", "lbbsp-gpu", "flexrr", "groups"]
PATIENCE = 30                   # Seconds.


def argv_of(*options):
    return [TRAINER, "train", *map(str, options)]


def train(*options, status=0):
    """Returns what it prints and its lines on standard error."""
    done = subprocess.run(argv_of(*options), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (options, done)
    return done.stdout, done.stderr.splitlines()


def events_of(*options):
    out, errors = train(*SMALL, "--format", "json", *options)
    assert not errors, errors
    return [json.loads(line) for line in out.splitlines()]


def children_of(pid):
    """Returns the process ids of 'pid's children and theirs."""
    text = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], check=True,
                          capture_output=True, text=True).stdout
    pairs = [tuple(map(int, line.split())) for line in text.splitlines()]
    found = {pid}
    while more := {p for p, parent in pairs if parent in found} - found:
        found |= more
    return found - {pid}


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except OSError:
        return ""


def wait_until(what, condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.02)


class Running:
    """A job that trains for long."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            argv_of(*SLOW, "--format", "json", *options),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["iteration"] >= 3:
                break
        self.children = children_of(self.process.pid)

    def find(self, *words):
        """Returns the child whose command line has these arguments."""
        text = "\0".join(words)
        [child] = [c for c in self.children if f"\0{text}\0" in command_of(c)]
        return child

    def end(self, status):
        """Returns its last event, if there is one, and its standard error; no
        process may be left."""
        out, errors = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == status, (status, out, errors)
        self.await_children()
        return json.loads(out.splitlines()[-1]) if out else None, errors

    def await_children(self):
        wait_until(f"{self.children} end",
                   lambda: not any(TRAINER in command_of(c)
                                   for c in self.children))


def checkpoints(folder):
    return sorted(int(path.name.rpartition(".")[2])
                  for path in pathlib.Path(folder).glob("shard-0-of-*[0-9]"))


def shows_the_job(folder):
    out, errors = train(*SMALL, "--iterations", 25, "--workers", 3,
                        "--checkpoint", f"{folder}/new/kept")
    assert not errors
    assert re.fullmatch(
        r"3 workers and 1 server, bsp, on cpu\n"
        r"done: 25/25, \d+ it/s, \d+ samples/s, loss \d\.\d{4}, "
        r"accuracy 0\.\d{3}, \d+\.\d s\n"
        rf"checkpoint of iteration 25 in {folder}/new/kept\n", out), out

    events = events_of("--iterations", 25, "--servers", 2)
    assert [e["event"] for e in (events[0], events[-1])] == ["started", "done"]
    assert events[0]["workers"] == events[0]["servers"] == 2
    assert events[0]["iteration"] == 0 and events[0]["iterations"] == 25
    progress = [e for e in events if e["event"] == "progress"]
    assert progress[-1]["iteration"] == 25 and progress[-1]["eta_s"] == 0
    done = events[-1]
    assert done["reached"] and done["iteration"] == 25, done
    assert done["iterations_s"] > 0 and done["bytes"] > 0, done


def continues_where_it_ended(folder):
    kept = ["--checkpoint", folder, "--checkpoint-every", 20]
    whole = events_of("--iterations", 70)[-1]
    events_of("--iterations", 50, *kept)
    assert checkpoints(folder) == [40, 50]
    rest = events_of("--iterations", 70, *kept)
    assert rest[0]["iteration"] == 50
    assert (rest[-1]["loss"], rest[-1]["accuracy"]) == (
        whole["loss"], whole["accuracy"])

    out, _ = train(*SMALL, "--iterations", 70, *kept)
    assert f"continues from iteration 70, a checkpoint in {folder}\n" in out
    assert "done: 70/70" in out

    # The last checkpoint is damaged: the one before it counts.
    path = pathlib.Path(folder, "shard-0-of-1.70")
    data = bytearray(path.read_bytes())
    data[500] ^= 1
    path.write_bytes(data)
    out, errors = train(*SMALL, "--iterations", 70, *kept)
    assert "continues from iteration 60," in out, out
    assert len(errors) == 1 and "damaged" in errors[0], errors

    # Another training is refused, and does not begin in silence.
    _, errors = train(*SMALL, "--iterations", 80, "--seed", 2, *kept, status=1)
    assert len(errors) == 1 and "--no-resume" in errors[0], errors
    begun = events_of("--iterations", 10, "--seed", 2, "--no-resume", *kept)
    assert begun[0]["iteration"] == 0
    assert checkpoints(folder) == [0, 10]
    assert events_of("--iterations", 12, "--seed", 2,
                     *kept)[0]["iteration"] == 10


def each_scheme_trains_and_continues(folder):
    for scheme in SCHEMES:
        kept = ["--checkpoint", f"{folder}/{scheme}", "--sync", scheme]
        for iterations in (15, 25):
            out, _ = train(*SMALL, "--iterations", iterations, *kept)
            assert f"done: {iterations}/{iterations}, " in out, (scheme, out)
        assert "continues from iteration 1" in out, (scheme, out)
        # Under essp, gradients that are in flight at the end do not count.
        assert (scheme == "essp"
                or checkpoints(f"{folder}/{scheme}")[-1] == 25), scheme


# A model, its options, and an optimiser: each under bsp, and the one whose
# normalisations have running statistics under each scheme.
NETS = {
    "mlp": (["--shape", "16,32,10"], "momentum"),
    "cifarnet": (["--image", "8x8x3"], "adagrad"),
    "linear": (["--features", "300"], "sgd"),
    "resnet32": (["--image", "8x8x3"], "adam"),
}
# Where workers race, or their shares follow speeds, one worker: an evaluation
# with several is not of the weights that a checkpoint has later.
RESUMED = [(net, scheme, workers) for net, scheme, workers in (
    *((net, "bsp", 2) for net in NETS), ("resnet32", "bsp", 1),
    ("resnet32", "static,ratios=1:2", 2), ("resnet32", "backup", 2),
    *(("resnet32", scheme, 1) for scheme in (
        "asp", "ssp", "essp,staleness=0", "lbbsp-cpu", "lbbsp-gpu", "flexrr",
        "groups")))]


def resumes_exactly(folder):
    """What a job evaluates first is what it evaluated at the checkpoint, and
    it ends as one that was never interrupted."""
    for number, (net, scheme, workers) in enumerate(RESUMED):
        options, optimiser = NETS[net]

        def loss_at(iterations, name):
            out, _ = train(
                "--model", net, *options, "--optimiser", optimiser,
                "--sync", scheme, "--workers", workers, "--batch", 12,
                "--samples", 60, "--validation", 24, "--learning-rate", 0.01,
                "--iterations", iterations, "--backend", "cpu", "--format",
                "json", "--checkpoint", f"{folder}/{number}-{name}")
            events = [json.loads(line) for line in out.splitlines()]
            return events[0]["iteration"], events[-1]["loss"]

        whole, ended, again, rest = (
            loss_at(8, "whole"), loss_at(4, "part"), loss_at(4, "part"),
            loss_at(8, "part"))
        case = (net, scheme, whole, ended, again, rest)
        assert again[0] == rest[0] == 4, case
        assert math.isclose(again[1], ended[1], rel_tol=1e-5), case
        assert (scheme == "backup"      # Its workers race for each update.
                or math.isclose(rest[1], whole[1], rel_tol=1e-5)), case


def names_what_died(folder):
    for words, options, name in (
            (["--rank", "1"], [], "worker 1"),
            (["server"], ["--sync", "ssp"], "server 0")):
        job = Running("--checkpoint", f"{folder}/{words[0]}",
                      "--checkpoint-every", 1, *options)
        os.kill(job.find(*words), signal.SIGKILL)
        _, errors = job.end(1)
        assert re.fullmatch(
            rf"stagecoach-trainer train: {name} was killed by signal 9 "
            r"\(Killed\); the last checkpoint is that of iteration \d+\n",
            errors), errors

    job = Running("--heartbeat-timeout", "0.5")
    os.kill(job.find("--rank", "1"), signal.SIGSTOP)
    _, errors = job.end(1)
    assert re.fullmatch(r"stagecoach-trainer train: (server|worker) 0 failed: "
                        r".*worker 1 is silent.*\n", errors), errors

    _, errors = train(*SMALL, "--data", f"mnist:{folder}/none", status=1)
    assert len(errors) == 1, errors
    assert re.fullmatch(r"stagecoach-trainer train: worker \d failed: .*: No "
                        r"such file or directory", errors[0]), errors


def has_a_limit_of_memory(_):
    # The equal shares of the first iteration fit, those by speed would not.
    out, _ = train(*SMALL, "--iterations", 20, "--workers", 3, "--batch", 90,
                   "--sync", "lbbsp-cpu", "--max-batch", 30)
    assert "done: 20/20" in out
    _, errors = train(*SMALL, "--batch", 90, "--max-batch", 30, status=1)
    assert len(errors) == 1 and re.fullmatch(
        r"stagecoach-trainer train: worker \d failed: --batch: 45 samples for "
        r"this process, --max-batch or its memory allow 30", errors[0]), errors


def ends_by_signals(folder):
    for sync in "asp", "ssp,staleness=0":
        job = Running("--checkpoint", f"{folder}/{sync}", "--sync", sync)
        job.process.send_signal(signal.SIGINT)
        event, errors = job.end(130)
        assert not errors
        assert not event["reached"] and event["iteration"] >= 3, event
    # The checkpoint is that of the slowest worker, which only a bound on
    # staleness keeps at the iteration of worker 0.
    assert checkpoints(f"{folder}/{sync}")[-1] >= 3

    # A second signal does not wait for a worker that hangs.
    job = Running()
    os.kill(job.find("--rank", "1"), signal.SIGSTOP)
    job.process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    assert job.process.poll() is None
    job.process.send_signal(signal.SIGTERM)
    job.end(143)

    # Group servers end, too; and all end when the command is killed.
    job = Running("--sync", "groups")
    assert len(job.children) == 5, job.children
    job.process.kill()
    job.await_children()
    job.process.communicate()


def shows_a_bar_on_a_terminal(_):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 24, 90, 0, 0))
    with subprocess.Popen(
            argv_of(*SMALL, "--sample-cost-us", 500, "--iterations", 40),
            stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
            env={**os.environ, "TERM": "xterm"}) as process:
        os.close(slave)
        text = b""
        while True:
            try:
                text += os.read(master, 65536)
            except OSError:
                break
        assert process.wait() == 0, text
    bars = [bar for bar in text.decode().split("\r") if bar[:1] == "["]
    assert len(bars) >= 3, text
    for bar in bars:
        assert re.fullmatch(r"\[=*>? *\] +\d+%  \d+/40  .* it/s  \d+ samples/s"
                            r"  loss .*\x1b\[K(\r\n)?", bar), bar
        assert len(bar.removesuffix("\x1b[K")) < 90, bar


def refuses_what_does_not_fit(_):
    for options, error in (
            (["--rank", 1], "--rank: not an option of \"train\""),
            (["--no-resume"], "--no-resume: needs --checkpoint, the folder"),
            (["--sync", "groups", "--servers", 2],
             "--servers: \"groups\" has one server"),
            (["--max-batch", 9999999999],
             "--max-batch: \"9999999999\" is not an integer from 0 to "
             "16777216"),
            (["--sync", "static,ratios=1:2:3"],
             "--sync: ratios: 3 for 2 workers"),
            (["--workers", 65], "--workers: \"65\" is not an integer from 1 "
                                "to 64")):
        assert train(*options, status=2) == (
            "", [f"stagecoach-trainer train: {error}"]), options


def help_is_by_subject(_):
    def help_of(*words):
        return subprocess.run([TRAINER, *words, "--help"], check=True,
                              capture_output=True, text=True).stdout

    assert len(help_of().splitlines()) < 40
    for role, subjects in {
            "train": "Job Model Data Synchronisation Network Checkpoints "
                     "Machine",
            "server": "Job Synchronisation Network Checkpoints Machine",
            "worker": "Job Model Data Synchronisation Network Machine",
            "local": "Job Model Data Machine",
            "peer": "Job Model Data Synchronisation Network Machine",
            "node": "Job Model Data Synchronisation Network Machine"}.items():
        assert f"\n  {role} " in help_of(), role
        headings = re.findall(r"^(\w+):$", help_of(role), re.MULTILINE)
        assert headings == subjects.split(), (role, headings)


for test in (shows_the_job, continues_where_it_ended,
             each_scheme_trains_and_continues, resumes_exactly, names_what_died,
             has_a_limit_of_memory,
             ends_by_signals, shows_a_bar_on_a_terminal,
             refuses_what_does_not_fit, help_is_by_subject):
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        test(name)
    print(f"{test.__name__}: {time.monotonic() - began:.1f} s", flush=True)
