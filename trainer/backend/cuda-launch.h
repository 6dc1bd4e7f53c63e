/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H 1

/* Launch of kernels, their division of elements, and sums over columns.
 *
 * Common to all .cu files.  LAUNCH() is for kernels without synchronisation
 * between threads, LAUNCH_MEETING() for kernels with __syncthreads() or
 * __shfl_*_sync().  They are equal for nvcc; an emulator that runs kernels
 * without a GPU defines both before including this header.
 *
 *    LAUNCH_EACH(b, "sgd", sgd_kernel, n, rate, ...);
 *
 *    n_chunks = sum_columns(b, "norm", m, n, value, d_squares);
 *    LAUNCH_COLUMNS(b, "norm", end, n, n_chunks, cuda_work(b), ...);
 *
 * No state. */

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/backend/cuda-kernels.h"

#define BLOCK 256               /* Threads of a block. */
#define MAX_BLOCKS 4096         /* With more blocks, a thread processes
                                 * several elements. */
#define WARP 32

#ifndef LAUNCH
#define LAUNCH(KERNEL, GRID, THREADS, STREAM, ...)              \
    ((KERNEL)<<<(GRID), (THREADS), 0, (STREAM)>>>(__VA_ARGS__), \
     cudaGetLastError())
#define LAUNCH_MEETING LAUNCH
#endif

/* Launches a kernel with a thread for each of N elements, if there are
 * any. */
#define LAUNCH_EACH(B, WHAT, KERNEL, N, ...)                            \
    cuda_check(B, WHAT, (N) ? LAUNCH(KERNEL, n_blocks(N), BLOCK,        \
                                     cuda_stream(B), N, __VA_ARGS__)    \
                            : cudaSuccess)

#define FOR_EACH_ELEMENT(I, N)                                          \
    for (size_t I = (size_t) blockIdx.x * blockDim.x + threadIdx.x;     \
         I < (N); I += (size_t) gridDim.x * blockDim.x)

static inline unsigned int
n_blocks(size_t n)
{
    size_t blocks = (n + BLOCK - 1) / BLOCK;

    return blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS;
}

/* Division in 32 bits if possible; 64 bits take five times as long. */
static __host__ __device__ inline size_t
over(size_t i, unsigned int n)
{
    return i >> 32 ? i / n : (uint32_t) i / n;
}

static __host__ __device__ inline unsigned int
rest(size_t i, unsigned int n)
{
    return i >> 32 ? i % n : (uint32_t) i % n;
}

/* Sums over columns, in two steps.  First each block of threads, whose rows
 * read neighbouring elements, sums 'length' rows of 'block.x' columns; then a
 * block per column adds these sums.  Both use double and an order that depends
 * on the sizes only. */
struct column_plan {
    dim3 block, grid;           /* Dimensions of the first step. */
    int length;
    int n_chunks;               /* grid.y. */
};

#define PLAN_ROWS 8             /* Least number of rows per thread, if there
                                 * are as many. */
#define PLAN_MAX_CHUNKS 512

/* Chunks times columns is at most 'max_sums'. */
static inline struct column_plan
column_plan(int m, int n, int max_sums)
{
    struct column_plan plan;
    int columns = 1, rows, wanted, limit = max_sums / n;

    while (columns < WARP && columns < n) {
        columns *= 2;
    }
    rows = BLOCK / columns;
    wanted = (m + rows * PLAN_ROWS - 1) / (rows * PLAN_ROWS);
    limit = limit < 1 ? 1 : limit > PLAN_MAX_CHUNKS ? PLAN_MAX_CHUNKS : limit;
    wanted = wanted < 1 ? 1 : wanted < limit ? wanted : limit;
    plan.length = (m + wanted - 1) / wanted;
    plan.n_chunks = wanted;
    plan.block = dim3(columns, rows);
    plan.grid = dim3((n + columns - 1) / columns, wanted);
    return plan;
}

/* Adds the 'sums' of the rows of a block; thread row 0 returns the total. */
static __device__ inline double
add_rows(double *sums, double sum)
{
    int thread = threadIdx.y * blockDim.x + threadIdx.x;

    sums[thread] = sum;
    __syncthreads();
    for (unsigned int step = blockDim.y / 2; step; step /= 2) {
        if (threadIdx.y < step) {
            sums[thread] += sums[thread + step * blockDim.x];
        }
        __syncthreads();
    }
    sum = sums[threadIdx.x];
    __syncthreads();
    return sum;
}

template<class value>
static __global__ void
column_chunks(int m, int n, int length, value v, double *sums, double *others)
{
    __shared__ double tile[BLOCK];
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int first = blockIdx.y * length;
    int end = m - first < length ? m : first + length;
    double sum = 0, other = 0;

    if (column < n) {
        for (int i = first + threadIdx.y; i < end; i += blockDim.y) {
            v(i, column, &sum, &other);
        }
    }
    sum = add_rows(tile, sum);
    if (others) {
        other = add_rows(tile, other);
    }
    if (!threadIdx.y && column < n) {
        size_t at = (size_t) column * gridDim.y + blockIdx.y;

        sums[at] = sum;
        if (others) {
            others[at] = other;
        }
    }
}

/* The first step: chunks of sums to cuda_work() and, unless it is NULL, to
 * 'd_others'.  'v' adds an element to one or two sums.  Returns the number of
 * chunks of a column. */
template<class value>
static int
sum_columns(struct backend *b, const char *what, int m, int n, value v,
            double *d_others)
{
    struct column_plan plan = column_plan(m, n, CUDA_KERNELS_WORK / 2);
    double *d_sums = cuda_work(b);

    cuda_check(b, what,
               LAUNCH_MEETING(column_chunks<value>, plan.grid, plan.block,
                              cuda_stream(b), m, n, plan.length, v, d_sums,
                              d_others));
    return plan.n_chunks;
}

/* The second step: a kernel with a block for each of N columns, whose first
 * thread gets the total from column_total(). */
#define COLUMN_BLOCK 128        /* Threads of a block. */
#define LAUNCH_COLUMNS(B, WHAT, KERNEL, N, ...)                         \
    cuda_check(B, WHAT, LAUNCH_MEETING(KERNEL, N, COLUMN_BLOCK,         \
                                       cuda_stream(B), __VA_ARGS__))

/* Returns the sum of the chunks of column blockIdx.x, to all threads of the
 * block. */
static __device__ inline double
column_total(int n_chunks, const double *work)
{
    __shared__ double tile[COLUMN_BLOCK];
    const double *chunks = work + (size_t) blockIdx.x * n_chunks;
    double sum = 0;

    for (int i = threadIdx.x; i < n_chunks; i += COLUMN_BLOCK) {
        sum += chunks[i];
    }
    __syncthreads();
    tile[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned int step = COLUMN_BLOCK / 2; step; step /= 2) {
        if (threadIdx.x < step) {
            tile[threadIdx.x] += tile[threadIdx.x + step];
        }
        __syncthreads();
    }
    return tile[0];
}

#endif /* trainer/backend/cuda-launch.h */
