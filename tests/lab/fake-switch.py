# SPDX-License-Identifier: Apache-2.0
"""fake-switch.py FOLDER CONTROL: emulates misbehaving switches.

Each listens at FOLDER/NAME.mgmt and misbehaves in its own way once the
controller has connected: the attacks of a switch on a controller that the
literature lists (malformed version, corrupted type, no handshake, messages
before it, unsolicited messages, another switch's identity, floods, memory
exhaustion).  After some seconds the controller behind the socket CONTROL
must say of each what is expected, and must have answered all the while.
"""

import asyncio
import json
import pathlib
import random
import struct
import subprocess
import sys
import time

HELLO, ERROR, FEATURES, PACKET_IN, FLOW_REMOVED = 0, 1, 6, 10, 11
FLOW_MOD, BUNDLE_CONTROL, BUNDLE_ADD = 14, 33, 34
PORT_STATUS, MULTIPART, ROLE = 12, 19, 25
FLOWS, GROUPS = 1, 7
SECONDS = 15


def message(kind, body=b"", xid=0, version=4, length=None):
    size = 8 + len(body) if length is None else length
    return struct.pack(">BBHI", version, kind, size, xid) + body


def features(datapath, auxiliary=0):
    return struct.pack(">QIBBHII", datapath, 0, 254, auxiliary, 0, 0, 0)


class Switch:
    """A correct switch; misbehaving ones override a method."""

    datapath = 0x10
    version = 4                 # OpenFlow 1.3; 5 is 1.4, with bundles.
    state = "writing"           # It never reports the wanted flows.
    says = ""                   # Part of the controller's reason.
    soon = False                # The reason is there after 5 s.
    most_dumps = SECONDS        # A second without a cause, and some.
    auxiliary = 0

    def __init__(self, name):
        self.name = name
        self.connections = 0
        self.asked = set()
        self.dumps = 0
        self.began = self.reason_s = None   # Of the connection and its reason.

    def send(self, out, kind, body, xid):
        out.write(message(kind, body, xid, self.version))

    async def begin(self, out):
        self.send(out, HELLO, b"", 0)

    async def answer(self, out, kind, xid, body):
        if kind == 5:
            self.send(out, FEATURES, features(self.datapath, self.auxiliary),
                      xid)
        elif kind == 24:
            self.send(out, ROLE, body, xid)
        elif kind == 18:
            part = struct.unpack(">H", body[:2])[0]
            self.dumps += part == FLOWS
            await self.dump(out, xid, part)
        elif kind == 2:
            self.send(out, 3, body, xid)

    async def dump(self, out, xid, part):
        self.send(out, MULTIPART, struct.pack(">HHI", part, 0, 0), xid)

    def see_reason(self, reason):
        if reason and self.began and self.reason_s is None:
            self.reason_s = time.monotonic() - self.began

    async def serve(self, reader, out):
        self.connections += 1
        self.began = self.began or time.monotonic()
        try:
            await self.begin(out)
            while True:
                head = await reader.readexactly(8)
                _, kind, size, xid = struct.unpack(">BBHI", head)
                body = await reader.readexactly(size - 8)
                self.asked.add(kind)
                await self.answer(out, kind, xid, body)
                await out.drain()
        except (asyncio.IncompleteReadError, ConnectionError,
                asyncio.CancelledError):
            pass
        finally:
            out.close()


class Honest(Switch):
    """Applies nothing, and gives no error."""
    says, soon, most_dumps = "gives no error", True, 7


def dumped(flow):
    """Returns what a dump has of 'flow', the body of a flow_mod."""
    cookie, _, table, _, idle, hard, priority, _, _, _, flags = (
        struct.unpack(">QQBBHHHIIIH", flow[:38]))
    return struct.pack(">HBxIIHHHH4xQQQ", 48 + len(flow[40:]), table, 0, 0,
                       priority, idle, hard, flags, cookie, 0, 0) + flow[40:]


class Obedient(Switch):
    """Applies all changes, so it is dumped before and after them only."""
    datapath, state, most_dumps = 0x1b, "in sync", 4

    def __init__(self, name):
        super().__init__(name)
        self.flows = []

    async def answer(self, out, kind, xid, body):
        if kind == FLOW_MOD:
            self.flows.append(dumped(body))
        await super().answer(out, kind, xid, body)

    async def dump(self, out, xid, part):
        flows = b"".join(self.flows if part == FLOWS else ())
        out.write(message(MULTIPART, struct.pack(">HHI", part, 0, 0) + flows,
                          xid))


