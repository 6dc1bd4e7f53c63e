#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Frames with slot tags (wire/slot-tag.h), for test-shim-tags.sh.

   slot-tags.py send IFACE PORT BYTES [TAG]...
      Sends a UDP packet of BYTES from 10.99.0.1 port PORT to 10.99.0.2 port
      7000, from a packet socket, behind 802.1Q tags, the outermost first.
   slot-tags.py see IFACE
      Prints "PORT BYTES DSCP VLAN" for each such packet that IFACE receives:
      its source port, the bytes of the IP packet and its VLAN, or "-".
   slot-tags.py push IFACE TAG
      Makes the kernel push a tag on each frame that IFACE sends, until it is
      killed, as the agent's program does.  Prints "ready".  Exits 77 if the
      kernel has no TCX.
"""

import ctypes
import os
import signal
import socket
import struct
import sys

PORT = 7000
ETH_P_ALL, VLAN = 3, 0x8100
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
BPF_PROG_TYPE_SCHED_CLS, BPF_TCX_EGRESS, BPF_FUNC_SKB_VLAN_PUSH = 3, 47, 18


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


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes)
    fd = libc.syscall(SYS_BPF[os.uname().machine], command, buffer,
                      len(attributes))
    if fd < 0:
        print("bpf:", os.strerror(ctypes.get_errno()), file=sys.stderr)
        sys.exit(77)
    return fd


def push(iface, tag):
    code = ctypes.create_string_buffer(b"".join(
        struct.pack("<BBhi", op, to, 0, value) for op, to, value in (
            (0xb7, 2, socket.htons(VLAN)),      # r2, protocol
            (0xb7, 3, int(tag)),                # r3, control information
            (0x85, 0, BPF_FUNC_SKB_VLAN_PUSH),
            (0xb7, 0, -1),                      # r0, TCX_NEXT
            (0x95, 0, 0))))
    licence = ctypes.create_string_buffer(b"GPL")
    program = bpf(BPF_PROG_LOAD, struct.pack(
        "=IIQQIIQII16sII", BPF_PROG_TYPE_SCHED_CLS, 5,
        ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0,
        b"slot_tag", 0, 0))
    bpf(BPF_LINK_CREATE, struct.pack(
        "=IIIIIIQ", program, socket.if_nametoindex(iface), BPF_TCX_EGRESS, 0,
        0, 0, 0))
    print("ready", flush=True)
    signal.pause()


if __name__ == "__main__":
    {"send": send, "see": see, "push": push}[sys.argv[1]](*sys.argv[2:])
