# SPDX-License-Identifier: Apache-2.0
"""lldp-replay.py FROM TO: reads the next frame of LLDP that comes in at the
interface FROM, and sends it out of TO three times as it is and three times
with another number in it, of which its code knows nothing."""

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
