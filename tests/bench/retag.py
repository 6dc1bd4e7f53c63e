# SPDX-License-Identifier: Apache-2.0
"""retag.py REST ROUNDS HOSTS IFACE...: measures, in a lab, the time from the
beginning or end of a stage to the first packet with the new DSCP of each host.

Cojob "a" has a stage all the time.  In each round cojob "b" has a short stage,
which is ordered first: the DSCP of "a" changes on each of HOSTS hosts (h0, h1,
...) when that stage begins, and again when it ends.  IFACEs are the switch's
ports of these hosts; packets to TCP port 7001 that arrive there belong to "a".
REST is the controller's socket.  Prints the milliseconds of each host, one
number per line.

Uses the kernel's receive timestamps, so that delays of the reader do not
count."""

import http.client
import json
import select
import socket
import struct
import sys
import time

PORT = 7001
TIMESTAMPS = 35                 # SO_TIMESTAMPNS.
PAUSE_S = 0.4                   # More than the policy's retag_ms.
ROUND_S = 3
IP = 0x0800


class Client(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])


def announce(method, path, body=None):
    client = Client("localhost", timeout=5)
    client.request(method, f"/v1/cojobs/{path}",
                   body=None if body is None else json.dumps(body))
    answer = client.getresponse()
    if answer.status >= 300:
        sys.exit(f"retag: {method} {path}: {answer.read().decode()}")
    client.close()


def begin_stage(cojob, rung, iterations):
    announce("PUT", f"{cojob}/stages/{rung}",
             {"iterations": iterations, "jobs": ["j"]})


class Port:
    def __init__(self, iface):
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM,
                                    socket.htons(IP))
        self.socket.setsockopt(socket.SOL_SOCKET, TIMESTAMPS, 1)
        self.socket.bind((iface, IP))
        self.socket.setblocking(False)
        self.dscp = self.old = None     # Of the last packet; before the event.
        self.changed = 0        # ns; of the first packet with a new DSCP.

    def read(self, began):
        """Reads all packets, and notes those of "a" after 'began'."""
        while True:
            try:
                data, control, _, sender = self.socket.recvmsg(128, 128)
            except BlockingIOError:
                return
            end = (data[0] & 15) * 4
            if (sender[2] == socket.PACKET_OUTGOING or data[9] != 6
                    or struct.unpack(">H", data[end + 2:end + 4])[0] != PORT):
                continue
            seconds, ns = struct.unpack("qq", control[0][2][:16])
            self.dscp = data[1] >> 2
            if (self.dscp != self.old and not self.changed
                    and seconds * 10**9 + ns > began):
                self.changed = seconds * 10**9 + ns


def receive(ports, seconds, began=0):
    """Reads for some time, until all ports have changed if an event has
    begun."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not (
            began and all(port.changed for port in ports)):
        select.select([port.socket for port in ports], [], [], 0.005)
        for port in ports:
            port.read(began)


def measure(ports, what, event):
    receive(ports, PAUSE_S)
    for i, port in enumerate(ports):
        if port.dscp is None:
            sys.exit(f"retag: port {i}: no packet of the job")
        port.old, port.changed = port.dscp, 0
    began = time.time_ns()
    event()
    receive(ports, ROUND_S, began)
    for i, port in enumerate(ports):
        if not port.changed:
            sys.exit(f"retag: {what}: port {i} has still DSCP {port.dscp}")
        print(f"{(port.changed - began) / 1e6:.2f}", flush=True)


def main():
    rounds, hosts = map(int, sys.argv[2:4])
    ports = [Port(iface) for iface in sys.argv[4:]]
    for cojob in "ab":
        announce("PUT", cojob, {})
        announce("PUT", f"{cojob}/jobs/j", {
            "model_bytes": 1000000,
            "workers": [{"host": f"h{i}", "role": "worker", "index": i}
                        for i in range(hosts)]})
    begin_stage("a", 0, 10000)
    receive(ports, ROUND_S)
    for rung in range(rounds):
        measure(ports, "begin", lambda: begin_stage("b", rung, 10))
        measure(ports, "end", lambda: announce("DELETE", f"b/stages/{rung}"))


main()
