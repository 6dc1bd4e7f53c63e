# SPDX-License-Identifier: Apache-2.0
"""lldp-replay.py FROM TO: reads the next LLDP frame that arrives at the
interface FROM, and sends it out of TO three times unchanged and three times
with a changed number, which its authentication code does not cover."""

import socket
import sys

LLDP = 0x88cc

source = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(LLDP))
source.bind((sys.argv[1], LLDP))
to = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
to.bind((sys.argv[2], 0))
while True:
    frame, address = source.recvfrom(2000)
    if address[2] != socket.PACKET_OUTGOING:
        break
own = frame.index(b"\x02st\x01")
number = own + 4 + 8 + 4 + 8 + 7
forged = frame[:number] + bytes([frame[number] ^ 1]) + frame[number + 1:]
for sent in [frame] * 3 + [forged] * 3:
    to.send(sent)
print(frame.hex())
