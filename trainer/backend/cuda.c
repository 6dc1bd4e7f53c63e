/* SPDX-License-Identifier: Apache-2.0 */

/* NVIDIA GPU: device, memory, products, copies, recordings.
 *
 * The runtime library is linked statically, so that the program starts on
 * machines without driver and toolkit and reports that there is no device.
 * cuBLAS is more than half a gigabyte and is loaded only when there is a
 * device to use it. */

#include "trainer/backend/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define TEXT_OF(X) #X
#define TEXT(X) TEXT_OF(X)
#define CUBLAS_FILE "libcublas.so." TEXT(CUBLAS_VER_MAJOR)
#define WORKSPACE ((size_t) 32 << 20)   /* Recommended size for an H100. */
#define LATE_US 30000000        /* A part that takes longer is reported. */

void
cuda_check(struct backend *b, const char *what, cudaError_t error)
{
    struct cuda *cuda = cuda_cast(b);

    if (error != cudaSuccess && !cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure, "%s: %s", what,
                 cudaGetErrorString(error));
    }
}

void
cuda_fail(struct cuda *cuda, const char *what, const char *library, int status)
{
    if (!cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure, "%s: %s status %d",
                 what, library, status);
    }
}

static const char *
cuda_failure(const struct backend *b)
{
    const struct cuda *cuda = cuda_cast(b);

    return cuda->failure[0] ? cuda->failure : NULL;
}

/* Opening. */

static __thread char refusal[256];      /* See struct backend_class, why(). */

static const char *
cuda_why(void)
{
    return refusal;
}

/* Keeps the reason of a failure of open().  Returns 'error'. */
static int __attribute__((format(printf, 2, 3)))
refuse(int error, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(refusal, sizeof refusal, format, arguments);
    va_end(arguments);
    return error;
}

/* Returns 0 if 'error' is cudaSuccess, else an error number. */
static int
accept(cudaError_t error, const char *what)
{
    return error == cudaSuccess
           ? 0
           : refuse(error == cudaErrorMemoryAllocation ? ENOMEM : EIO,
                    "%s: %s", what, cudaGetErrorString(error));
}

/* The same for cuBLAS. */
static int
accept_blas(cublasStatus_t status, const char *what)
{
    return status == CUBLAS_STATUS_SUCCESS
           ? 0 : refuse(EIO, "%s: cuBLAS status %d", what, status);
}

/* Stores the address of a function.  Returns false if the library has no such
 * function. */
static bool
load(struct cuda_blas *blas, const char *name, void *function)
{
    *(void **) function = dlsym(blas->file, name);
    return *(void **) function;
}

static int
load_all(struct cuda_blas *blas)
{
    /* A library with threads and exit handlers of its own stays loaded. */
    blas->file = dlopen(CUBLAS_FILE, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!blas->file) {
        return refuse(ELIBACC, "%s", dlerror());
    }
    return load(blas, TEXT(cublasCreate), &blas->create)
           && load(blas, TEXT(cublasDestroy), &blas->destroy)
           && load(blas, TEXT(cublasGetVersion), &blas->get_version)
           && load(blas, TEXT(cublasSetStream), &blas->set_stream)
           && load(blas, TEXT(cublasSetWorkspace), &blas->set_workspace)
           && load(blas, TEXT(cublasSetMathMode), &blas->set_math_mode)
           && load(blas, TEXT(cublasSgemm), &blas->sgemm)
           ? 0 : refuse(ELIBACC, "%s: a function is missing", CUBLAS_FILE);
}

static int
open_blas(struct cuda *cuda)
{
    struct cuda_blas *blas = &cuda->blas;
    int error = load_all(blas);

    error = error ? error : accept(cudaMalloc(&blas->d_workspace, WORKSPACE),
                                   "workspace");
    if (error) {
        return error;
    }
    error = accept_blas(blas->create(&blas->handle), "cublasCreate");
    if (error) {
        blas->handle = NULL;
        return error;
    }
    error = accept_blas(blas->set_stream(blas->handle, cuda->stream),
                        "cublasSetStream");
    return error ? error
                 : accept_blas(blas->set_workspace(
                       blas->handle, blas->d_workspace, WORKSPACE),
                       "cublasSetWorkspace");
}

static void
close_blas(struct cuda *cuda)
{
    struct cuda_blas *blas = &cuda->blas;

    if (blas->handle) {
        blas->destroy(blas->handle);
    }
    cudaFree(blas->d_workspace);
    if (blas->file) {
        dlclose(blas->file);
    }
}

