"""The table of attacks: what an attacker does, and how much of it in the short and in the full tier.

`letter`: of the table in README.md. `deed`: of deeds.py, with the counts as its arguments."""

import dataclasses

import http2
from victim import MEMORY_LIMIT

FABRIC = "model:fat-tree(leaves=16,spines=8,hosts-per-leaf=16)"
# As many places as a mapping problem may have that is answered whole: 134 MB of distances.
LARGE_FABRIC = "model:fat-tree(leaves=64,spines=32,hosts-per-leaf=64)"
# What the administrator has done before: a deed, and its counts in the short and in the full tier.
STANDING_TREES = {"before": ("fill", {"trees": 3000}, {"trees": 20_000}), "entries": 1_000_000}
MANY_EVENTS = {"before": ("end_jobs", {"many": 1000, "ranks": 1}, {"many": 20_000, "ranks": 1})}


@dataclasses.dataclass(frozen=True)
class Attack:
    letter: str
    group: str
    name: str
    deed: str
    short: dict
    full: dict = dataclasses.field(default_factory=dict)  # what differs from `short`
    fabric: str = FABRIC
    before: tuple = ()
    config: str = ""
    entries: int = 64      # of every switch
    descriptors: tuple = (None, None)  # that the daemon may have
    tls: bool = False      # all come over TCP with TLS, else to the Unix socket
    memory_limit: tuple = (MEMORY_LIMIT, MEMORY_LIMIT)
    seconds: tuple = (1.5, 20)
    bulk: bool = False       # the honest one sends and gets a megabyte now and then, too
    holds: bool = False      # leaves grants, which cost memory until the administrator ends their jobs
    certified: bool = False  # with a certificate, else raw; the honest one has one in any case


