#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Parts of identity.sh and slowed.sh: attempts to be taken for another."""
import argparse
import ctypes
import json
import os
import socket
import struct
import subprocess
import sys
import time


def hijack(args):
    """Makes a copy of a connection in a network namespace of its own."""
    subprocess.run(f"ip link set lo up; ip addr add {args.near}/32 dev lo;"
                   f"ip addr add {args.far}/32 dev lo", shell=True, check=True)
    server = socket.create_server((args.far, args.far_port))
    client = socket.create_connection(server.getsockname(),
                                      source_address=(args.near, args.port))
    print("ready", flush=True)
    for _ in range(20):
        client.send(b"x")
        time.sleep(0.1)


def become(user):
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def subordinates(args):
    """150 processes of three subordinate users, with a job each unless they
    are 'plain'."""
    made, mapped = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        become(args.user)
        assert not ctypes.CDLL(None).unshare(0x10000000)    # CLONE_NEWUSER
        os.write(made[1], b"x")
        os.read(mapped[0], 1)
        for i in range(150):
            if not os.fork():
                os.setuid(1 + i % 3)
                if not args.plain:
                    os.environ["SLURM_JOB_ID"] = str(100000 + i)
                os.execv(args.program, [args.program, "stay", args.address,
                                        args.port])
        os.wait()
    os.read(made[0], 1)
    with open(f"/proc/{child}/uid_map", "w", encoding="ascii") as stream:
        stream.write("1 200001 1000\n")
    os.write(mapped[1], b"x")
    os.wait()


def rogue(args):
    """A host that speaks for the job of another."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(args.telemetry)
    for i in range(40):
        job = {"job": args.job, "registered": True, "uid": args.user,
               "tx_bytes": i * 10 ** 9, "rx_bytes": i * 10 ** 9}
        if i:
            job["iteration"] = min(25 * i, 1000)
        sock.send(json.dumps({"id": None, "method": "telemetry", "params": [{
            "version": 1, "host": "h9", "state": "fair", "applied": 0,
            "ip_bytes": 0, "default_bytes": 0, "jobs": [job],
            "ports": {"uplink": {"capacity_bps": 10 ** 9}}}]}).encode())
        time.sleep(0.1)


def begin(user, connect):
    pid = os.fork()
    if not pid:
        become(user)
        connect()
        os._exit(0)
    return pid


def reuse(args):
    """A process of Bob's that gets the id of one of Ann's, which has ended;
    prints the port of its connection."""
    def stay():
        os.environ.update(STAGECOACH_COJOB="victim", STAGECOACH_JOB="t0")
        os.dup2(2, 1)
        os.execve(args.program, [args.program, "connect", args.address,
                                 args.port], os.environ)

    def send():
        sock = socket.create_connection((args.address, int(args.port)))
        print(sock.getsockname()[1], flush=True)
        for _ in range(30):
            sock.send(b"x")
            time.sleep(0.1)

    "".encode("idna")           # Bob may not be able to load it.
    for _ in range(20):
        old = begin(args.ann, stay)
        time.sleep(1.5)
        os.kill(old, 9)
        os.waitpid(old, 0)
        with open("/proc/sys/kernel/ns_last_pid", "w",
                  encoding="ascii") as stream:
            stream.write(str(old - 1))
        new = begin(args.bob, send)
        os.waitpid(new, 0)
        if new == old:
            sys.exit(0)
    sys.exit(1)


def spoof(args):
    """Sends a datagram with the address of another."""
    raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
    udp = struct.pack("!HHHH", args.port, 5000, 8, 0)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28, 0, 0, 64, 17, 0,
                     socket.inet_aton(args.source), socket.inet_aton(args.to))
    raw.sendto(ip + udp, (args.to, 0))


def main():
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(required=True)

    def command(run, *positional):
        c = commands.add_parser(run.__name__)
        c.set_defaults(run=run)
        for name, kind in positional:
            c.add_argument(name, type=kind)
        return c

    program = (("program", str), ("address", str), ("port", str))
    command(hijack, ("near", str), ("port", int), ("far", str),
            ("far_port", int))
    command(subordinates, ("user", int), *program).add_argument(
        "--plain", action="store_true")
    command(rogue, ("telemetry", str), ("user", int), ("job", str))
    command(reuse, ("ann", int), ("bob", int), *program)
    command(spoof, ("port", int), ("source", str), ("to", str))
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
