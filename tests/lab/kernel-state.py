#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""kernel-state.py: what an agent has in the kernel.  "sent PINS" prints the
bytes that jobs have sent, and those of them in the default class (struct
identity_traffic), "programs GROUP" the number of programs at a cgroup.
"""

import ctypes
import mmap
import os
import platform
import struct
import sys

CALL = {"x86_64": 321, "aarch64": 280}[platform.machine()]
OBJ_GET, PROG_QUERY = 7, 16
SLOTS, SIZE = 1024, 8 * (7 + 2 * 128)


def bpf(command, attr):
    n = ctypes.CDLL(None, use_errno=True).syscall(
        CALL, command, ctypes.byref(attr), ctypes.c_uint(len(attr)))
    assert n >= 0, os.strerror(ctypes.get_errno())
    return n


def sent(pins):
    path = ctypes.create_string_buffer(f"{pins}/traffic".encode())
    fd = bpf(OBJ_GET, ctypes.create_string_buffer(
        struct.pack("=QII", ctypes.addressof(path), 0, 0), 16))
    slots = mmap.mmap(fd, SLOTS * SIZE, prot=mmap.PROT_READ)
    rows = [struct.unpack_from("=6Q", slots, i * SIZE) for i in range(1, SLOTS)]
    print(sum(row[1] for row in rows), sum(row[4] for row in rows))


def programs(group):
    n = 0
    fd = os.open(group, os.O_RDONLY)
    for place in range(64):
        attr = ctypes.create_string_buffer(
            struct.pack("=IIIIQI", fd, place, 0, 0, 0, 0), 64)
        try:
            bpf(PROG_QUERY, attr)
        except AssertionError:      # No such place.
            continue
        n += struct.unpack_from("=I", attr, 24)[0]
    print(n)


{"sent": sent, "programs": programs}[sys.argv[1]](sys.argv[2])
