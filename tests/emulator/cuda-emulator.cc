/* SPDX-License-Identifier: Apache-2.0 */

/* The runtime library and cuBLAS; see cuda-emulator.h.
 *
 * Device memory is host memory, with guard bytes before and after it that
 * detect writes out of bounds.  Captured work is kept as a list of functions
 * and run by cudaGraphLaunch().
 *
 * Copies to the host arrive late: the bytes are taken when the copy's turn
 * comes, and stored one copy at each cudaStreamQuery() of the stream, or all
 * of them when the program waits. */

#include "tests/emulator/cuda-emulator.h"

#include <algorithm>
#include <cblas.h>
#include <cublas_v2.h>

#include <cstdlib>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

/* Streams and graphs. */

struct graph {
    std::vector<std::function<void()>> work;
};

/* A copy to the host that has not arrived. */
struct arrival {
    char *to;
    std::vector<char> bytes;
};

/* A capture begins with a stream, its origin, and includes other streams that
 * wait for its events.  At its end, all work queued on those must have been
 * joined to the origin by an event. */
struct stream {
    bool captured;
    size_t n_queued, n_joined;  /* Items of the capture; items joined to the
                                 * origin. */
    std::deque<arrival> arrivals;       /* Copies that have not arrived. */
};

struct event {
    struct stream *stream;      /* Captured stream; NULL if not captured. */
    size_t n_queued;            /* Number of queued items when it was
                                 * recorded. */
};

static graph *capturing;
static struct stream *origin;
static std::vector<struct stream *> streams;

/* What cudaGetLastError() returns next. */
static cudaError_t last_error = cudaSuccess;

static void
arrive(struct stream *s)
{
    const arrival &a = s->arrivals.front();

    std::copy(a.bytes.begin(), a.bytes.end(), a.to);
    s->arrivals.pop_front();
}

static void
arrive_all()
{
    for (struct stream *s : streams) {
        while (!s->arrivals.empty()) {
            arrive(s);
        }
    }
}

static cudaError_t
queue(cudaStream_t on, std::function<void()> work)
{
    struct stream *s = (struct stream *) on;

    if (s->captured) {
        s->n_queued++;
        capturing->work.push_back(std::move(work));
    } else {
        work();
    }
    return cudaSuccess;
}

cudaError_t
emulator_launch(dim3 grid, dim3 block, cudaStream_t stream, bool meeting,
                std::function<void()> kernel)
{
    size_t n = (size_t) block.x * block.y * block.z;

    if (!grid.x || !grid.y || grid.y > 65535 || !n || n > 1024) {
        return cudaErrorInvalidConfiguration;
    }
    if (last_error != cudaSuccess) {
        return last_error;      /* A program must clear what it expects. */
    }
    return queue(stream,
                 [=]() { emulator_run(grid, block, meeting, kernel); });
}

/* Does $EMULATOR_REFUSES name this function?  A refusal is the last error,
 * too. */
static bool
refuses(const char *function)
{
    const char *refused = getenv("EMULATOR_REFUSES");
    bool refuse = refused && !strcmp(refused, function);

    last_error = refuse ? cudaErrorNotSupported : last_error;
    return refuse;
}

