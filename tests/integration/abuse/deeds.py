"""Attacks. One goes on until its process is killed, and counts what it did: calls by their outcome,
connections, bytes; and "done": calls that came to something, frames and connections that need no answer.
So a test sees that it was one."""

import itertools
import threading
import time

import grpc

import http2
from honest import HONEST_S, all_to_all, hosts

CALL_S = 60  # the longest that an attacker waits for an answer
EMPTY = 2    # bytes of an empty message or string in a list: its tag and its length


# --- floods ---

def flood(person, method, body, in_flight, connections=1, timeout=CALL_S):
    """Keeps so many calls under way. `body`: bytes, or what makes them from a number."""
    channels = [person.channel() for _ in range(connections)]
    _, _, _, is_stream = person.protocol.method(method)

    def keep(number):
        ask_raw = person.raw(channels[number % connections], method)
        while True:
            request = body(number) if callable(body) else body
            person.count("sent")
            person.count("bytes", len(request))
            try:
                answer = ask_raw(request, timeout=timeout)
                if is_stream:
                    for _ in answer:
                        pass
                person.count("OK")
            except grpc.RpcError as error:
                person.count(error.code().name)
            person.count("done")
            person.count("done")

    threads = [threading.Thread(target=keep, args=[number], daemon=True)
               for number in range(in_flight)]
    for thread in threads:
        thread.start()
    threads[0].join()


