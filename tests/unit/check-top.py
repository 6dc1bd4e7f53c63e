#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0

"""check-top.py STAGECOACH: `stagecoach top` in a terminal, and without."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fake_agent import FakeAgent

stagecoach = sys.argv[1]
moved = 0


def hosts():
    """Each call finds more bytes moved, the most by the last host."""
    global moved
    moved += 1000000000000
    return {"hosts": [{"host": f"h{i}", "connected": True, "state": "ordered",
                       "moved": {"tx": moved * (i + 1), "rx": 0}}
                      for i in range(40)]}


controller = FakeAgent({
    "controller/status": {"state": "active", "policy": "stage", "hosts": 40},
    "controller/order": {"order": [{"cojob": "asha", "rung": 1,
                                    "iterations": 10, "iterations_left": 4}]},
    "controller/hosts": hosts,
    "controller/ports": {"ports": []},
}, name="controller.ctl")
env = dict(os.environ, STAGECOACH_RUNDIR=controller.rundir)


def run(*options, **others):
    return subprocess.run([stagecoach, "top", *options], text=True,
                          timeout=60, capture_output=True,
                          stdin=subprocess.DEVNULL, **{"env": env, **others})


# Once.
done = run("--once")
assert (done.returncode, done.stderr) == (0, ""), done
assert "\x1b" not in done.stdout, done.stdout
assert "6/10" in done.stdout and "60%" in done.stdout, done.stdout
assert len(re.findall(r"^h\d+ ", done.stdout, re.M)) == 40, done.stdout
assert re.search(r"^h0 .* [1-9]\d*\.\d\d Gbit/s ", done.stdout, re.M), \
    done.stdout

# Neither a terminal nor --once, and no controller.
done = run()
assert done.returncode == 1 and "--once" in done.stderr, done
done = run("--once", env=dict(env, STAGECOACH_RUNDIR="/nowhere"))
assert done.returncode == 3 and "/nowhere" in done.stderr, done


class Terminal:
    """A terminal of 'rows' lines with a running top."""

    def __init__(self, rows):
        self.master, slave = pty.openpty()
        self.resize(rows)
        self.text = ""
        self.process = subprocess.Popen(
            [stagecoach, "top"], env=env, stdin=slave, stdout=slave,
            stderr=slave)

    def resize(self, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, 60, 0, 0))

    def frame(self, until):
        """Returns the lines of the next whole frame for which until()."""
        while True:
            while self.text.count("\x1b[H") < 2:
                assert select.select([self.master], [], [], 60)[0], self.text
                self.text += os.read(self.master, 65536).decode()
            frame = self.text.split("\x1b[H")[1]
            self.text = self.text[self.text.index("\x1b[H") + 3:]
            lines = re.sub("\x1b\\[[KJ]", "", frame).split("\r\n")
            assert all(len(line) <= 60 for line in lines), lines
            if until(lines):
                return lines


def first_host(lines):
    at = next(i for i, line in enumerate(lines) if "jobs send" in line)
    return lines[at + 1].split()[0]


terminal = Terminal(24)
lines = terminal.frame(lambda lines: True)
assert len(lines) <= 24 and first_host(lines) == "h39", lines
terminal.resize(60)
terminal.frame(lambda lines: sum("Gbit/s" in x for x in lines) == 40)

# A controller that does not reply: the last frame stays.
controller.control.close()
os.unlink(os.path.join(controller.rundir, "controller.ctl"))
lines = terminal.frame(lambda lines: lines[2].startswith("OLD DATA: "))
assert first_host(lines) == "h39", lines
terminal.process.send_signal(signal.SIGTERM)
assert terminal.process.wait(60) == -signal.SIGTERM
