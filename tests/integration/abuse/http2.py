"""HTTP/2 by hand, for what no client library does: headers that never end, calls that are taken back
as they are made, answers that nobody reads. Only what a client sends; what comes is thrown away.
RFC 9113 (frames), RFC 7541 (header fields, here always literal and never indexed)."""

import select
import struct

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 8, 9
END_STREAM, ACK, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4  # of SETTINGS
CANCEL = 8
HEADER = 9            # bytes of a frame before its payload
MOST_PAYLOAD = 16384  # of a frame, until the other side allows more
FIRST_WINDOW = 16384  # of a stream of the daemon's (daemon/rpc/server.cc)
FIRST_WINDOW_OF_ALL = 65535  # of a connection


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(
        ">I", stream) + payload


def field(name, value):
    """A header field, literal, names and values shorter than 127 bytes."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def call_headers(path):
    return b"".join(field(name, value) for name, value in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":path", path.encode()),
        (b":authority", b"localhost"), (b"te", b"trailers"),
        (b"content-type", b"application/grpc")))


def settings(window):
    return frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, window))


def call_frames(stream, path, message):
    """A whole unary call, or one with a single request; its message fits into one window."""
    return b"".join(all_call_frames(stream, path, message))


def all_call_frames(stream, path, message):
    """Its frames, one by one."""
    body = b"\0" + struct.pack(">I", len(message)) + message
    frames = [frame(HEADERS, END_HEADERS, stream, call_headers(path))]
    parts = [body[i:i + MOST_PAYLOAD] for i in range(0, len(body), MOST_PAYLOAD)]
    for i, part in enumerate(parts):
        frames.append(frame(DATA, END_STREAM if i + 1 == len(parts) else 0, stream, part))
    return frames


def is_open(connected):
    """Whether the other side has not closed the connection. Reads, and throws away, what came."""
    look = select.poll()
    look.register(connected, select.POLLIN)
    try:
        while look.poll(0):
            if not connected.recv(65536):
                return False
    except OSError:
        return False
    return True


class Connection:
    """A client's end that sends and does not listen."""

    def __init__(self, connected, window=65535):
        """`connected`: a socket. `window`: bytes of each answer that the server may send."""
        self.socket = connected
        self.next_stream = 1
        self.socket.sendall(PREFACE + settings(window) + frame(SETTINGS, ACK, 0))

    def call(self, path, message=b""):
        """Begins a call; its stream."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        room = FIRST_WINDOW
        for sent in all_call_frames(stream, path, message):
            if sent[3] == DATA:
                size = len(sent) - HEADER
                while room < size:
                    room += self.await_window(stream)
                room -= size
            self.socket.sendall(sent)
        return stream

    def call_unfinished(self, path, whole, sent):
        """Begins a call with a message of `whole` bytes, of which so many are sent; their number."""
        stream, self.next_stream = self.next_stream, self.next_stream + 2
        self.socket.sendall(frame(HEADERS, END_HEADERS, stream, call_headers(path)) +
                            frame(DATA, 0, stream, b"\0" + struct.pack(">I", whole)))
        left, room, of_all = sent, FIRST_WINDOW - 5, FIRST_WINDOW_OF_ALL - 5
        while left > 0:
            size = min(left, room, of_all, MOST_PAYLOAD)
            if size > 0:
                self.socket.sendall(frame(DATA, 0, stream, bytes(size)))
                left, room, of_all = left - size, room - size, of_all - size
                continue
            kind, number, payload = self.next_frame()
            if kind == WINDOW_UPDATE and number == stream:
                room += struct.unpack(">I", payload)[0]
            elif kind == WINDOW_UPDATE and number == 0:
                of_all += struct.unpack(">I", payload)[0]
            elif kind in (HEADERS, RST_STREAM) and number == stream:
                raise ConnectionError("the call was refused before it was sent")
        return sent

    def await_window(self, stream):
        """Bytes more of a stream that the other side takes from now on."""
        while True:
            kind, number, payload = self.next_frame()
            if kind == WINDOW_UPDATE and number == stream:
                return struct.unpack(">I", payload)[0]
            if kind in (HEADERS, RST_STREAM) and number == stream:
                raise ConnectionError("the call was refused before it was sent")

    def next_frame(self):
        head = self.receive(HEADER)
        length = struct.unpack(">I", b"\0" + head[:3])[0]
        number = struct.unpack(">I", head[5:9])[0]
        return head[3], number, self.receive(length)

    def receive(self, length):
        got = b""
        while len(got) < length:
            part = self.socket.recv(length - len(got))
            if not part:
                raise ConnectionError("closed")
            got += part
        return got

    def is_open(self):
        return is_open(self.socket)
