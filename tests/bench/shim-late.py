#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the queue that frames would cause at a port of a given rate.

   shim-late.py IFACE SECONDS BITS-PER-SECOND

Records the kernel's arrival time of each frame on IFACE, and simulates a port
that sends at the rate.  Prints the median, the 99th percentile and the maximum
of the queued bytes when a frame is added, including the frame, or nothing if
no frame arrived.
"""

import socket
import struct
import sys
import time

ETH_P_ALL = 3
SO_RCVBUFFORCE = 33
SO_TIMESTAMPNS = 35


def main():
    iface, seconds, bps = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                         socket.htons(ETH_P_ALL))
    sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    sock.bind((iface, 0))
    sock.settimeout(0.1)
    end = time.monotonic() + seconds
    frames = []
    while time.monotonic() < end:
        buffer = bytearray(64)
        try:
            n, ancillary, _, source = sock.recvmsg_into(
                [buffer], 64, socket.MSG_TRUNC)
        except TimeoutError:
            continue
        if source[2] != socket.PACKET_OUTGOING:
            stamp = struct.unpack("=qq", ancillary[0][2])
            frames.append((stamp[0] + stamp[1] / 1e9, n))
    queue, last, seen = 0.0, 0.0, []
    for when, length in frames:
        queue = max(0.0, queue - (when - last) * bps / 8) + length
        last = when
        seen.append(queue)
    seen.sort()
    if seen:
        print(*(round(seen[min(len(seen) - 1, int(len(seen) * share))])
                for share in (0.5, 0.99, 1)))


if __name__ == "__main__":
    main()
