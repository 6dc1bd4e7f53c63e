/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_H
#define CUDA_H 1

/* Internals of the CUDA backend, shared by cuda.c (device, memory, copies,
 * recordings), cuda-blas.c and cuda-dnn.c (libraries), and cuda-operations.c
 * (operations by kernels).
 *
 *
 * Motivation
 * ==========
 *
 * All operations are queued on one stream, and early downloads on a second one.
 * A recorded step is a CUDA graph.
 *
 *
 * Usage
 * =====
 *
 *    cuda_check(cuda, "count", cuda_kernels_count(cuda->stream, d_counter));
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * backend_close() frees all of it.  One thread. */

#include "trainer/backend/backend.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>

#include "trainer/backend/cuda-kernels.h"

struct cuda_dnn;

/* What is used of cuBLAS. */
struct cuda_blas {
    void *file;                 /* dlopen()'s. */
    cublasHandle_t handle;
    void *d_workspace;          /* Its own could not be part of a graph. */
    __typeof__(&cublasCreate) create;
    __typeof__(&cublasDestroy) destroy;
    __typeof__(&cublasSetStream) set_stream;
    __typeof__(&cublasSetWorkspace) set_workspace;
    __typeof__(&cublasSetMathMode) set_math_mode;
    __typeof__(&cublasSgemm) sgemm;
};

/* What the host sees of the device without asking, in pinned memory. */
struct cuda_mailbox {
    struct cuda_partial partials[CUDA_KERNELS_N_PARTIALS];
    uint32_t left[BACKEND_MAX_PARTS];   /* Step whose part has arrived. */
};

struct cuda {
    struct backend up;
    cudaStream_t stream;
    cudaStream_t copies;        /* What leaves early. */
    cudaEvent_t fork, join;     /* Between the two. */
    struct cuda_blas blas;
    struct cuda_dnn *dnn;       /* NULL if unavailable. */
    bool tf32;
    bool recording;
    bool leaves;                /* Something does, in this recording. */
    bool was_well;              /* Nothing had failed before it. */
    uint32_t step;              /* The last that began. */

    struct cuda_partial *d_partials;    /* Of a loss. */
    double *d_work;             /* CUDA_KERNELS_WORK of them. */
    uint32_t *d_step;           /* 'step', as the device has it. */
    volatile struct cuda_mailbox *mailbox;
    char failure[128];          /* The first; empty: none. */
};

static inline struct cuda *
cuda_cast(const struct backend *b)
{
    return (struct cuda *) b;
}

/* Keeps the first failure.  A kernel's own fault shows at a later call. */
void cuda_check(struct cuda *, const char *what, cudaError_t);
void cuda_fail(struct cuda *, const char *what, const char *library,
               int status);

/* cuBLAS.  Returns 0 or ELIBACC, EIO, ENOMEM. */
int cuda_blas_open(struct cuda *);
void cuda_blas_close(struct cuda *);
void cuda_blas_set_tf32(struct cuda *, bool);
void cuda_gemm(struct backend *, bool t_a, bool t_b, int m, int n, int k,
               const float *d_a, const float *d_b, float beta, float *d_c);

/* cuDNN, if it is there; see struct backend_class. */
void cuda_dnn_open(struct cuda *);
void cuda_dnn_close(struct cuda *);

/* Algorithms are chosen again. */
void cuda_dnn_forget(struct cuda *);
bool cuda_convolve(struct backend *, const struct convolution *, int n,
                   const float *d_x, const float *d_w, float *d_y);
bool cuda_convolve_weights(struct backend *, const struct convolution *,
                           int n, const float *d_x, const float *d_dy,
                           float *d_dw);
bool cuda_convolve_input(struct backend *, const struct convolution *, int n,
                         const float *d_dy, const float *d_w, bool add,
                         float *d_dx);

/* Device, memory, copies, recordings; see struct backend_class. */
int cuda_open(int index, int n_threads, struct backend **);
void cuda_close(struct backend *);
void *cuda_alloc(struct backend *, size_t bytes);
void cuda_free(struct backend *, void *d_buffer);
void cuda_upload(struct backend *, void *d_to, const void *, size_t);
void cuda_download(struct backend *, void *to, const void *d_from, size_t);
void cuda_sync(struct backend *);
void *cuda_alloc_host(struct backend *, size_t bytes);
void cuda_free_host(struct backend *, void *);
void cuda_step(struct backend *);
void cuda_send(struct backend *, void *d_to, const void *, size_t);
void cuda_leave(struct backend *, int part, void *to, const void *d_from,
                size_t);
void cuda_await(struct backend *, int part);
void cuda_record(struct backend *);
struct backend_recording *cuda_record_end(struct backend *);
void cuda_replay(struct backend *, struct backend_recording *);
void cuda_recording_free(struct backend *, struct backend_recording *);
void cuda_set_tf32(struct backend *, bool);
const char *cuda_failure(const struct backend *);

#endif /* trainer/backend/cuda.h */
