# SPDX-License-Identifier: Apache-2.0
"""Ethernet frames and captures, for the checks of what reads captures."""

import struct

NS = 10**9


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return total ^ 0xffff


def address(text):
    return bytes(int(part) for part in text.split("."))


def ethernet(payload, kind=0x0800, source=1, destination=2):
    mac = b"\x02\0\0\0\0"
    return (mac + bytes([destination]) + mac + bytes([source])
            + struct.pack(">H", kind) + payload)


def ipv4(source, destination, payload, protocol=6, tos=0, options=b""):
    words = 5 + len(options) // 4
    total = (words * 4 + len(payload)) & 0xffff
    head = struct.pack(">BBHHHBBH4s4s", 0x40 | words, tos, total, 7, 0x4000, 64, protocol, 0,
                       address(source), address(destination)) + options
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload


def tcp(source, destination, size, **more):
    """A frame of 'size' bytes from "ADDRESS:PORT" to "ADDRESS:PORT"."""
    a, a_port = source.split(":")
    b, b_port = destination.split(":")
    payload = struct.pack(">HHIIBBHHH", int(a_port), int(b_port), 1, 1, 0x50,
                          0x10, 1000, 0, 0)
    payload += bytes(i % 251 for i in range(size - 54))
    return ethernet(ipv4(a, b, payload, **more))


def unsegmented(source, destination, size, kind):
    """A frame of 'size' bytes as a sender captures it before its card cuts
    it: with 0 as the IP length.  'kind' is "ipv4", "ipv6", or "jumbo"."""
    data = tcp(source, destination, size)
    if kind == "ipv4":
        return data[:16] + b"\0\0" + data[18:]
    ends = b"".join(bytes(12) + data[at:at + 4] for at in (26, 30))
    option = b"\6\0\xc2\4" + struct.pack(">I", size - 54)
    option = option if kind == "jumbo" else b""
    head = struct.pack(">IHBB", 6 << 28, 0, 0 if option else 6, 64)
    payload = data[34:-20 - len(option)]
    return ethernet(head + ends + option + payload, 0x86dd)


def write_pcap(path, frames, link=1, snap=65535):
    """'frames' is a list of (time in ns, bytes)."""
    with open(path, "wb") as out:
        out.write(struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144,
                              link))
        for when, data in frames:
            kept = data[:snap]
            out.write(struct.pack("<IIII", when // NS, when % NS, len(kept),
                                  len(data)) + kept)


def block(kind, body):
    size = 12 + (len(body) + 3) // 4 * 4
    return (struct.pack("<II", kind, size) + body.ljust(size - 12, b"\0")
            + struct.pack("<I", size))


def write_pcapng(path, frames):
    with open(path, "wb") as out:
        out.write(block(0x0a0d0d0a,
                        struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1)))
        out.write(block(1, struct.pack("<HHIHHB3xHH", 1, 0, 0, 9, 1, 9, 0,
                                       0)))
        for when, data in frames:
            out.write(block(6, struct.pack("<IIIII", 0, when >> 32,
                                           when & 0xffffffff, len(data),
                                           len(data)) + data))


def read_pcap(path):
    """Returns a list of (time in ns, bytes, length)."""
    with open(path, "rb") as stream:
        data = stream.read()
    assert data[:4] == struct.pack("<I", 0xa1b23c4d), data[:4]
    frames, at = [], 24
    while at < len(data):
        seconds, ns, kept, length = struct.unpack_from("<IIII", data, at)
        at += 16
        frames.append((seconds * NS + ns, data[at:at + kept], length))
        at += kept
    assert at == len(data)
    return frames
