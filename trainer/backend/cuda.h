/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_H
#define CUDA_H 1

/* Internals of the CUDA backend, shared by cuda.c (device, memory, copies,
 * recordings, cuBLAS) and cuda-dnn.c (cuDNN).
 *
 * All operations are queued on one stream, and early downloads on a second
 * one.  A recorded step is a CUDA graph.
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
    __typeof__(&cublasGetVersion) get_version;
    __typeof__(&cublasSetStream) set_stream;
    __typeof__(&cublasSetWorkspace) set_workspace;
    __typeof__(&cublasSetMathMode) set_math_mode;
    __typeof__(&cublasSgemm) sgemm;
};

/* What the host sees of the device without asking, in pinned memory. */
struct cuda_mailbox {
    struct cuda_partial partials[CUDA_KERNELS_N_PARTIALS];
    uint32_t left[BACKEND_MAX_PARTS]; /* Step of the part that has
                                       * arrived. */
};

struct cuda {
    struct backend up;
    cudaStream_t stream;
    cudaStream_t copies;        /* What leaves early. */
    cudaEvent_t fork, join;     /* Between the two. */
    struct cuda_blas blas;
    struct cuda_dnn *dnn;       /* NULL if unavailable. */
    int device;
    bool tf32;                  /* For convolutions. */
    bool recording;
    int n_recordings;           /* That were made. */
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

/* As cuda_check(), for a library that has a status of its own. */
void cuda_fail(struct cuda *, const char *what, const char *library,
               int status);

/* cuDNN, if it is there; see struct backend_class. */
void cuda_dnn_open(struct cuda *);
void cuda_dnn_close(struct cuda *);

/* Algorithms are chosen again. */
void cuda_dnn_forget(struct cuda *);

/* Counts the convolutions that cuDNN computes and those that are left to
 * matrix products.  Returns cuDNN's version, 0 if it is not there. */
size_t cuda_dnn_count(struct cuda *, int *n_convolved, int *n_left);

#endif /* trainer/backend/cuda.h */