class Remover(Obedient):
    """Reports incessantly that others have deleted the controller's flows."""
    datapath, most_dumps = 0x1c, SECONDS + 3

    async def dump(self, out, xid, part):
        await super().dump(out, xid, part)
        if self.dumps == 2:
            asyncio.create_task(self.report(out))

    async def report(self, out):
        while not out.is_closing():
            flow = self.flows[0]
            size = struct.unpack(">H", flow[50:52])[0]
            out.write(message(FLOW_REMOVED, struct.pack(
                ">QHBBIIHHQQ", 0x7374616765000000, 100, 2, 0, 0, 0, 0, 0, 0,
                0) + flow[48:48 + (size + 7) // 8 * 8]))
            await asyncio.sleep(0.05)


class Full(Switch):
    """Refuses all changes: its table is full."""
    datapath, says, soon = 0x1d, "refuses 8 changes: OFPFMFC_TABLE_FULL", True
    most_dumps, error, refuses = 7, (5, 1), (FLOW_MOD,)

    async def answer(self, out, kind, xid, body):
        if kind not in self.refuses:
            await super().answer(out, kind, xid, body)
            return
        head = struct.pack(">BBHI", self.version, kind, 8 + len(body), xid)
        self.send(out, ERROR, struct.pack(">HH", *self.error)
                  + (head + body)[:64], xid)


class FullAtFirst(Obedient):
    """Has space for flows after three seconds, and for one before."""
    datapath, most_dumps, soon = 0x1e, 8, True

    async def answer(self, out, kind, xid, body):
        if (kind == FLOW_MOD and self.flows
                and time.monotonic() < self.began + 3):
            self.send(out, ERROR, struct.pack(">HH", 5, 1), xid)
        else:
            await super().answer(out, kind, xid, body)


def refusing_switches():
    """Full ones with other errors, of OpenFlow 1.3 and 1.4 in an order and
    with what they refuse by a seed."""
    chance = random.Random(4448)
    kinds = []
    for error, name in (
            ((5, 2), "OFPFMFC_BAD_TABLE_ID"), ((1, 9), "OFPBRC_BAD_TABLE_ID"),
            ((2, 0), "OFPBAC_BAD_TYPE"), ((2, 8), "OFPBAC_BAD_QUEUE"),
            ((3, 1), "OFPBIC_UNSUP_INST"), ((5, 4), "OFPFMFC_EPERM"),
            ((99, 7), "an unknown error"), ((17, 13), "OFPBFC_MSG_FAILED"),
            ((1, 1), "OFPBRC_BAD_TYPE")):
        bundles = error[0] == 17 or chance.random() < 0.5
        refuses = (chance.choice([(BUNDLE_CONTROL,), (BUNDLE_ADD,),
                                  (BUNDLE_CONTROL, BUNDLE_ADD)])
                   if bundles else (FLOW_MOD,))
        kinds.append(type(f"Refuses{len(kinds)}", (Full,), {
            "datapath": 0x20 + len(kinds), "version": 5 if bundles else 4,
            "error": error, "refuses": refuses,
            "says": f"refuses {'all' if bundles else 8} changes: {name}"}))
    return kinds


class Twin(Switch):
    """Uses the datapath id of the correct switch."""
    state, says = "refused", "is that of"

    async def begin(self, out):
        await asyncio.sleep(1)
        await super().begin(out)


class Auxiliary(Switch):
    datapath, auxiliary = 0x11, 1
    state, says = "refused", "auxiliary"


class NewerLeader(Switch):
    """Reports a controller of a later generation."""
    datapath = 0x12
    state, says = "refused", "another controller is newer"

    async def answer(self, out, kind, xid, body):
        if kind == 24:
            out.write(message(ERROR, struct.pack(">HH", 11, 0), xid))
        else:
            await super().answer(out, kind, xid, body)


class NoHello(Switch):
    state = "disconnected"

    async def begin(self, out):
        pass


class EarlyMessage(Switch):
    """Answers before the handshake."""
    state = "disconnected"

    async def begin(self, out):
        out.write(message(FEATURES, features(0x13)))


class OldVersion(Switch):
    state = "disconnected"

    async def begin(self, out):
        out.write(message(HELLO, version=1))


class WrongVersion(Switch):
    """Sends messages in a version that was not negotiated."""
    datapath, state = 0x14, "disconnected"

    async def answer(self, out, kind, xid, body):
        out.write(message(FEATURES, features(self.datapath), xid, version=9))


class UnknownType(Switch):
    """Sends messages of unknown types, which must be ignored."""
    datapath = 0x15

    async def answer(self, out, kind, xid, body):
        out.write(message(200, b"x" * 40, xid))
        await super().answer(out, kind, xid, body)


class ShortLength(Switch):
    state = "disconnected"

    async def answer(self, out, kind, xid, body):
        out.write(message(FEATURES, features(0x16), xid, length=4))


class LongLength(Switch):
    """Sends a header with too large a length, which breaks the framing."""
    state = "disconnected"

    async def answer(self, out, kind, xid, body):
        out.write(message(FEATURES, b"\xff" * 65527, xid, length=65535))


class WrongAnswers(Switch):
    """Replies with the right type and transaction id, and an invalid body."""
    datapath, state, says = 0x17, "refused", "the dump is invalid"

    async def dump(self, out, xid, part):
        if part != GROUPS:
            await super().dump(out, xid, part)
            return
        out.write(message(MULTIPART, struct.pack(">HHI", part, 0, 0)
                          + b"\x00\x01rubbis", xid))


class Unasked(Switch):
    """Sends unsolicited flow-removed messages, and invalid port statuses."""
    datapath = 0x18

    async def answer(self, out, kind, xid, body):
        out.write(message(FLOW_REMOVED, b"\0" * 48, 7))
        out.write(message(PORT_STATUS, b"\xff" * 72, 8))
        out.write(message(PORT_STATUS, b"\0" * 10, 9))
        await super().answer(out, kind, xid, body)


class Flood(Switch):
    """Sends packet-in messages, although they are disabled."""
    datapath = 0x19

    async def answer(self, out, kind, xid, body):
        for _ in range(20):
            out.write(message(PACKET_IN, b"\0" * 100) * 500)
            await out.drain()
        await super().answer(out, kind, xid, body)


class EndlessDump(Switch):
    """Sends an endless dump of flows with the controller's cookie."""
    datapath, state, says = 0x1a, "refused", "the dump is too long"

    async def dump(self, out, xid, part):
        if part != FLOWS:
            await super().dump(out, xid, part)
            return
        n = 0
        while True:
            body = b""
            for _ in range(500):
                n += 1
                # Priority n of table n / 65536: each is another flow.
                body += struct.pack(
                    ">HBxIIHHHH4xQQQHH4x", 56, n >> 16 & 0x7f, 0, 0,
                    n & 0xffff, 0, 0, 0, 0x7374616765000000, 0, 0, 1, 4)
            out.write(message(MULTIPART, struct.pack(">HHI", part, 1, 0)
                              + body, xid))
            await out.drain()


class NoAnswer(Switch):
    """Stays connected without sending anything."""
    state = "disconnected"

    async def answer(self, out, kind, xid, body):
        if kind == 2:
            await super().answer(out, kind, xid, body)


SWITCHES = [Honest, Obedient, Remover, Full, FullAtFirst,
            *refusing_switches(), Twin, Auxiliary, NewerLeader, NoHello, EarlyMessage,
            OldVersion, WrongVersion, UnknownType, ShortLength, LongLength,
            WrongAnswers, Unasked, Flood, EndlessDump, NoAnswer]


def ask(control, command):
    began = time.monotonic()
    text = subprocess.run(["ovs-appctl", "-t", control, command], check=True,
                          timeout=10, capture_output=True, text=True).stdout
    return json.loads(text), time.monotonic() - began


def judge(switches, rows, alarms, longest):
    bad = []
    for sw in switches:
        n_bad = len(bad)
        row = rows.get(sw.name, {"state": "missing", "reason": ""})
        if sw.state and (row["state"] != sw.state
                         or sw.says not in row["reason"]):
            bad.append(f"{sw.name}: {row}")
        alarm = sum(f"/{sw.name}.mgmt (" in a["text"] for a in alarms
                    if a["code"] == "switch")
        if alarm != bool(row["reason"]):
            bad.append(f"{sw.name}: {alarm} alarms of {row}")
        if sw.state == "in sync" and row["reason"]:
            bad.append(f"{sw.name}: in sync with a reason: {row}")
        if sw.soon and not (sw.reason_s or 99) <= 5:
            bad.append(f"{sw.name}: a reason after {sw.reason_s} s")
        if sw.dumps > sw.most_dumps:
            bad.append(f"{sw.name}: {sw.dumps} dumps")
        if not sw.connections:
            bad.append(f"{sw.name}: never connected to")
        if sw.state == "refused" and sw.asked & {14, 15, 33, 34}:
            bad.append(f"{sw.name}: was changed all the same")
        if sw.soon:             # It refuses.
            print(f"case switches {'failed' if bad[n_bad:] else 'ok'}: "
                  f"{sw.name} {sw.says}")
        print(f"{sw.name}: {row['state']} {row['reason']} "
              f"({sw.connections} connections, {sw.dumps} dumps)")
    if longest > 2:
        bad.append(f"an answer took {longest:.1f} s")
    print(f"the longest answer took {longest * 1000:.0f} ms")
    return bad


async def main():
    folder, control = pathlib.Path(sys.argv[1]), sys.argv[2]
    switches = [kind(kind.__name__) for kind in SWITCHES]
    longest, rows, alarms = 0, {}, []
    for sw in switches:
        await asyncio.start_unix_server(sw.serve, folder / f"{sw.name}.mgmt")
    print("ready", flush=True)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        await asyncio.sleep(0.2)
        try:
            answer, took = await asyncio.to_thread(ask, control,
                                                   "controller/switches")
        except (subprocess.SubprocessError, OSError):
            if rows:
                sys.exit("FAILED: the controller does not answer any more")
            continue
        longest = max(longest, took)
        rows = {pathlib.Path(row["switch"]).stem: row
                for row in answer["switches"]}
        for sw in switches:
            sw.see_reason(rows.get(sw.name, {"reason": ""})["reason"])
        alarms = (await asyncio.to_thread(ask, control,
                                          "controller/status"))[0]["alarms"]
    bad = judge(switches, rows, alarms, longest)
    print("\n".join(f"FAILED: {line}" for line in bad))
    sys.exit(bool(bad))


if __name__ == "__main__":
    asyncio.run(main())