def empty_messages(person, method, field, megabytes, in_flight):
    """A list of empty messages or strings: two bytes each here, a whole object there."""
    body = bytes([field << 3 | 2, 0]) * (megabytes * 1_000_000 // EMPTY)
    flood(person, method, body, in_flight, connections=in_flight)


def streams_of_unknown_fields(person, method, megabytes, streams):
    """Streams whose first message is, beside an id, numbers that no field of it has: two bytes each
    here, sixteen there. Answered, they stay open."""
    path, request, _, _ = person.protocol.method(method)
    unknown = bytes([15 << 3, 1]) * (megabytes * 1_000_000 // 2)
    body = request(id="1").SerializeToString() + unknown
    channels = [person.channel() for _ in range(8)]

    def keep(number):
        while True:
            over = threading.Event()

            def say():
                person.count("sent")
                yield body
                over.wait(CALL_S)  # and leaves the stream open

            try:
                for _ in channels[number % len(channels)].stream_stream(path)(say(), timeout=CALL_S):
                    person.count("done")
                person.count("OK")
            except grpc.RpcError as error:
                person.count(error.code().name)
            over.set()
            person.count("done")

    threads = [threading.Thread(target=keep, args=[number], daemon=True) for number in range(streams)]
    for thread in threads:
        thread.start()
    threads[0].join()


def name_a_pattern(person, method, path, pairs, in_flight):
    """A stored pattern that a thousand small requests name. `path`: of fields, to what is placed."""
    person.call(person.channel(), "Mapping.PutPattern", timeout=CALL_S, name="x",
                pattern={"rank_count": pairs + 1, "from": range(pairs), "to": range(1, pairs + 1),
                         "bytes": [0.5] * pairs})
    request = {"traffic": {"pattern_name": "x"}}
    for field in path:
        request = {field: request}
    calls(person, method, in_flight, requests=[request] * 1000)


def bring_idle_ranks(person, ranks, in_flight):
    """Patterns of nobody who talks: a few bytes here, a row for each rank there."""
    calls(person, "Placements.AdvisePlacement", in_flight, requests=[
        {"constraints": {"node_count": 16},
         "traffic": {"ranks_per_node": 65536, "pattern": {"rank_count": ranks}}}] * 1000)


def own_job(person, ranks=0):
    channel = person.channel()
    names = hosts(person)
    return person.call(channel, "Jobs.RegisterJob", lease={"seconds": 3600},
                       endpoints=[names[i % len(names)] for i in range(ranks)] if ranks else names).id


def calls(person, method, in_flight, connections=4, **fields):
    flood(person, method, person.request(method, **fields).SerializeToString(), in_flight,
          connections)


def create_trees(person, in_flight):
    calls(person, "Trees.CreateTree", in_flight, job_id=own_job(person))


def create_and_release(person, streams):
    channels = [person.channel() for _ in range(4)]
    job = own_job(person)

    def keep(number):
        channel = channels[number % len(channels)]
        while True:
            try:
                person.count("sent")
                tree = person.call(channel, "Trees.CreateTree", job_id=job, ranks=range(32))
                person.call(channel, "Trees.ReleaseTree", id=tree.id)
                person.count("OK")
            except grpc.RpcError as error:
                person.count(error.code().name)
            person.count("done")

    threads = [threading.Thread(target=keep, args=[i], daemon=True) for i in range(streams)]
    for thread in threads:
        thread.start()
    threads[0].join()


def batches(person, communicators, ranks, in_flight):
    job = own_job(person, ranks)
    calls(person, "Trees.BatchCreateTrees", in_flight, job_id=job, view="TREE_VIEW_SUMMARY",
          admission="BATCH_ADMISSION_LARGEST", accept_type_i=True,
          communicators=[{"rank_ranges": [{"first": 0, "count": ranks}]}] * communicators)


def advise_placements(person, requests, nodes, in_flight):
    calls(person, "Placements.AdvisePlacement", in_flight,
          requests=[{"constraints": {"node_count": nodes}}] * requests)


def register_jobs(person, ranks, in_flight):
    names = hosts(person)
    request = person.request("Jobs.RegisterJob", lease={"seconds": 5},  # then they are gone again
                             endpoints=[names[i % len(names)] for i in range(ranks)])
    flood(person, "Jobs.RegisterJob", request.SerializeToString(), in_flight, connections=in_flight)


def get_jobs(person, ranks, in_flight):
    calls(person, "Jobs.GetJob", in_flight, id=own_job(person, ranks))


def map_ranks(person, ranks, in_flight, seconds):
    calls(person, "Mapping.MapRanks", in_flight, budget={"seconds": seconds},
          task={"hosts": hosts(person, ranks), "pattern": all_to_all(ranks)})


def evaluate_mappings(person, ranks, in_flight):
    calls(person, "Mapping.EvaluateMapping", in_flight,
          task={"hosts": hosts(person, ranks), "pattern": all_to_all(ranks)})


# --- to a node's agent (proto/coppice/v1/local.proto) ---

def local_frame(call, method, message):
    def varint(number):
        parts = []
        while number > 127:
            parts.append(number & 127 | 128)
            number >>= 7
        return bytes([*parts, number])

    name = method.encode()
    body = b"\x08" + varint(call) + b"\x12" + varint(len(name)) + name + b"\x1a" + varint(len(message)) + message
    return len(body).to_bytes(4, "little") + body


def ask_agent(person, agent):
    """Seconds until the agent has answered who it is."""
    begun = time.monotonic()
    connected = person.connect("unix:" + agent)
    connected.settimeout(HONEST_S)
    connected.sendall(local_frame(1, "/coppice.v1.Local/GetAgent", b""))
    assert connected.recv(4), "the agent has closed the connection"
    connected.close()
    return time.monotonic() - begun


def empty_messages_to_agent(person, agent, megabytes, connections):
    """RegisterJob of empty strings, whole, as the agent's own frames."""
    frame = local_frame(1, "/coppice.v1.Jobs/RegisterJob",
                        bytes([3 << 3 | 2, 0]) * (megabytes * 1_000_000 // EMPTY))

    def keep():
        while True:
            try:
                connected = person.connect("unix:" + agent)
                connected.settimeout(CALL_S)
                person.count("connections")
                connected.sendall(frame)
                person.count("answered" if connected.recv(4) else "closed")
                connected.close()
            except OSError as error:
                person.count(type(error).__name__)
            person.count("done")
            time.sleep(0.01)

    threads = [threading.Thread(target=keep, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    threads[0].join()


# --- connections by hand ---

def unread(person, method, connections, streams, taken_back_s=0, **fields):
    """Calls whose answers are not read, as the window for them is 0; `taken_back_s`: cancelled after
    that time, and made again."""
    path, request, _, _ = person.protocol.method(method)
    body = request(**fields).SerializeToString()
    held = [None] * connections
    while True:
        for i, connection in enumerate(held):
            try:
                if connection is not None and connection.is_open() and not taken_back_s:
                    continue
                if connection is None or not connection.is_open():
                    connected = person.connect()
                    connected.settimeout(CALL_S)
                    held[i] = connection = http2.Connection(connected, window=0)
                    person.count("connections")
                made = [connection.call(path, body) for _ in range(streams)]
                person.count("sent", len(made))
                person.count("done")
                if taken_back_s:
                    time.sleep(taken_back_s)
                    connection.socket.sendall(b"".join(
                        http2.frame(http2.RST_STREAM, 0, stream, bytes([0, 0, 0, http2.CANCEL]))
                        for stream in made))
            except OSError as error:
                held[i] = None
                person.count(type(error).__name__)
        time.sleep(0.05)


def mapping_problems(person, connections, places):
    """Answers of 8 bytes for each pair of places, which nobody reads. Each is made: it is sent from
    the window of the stream on, when the server has read what that holds."""
    unread(person, "Mapping.GetMappingProblem", connections, 1,
           task={"hosts": hosts(person, places),
                 "pattern": {"rank_count": places, "from": [0], "to": [1], "bytes": [1.0]}})


def half_sent(person, method, megabytes, connections):
    """Calls whose message is long, and stops before its end."""
    path, _, _, _ = person.protocol.method(method)
    whole = megabytes * 1_000_000

    def keep():
        while True:
            try:
                connection = http2.Connection(person.connect())
                person.count("connections")
                connection.socket.settimeout(CALL_S)
                person.count("bytes", connection.call_unfinished(path, whole, whole - 1))
                person.count("done")
                while connection.is_open():
                    time.sleep(0.05)
            except OSError as error:
                person.count(type(error).__name__)
                person.count("done")
                time.sleep(0.05)

    threads = [threading.Thread(target=keep, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    threads[0].join()


def headers_without_end(person, kind, connections):
    """HEADERS and then CONTINUATION without END_HEADERS. "fields": many small ones; "value": one that is
    as long as the connection lives."""
    if kind == "fields":
        first, more = b"", http2.field(b"a", b"") * (http2.MOST_PAYLOAD // 4)
    else:
        first = b"\0\x01a\x7f\x81\xff\xff\xff\x07" + b"x" * 1000  # of 2 GiB
        more = b"x" * http2.MOST_PAYLOAD
    continuation = http2.frame(http2.CONTINUATION, 0, 1, more)

    def keep():
        while True:
            try:
                connection = http2.Connection(person.connect())
                person.count("connections")
                connection.socket.settimeout(CALL_S)
                connection.socket.sendall(
                    http2.frame(http2.HEADERS, 0, 1, http2.call_headers("/") + first))
                while True:
                    connection.socket.sendall(continuation)
                    person.count("done")
                    person.count("bytes", len(continuation))
            except OSError as error:
                person.count(type(error).__name__)
                time.sleep(0.01)

    threads = [threading.Thread(target=keep, daemon=True) for _ in range(connections)]
    for thread in threads:
        thread.start()
    threads[0].join()


def rapid_reset(person, method, at_once, **fields):
    """Calls that are taken back in the same breath."""
    path, request, _, _ = person.protocol.method(method)
    body = request(**fields).SerializeToString()
    while True:
        try:
            connection = http2.Connection(person.connect())
            person.count("connections")
            connection.socket.settimeout(CALL_S)
            while connection.is_open():
                breath = []
                for _ in range(at_once):
                    stream, connection.next_stream = connection.next_stream, connection.next_stream + 2
                    breath += [http2.call_frames(stream, path, body),
                               http2.frame(http2.RST_STREAM, 0, stream,
                                           bytes([0, 0, 0, http2.CANCEL]))]
                connection.socket.sendall(b"".join(breath))
                person.count("sent", at_once)
                person.count("done")
        except OSError as error:
            person.count(type(error).__name__)
            time.sleep(0.01)


def idle_connections(person, many, said="", address=None):
    """Connections that say nothing, or not enough (hex), and are opened again when they are closed."""
    words = bytes.fromhex(said)
    held = []
    while True:
        person.counts["held"] = len(held)
        try:
            while len(held) < many:
                connected = person.connect(address)
                if words:
                    connected.sendall(words)
                held.append(connected)
                person.count("done")
        except OSError as error:
            person.count(type(error).__name__)
        time.sleep(0.05)
        still = [connected for connected in held if http2.is_open(connected)]
        person.count("closed", len(held) - len(still))
        held = still


def await_closed(person, many, said=""):
    """Opens so many connections that call nothing, and waits until the daemon has closed all."""
    silent = [person.connect() for _ in range(many)]
    for connected in silent:
        connected.sendall(bytes.fromhex(said))
    deadline = time.monotonic() + CALL_S
    while any(http2.is_open(connected) for connected in silent):
        assert time.monotonic() < deadline, "a silent connection is open still"
        time.sleep(0.05)


# --- one user who takes all ---

def until_refused(person, method, most, requests):
    """Calls with these fields, one after the other, until one is refused or `most` were granted: how
    many were, and the refusal."""
    channel = person.channel()
    for granted, fields in enumerate(itertools.islice(requests, most)):
        try:
            person.call(channel, method, **fields)
        except grpc.RpcError as error:
            return {"granted": granted, "code": error.code().name, "words": error.details()}
    return {"granted": most, "code": "OK", "words": ""}


def take_all_entries(person, most):
    tree = {"job_id": own_job(person), "type": "TREE_TYPE_II"}
    return until_refused(person, "Trees.CreateTree", most, itertools.repeat(tree))


def take_all_jobs(person, most):
    job = {"endpoints": hosts(person, 2), "lease": {"seconds": 86400}}
    return until_refused(person, "Jobs.RegisterJob", most, itertools.repeat(job))


def take_all_nodes(person, most, nodes):
    placement = {"term": {"seconds": 3600}, "placement": {"constraints": {"node_count": nodes}}}
    return until_refused(person, "Placements.CreatePlacement", most, itertools.repeat(placement))


def take_all_pattern_bytes(person, most, ranks):
    pattern = all_to_all(ranks)
    return until_refused(person, "Mapping.PutPattern", most,
                         ({"name": f"mine/{i}", "pattern": pattern} for i in itertools.count()))


def put_pattern(person, name, ranks):
    """How many ranks the pattern has that the person finds under that name then."""
    person.call(person.channel(), "Mapping.PutPattern", name=name, pattern=all_to_all(ranks))
    return person.call(person.channel(), "Mapping.GetPattern", name=name).rank_count


def end_jobs(person, many, ranks):
    """Registers jobs and ends each at once."""
    channel = person.channel()
    names = hosts(person)
    endpoints = [names[i % len(names)] for i in range(ranks)]
    for _ in range(many):
        job = person.call(channel, "Jobs.RegisterJob", endpoints=endpoints)
        person.call(channel, "Jobs.EndJob", id=job.id)


def end_jobs_for_ever(person, ranks):
    """As end_jobs, until it is stopped."""
    channel = person.channel()
    names = hosts(person)
    body = person.request("Jobs.RegisterJob", endpoints=[names[i % len(names)] for i in range(ranks)])
    body = body.SerializeToString()
    while True:
        try:
            job = person.call(channel, "Jobs.RegisterJob", timeout=CALL_S, body=body)
            person.call(channel, "Jobs.EndJob", timeout=CALL_S, id=job.id)
            person.count("OK")
        except grpc.RpcError as error:
            person.count(error.code().name)
        person.count("done")


def take_all(person):
    """Entries, jobs, nodes and bytes of patterns, as much as there is of each, until it is stopped."""
    while True:
        for kind, take in (("entries", lambda: take_all_entries(person, most=1000)),
                           ("jobs", lambda: take_all_jobs(person, most=10_000)),
                           ("nodes", lambda: take_all_nodes(person, most=1000, nodes=8)),
                           ("patterns", lambda: take_all_pattern_bytes(person, most=100, ranks=256))):
            told = take()
            person.count(kind, told["granted"])
            person.count(told["code"])
            person.count("done")
