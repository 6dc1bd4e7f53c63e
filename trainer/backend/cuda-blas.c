/* SPDX-License-Identifier: Apache-2.0 */

/* cuBLAS is more than half a gigabyte and is loaded only when there is a
 * device to use it. */

#include "trainer/backend/cuda.h"

#include <dlfcn.h>
#include <errno.h>

#define TEXT_OF(X) #X
#define TEXT(X) TEXT_OF(X)
#define CUBLAS_FILE "libcublas.so." TEXT(CUBLAS_VER_MAJOR)
#define WORKSPACE ((size_t) 32 << 20)   /* Recommended size for an H100. */

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
    blas->file = dlopen(CUBLAS_FILE, RTLD_NOW | RTLD_LOCAL);
    return blas->file
           && load(blas, TEXT(cublasCreate), &blas->create)
           && load(blas, TEXT(cublasDestroy), &blas->destroy)
           && load(blas, TEXT(cublasSetStream), &blas->set_stream)
           && load(blas, TEXT(cublasSetWorkspace), &blas->set_workspace)
           && load(blas, TEXT(cublasSetMathMode), &blas->set_math_mode)
           && load(blas, TEXT(cublasSgemm), &blas->sgemm) ? 0 : ELIBACC;
}

int
cuda_blas_open(struct cuda *cuda)
{
    struct cuda_blas *blas = &cuda->blas;
    int error = load_all(blas);

    if (error) {
        return error;
    }
    if (cudaMalloc(&blas->d_workspace, WORKSPACE) != cudaSuccess) {
        return ENOMEM;
    }
    if (blas->create(&blas->handle) != CUBLAS_STATUS_SUCCESS) {
        blas->handle = NULL;
        return EIO;
    }
    return blas->set_stream(blas->handle, cuda->stream)
           == CUBLAS_STATUS_SUCCESS
           && blas->set_workspace(blas->handle, blas->d_workspace, WORKSPACE)
              == CUBLAS_STATUS_SUCCESS ? 0 : EIO;
}

void
cuda_blas_close(struct cuda *cuda)
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

/* The default mode computes in full float32. */
void
cuda_blas_set_tf32(struct cuda *cuda, bool tf32)
{
    int status = cuda->blas.set_math_mode(
        cuda->blas.handle, tf32 ? CUBLAS_TF32_TENSOR_OP_MATH
                                : CUBLAS_DEFAULT_MATH);

    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(cuda, "tf32", "cuBLAS", status);
    }
}

/* cuBLAS has column-major matrices: it sees the transposed ones, and (A B)' is
 * B' A'. */
void
cuda_gemm(struct backend *b, bool t_a, bool t_b, int m, int n, int k,
          const float *d_a, const float *d_b, float beta, float *d_c)
{
    struct cuda *cuda = cuda_cast(b);
    const float one = 1;
    cublasStatus_t status;

    if (!m || !n || !k) {
        return;
    }
    status = cuda->blas.sgemm(cuda->blas.handle,
                              t_b ? CUBLAS_OP_T : CUBLAS_OP_N,
                              t_a ? CUBLAS_OP_T : CUBLAS_OP_N,
                              n, m, k, &one, d_b, t_b ? k : n,
                              d_a, t_a ? m : k, &beta, d_c, n);
    if (status != CUBLAS_STATUS_SUCCESS) {
        cuda_fail(cuda, "gemm", "cuBLAS", status);
    }
}
