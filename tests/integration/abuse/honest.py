"""What the honest one and the administrator do: person.py has them do it by its name."""

import time

import grpc

PACE_S = 0.005  # of the honest one, between two calls
HONEST_S = 10   # the longest that it waits for an answer
HONEST_RANKS = 16
BULK_RANKS = 300  # of a problem of a megabyte, with all pairs


def all_to_all(ranks):
    pairs = [(a, b) for a in range(ranks) for b in range(ranks) if a != b]
    return {"rank_count": ranks, "from": [a for a, _ in pairs], "to": [b for _, b in pairs],
            "bytes": [1.0 + (a * 7 + b * 13) % 64 for a, b in pairs]}


def sweep(person):
    person.call(person.channel(), "Fabric.Sweep")  # returns once a fabric is known


def hosts(person, many=0):
    nodes = person.call(person.channel(), "Fabric.ListNodes", page_size=10000).nodes
    return [node.host for node in nodes][:many or None]


def begin(person):
    """The honest one's job, its standing tree and its connection."""
    person.channel_kept = person.channel()
    person.job = person.call(person.channel_kept, "Jobs.RegisterJob", display_name="honest",
                             endpoints=hosts(person, HONEST_RANKS), lease={"seconds": 3600}).id
    person.tree = person.call(person.channel_kept, "Trees.CreateTree", job_id=person.job,
                              type="TREE_TYPE_II").id


def bulk_problem(person):
    """Bytes of a request, about a megabyte, whose answer has nearly as much."""
    if person.bulk is None:
        named = hosts(person, BULK_RANKS)
        person.bulk = person.request(
            "Mapping.GetMappingProblem",
            task={"hosts": named, "pattern": all_to_all(len(named))}).SerializeToString()
    return person.bulk


def day(person, seconds, bulk=False):
    """Calls one after the other; milliseconds of each, of reads, of grants and, if wanted, of large
    ones, the longest of each method, and what failed."""
    times = {"reads": [], "grants": [], **({"bulk": []} if bulk else {})}
    problem = bulk_problem(person) if bulk else None
    slowest = {}
    failures = []
    granted = None
    end = time.monotonic() + seconds

    def timed(kind, channel, method, **fields):
        begun = time.monotonic()
        try:
            return person.call(channel, method, timeout=HONEST_S, **fields)
        except grpc.RpcError as error:
            failures.append(f"{method}: {error.code().name}: {error.details()}")
            return None
        finally:
            took = (time.monotonic() - begun) * 1e3
            times[kind].append(took)
            slowest[method] = max(slowest.get(method, 0), round(took))
            time.sleep(PACE_S)

    step = 0
    while time.monotonic() < end:
        timed("reads", person.channel_kept, "Fabric.GetFabric")
        timed("reads", person.channel_kept, "Trees.GetTree", id=person.tree)
        granted = timed("grants", person.channel_kept, "Trees.CreateTree", job_id=person.job,
                        type="TREE_TYPE_II", ranks=range(8))
        timed("reads", person.channel_kept, "Trees.ListTrees", job_id=person.job)
        if granted is not None:
            timed("grants", person.channel_kept, "Trees.ReleaseTree", id=granted.id)
        if step % 4 == 0:
            with person.channel() as new:
                timed("reads", new, "Fabric.GetFabric")
        if bulk and step % 4 == 2:
            timed("bulk", person.channel_kept, "Mapping.GetMappingProblem", body=problem)
        step += 1
    return {"times": times, "slowest": slowest, "failures": failures}


def connect_only(person):
    """"OK", or the error that the kernel gives."""
    try:
        person.connect().close()
    except OSError as error:
        return type(error).__name__
    return "OK"


def find_tree(person):
    """After a restart of the daemon: the tree that it had granted, in its old state."""
    channel = person.channel()
    person.call(channel, "Trees.GetTree", id=person.tree)
    person.channel_kept = channel


def fill(person, trees):
    """Standing trees of 16 ranks; as many as the administrator may."""
    channel = person.channel()
    job = person.call(channel, "Jobs.RegisterJob", all_endpoints=True, lease={"seconds": 3600})
    while trees > 0:
        some = min(trees, 1000)
        updates = person.call(channel, "Trees.BatchCreateTrees", timeout=300, job_id=job.id,
                              accept_type_i=True, view="TREE_VIEW_SUMMARY",
                              communicators=[{"rank_ranges": [{"first": i % 128, "count": 16}]}
                                             for i in range(some)])
        assert updates[-1].summary.granted == some, updates[-1]
        trees -= some
    return job.id


def end_jobs_of(person, owner):
    """All that are active."""
    channel = person.channel()
    token = ""
    while True:
        page = person.call(channel, "Jobs.ListJobs", page_token=token)
        for job in page.jobs:
            if job.owner == owner and job.state == 1:
                person.call(channel, "Jobs.EndJob", id=job.id)
        token = page.next_page_token
        if not token:
            return


def register(person, request_id):
    """The job's number and owner."""
    job = person.call(person.channel(), "Jobs.RegisterJob", request_id=request_id,
                      endpoints=hosts(person, 2))
    return {"id": job.id, "owner": job.owner}


def events_of(person, object_name):
    """How many events tell of it."""
    return len(person.call(person.channel(), "Fabric.ListEvents", object=object_name).events)


def search(person, ranks, milliseconds):
    """A search of the honest one's."""
    updates = person.call(person.channel(), "Mapping.MapRanks", timeout=120,
                          budget={"nanos": milliseconds * 1_000_000},
                          task={"hosts": hosts(person, ranks), "pattern": all_to_all(ranks)})
    return updates[-1].result.algorithm


def connected_agents(person):
    agents = person.call(person.channel(), "Agents.ListAgents").agents
    return sum(agent.connected for agent in agents)


def measure(person, seconds):
    """Has the agents send as much as may be asked for; gives up after so many seconds."""
    try:
        person.call(person.channel(), "Agents.MeasureDistances", timeout=seconds,
                    bandwidth_bytes=256 << 20, bandwidth_samples=10000)
    except grpc.RpcError as error:
        return error.code().name
    return "OK"
