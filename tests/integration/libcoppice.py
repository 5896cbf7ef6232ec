"""libcoppice for tests, through ctypes: what a program in any language does with coppice.h."""

import ctypes
import json

OK, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, PERMISSION_DENIED = 0, 3, 4, 5, 7
CANCELLED, UNKNOWN, ALREADY_EXISTS = 1, 2, 6
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, UNAVAILABLE = 8, 9, 14
PRESENT, GRANTED, RELEASED, OVER = 1, 3, 6, 8
WATCH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint32,
                         ctypes.c_char_p)


class JobRequest(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("request_id", ctypes.c_char_p),
                ("display_name", ctypes.c_char_p), ("endpoints", ctypes.POINTER(ctypes.c_char_p)),
                ("endpoint_count", ctypes.c_uint32), ("lease_ms", ctypes.c_uint32),
                ("hold", ctypes.c_int)]


class TreeRequest(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("job", ctypes.c_uint64),
                ("request_id", ctypes.c_char_p), ("ranks", ctypes.POINTER(ctypes.c_uint32)),
                ("rank_count", ctypes.c_uint32), ("operation", ctypes.c_int),
                ("bytes", ctypes.c_uint64), ("type", ctypes.c_int), ("width", ctypes.c_uint32),
                ("advise", ctypes.c_int)]


class Failed(Exception):
    def __init__(self, status, message):
        super().__init__("%d: %s" % (status, message))
        self.status, self.message = status, message


class Client:
    """One coppice_client. Calls raise Failed."""

    def __init__(self, library, agent, timeout_ms=20000):
        self.library = ctypes.CDLL(library)
        self.library.coppice_last_error.restype = ctypes.c_char_p
        self.library.coppice_tree_id.restype = ctypes.c_uint64
        self.library.coppice_tree_id.argtypes = [ctypes.c_void_p]
        self.library.coppice_tree_free.argtypes = [ctypes.c_void_p]
        self.client = ctypes.c_void_p()
        self.listeners = []  # ctypes does not keep them
        self.check(self.library.coppice_open(agent.encode(), timeout_ms,
                                             ctypes.byref(self.client)))

    def check(self, status):
        if status != OK:
            raise Failed(status, self.library.coppice_last_error().decode())

    def close(self):
        self.library.coppice_close(self.client)
        self.client = None

    def register(self, endpoints, hold=False, lease_ms=0):
        texts = (ctypes.c_char_p * len(endpoints))(*[text.encode() for text in endpoints])
        request = JobRequest(size=ctypes.sizeof(JobRequest), endpoints=texts,
                             endpoint_count=len(endpoints), hold=int(hold), lease_ms=lease_ms)
        job = ctypes.c_uint64()
        self.check(self.library.coppice_job_register(self.client, ctypes.byref(request),
                                                     ctypes.byref(job)))
        return job.value

    def end(self, job):
        self.check(self.library.coppice_job_end(self.client, ctypes.c_uint64(job)))

    def create_tree(self, job, ranks=(), kind=0):
        numbers = (ctypes.c_uint32 * len(ranks))(*ranks) if ranks else None
        request = TreeRequest(size=ctypes.sizeof(TreeRequest), job=job, ranks=numbers,
                              rank_count=len(ranks), type=kind)
        tree = ctypes.c_void_p()
        self.check(self.library.coppice_tree_create(self.client, ctypes.byref(request),
                                                    ctypes.byref(tree)))
        number = self.library.coppice_tree_id(tree)
        self.library.coppice_tree_free(tree)
        return number

    def get_tree(self, number):
        tree = ctypes.c_void_p()
        self.check(self.library.coppice_tree_get(self.client, ctypes.c_uint64(number),
                                                 ctypes.byref(tree)))
        self.library.coppice_tree_free(tree)

    def release_tree(self, number):
        self.check(self.library.coppice_tree_release(self.client, ctypes.c_uint64(number)))

    def watch(self, job, listener):
        """`listener(kind, tree, revision, reason)`, on a thread of the library."""
        function = WATCH(lambda _, kind, tree, revision, reason:
                         listener(kind, tree, revision, reason.decode()))
        self.listeners.append(function)
        self.check(self.library.coppice_watch_trees(self.client, ctypes.c_uint64(job), function,
                                                    None))


def held(state_directory):
    """Ids of the jobs in an agent's hold file."""
    try:
        with open(state_directory + "/held_jobs.json", encoding="utf-8") as file:
            return [job["job"] for job in json.load(file)["jobs"]]
    except FileNotFoundError:
        return []
