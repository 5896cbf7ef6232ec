"""One user of the daemon, in a process of its own: the honest one, the administrator, attackers. It
becomes that user before it connects, and then does deeds (honest.py, deeds.py) that it is told on its standard
input, a line of JSON each; what came of one is a line of JSON on its standard output.

  python3 person.py '{"uid": 61001, "group": 0, "address": "unix:...", ...}'"""

import json
import os
import pathlib
import resource
import socket
import ssl
import sys
import threading
import time

REPORT_S = 0.1
BACKOFF_MS = 100    # between two connections that did not come about
CONNECT_MS = 10_000  # the longest that one may take
# A person that grows beyond this is at fault itself; the machine is others', too.
MOST_MEMORY = 6 << 30


class Person:
    def __init__(self, told):
        self.told = told
        self.address = told["address"]
        self.counts = {}
        self.bulk = None  # what the honest one's large calls ask
        self.lock = threading.Lock()

    def become(self):
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
        os.nice(self.told["nice"])
        if os.geteuid() == 0 and self.told["uid"] != 0:
            os.setgroups([self.told["group"]])  # as which it may connect
            os.setgid(self.told["uid"])
            os.setuid(self.told["uid"])

    # --- calls ---

    def channel(self, address=None, credentials=None):
        """A connection of its own."""
        options = [("grpc.use_local_subchannel_pool", 1), ("grpc.enable_http_proxy", 0),
                   ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1),
                   ("grpc.initial_reconnect_backoff_ms", BACKOFF_MS),
                   ("grpc.min_reconnect_backoff_ms", CONNECT_MS),
                   ("grpc.max_reconnect_backoff_ms", BACKOFF_MS)]
        if credentials is None and self.told["certificate"] is not None:
            authority, certificate, key = (pathlib.Path(file).read_bytes() for file in self.told["certificate"])
            credentials = grpc.ssl_channel_credentials(authority, key, certificate)
        if credentials is not None:
            return grpc.secure_channel(address or self.address, credentials, options)
        return grpc.insecure_channel(address or self.address, options)

    def raw(self, channel, method):
        """A method of a connection, from bytes to bytes."""
        path, _, _, is_stream = self.protocol.method(method)
        kind = channel.unary_stream if is_stream else channel.unary_unary
        return kind(path)

    def request(self, method, **fields):
        return self.protocol.method(method)[1](**fields)

    def call(self, channel, method, timeout=60, body=None, **fields):
        """The answer, or a list of all if it is a stream. `body`: the request, in bytes already.
        grpc.RpcError."""
        _, request, response, is_stream = self.protocol.method(method)
        body = body or request(**fields).SerializeToString()
        done = self.raw(channel, method)(body, timeout=timeout)
        if is_stream:
            return [response.FromString(part) for part in done]
        return response.FromString(done)

    # --- connections by hand ---

    def connect(self, address=None):
        """A connected socket; to "HOST:PORT" or a Unix address."""
        address = address or self.address
        if address.startswith("unix:"):
            connected = socket.socket(socket.AF_UNIX)
            connected.connect(address[len("unix:"):])
            return connected
        host, port = address.rsplit(":", 1)
        connected = socket.create_connection((host, int(port)), source_address=(self.told["source"], 0))
        if self.told["certificate"] is None:
            return connected
        authority, certificate, key = self.told["certificate"]
        context = ssl.create_default_context(cafile=authority)
        context.load_cert_chain(certificate, key)
        context.set_alpn_protocols(["h2"])
        return context.wrap_socket(connected, server_hostname=host)

    # --- what is told of it ---

    def count(self, what, many=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + many

    def report_always(self):
        """Until nobody listens any more: then the attack is over, too."""
        while True:
            try:
                self.say({"counts": self.snapshot()})
            except OSError:
                os._exit(1)
            time.sleep(REPORT_S)

    def snapshot(self):
        with self.lock:
            return dict(self.counts)

    def say(self, what):
        with self.lock:
            sys.stdout.write(json.dumps(what) + "\n")
            sys.stdout.flush()


def main():
    person = Person(json.loads(sys.argv[1]))
    person.become()
    person.protocol = Protocol(person.told["protocol"])
    person.say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        if order.get("reports"):
            threading.Thread(target=person.report_always, daemon=True).start()
        try:
            deed = getattr(honest, order["deed"], None) or getattr(deeds, order["deed"])
            outcome = {"outcome": deed(person, **order["with"])}
        except grpc.RpcError as error:
            outcome = {"refused": error.code().name, "words": error.details()}
        except Exception as error:  # whoever gave the order tells it
            outcome = {"failed": f"{type(error).__name__}: {error}"}
        person.say({**outcome, "counts": person.snapshot()})
    os._exit(0)  # calls may still be under way


if __name__ == "__main__":
    import grpc

    import deeds
    import honest
    from protocol import Protocol
    main()
