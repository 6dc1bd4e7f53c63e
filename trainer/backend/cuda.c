/* SPDX-License-Identifier: Apache-2.0 */

/* A GPU of NVIDIA's: cuBLAS, own kernels, one stream.
 *
 * The runtime library is linked statically, so that the program starts on a
 * machine without driver and without toolkit, and says there that it has no
 * device.  cuBLAS is more than half a gigabyte and is loaded only when there
 * is a device to use it. */

#include "trainer/backend/backend.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "trainer/backend/cuda-kernels.h"

#define TEXT_OF(X) #X
#define TEXT(X) TEXT_OF(X)
#define CUBLAS_FILE "libcublas.so." TEXT(CUBLAS_VER_MAJOR)

/* What is used of cuBLAS. */
struct cublas {
    void *file;                 /* dlopen()'s. */
    cublasHandle_t handle;
    __typeof__(&cublasCreate) create;
    __typeof__(&cublasDestroy) destroy;
    __typeof__(&cublasSetStream) set_stream;
    __typeof__(&cublasSgemm) sgemm;
};

struct cuda {
    struct backend up;
    cudaStream_t stream;
    struct cublas cublas;
    struct cuda_partial *d_partials;    /* Of a cross entropy. */
    struct cuda_partial partials[CUDA_KERNELS_N_PARTIALS];
    char failure[128];          /* The first; empty: none. */
};

static struct cuda *
cuda_cast(const struct backend *b)
{
    return (struct cuda *) b;
}

/* Keeps the first failure.  A kernel's own fault shows at a later call. */
static void
check(struct cuda *cuda, const char *what, cudaError_t error)
{
    if (error != cudaSuccess && !cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure, "%s: %s", what,
                 cudaGetErrorString(error));
    }
}

static const char *
cuda_failure(const struct backend *b)
{
    const struct cuda *cuda = cuda_cast(b);

    return cuda->failure[0] ? cuda->failure : NULL;
}

/* Opening. */

static int
cublas_load(struct cublas *cublas)
{
    cublas->file = dlopen(CUBLAS_FILE, RTLD_NOW | RTLD_LOCAL);
    if (!cublas->file) {
        return ELIBACC;
    }
    *(void **) &cublas->create = dlsym(cublas->file, TEXT(cublasCreate));
    *(void **) &cublas->destroy = dlsym(cublas->file, TEXT(cublasDestroy));
    *(void **) &cublas->set_stream = dlsym(cublas->file,
                                           TEXT(cublasSetStream));
    *(void **) &cublas->sgemm = dlsym(cublas->file, TEXT(cublasSgemm));
    return cublas->create && cublas->destroy && cublas->set_stream
           && cublas->sgemm ? 0 : ELIBACC;
}

/* The default mode of cuBLAS computes in full float32, not TF32. */
static int
cublas_open(struct cublas *cublas, cudaStream_t stream)
{
    int error = cublas_load(cublas);

    if (error) {
        return error;
    }
    if (cublas->create(&cublas->handle) != CUBLAS_STATUS_SUCCESS) {
        cublas->handle = NULL;
        return EIO;
    }
    return cublas->set_stream(cublas->handle, stream) == CUBLAS_STATUS_SUCCESS
           ? 0 : EIO;
}

static void
cublas_close(struct cublas *cublas)
{
    if (cublas->handle) {
        cublas->destroy(cublas->handle);
    }
    if (cublas->file) {
        dlclose(cublas->file);
    }
}

/* Whatever was opened of it. */
static void
cuda_close(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    cublas_close(&cuda->cublas);
    cudaFree(cuda->d_partials);
    if (cuda->stream) {
        cudaStreamDestroy(cuda->stream);
    }
    free(cuda);
}

static int
open_parts(struct cuda *cuda, int index)
{
    if (cudaSetDevice(index) != cudaSuccess
        || cudaStreamCreateWithFlags(&cuda->stream, cudaStreamNonBlocking)
           != cudaSuccess) {
        return EIO;
    }
    if (cudaMalloc((void **) &cuda->d_partials, sizeof cuda->partials)
        != cudaSuccess) {
        return ENOMEM;
    }
    return cublas_open(&cuda->cublas, cuda->stream);
}

/* No driver, a driver that is too old and no device are all the same here. */
static int
cuda_open(int index, int n_threads, struct backend **backendp)
{
    struct cuda *cuda;
    int n_devices, error;

    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || index < 0
        || index >= n_devices) {
        return ENODEV;
    }
    cuda = calloc(1, sizeof *cuda);
    if (!cuda) {
        return ENOMEM;
    }
    cuda->up.class = &backend_cuda;
    error = open_parts(cuda, index);
    if (error) {
        cuda_close(&cuda->up);
        return error;
    }
    *backendp = &cuda->up;
    return 0;
}