/* Closes a backend, also one that is partly open. */
static void
cuda_close(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_dnn_close(cuda);
    close_blas(cuda);
    cudaFree(cuda->d_partials);
    cudaFree(cuda->d_work);
    cudaFree(cuda->d_step);
    if (cuda->mailbox) {
        cudaFreeHost((void *) cuda->mailbox);
    }
    if (cuda->fork) {
        cudaEventDestroy(cuda->fork);
    }
    if (cuda->join) {
        cudaEventDestroy(cuda->join);
    }
    if (cuda->copies) {
        cudaStreamDestroy(cuda->copies);
    }
    if (cuda->stream) {
        cudaStreamDestroy(cuda->stream);
    }
    free(cuda);
}

static int
open_streams(struct cuda *cuda, int index)
{
    cudaError_t error = cudaSetDevice(index);

    error = error ? error : cudaStreamCreateWithFlags(&cuda->stream,
                                                      cudaStreamNonBlocking);
    error = error ? error : cudaStreamCreateWithFlags(&cuda->copies,
                                                      cudaStreamNonBlocking);
    error = error ? error : cudaEventCreateWithFlags(&cuda->fork,
                                                     cudaEventDisableTiming);
    error = error ? error : cudaEventCreateWithFlags(&cuda->join,
                                                     cudaEventDisableTiming);
    return accept(error, "streams");
}

static int
open_memory(struct cuda *cuda)
{
    cudaError_t error = cudaMalloc((void **) &cuda->d_partials,
                                   sizeof cuda->mailbox->partials);

    error = error ? error : cudaMalloc((void **) &cuda->d_work,
                                       CUDA_KERNELS_WORK
                                       * sizeof *cuda->d_work);
    error = error ? error : cudaMalloc((void **) &cuda->d_step,
                                       sizeof *cuda->d_step);
    error = error ? error : cudaMemsetAsync(cuda->d_partials, 0,
                                            sizeof cuda->mailbox->partials,
                                            cuda->stream);
    error = error ? error : cudaMemsetAsync(cuda->d_step, 0,
                                            sizeof *cuda->d_step,
                                            cuda->stream);
    error = error ? error : cudaHostAlloc((void **) &cuda->mailbox,
                                          sizeof *cuda->mailbox,
                                          cudaHostAllocDefault);
    return accept(error, "memory");
}

/* Without a driver, a machine has no device.  A driver that does not work is
 * an error. */
static int
count_devices(int *n_devices)
{
    cudaError_t error = cudaGetDeviceCount(n_devices);
    int driver = 0;

    if (error == cudaErrorNoDevice
        || (error == cudaErrorInsufficientDriver
            && (cudaDriverGetVersion(&driver) != cudaSuccess || !driver))) {
        return refuse(ENODEV, "no device");
    }
    return accept(error, "driver");
}

static int
cuda_open(int index, int n_threads, struct backend **backendp)
{
    struct cuda *cuda;
    int n_devices;
    int error = count_devices(&n_devices);

    if (error) {
        return error;
    }
    if (index < 0 || index >= n_devices) {
        return refuse(ENODEV, "no device %d, there are %d", index, n_devices);
    }
    cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        return refuse(ENOMEM, "no memory");
    }
    cuda->up.class = &backend_cuda;
    cuda->device = index;
    error = open_streams(cuda, index);
    error = error ? error : open_memory(cuda);
    error = error ? error : open_blas(cuda);
    if (error) {
        cuda_close(&cuda->up);
        return error;
    }
    memset((void *) cuda->mailbox, 0, sizeof *cuda->mailbox);
    cuda_dnn_open(cuda);
    *backendp = &cuda->up;
    return 0;
}

static void
cuda_describe(struct backend *b, char *text, size_t size)
{
    struct cuda *cuda = cuda_cast(b);
    struct cudaDeviceProp device = { .name = "" };
    int driver = 0, blas = 0, dnn_forms, other_forms;
    size_t dnn = cuda_dnn_count(cuda, &dnn_forms, &other_forms);

    cudaGetDeviceProperties(&device, cuda->device);
    cudaDriverGetVersion(&driver);
    cuda->blas.get_version(cuda->blas.handle, &blas);
    snprintf(text, size, "%s, driver of CUDA %d.%d, cuBLAS %d, cuDNN %zu, "
             "%d convolutions by cuDNN, %d by products, %d recordings",
             device.name, driver / 1000, driver % 1000 / 10, blas, dnn,
             dnn_forms, other_forms, cuda->n_recordings);
}

static void
cuda_bus_id(struct backend *b, char *text, size_t size)
{
    struct cudaDeviceProp device = { .name = "" };

    cudaGetDeviceProperties(&device, cuda_cast(b)->device);
    snprintf(text, size, "%08x:%02x:%02x.0", device.pciDomainID,
             device.pciBusID, device.pciDeviceID);
}

