#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Connects network namespaces by a network that loses packets.

   fault-network.py MODE NETNS...

Creates interface "mgmt" in this namespace, with address 10.99.0.1, and in each
NETNS, with 10.99.0.2 and so on, and forwards frames between them.  Prints
"ready" and runs until it is killed.

The file MODE may change at any time: "LOSS DUPLICATES DELAY_MS NETNS...": the
shares of the frames from and to these NETNS that are lost and duplicated, and
the longest delay, which also changes their order.  Without the file, or with an
empty one, all frames pass at once."""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import sys
import time

TUNSETIFF = 0x400454ca
IFF_TAP, IFF_NO_PI = 2, 0x1000
CLONE_NEWNET = 0x40000000
READ_MODE_S = 0.1

libc = ctypes.CDLL(None, use_errno=True)


def enter(fd):
    if libc.setns(fd, CLONE_NEWNET):
        sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")


def open_interface(number):
    """Returns a descriptor of a new interface in the current namespace."""
    fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(fd, TUNSETIFF, struct.pack("16sH22x", b"mgmt",
                                           IFF_TAP | IFF_NO_PI))
    for command in (f"address add 10.99.0.{number}/24 dev mgmt",
                    "link set mgmt up"):
        subprocess.run(["ip", *command.split()], check=True)
    return fd


class Network:
    def __init__(self, mode_file, names):
        self.mode_file = mode_file
        self.mode_read = 0
        self.loss = self.duplicates = self.delay_s = 0
        self.faulty = set()
        self.late = []          # Heap of (time, number, descriptor, frame).
        self.number = 0
        self.learned = {}       # {MAC address: descriptor}
        self.name = {open_interface(1): None}
        home = os.open("/proc/self/ns/net", os.O_RDONLY)
        for i, name in enumerate(names):
            enter(os.open("/run/netns/" + name, os.O_RDONLY))
            self.name[open_interface(i + 2)] = name
            enter(home)

    def read_mode(self):
        self.mode_read = time.monotonic()
        try:
            with open(self.mode_file, encoding="ascii") as f:
                words = f.read().split()
        except FileNotFoundError:
            words = []
        self.faulty = set(words[3:])
        if len(words) > 3:
            self.loss, self.duplicates = map(float, words[:2])
            self.delay_s = float(words[2]) / 1000

    def send(self, fd, frame, faulty):
        copies = 1
        if faulty:
            copies = random.random() >= self.loss
            copies += copies and random.random() < self.duplicates
        for _ in range(copies):
            delay_s = random.random() * self.delay_s if faulty else 0
            self.number += 1
            heapq.heappush(self.late, (time.monotonic() + delay_s,
                                       self.number, fd, frame))

    def take(self, fd):
        frame = os.read(fd, 1 << 16)
        self.learned[frame[6:12]] = fd
        to = self.learned.get(frame[:6])
        for other in self.name if to is None else [to]:
            if other != fd:
                self.send(other, frame,
                          {self.name[fd], self.name[other]} & self.faulty)

    def run(self):
        poll = select.poll()
        for fd in self.name:
            poll.register(fd, select.POLLIN)
        while True:
            wait_s = (self.late[0][0] - time.monotonic() if self.late
                      else READ_MODE_S)
            for fd, _ in poll.poll(max(0, wait_s * 1000)):
                self.take(fd)
            while self.late and self.late[0][0] <= time.monotonic():
                _, _, fd, frame = heapq.heappop(self.late)
                os.write(fd, frame)
            if time.monotonic() > self.mode_read + READ_MODE_S:
                self.read_mode()


network = Network(sys.argv[1], sys.argv[2:])
print("ready", flush=True)
network.run()