ATTACKS = [
    # Requests that are small on the wire and large in memory.
    Attack("A", "requests", "advise_placement_of_empty_requests", "empty_messages",
           {"method": "Placements.AdvisePlacement", "field": 1, "megabytes": 24, "in_flight": 1},
           {"megabytes": 40, "in_flight": 4}),
    Attack("A", "requests", "batch_placements_of_empty_requests", "empty_messages",
           {"method": "Placements.BatchCreatePlacements", "field": 1, "megabytes": 24, "in_flight": 1},
           {"megabytes": 40, "in_flight": 4}),
    Attack("A", "requests", "advise_placements_of_one_stored_pattern", "name_a_pattern",
           {"method": "Placements.AdvisePlacement", "path": (), "pairs": 300_000, "in_flight": 2},
           {"pairs": 1_300_000, "in_flight": 8}),
    Attack("A", "requests", "batch_placements_of_one_stored_pattern", "name_a_pattern",
           {"method": "Placements.BatchCreatePlacements", "path": ("placement",), "pairs": 300_000,
            "in_flight": 2},
           {"pairs": 1_300_000, "in_flight": 8}),
    Attack("A", "requests", "advise_placements_of_idle_ranks", "bring_idle_ranks",
           {"ranks": 1 << 20, "in_flight": 2}, {"in_flight": 8}),
    Attack("D", "requests", "register_job_of_empty_endpoints", "empty_messages",
           {"method": "Jobs.RegisterJob", "field": 3, "megabytes": 66, "in_flight": 1},
           {"in_flight": 8}),
    Attack("floods", "requests", "register_jobs_of_a_million_ranks", "register_jobs",
           {"ranks": 1_000_000, "in_flight": 4}, {"in_flight": 16}),
    Attack("floods", "requests", "streams_of_unknown_fields", "streams_of_unknown_fields",
           {"method": "Jobs.KeepAlive", "megabytes": 4, "streams": 64}, {"streams": 256}, bulk=True),
    Attack("floods", "requests", "streams_of_half_messages", "half_sent",
           {"method": "Jobs.KeepAlive", "megabytes": 30, "connections": 48}, {"connections": 200},
           seconds=(4, 20), bulk=True),
    Attack("floods", "requests", "advise_placements_in_flight", "advise_placements",
           {"requests": 1000, "nodes": 64, "in_flight": 16}, {"in_flight": 64}),

    # Answers that are large, or that nobody reads.
    Attack("C", "answers", "mapping_problems_unread", "mapping_problems",
           {"connections": 24, "places": 4096}, {"connections": 60}, fabric=LARGE_FABRIC,
           seconds=(4, 20), bulk=True),
    Attack("E", "answers", "list_trees_taken_back", "unread",
           {"method": "Trees.ListTrees", "connections": 2, "streams": 100, "taken_back_s": 0.3},
           {"connections": 6, "taken_back_s": 2}, **STANDING_TREES),
    Attack("E", "answers", "list_trees_unread", "unread",
           {"method": "Trees.ListTrees", "connections": 3, "streams": 100},
           {"connections": 6}, **STANDING_TREES),
    Attack("K", "answers", "list_trees_in_flight", "calls",
           {"method": "Trees.ListTrees", "in_flight": 32}, **STANDING_TREES),
    Attack("floods", "answers", "list_events_in_flight", "calls",
           {"method": "Fabric.ListEvents", "in_flight": 32, "page_size": 10000}, **MANY_EVENTS),
    Attack("floods", "answers", "get_jobs_of_a_million_ranks", "get_jobs",
           {"ranks": 1_000_000, "in_flight": 4}, {"in_flight": 32}, holds=True),
    Attack("K", "answers", "watch_trees_unread", "unread",
           {"method": "Trees.WatchTrees", "connections": 5, "streams": 100},
           {"connections": 20}, **STANDING_TREES),
    Attack("floods", "answers", "watch_events_unread", "unread",
           {"method": "Fabric.WatchEvents", "connections": 5, "streams": 100, "after_id": 0},
           {"connections": 20}, **MANY_EVENTS),

    # Calls that take long.
    Attack("K", "calls", "evaluate_mappings_in_flight", "evaluate_mappings",
           {"ranks": 256, "in_flight": 32}),
    Attack("H", "calls", "map_ranks_in_flight", "map_ranks",
           {"ranks": 64, "in_flight": 18, "seconds": 600}),
    Attack("floods", "calls", "create_trees_in_flight", "create_trees", {"in_flight": 64}, holds=True),
    Attack("floods", "calls", "create_and_release_trees", "create_and_release", {"streams": 64}),
    Attack("floods", "calls", "batches_in_flight", "batches",
           {"communicators": 1024, "ranks": 1024, "in_flight": 16}, {"in_flight": 67}, holds=True),
    Attack("G", "calls", "jobs_that_are_ended_at_once", "end_jobs_for_ever",
           {"ranks": 100_000}, {"ranks": 1_000_000}),
    Attack("J", "calls", "all_that_there_is", "take_all", {}, holds=True),

    # Headers that never end. Over TLS nobody can look before Debian's gRPC, which keeps them all: the daemon
    # may be ended at its limit there.
    Attack("B", "headers", "headers_of_small_fields_without_end", "headers_without_end",
           {"kind": "fields", "connections": 4}),
    Attack("B", "headers", "header_value_without_end", "headers_without_end",
           {"kind": "value", "connections": 4}),
    Attack("B", "headers", "header_value_without_end_over_tls", "headers_without_end",
           {"kind": "value", "connections": 4}, memory_limit=(300_000_000, 2_000_000_000),
           tls=True, certified=True),
    Attack("floods", "headers", "streams_of_half_messages_over_tls", "half_sent",
           {"method": "Jobs.KeepAlive", "megabytes": 30, "connections": 48}, {"connections": 200},
           memory_limit=(300_000_000, 2_000_000_000), tls=True, certified=True),

    # Connections.
    Attack("F", "connections", "silent_connections", "idle_connections",
           {"many": 2990}, {"many": 19_990}, descriptors=(3000, 20_000)),
    Attack("F", "connections", "idle_connections", "idle_connections",
           {"many": 2990, "said": (http2.PREFACE + http2.settings(65535)).hex()},
           {"many": 19_990}, descriptors=(3000, 20_000)),
    Attack("F", "connections", "silent_connections_over_tcp", "idle_connections",
           {"many": 2990}, {"many": 19_990}, descriptors=(3000, 20_000), tls=True),
    Attack("floods", "connections", "rapid_reset", "rapid_reset",
           {"method": "Fabric.GetFabric", "at_once": 100}, {}),
    Attack("floods", "connections", "rapid_reset_of_listings", "rapid_reset",
           {"method": "Trees.ListTrees", "at_once": 100}, **STANDING_TREES),
    Attack("floods", "connections", "half_open_tls", "idle_connections",
           # The head of a ClientHello of 512 bytes.
           {"many": 1000, "said": "160301020001" + "0001fc0303" + "00" * 20}, {"many": 10_000},
           tls=True),
]