/* Memory. */

static void
cuda_sync(struct backend *b)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "sync", cudaStreamSynchronize(cuda->stream));
}

static void *
cuda_alloc(struct backend *b, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);
    void *d_buffer;

    if (cudaMalloc(&d_buffer, bytes ? bytes : 1) != cudaSuccess) {
        return NULL;
    }
    check(cuda, "alloc", cudaMemsetAsync(d_buffer, 0, bytes, cuda->stream));
    return d_buffer;
}

static void
cuda_free(struct backend *b, void *d_buffer)
{
    cudaFree(d_buffer);         /* Waits for what uses it. */
}

static void
cuda_upload(struct backend *b, void *d_to, const void *from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "upload",
          cudaMemcpyAsync(d_to, from, bytes, cudaMemcpyHostToDevice,
                          cuda->stream));
    cuda_sync(b);
}

static void
cuda_download(struct backend *b, void *to, const void *d_from, size_t bytes)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "download",
          cudaMemcpyAsync(to, d_from, bytes, cudaMemcpyDeviceToHost,
                          cuda->stream));
    cuda_sync(b);
}

/* Arithmetic. */

/* cuBLAS takes matrices by columns: what it sees of ours are the transposed
 * ones, and (A B)' is B' A'. */
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
    status = cuda->cublas.sgemm(cuda->cublas.handle,
                                t_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                                t_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                                n, m, k, &one, d_b, t_b ? k : n,
                                d_a, t_a ? m : k, &beta, d_c, n);
    if (status != CUBLAS_STATUS_SUCCESS && !cuda->failure[0]) {
        snprintf(cuda->failure, sizeof cuda->failure,
                 "gemm: cuBLAS status %d", status);
    }
}

static void
cuda_bias(struct backend *b, int m, int n, const float *d_bias, bool relu,
          float *d_y)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "bias",
          cuda_kernels_bias(cuda->stream, m, n, d_bias, relu, d_y));
}

static void
cuda_relu_gradient(struct backend *b, size_t n, const float *d_y, float *d_dy)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "relu_gradient",
          cuda_kernels_relu_gradient(cuda->stream, n, d_y, d_dy));
}

static void
cuda_column_sums(struct backend *b, int m, int n, const float *d_y,
                 float *d_sums)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "column_sums",
          cuda_kernels_column_sums(cuda->stream, m, n, d_y, d_sums));
}

static void
cuda_cross_entropy(struct backend *b, int m, int n, const float *d_y,
                   const int32_t *d_labels, float *d_dy)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "cross_entropy",
          cuda_kernels_cross_entropy(cuda->stream, m, n, d_y, d_labels, d_dy,
                                     cuda->d_partials));
}

static void
cuda_losses(struct backend *b, double *loss_sum, int *n_correct)
{
    struct cuda *cuda = cuda_cast(b);

    cuda_download(b, cuda->partials, cuda->d_partials, sizeof cuda->partials);
    *loss_sum = cuda->failure[0] ? NAN : 0;
    *n_correct = 0;
    for (int i = 0; i < CUDA_KERNELS_N_PARTIALS; i++) {
        *loss_sum += cuda->partials[i].loss;
        *n_correct += cuda->partials[i].n_correct;
    }
}

static void
cuda_accumulate(struct backend *b, size_t n, float scale, const float *d_x,
                float *d_sum)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "accumulate",
          cuda_kernels_accumulate(cuda->stream, n, scale, d_x, d_sum));
}

static void
cuda_sgd(struct backend *b, size_t n, float rate, float momentum,
         const float *d_g, float *d_v, float *d_w)
{
    struct cuda *cuda = cuda_cast(b);

    check(cuda, "sgd",
          cuda_kernels_sgd(cuda->stream, n, rate, momentum, d_g, d_v, d_w));
}

const struct backend_class backend_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .close = cuda_close,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .gemm = cuda_gemm,
    .bias = cuda_bias,
    .relu_gradient = cuda_relu_gradient,
    .column_sums = cuda_column_sums,
    .cross_entropy = cuda_cross_entropy,
    .losses = cuda_losses,
    .accumulate = cuda_accumulate,
    .sgd = cuda_sgd,
    .sync = cuda_sync,
    .failure = cuda_failure,
};
