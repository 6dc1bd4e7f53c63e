# SPDX-License-Identifier: Apache-2.0
"""Batch sizes that follow the speeds of the workers (LB-BSP).

BatchSizes is libstagecoach-balance, whose header batch-size-manager.h has the
details.  DdpBalance uses it in PyTorch's DistributedDataParallel; only that
class needs PyTorch.  The dynamic linker finds the library: it is installed, or
its folder is in LD_LIBRARY_PATH.
"""
import ctypes
import functools
import time
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
    pointer, number = ctypes.c_void_p, ctypes.c_double
    numbers = ctypes.POINTER(number)
    for name, result, *arguments in (
            ("manager_create", pointer, ctypes.POINTER(Config),
             ctypes.POINTER(pointer)),
            ("manager_destroy", None, pointer),
            ("manager_next", ctypes.POINTER(ctypes.c_uint32), pointer),
            ("manager_report", ctypes.c_int, pointer, ctypes.c_int,
             ctypes.c_uint32, number, number, number),
            ("meter_create", pointer, ctypes.c_int),
            ("meter_destroy", None, pointer),
            ("meter_read", None, pointer, numbers, numbers)):
        function = getattr(lib, "batch_size_" + name)
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
            raise ValueError(f"batch: {batch}; expected 1 to 4294967295")
        if limits is not None and len(limits) != n_workers:
            raise ValueError(f"limits: {len(limits)}; expected one for each of the "
                             f"{n_workers} workers")
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
            raise ValueError(f"worker: {worker}; expected 0 to {self.n_workers - 1}")


class Meter:
    """Measures what other programs use of this machine; 'threads' of this
    process compute."""

    def __init__(self, threads=1):
        self.meter = ctypes.c_void_p(library().batch_size_meter_create(threads))
        weakref.finalize(self, library().batch_size_meter_destroy, self.meter)

    def read(self):
        """Returns the parts, 0 to 1, of processors and of memory that they
        used since the last call."""
        cpu, memory = ctypes.c_double(), ctypes.c_double()
        library().batch_size_meter_read(self.meter, ctypes.byref(cpu),
                                        ctypes.byref(memory))
        return cpu.value, memory.value


class DdpBalance:
    """Divides batches of 'batch' samples among the workers of
    DistributedDataParallel, in the default process group.

       balance = DdpBalance(256)
       model.register_comm_hook(balance, DdpBalance.hook)
       for x, y in batches:             # The same 256 samples on all workers.
           part = balance.begin()
           loss = loss_of(model(x[part]), y[part])      # A mean.
           optimizer.zero_grad(); loss.backward(); optimizer.step()
           balance.end()

    The hook weights the mean gradient of each worker by its share of the
    batch, so that the update is that of one worker with the whole batch, for
    any division.  A layer that mixes the samples of a batch, such as BatchNorm,
    sees the worker's part only.  Rank 0 has the manager; 'options' are those
    of BatchSizes."""

    def __init__(self, batch, **options):
        import torch
        self.torch, self.dist = torch, torch.distributed
        self.batch, self.n, self.seconds = batch, 0, 0.0
        self.rank, self.world = self.dist.get_rank(), self.dist.get_world_size()
        self.manager = (BatchSizes(self.world, batch, **options)
                        if self.rank == 0 else None)
        self.meter = Meter(torch.get_num_threads())

    def begin(self, sizes=None):
        """Begins an iteration.  Returns the slice of the batch that is this
        worker's.  'sizes': those of all workers for this iteration, with the
        sum of the batch, instead of the manager's.  The manager gives each
        worker a sample at least.  A size here may be 0: such a worker
        runs the iteration all the same, with an empty part, because
        backward() takes part in the exchange."""
        if sizes and (len(sizes), sum(sizes)) != (self.world, self.batch):
            raise ValueError(f"sizes: {sizes}; expected {self.world} with the sum "
                             f"{self.batch}")
        shared = self.torch.tensor(sizes or (
            self.manager.next() if self.rank == 0 else [0] * self.world))
        if not sizes:
            self.dist.broadcast(shared, 0)
        first, self.n = int(shared[:self.rank].sum()), int(shared[self.rank])
        self.began = time.monotonic()
        return slice(first, first + self.n)

    def hook(self, bucket):
        """DDP calls it for each bucket of gradients that backward() has
        computed, the last one last."""
        gradients = bucket.buffer()
        if bucket.is_last():
            self.seconds = time.monotonic() - self.began
        gradients.mul_(self.n / self.batch)
        done = self.dist.all_reduce(gradients, async_op=True).get_future()
        return done.then(lambda future: future.value()[0])

    def end(self, seconds=None, cpu=None, memory=None):
        """Reports the iteration.  By default the time is that from begin() to
        the last gradient, and the loads are measured.  A GPU computes
        asynchronously: pass the 'seconds' that its events measured."""
        loads = [known if given is None else given for given, known in
                 zip((cpu, memory), self.meter.read())]
        mine = self.torch.tensor([self.n, seconds or self.seconds, *loads],
                                 dtype=self.torch.float64)
        reports = ([self.torch.empty_like(mine) for _ in range(self.world)]
                   if self.rank == 0 else None)
        self.dist.gather(mine, reports)
        for worker, (n, *rest) in enumerate(reports or ()):
            self.manager.report(worker, int(n), *map(float, rest))
