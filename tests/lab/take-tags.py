#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes slot tags (wire/slot-tag.h) off the frames that an interface receives,
as a shim does, for tests of the agent.

   take-tags.py IFACE
      Prints "ready", and then "PORT SLOT CONTROL" for each source port of TCP
      and UDP, for each TCP connection, and whenever the tag changes; CONTROL is
      1 in the control class, else 0.  Exits 77 if the kernel has no TCX.
"""

import ctypes
import os
import socket
import struct
import sys

ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA, TP_STATUS_VLAN_VALID = 263, 8, 1 << 4
SYS_BPF = {"x86_64": 321, "aarch64": 280}
BPF_PROG_LOAD, BPF_LINK_CREATE = 5, 28
BPF_PROG_TYPE_SCHED_CLS, BPF_TCX_INGRESS, BPF_FUNC_SKB_VLAN_POP = 3, 46, 19
CALL, SET, EXIT, TCX_NEXT = 0x85, 0xb7, 0x95, -1
SYN = 2


def bpf(command, attributes):
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes)
    fd = libc.syscall(SYS_BPF[os.uname().machine], command, buffer,
                      len(attributes))
    if fd < 0:
        print("bpf:", os.strerror(ctypes.get_errno()), file=sys.stderr)
        sys.exit(77)
    return fd


def take_off(iface):
    code = ctypes.create_string_buffer(b"".join(
        struct.pack("<BBhi", op, 0, 0, value) for op, value in (
            (CALL, BPF_FUNC_SKB_VLAN_POP), (SET, TCX_NEXT), (EXIT, 0))))
    licence = ctypes.create_string_buffer(b"GPL")
    program = bpf(BPF_PROG_LOAD, struct.pack(
        "=IIQQIIQII16sII", BPF_PROG_TYPE_SCHED_CLS, 3,
        ctypes.addressof(code), ctypes.addressof(licence), 0, 0, 0, 0, 0,
        b"take_tags", 0, 0))
    bpf(BPF_LINK_CREATE, struct.pack(
        "=IIIIIIQ", program, socket.if_nametoindex(iface), BPF_TCX_INGRESS, 0,
        0, 0, 0))


def main(iface):
    seen = {}
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                      socket.htons(ETH_P_ALL))
    s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
    s.bind((iface, 0))
    take_off(iface)
    print("ready", flush=True)
    while True:
        data, ancillary, _, address = s.recvmsg(128, 256)
        status, _, _, _, _, tci = struct.unpack_from("IIIHHH", ancillary[0][2])
        if (address[2] == socket.PACKET_OUTGOING
                or data[12:14] != b"\x08\0"
                or data[23] not in (socket.IPPROTO_TCP, socket.IPPROTO_UDP)
                or not status & TP_STATUS_VLAN_VALID):
            continue
        port, = struct.unpack_from("!H", data, 34)
        begins = data[23] == socket.IPPROTO_TCP and data[47] & SYN
        if seen.get(port) != tci or begins:
            seen[port] = tci
            print(port, tci & 0x3ff, tci >> 10 & 1, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