/* The default mode of cuBLAS computes in full float32. */
static void
cuda_set_tf32(struct backend *b, bool convolutions, bool products)
{
    struct cuda *cuda = cuda_cast(b);
    int status = cuda->blas.set_math_mode(
        cuda->blas.handle, products ? CUBLAS_TF32_TENSOR_OP_MATH
                                    : CUBLAS_DEFAULT_MATH);

    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(cuda, "tf32", "cuBLAS", status);
    }
    cuda->tf32 = convolutions;
    cuda_dnn_forget(cuda);
}

/* Memory and copies. */

static void
cuda_sync(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(b, "sync", cudaStreamSynchronize(cuda->stream));
    cuda_check(b, "sync", cudaStreamSynchronize(cuda->copies));
}

static void *
cuda_alloc(struct backend *b, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);
    void *d_buffer;

    if (cudaMalloc(&d_buffer, bytes ? bytes : 1) != cudaSuccess) {
        return NULL;
    }
    cuda_check(b, "alloc", cudaMemsetAsync(d_buffer, 0, bytes, cuda->stream));
    return d_buffer;
}

static void
cuda_free(struct backend *b, void *d_buffer)
{
    cudaFree(d_buffer);         /* Waits for what uses it. */
}

static size_t
cuda_left(struct backend *b)
{
    size_t left = 0, all;

    cuda_check(b, "memory", cudaMemGetInfo(&left, &all));
    return left;
}

static void
cuda_send(struct backend *b, void *d_to, const void *from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(b, "upload",
               cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice,
                               cuda->stream));
}

static void
cuda_upload(struct backend *b, void *d_to, const void *from, size_t bytes)
{
    cuda_send(b, d_to, from, bytes);
    cuda_sync(b);
}

static void
cuda_download(struct backend *b, void *to, const void *d_from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(b, "download",
               cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost,
                               cuda->stream));
    cuda_sync(b);
}

static void *
cuda_alloc_host(struct backend *b, size_t bytes)
{
    void *p;

    return cudaHostAlloc(&p, bytes ? bytes : 1, cudaHostAllocDefault)
           == cudaSuccess ? p : NULL;
}

static void
cuda_free_host(struct backend *b, void *p)
{
    if (p) {
        cudaFreeHost(p);
    }
}

/* The device counts steps too, so that the arrival of a part is reported with
 * the number of its step. */
static void
cuda_step(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_count(b, cuda->d_step);
    cuda->step += !cuda->recording;
}

static void
cuda_leave(struct backend *b, int part, void *to, const void *d_from,
           size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->leaves = true;
    cuda_check(b, "leave", cudaEventRecord(cuda->fork, cuda->stream));
    cuda_check(b, "leave", cudaStreamWaitEvent(cuda->copies, cuda->fork, 0));
    cuda_check(b, "leave",
               cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost,
                               cuda->copies));
    cuda_check(b, "leave",
               cudaMemcpyAsync((void *) &cuda->mailbox->left[part],
                               cuda->d_step, sizeof cuda->step,
                               cudaMemcpyDeviceToHost, cuda->copies));
}

/* A part comes within microseconds of the one before, so that sleeping would
 * take longer.  Nothing comes any more once both streams are empty, or have
 * failed. */
