"""What a process that is no member of any tree can do at a coppice-switch, without an end:

  garbage    connects and sends random bytes
  strangers  connects and says hello to trees that are not there
  silence    connects, says nothing, and connects once more

Usage: switch_flood.py garbage|strangers|silence '["HOST:PORT", ...]'
"""
import collections
import contextlib
import itertools
import json
import os
import socket
import struct
import sys

KIND, ADDRESSES = sys.argv[1], [address.rpartition(":") for address in json.loads(sys.argv[2])]
HELLO = struct.pack("<4sBBBBQIIQII", b"CPSW", 1, 1, 0, 0, 1 << 40, 1, 0, 1, 0, 16) + bytes(16)
SENT = {"garbage": os.urandom(1 << 16), "strangers": HELLO, "silence": b""}[KIND]

opened = collections.deque()
for host, _, port in itertools.cycle(ADDRESSES):
    with contextlib.suppress(OSError):
        link = socket.create_connection((host, int(port)), timeout=1)
        opened.append(link)
        link.sendall(SENT)
        if KIND == "strangers":
            link.recv(200)
    if len(opened) > (500 if KIND == "silence" else 1):
        opened.popleft().close()