/* Returns an error while capturing, for calls that wait or allocate. */
static cudaError_t
not_captured()
{
    return capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

/* Memory. */

static const size_t guard_size = 64;
static std::map<char *, size_t> allocations;    /* Device allocations and
                                                 * their sizes in bytes. */

static void
check_guards(const char *p, size_t size)
{
    for (size_t i = 0; i < guard_size; i++) {
        if (p[-1 - (long) i] != 0x5a || p[size + i] != 0x5a) {
            emulator_die("a kernel wrote beside its memory");
        }
    }
}

extern "C" {

cudaError_t
cudaMalloc(void **pp, size_t size)
{
    char *p = (char *) malloc(size + 2 * guard_size);

    if (not_captured() != cudaSuccess) {
        free(p);
        return not_captured();
    }
    memset(p, 0x5a, size + 2 * guard_size);
    *pp = p + guard_size;
    allocations[p + guard_size] = size;
    return cudaSuccess;
}

cudaError_t
cudaFree(void *p_)
{
    char *p = (char *) p_;

    if (p) {
        arrive_all();
        check_guards(p, allocations.at(p));
        allocations.erase(p);
        free(p - guard_size);
    }
    return not_captured();
}

/* $EMULATOR_MEMORY is the size of the device, default 16 GiB. */
cudaError_t
cudaMemGetInfo(size_t *left, size_t *all)
{
    const char *text = getenv("EMULATOR_MEMORY");

    *all = text ? strtoull(text, NULL, 10) : (size_t) 1 << 34;
    *left = *all;
    for (const auto &allocation : allocations) {
        *left -= std::min(*left, allocation.second);
    }
    return cudaSuccess;
}

cudaError_t
cudaHostAlloc(void **pp, size_t size, unsigned int)
{
    *pp = malloc(size);
    return not_captured();
}

cudaError_t
cudaFreeHost(void *p)
{
    arrive_all();
    free(p);
    return cudaSuccess;
}

cudaError_t
cudaMemsetAsync(void *p, int value, size_t size, cudaStream_t stream)
{
    return queue(stream, [=]() { memset(p, value, size); });
}

cudaError_t
cudaMemcpyAsync(void *to_, const void *from_, size_t size,
                cudaMemcpyKind kind, cudaStream_t stream)
{
    const char *from = (const char *) from_;
    char *to = (char *) to_;

    return queue(stream, [=]() {
        if (kind == cudaMemcpyDeviceToHost) {
            ((struct stream *) stream)->arrivals.push_back(
                { to, std::vector<char>(from, from + size) });
        } else if (size) {
            memcpy(to, from, size);
        }
    });
}

/* The device, streams, events. */

cudaError_t
cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t
cudaSetDevice(int device)
{
    return device ? cudaErrorInvalidDevice : cudaSuccess;
}

cudaError_t
cudaDriverGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t
cudaGetDeviceProperties(struct cudaDeviceProp *properties, int)
{
    strcpy(properties->name, "emulator");
    return cudaSuccess;
}

cudaError_t
cudaGetLastError(void)
{
    return std::exchange(last_error, cudaSuccess);
}

const char *
cudaGetErrorString(cudaError_t error)
{
    return error == cudaSuccess ? "no error" : "an emulated error";
}

cudaError_t
cudaStreamCreateWithFlags(cudaStream_t *result, unsigned int)
{
    struct stream *s = new stream();

    streams.push_back(s);
    *result = (cudaStream_t) s;
    return cudaSuccess;
}

cudaError_t
cudaStreamDestroy(cudaStream_t s)
{
    streams.erase(std::find(streams.begin(), streams.end(),
                            (struct stream *) s));
    delete (struct stream *) s;
    return cudaSuccess;
}

cudaError_t
cudaStreamSynchronize(cudaStream_t s_)
{
    struct stream *s = (struct stream *) s_;

    while (!s->arrivals.empty()) {
        arrive(s);
    }
    return not_captured();
}

/* The runtime library keeps "not ready" as the last error, too. */
cudaError_t
cudaStreamQuery(cudaStream_t s_)
{
    struct stream *s = (struct stream *) s_;

    if (s->arrivals.empty()) {
        return not_captured();
    }
    arrive(s);
    return last_error = cudaErrorNotReady;
}

cudaError_t
cudaEventCreateWithFlags(cudaEvent_t *result, unsigned int)
{
    *result = (cudaEvent_t) new event();
    return cudaSuccess;
}

cudaError_t
cudaEventDestroy(cudaEvent_t e)
{
    delete (struct event *) e;
    return cudaSuccess;
}

cudaError_t
cudaEventRecord(cudaEvent_t e_, cudaStream_t s_)
{
    struct event *e = (struct event *) e_;
    struct stream *s = (struct stream *) s_;

    e->stream = s->captured ? s : nullptr;
    e->n_queued = s->n_queued;
    return cudaSuccess;
}

cudaError_t
cudaStreamWaitEvent(cudaStream_t s_, cudaEvent_t e_, unsigned int)
{
    const struct event *e = (const struct event *) e_;
    struct stream *s = (struct stream *) s_;

    if (s->captured && !e->stream) {
        return cudaErrorStreamCaptureIsolation;
    }
    s->captured = s->captured || e->stream;
    if (s == origin && e->stream) {
        e->stream->n_joined = e->n_queued;
    }
    return cudaSuccess;
}

cudaError_t
cudaStreamBeginCapture(cudaStream_t s, cudaStreamCaptureMode)
{
    if (capturing) {
        return cudaErrorIllegalState;
    }
    if (refuses("cudaStreamBeginCapture")) {
        return cudaErrorNotSupported;
    }
    for (struct stream *other : streams) {
        other->captured = false;
        other->n_queued = other->n_joined = 0;
    }
    origin = (struct stream *) s;
    origin->captured = true;
    capturing = new graph;
    return cudaSuccess;
}

cudaError_t
cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *g)
{
    cudaError_t error = cudaSuccess;

    if (!capturing || (struct stream *) s != origin) {
        return cudaErrorIllegalState;
    }
    for (struct stream *other : streams) {
        if (other != origin && other->n_joined != other->n_queued) {
            error = cudaErrorStreamCaptureUnjoined;
        }
        other->captured = false;
    }
    *g = (cudaGraph_t) capturing;
    capturing = nullptr;
    if (error != cudaSuccess) {
        delete (graph *) *g;
        *g = nullptr;
    }
    return error;
}

cudaError_t
cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t g,
                              unsigned long long)
{
    if (refuses("cudaGraphInstantiate")) {
        return cudaErrorNotSupported;
    }
    *exec = (cudaGraphExec_t) new graph(*(graph *) g);
    return cudaSuccess;
}

