#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames with slot tags (wire/slot-tag.h), for tests.

   slot-tags.py send IFACE PORT BYTES [TAG]...
      Sends a UDP packet of BYTES from 10.99.0.1 port PORT to 10.99.0.2 port
      7000, from a packet socket, behind 802.1Q tags, the outermost first.
   slot-tags.py see IFACE
      Prints "PORT BYTES DSCP VLAN" for each such packet that IFACE receives:
      its source port, the bytes of the IP packet and its VLAN, or "-".
   slot-tags.py push IFACE TAG [PORT=TAG]...
      Makes the kernel push a tag on each frame that IFACE sends from now on,
      as the agent's program does: TAG, or that of an IPv4 packet from or to
      PORT.  Exits 77 if the kernel cannot.
"""

import ctypes
import os
import socket
import struct
import subprocess
import sys

PORT = 7000
ETH_P_ALL, VLAN = 3, 0x8100
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_PROG_TYPE_SCHED_CLS, BPF_FUNC_SKB_VLAN_PUSH = 5, 3, 18
LOAD_HALF, SET, COPY, UNEQUAL, CALL, EXIT = 0x28, 0xb7, 0xbf, 0x55, 0x85, 0x95
RTM_NEWTFILTER, CLSACT_EGRESS, TC_ACT_UNSPEC = 44, 0xfffffff3, -1
REQUEST_ACK_REPLACE_CREATE = 0x1 | 0x4 | 0x100 | 0x400


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def send(iface, port, size, *tags):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    s.bind((iface, 0))
    ip = bytearray(struct.pack(
        "!BBHHHBBH4s4s", 0x45, 0, int(size), 1, 0, 64, socket.IPPROTO_UDP, 0,
        socket.inet_aton("10.99.0.1"), socket.inet_aton("10.99.0.2")))
    struct.pack_into("!H", ip, 10, checksum(ip))
    udp = struct.pack("!HHHH", int(port), PORT, int(size) - 20, 0)
    header = b"\2\0\0\0\0\2" + s.getsockname()[4]
    for tag in tags:
        header += struct.pack("!HH", VLAN, int(tag))
    s.send(header + b"\x08\0" + bytes(ip) + udp + bytes(int(size) - 28))


def see(iface):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(ETH_P_ALL))
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.bind((iface, 0))
    print("ready", flush=True)
    while True:
        data, ancillary, _, _ = s.recvmsg(65536, 256)
        if data[12:14] != b"\x08\0" or data[23] != socket.IPPROTO_UDP:
            continue
        port, to = struct.unpack_from("!HH", data, 34)
        if to != PORT:
            continue
        status, _, _, _, _, tci = struct.unpack_from("IIIHHH", ancillary[0][2])
        vlan = tci & 0xfff if status & TP_STATUS_VLAN_VALID else "-"
        print(port, struct.unpack_from("!H", data, 16)[0], data[15] >> 2, vlan,
              flush=True)


def fail(what, error):
    print(f"{what}: {os.strerror(error)}", file=sys.stderr)
    sys.exit(77)


def code_of(tag, rules):
    """Returns the instructions of the program, 8 bytes each."""
    matches = [step for port, value in rules
               for step in ((UNEQUAL, 0, 0, 1, port), (SET, 7, 0, 0, value))]
    steps = [(COPY, 6, 1, 0, 0), (SET, 7, 0, 0, tag), (LOAD_HALF, 0, 0, 0, 12),
             (UNEQUAL, 0, 0, 2 + 2 * len(matches), 0x800),
             (LOAD_HALF, 0, 0, 0, 34)] + matches
    steps += [(LOAD_HALF, 0, 0, 0, 36)] + matches
    steps += [(COPY, 1, 6, 0, 0), (SET, 2, 0, 0, socket.htons(VLAN)),
              (COPY, 3, 7, 0, 0), (CALL, 0, 0, 0, BPF_FUNC_SKB_VLAN_PUSH),
              (SET, 0, 0, 0, TC_ACT_UNSPEC), (EXIT, 0, 0, 0, 0)]
    return b"".join(struct.pack("<BBhi", op, to | source << 4, jump, value)
                    for op, to, source, jump, value in steps)


def load(code):
    """Returns a file descriptor of the program."""
    libc = ctypes.CDLL(None, use_errno=True)
    text = ctypes.create_string_buffer(code)
    licence = ctypes.create_string_buffer(b"GPL")
    attributes = ctypes.create_string_buffer(struct.pack(
        "=IIQQIIQII16s", BPF_PROG_TYPE_SCHED_CLS, len(code) // 8,
        ctypes.addressof(text), ctypes.addressof(licence), 0, 0, 0, 0, 0,
        b"slot_tag"))
    fd = libc.syscall(SYS_BPF[os.uname().machine], BPF_PROG_LOAD, attributes,
                      len(attributes) - 1)
    if fd < 0:
        fail("bpf", ctypes.get_errno())
    return fd


def attribute(kind, data):
    return (struct.pack("HH", 4 + len(data), kind) + data
            + bytes(-len(data) % 4))


def push(iface, tag, *rules):
    rules = [tuple(int(number) for number in rule.split("=")) for rule in rules]
    fd = load(code_of(int(tag), rules))
    subprocess.run(["tc", "qdisc", "add", "dev", iface, "clsact"], check=False,
                   stderr=subprocess.DEVNULL)
    options = (attribute(6, struct.pack("I", fd)) + attribute(7, b"slot_tag\0")
               + attribute(8, struct.pack("I", 1)))     # It returns the action.
    body = struct.pack("BBHiIII", 0, 0, 0, socket.if_nametoindex(iface), 1,
                       CLSACT_EGRESS, 1 << 16 | socket.htons(ETH_P_ALL))
    body += attribute(1, b"bpf\0") + attribute(2, options)
    s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
    s.send(struct.pack("IHHII", 16 + len(body), RTM_NEWTFILTER,
                       REQUEST_ACK_REPLACE_CREATE, 1, 0) + body)
    error = -struct.unpack_from("i", s.recv(4096), 16)[0]
    if error:
        fail(f"filter of {iface}", error)


if __name__ == "__main__":
    {"send": send, "see": see, "push": push}[sys.argv[1]](*sys.argv[2:])
