/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_LAUNCH_H
#define CUDA_LAUNCH_H 1

/* Launch of kernels, and their division of elements and columns.
 *
 *
 * Motivation
 * ==========
 *
 * Common to all .cu files.  LAUNCH() is for kernels without synchronisation
 * between threads, LAUNCH_MEETING() for kernels with __syncthreads() or
 * __shfl_*_sync().  They are equal for nvcc; an emulator that runs kernels
 * without a GPU defines both before including this header.
 *
 *
 * Usage
 * =====
 *
 *    return LAUNCH(sgd_kernel, n_blocks(n), BLOCK, stream, n, ...);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * No state. */

#include <cuda_runtime_api.h>
#include <stddef.h>
#include <stdint.h>

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

/* Chunks times columns is at most half of CUDA_KERNELS_WORK. */
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

#endif /* trainer/backend/cuda-launch.h */