cudaError_t
cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t)
{
    for (const std::function<void()> &work : ((graph *) exec)->work) {
        work();
    }
    return cudaSuccess;
}

cudaError_t
cudaGraphDestroy(cudaGraph_t g)
{
    delete (graph *) g;
    return cudaSuccess;
}

cudaError_t
cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete (graph *) exec;
    return cudaSuccess;
}

/* cuBLAS. */

static cudaStream_t blas_stream;

static cublasStatus_t
blas_create(cublasHandle_t *handle)
{
    *handle = (cublasHandle_t) malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_destroy(cublasHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_get_version(cublasHandle_t, int *version)
{
    *version = CUBLAS_VERSION;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_set_stream(cublasHandle_t, cudaStream_t stream)
{
    blas_stream = stream;
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_set_workspace(cublasHandle_t, void *, size_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_set_math_mode(cublasHandle_t, cublasMath_t)
{
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t
blas_sgemm(cublasHandle_t, cublasOperation_t t_a, cublasOperation_t t_b,
           int m, int n, int k, const float *alpha_, const float *a, int lda,
           const float *b, int ldb, const float *beta_, float *c, int ldc)
{
    float alpha = *alpha_, beta = *beta_;       /* Host values at the time
                                                 * of the call. */

    queue(blas_stream, [=]() {
        cblas_sgemm(CblasColMajor, t_a ? CblasTrans : CblasNoTrans,
                    t_b ? CblasTrans : CblasNoTrans, m, n, k, alpha, a, lda,
                    b, ldb, beta, c, ldc);
    });
    return CUBLAS_STATUS_SUCCESS;
}

/* Dynamic libraries: cuBLAS is emulated, others do not exist. */

static int cublas_file;

void *
__wrap_dlopen(const char *file, int)
{
    return file && !strncmp(file, "libcublas.so", 12) ? &cublas_file
                                                      : nullptr;
}

void *
__wrap_dlsym(void *, const char *name_)
{
    static const struct {
        const char *name;
        void *function;
    } functions[] = {
        { "cublasCreate", (void *) blas_create },
        { "cublasDestroy", (void *) blas_destroy },
        { "cublasGetVersion", (void *) blas_get_version },
        { "cublasSetStream", (void *) blas_set_stream },
        { "cublasSetWorkspace", (void *) blas_set_workspace },
        { "cublasSetMathMode", (void *) blas_set_math_mode },
        { "cublasSgemm", (void *) blas_sgemm },
    };
    std::string name = name_;

    if (name.size() > 3 && name.substr(name.size() - 3) == "_v2") {
        name.resize(name.size() - 3);
    }
    for (const auto &f : functions) {
        if (name == f.name) {
            return f.function;
        }
    }
    return nullptr;
}

int
__wrap_dlclose(void *)
{
    return 0;
}

} /* extern "C" */
