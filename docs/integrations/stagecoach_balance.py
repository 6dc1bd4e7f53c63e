# SPDX-License-Identifier: Apache-2.0
"""Batch sizes that follow the speeds of the workers (LB-BSP).

BatchSizes is libstagecoach-balance, whose header batch-size-manager.h has the
details.  The dynamic linker finds the library: it is installed, or its folder
is in LD_LIBRARY_PATH.
"""
import ctypes
import functools
import weakref

MODES = ("cpu", "gpu")          # In the order of enum batch_size_mode.


class Config(ctypes.Structure):
    """struct batch_size_config"""
    _fields_ = [("mode", ctypes.c_int), ("n_workers", ctypes.c_int),
                ("batch", ctypes.c_uint32),
                ("max", ctypes.POINTER(ctypes.c_uint32)),
                ("predictor", ctypes.c_char_p), ("seed", ctypes.c_uint64)]


@functools.lru_cache(maxsize=None)
def library():
    """Returns the functions of the library.  Raises OSError without it."""
    lib = ctypes.CDLL("libstagecoach-balance.so.0")
    manager, number = ctypes.c_void_p, ctypes.c_double
    for name, result, *arguments in (
            ("create", ctypes.c_void_p, ctypes.POINTER(Config),
             ctypes.POINTER(manager)),
            ("destroy", None, manager),
            ("next", ctypes.POINTER(ctypes.c_uint32), manager),
            ("report", ctypes.c_int, manager, ctypes.c_int, ctypes.c_uint32,
             number, number, number)):
        function = getattr(lib, "batch_size_manager_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


class BatchSizes:
    """A manager: divides 'batch' samples among 'n_workers'.

    mode: "cpu" if times are proportional to samples, otherwise "gpu".
    limits: largest batch of each worker, 0 for no limit.
    Raises ValueError if these do not fit together."""

    def __init__(self, n_workers, batch, mode="cpu", limits=None,
                 predictor=None, seed=1):
        if mode not in MODES:
            raise ValueError(f"mode: {mode!r}, allowed: {', '.join(MODES)}")
        if not 0 < batch < 1 << 32:
            raise ValueError(f"batch: {batch}, 1 to 4294967295 is allowed")
        if limits is not None and len(limits) != n_workers:
            raise ValueError(f"limits: {len(limits)}, one for each of the "
                             f"{n_workers} workers is allowed")
        self.n_workers, self.manager = n_workers, ctypes.c_void_p()
        error = library().batch_size_manager_create(Config(
            MODES.index(mode), n_workers, batch,
            limits and (ctypes.c_uint32 * n_workers)(*limits),
            predictor and predictor.encode(), seed), self.manager)
        if error:
            text = ctypes.string_at(error).decode()
            free = ctypes.CDLL(None).free
            free.argtypes = [ctypes.c_void_p]
            free(error)
            raise ValueError(text)
        weakref.finalize(self, library().batch_size_manager_destroy,
                         self.manager)

    def next(self):
        """Returns the list of sizes of the next iteration."""
        sizes = library().batch_size_manager_next(self.manager)
        return sizes[:self.n_workers]

    def report(self, worker, n, seconds, cpu=0.0, memory=0.0):
        """Reports that 'worker' took 'seconds' for 'n' samples, while other
        programs used these parts, 0 to 1, of its machine."""
        if library().batch_size_manager_report(self.manager, worker, n,
                                               seconds, cpu, memory):
            raise ValueError(f"worker: {worker}, 0 to {self.n_workers - 1} "
                             "is allowed")
