# SPDX-License-Identifier: Apache-2.0
"""Vectors of keys, distributed over nodes, that move to the nodes that use them.

This is libstagecoach-keys, whose header key-store.h has the guarantees, with
arrays of NumPy.  The dynamic linker finds the library: it is installed, or its
folder is in LD_LIBRARY_PATH.
"""
import ctypes
import functools
import weakref

import numpy

VARIANTS = ("classic", "classic-local", "localize", "ssp", "essp",
            "localize-messages")        # In the order of enum key_variant.
POINTER, U64 = ctypes.c_void_p, ctypes.c_uint64


class Range(ctypes.Structure):
    """struct key_range"""
    _fields_ = [("n", U64), ("width", ctypes.c_uint32)]


class Config(ctypes.Structure):
    """struct key_store_config"""
    _fields_ = [("variant", ctypes.c_int), ("staleness", ctypes.c_int), ("ranges", ctypes.POINTER(Range)),
                ("n_ranges", ctypes.c_int), ("identity", U64),
                ("names", ctypes.POINTER(ctypes.c_char_p)),
                ("n_nodes", ctypes.c_int), ("rank", ctypes.c_int),
                ("address", ctypes.c_char_p), ("port", ctypes.c_uint16),
                ("n_workers", ctypes.c_int), ("congestion", ctypes.c_char_p),
                ("connect_us", ctypes.c_int64),
                ("heartbeat_timeout_us", ctypes.c_int64),
                ("control", POINTER), ("listening", POINTER),
                ("init", POINTER), ("aux", POINTER)]


class Stats(ctypes.Structure):
    """struct key_store_stats"""
    _fields_ = [(name, U64) for name in
                ("sent", "received", "local", "remote", "moved")]