static void
cuda_await(struct backend *b, int part)
{
    struct cuda *cuda = cuda_cast(b);
    int64_t begin = clock_monotonic_us();
    bool logged = false;

    while (cuda->mailbox->left[part] != cuda->step) {
        cudaError_t error = cudaStreamQuery(cuda->stream);

        if (error == cudaSuccess) {
            error = cudaStreamQuery(cuda->copies);
        }
        if (error != cudaErrorNotReady) {
            cuda_check(b, "await", error);
            if (cuda->mailbox->left[part] != cuda->step) {
                cuda_check(b, "await", cudaErrorUnknown);
            }
            return;
        }
        cudaGetLastError();     /* Keeps "not ready", too. */
        if (!logged && clock_monotonic_us() - begin > LATE_US) {
            fprintf(stderr, "cuda: waiting for part %d of step %"PRIu32" for "
                    "%d s, its last step is %"PRIu32"\n", part, cuda->step,
                    LATE_US / 1000000, cuda->mailbox->left[part]);
            logged = true;
        }
        sched_yield();
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* Recordings: a struct backend_recording is a cudaGraphExec_t. */

static bool
cuda_record(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->was_well = !cuda->failure[0];
    cuda->leaves = false;
    cuda->recording = cudaStreamBeginCapture(
        cuda->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess;
    cudaGetLastError();
    return cuda->recording;
}

/* The stream of copies comes back to the other one if a leave() made it part
 * of the recording; if none did, it must not. */
static struct backend_recording *
cuda_record_end(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;

    if (cuda->leaves) {
        cuda_check(b, "record", cudaEventRecord(cuda->join, cuda->copies));
        cuda_check(b, "record",
                   cudaStreamWaitEvent(cuda->stream, cuda->join, 0));
    }
    cuda_check(b, "record", cudaStreamEndCapture(cuda->stream, &graph));
    cuda->recording = false;
    if (!graph && cuda->was_well) {
        cuda->failure[0] = '\0';        /* Nothing was done, or lost. */
    }
    if (graph) {
        if (cudaGraphInstantiateWithFlags(&exec, graph, 0) != cudaSuccess) {
            exec = NULL;
        }
        cudaGraphDestroy(graph);
    }
    cudaGetLastError();
    cuda->n_recordings += exec != NULL;
    return (struct backend_recording *) exec;
}

static void
cuda_replay(struct backend *b, struct backend_recording *recording)
{
    struct cuda *cuda = cuda_cast(b);

    cuda->step++;
    cuda_check(b, "replay",
               cudaGraphLaunch((cudaGraphExec_t) recording, cuda->stream));
}

static void
cuda_recording_free(struct backend *b, struct backend_recording *recording)
{
    cuda_sync(b);
    cudaGraphExecDestroy((cudaGraphExec_t) recording);
}

/* Operations. */

cudaStream_t
cuda_stream(struct backend *b)
{
    return cuda_cast(b)->stream;
}

double *
cuda_work(struct backend *b)
{
    return cuda_cast(b)->d_work;
}

bool
cuda_has_tf32(struct backend *b)
{
    return cuda_cast(b)->tf32;
}

struct cuda_partial *
cuda_partials(struct backend *b)
{
    return cuda_cast(b)->d_partials;
}

void
cuda_post_partials(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_check(b, "loss",
               cudaMemcpyAsync((void *) cuda->mailbox->partials,
                               cuda->d_partials,
                               sizeof cuda->mailbox->partials,
                               cudaMemcpyDeviceToHost, cuda->stream));
}

static void
cuda_losses(struct backend *b, double *loss_sum, int *n_correct)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_sync(b);
    *loss_sum = cuda->failure[0] ? NAN : 0;
    *n_correct = 0;
    for (int i = 0; i < CUDA_KERNELS_N_PARTIALS; i++) {
        *loss_sum += cuda->mailbox->partials[i].loss;
        *n_correct += cuda->mailbox->partials[i].n_correct;
    }
}

/* cuBLAS has column-major matrices: it sees the transposed ones, and (A B)' is
 * B' A'. */
static void
cuda_gemm(struct backend *b, bool t_a, bool t_b, int m, int n, int k,
          const float *d_a, const float *d_b, float beta, float *d_c)
{
    struct cuda *cuda = cuda_cast(b);
    const float one = 1;
    cublasStatus_t status;

    if (!m || !n || !k) {
        return;
    }
    status =
        cuda->blas.sgemm(cuda->blas.handle, t_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                         t_a ? CUBLAS_OP_T : CUBLAS_OP_N, n, m, k, &one, d_b,
                         t_b ? k : n, d_a, t_a ? m : k, &beta, d_c, n);
    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(cuda, "gemm", "cuBLAS", status);
    }
}

const struct backend_class backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .why = cuda_why,
    .describe = cuda_describe,
    .bus_id = cuda_bus_id,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .left = cuda_left,
    .upload = cuda_upload,
    .download = cuda_download,
    .gemm = cuda_gemm,
    .bias = cuda_bias,
    .relu_gradient = cuda_relu_gradient,
    .column_sums = cuda_column_sums,
    .cross_entropy = cuda_cross_entropy,
    .margin_loss = cuda_margin_loss,
    .losses = cuda_losses,
    .im2col = cuda_im2col,
    .col2im = cuda_col2im,
    .convolve = cuda_convolve,
    .convolve_weights = cuda_convolve_weights,
    .convolve_input = cuda_convolve_input,
    .max_pool = cuda_max_pool,
    .max_pool_gradient = cuda_max_pool_gradient,
    .mean_pool = cuda_mean_pool,
    .mean_pool_gradient = cuda_mean_pool_gradient,
    .norm = cuda_norm,
    .norm_fixed = cuda_norm_fixed,
    .norm_gradient = cuda_norm_gradient,
    .join = cuda_join,
    .join_gradient = cuda_join_gradient,
    .gather = cuda_gather,
    .accumulate = cuda_accumulate,
    .sgd = cuda_sgd,
    .sync = cuda_sync,
    .alloc_host = cuda_alloc_host,
    .free_host = cuda_free_host,
    .step = cuda_step,
    .send = cuda_send,
    .leave = cuda_leave,
    .await = cuda_await,
    .record = cuda_record,
    .record_end = cuda_record_end,
    .replay = cuda_replay,
    .recording_free = cuda_recording_free,
    .set_tf32 = cuda_set_tf32,
    .failure = cuda_failure,
};
