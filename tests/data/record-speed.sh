#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# record-speed.sh SECONDS RECORDER: runs RECORDER beside random loads: one to
# four busy loops, for 1 to 6 s each; some loops also allocate memory.  Prints
# the output of RECORDER (record-speed.c).
set -eu
seconds=$1 recorder=$2
python3 - "$seconds" <<'EOF_PYTHON' >&2 &
import multiprocessing
import random
import sys
import time


def busy(seconds, mib):
    held = bytearray(mib << 20)
    for i in range(0, len(held), 4096):
        held[i] = 1
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    seconds = random.uniform(1, 6)
    tasks = [multiprocessing.Process(target=busy,
                                     args=(seconds, random.choice((0, 200))))
             for _ in range(random.randrange(5))]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    if not tasks:
        time.sleep(seconds)
EOF_PYTHON
load=$!
trap 'kill $load 2> /dev/null || true' INT TERM HUP
timeout "$seconds" "$recorder" 1000000 || true
wait