@functools.lru_cache(maxsize=None)
def library():
    """Returns the functions of the library.  Raises OSError without it."""
    lib = ctypes.CDLL("libstagecoach-keys.so.0")
    many = (POINTER, POINTER, ctypes.c_size_t)
    for name, result, *arguments in (
            ("store_create", POINTER, ctypes.POINTER(Config),
             ctypes.POINTER(POINTER)),
            ("store_destroy", None, POINTER),
            ("store_worker", POINTER, POINTER, ctypes.c_int),
            ("store_stats", None, POINTER, ctypes.POINTER(Stats)),
            ("push", U64, *many, POINTER), ("pull", U64, *many, POINTER),
            ("localize", U64, *many), ("wait", POINTER, POINTER, U64),
            ("wait_all", POINTER, POINTER),
            ("is_done", ctypes.c_bool, POINTER, U64),
            ("is_here", ctypes.c_bool, POINTER, U64),
            ("barrier", POINTER, POINTER), ("clock", POINTER, POINTER),
            ("finish", POINTER, POINTER)):
        function = getattr(lib, "key_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


class KeyStoreError(RuntimeError):
    """A node has died or ended, or a call was wrong."""


def check(error):
    """Raises KeyStoreError for a message of the library."""
    if error:
        text = ctypes.string_at(error).decode()
        free = ctypes.CDLL(None).free
        free.argtypes = [POINTER]
        free(error)
        raise KeyStoreError(text)


class Store:
    """The store of this process, one of the nodes.  Waits for all nodes.

    ranges: pairs (number of keys, values of each); the first begins with key
    0.  All values are 0 at first.  nodes: "HOST:PORT" of each node.  workers:
    threads of this process.  All nodes need the same arguments before 'rank'.
    The other arguments are members of struct key_store_config."""

    def __init__(self, ranges, nodes=("127.0.0.1:0",), variant="localize",
                 staleness=0, identity=0, rank=0, workers=1,
                 address="0.0.0.0", connect_s=60, heartbeat_timeout_s=10):
        if variant not in VARIANTS:
            raise ValueError(f"variant: {variant!r}; expected one of "
                             f"{', '.join(VARIANTS)}")
        if not 0 <= rank < len(nodes):
            raise ValueError(f"rank: {rank}; expected 0 to {len(nodes) - 1}")
        self.widths = numpy.array([width for _, width in ranges])
        self.ends = numpy.cumsum([n for n, _ in ranges], dtype=numpy.uint64)
        # The library keeps the strings.
        self.names = (ctypes.c_char_p * len(nodes))(
            *[name.encode() for name in nodes])
        self.store, self.workers = POINTER(), []
        check(library().key_store_create(Config(
            variant=VARIANTS.index(variant), staleness=staleness, ranges=(Range * len(ranges))(*ranges),
            n_ranges=len(ranges), identity=identity, names=self.names,
            n_nodes=len(nodes), rank=rank, address=address.encode(),
            port=int(nodes[rank].rpartition(":")[2]), n_workers=workers,
            connect_us=int(connect_s * 1e6),
            heartbeat_timeout_us=int(heartbeat_timeout_s * 1e6)), self.store))
        self.close = weakref.finalize(self, library().key_store_destroy,
                                      self.store)
        self.workers = [Worker(self, i) for i in range(workers)]

    def stats(self):
        """Returns a dictionary of this node's counters."""
        stats = Stats()
        library().key_store_stats(self.store, stats)
        return {name: getattr(stats, name) for name, _ in Stats._fields_}


class Operation:
    """A push, pull or localize that may not be done yet."""

    def __init__(self, worker, handle, values=None):
        self.worker, self.handle, self.values = worker, handle, values

    def done(self):
        """Whether wait() would return at once."""
        return library().key_is_done(self.worker.worker, self.handle)

    def wait(self):
        """Waits until it is done.  Returns the values of a pull."""
        check(library().key_wait(self.worker.worker, self.handle))
        return self.values


class Worker:
    """Worker 'i' of a store, for one thread.  Keys are arrays of integers
    without repetition; values are those of the keys one after the other, or
    a row for each key if all have the same number."""

    def __init__(self, store, i):
        self.store, self.ends, self.widths = store, store.ends, store.widths
        self.pointer = library().key_store_worker(store.store, i)

    @property
    def worker(self):
        """The worker of the library, while there is one."""
        if not self.store.close.alive:
            raise KeyStoreError("the store is closed")
        return self.pointer

    def shape(self, keys):
        """Returns the shape of the values of 'keys'."""
        if len(keys) and keys.max() >= self.ends[-1]:
            raise ValueError(f"key: {keys.max()}; expected at most "
                             f"{self.ends[-1] - numpy.uint64(1)}")
        widths = self.widths[numpy.searchsorted(self.ends, keys, "right")]
        if len(widths) and (widths == widths[0]).all():
            return len(keys), widths[0]
        return (widths.sum(),)

    def push(self, keys, values):
        """Adds 'values' to those of 'keys'; they are copied at once."""
        keys = numpy.ascontiguousarray(keys, numpy.uint64)
        values = numpy.ascontiguousarray(values, numpy.float32)
        if values.size != numpy.prod(self.shape(keys)):
            raise ValueError(f"values: {values.size}; expected "
                             f"{numpy.prod(self.shape(keys))}")
        return Operation(self, library().key_push(
            self.worker, keys.ctypes.data, len(keys), values.ctypes.data))

    def pull(self, keys):
        """Reads the values of 'keys', which wait() returns."""
        keys = numpy.ascontiguousarray(keys, numpy.uint64)
        values = numpy.empty(self.shape(keys), numpy.float32)
        return Operation(self, library().key_pull(
            self.worker, keys.ctypes.data, len(keys), values.ctypes.data),
            values)

    def localize(self, keys):
        """Moves 'keys' to this node."""
        keys = numpy.ascontiguousarray(keys, numpy.uint64)
        self.shape(keys)
        return Operation(self, library().key_localize(
            self.worker, keys.ctypes.data, len(keys)))

    def is_here(self, key):
        """Whether 'key' is on this node now, as a hint."""
        return library().key_is_here(self.worker, key)

    def wait_all(self):
        """Waits for all operations of this worker."""
        check(library().key_wait_all(self.worker))

    def barrier(self):
        """Waits for all workers of all nodes."""
        check(library().key_barrier(self.worker))

    def clock(self):
        """Begins the next clock of the variants ssp and essp."""
        check(library().key_clock(self.worker))

    def finish(self):
        """The last call: a barrier, after which nodes may end."""
        check(library().key_finish(self.worker))
