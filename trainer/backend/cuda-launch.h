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
 *    sum_columns(b, "norm", m, n, is_aligned(d_x), value, end);
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

/* Before a loop. */
#ifdef __CUDACC__
#define UNROLL _Pragma("unroll")
#else
#define UNROLL
#endif

#ifndef LAUNCH
/* The parameters of a kernel are known from its type only, so that arguments
 * of other types are converted as in a call. */
template<class T>
struct as_is {
    typedef T type;
};

/* Returns the result of this launch alone, not one that an earlier call has
 * left behind, as cudaGetLastError() would. */
template<class... parameter>
static cudaError_t
launch(void (*kernel)(parameter...), dim3 grid, dim3 threads,
       cudaStream_t stream, typename as_is<parameter>::type... arguments)
{
    void *addresses[] = { (void *) &arguments... };

    return cudaLaunchKernel((const void *) kernel, grid, threads, addresses,
                            0, stream);
}

#define LAUNCH(KERNEL, GRID, THREADS, STREAM, ...)              \
    launch(KERNEL, GRID, THREADS, STREAM, __VA_ARGS__)
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

/* Elements are read and written one by one, or four at once. */

template<int pack>
static __device__ inline void
read_pack(const float *from, float *to)
{
    if (pack == 4) {
        float4 four = *(const float4 *) from;

        to[0] = four.x;
        to[1] = four.y;
        to[2] = four.z;
        to[3] = four.w;
    } else {
        to[0] = from[0];
    }
}

template<int pack>
static __device__ inline void
write_pack(float *to, const float *from)
{
    if (pack == 4) {
        *(float4 *) to = { from[0], from[1], from[2], from[3] };
    } else {
        to[0] = from[0];
    }
}

/* Vectors that begin in device memory of their own are aligned; a part of one
 * may not be. */
static inline bool
is_aligned(const void *d_vector)
{
    return (uintptr_t) d_vector % sizeof(float4) == 0;
}

/* Sums over columns, in two steps of one launch.  First each block of threads
 * sums 'length' rows; a row of threads reads neighbouring packs of columns.
 * Then the last block of these columns adds the sums of all blocks.  Both use
 * double and an order that depends on the sizes only. */
struct column_plan {
    dim3 block, grid;           /* grid.y: the number of chunks of rows. */
    int length;
};

#define PLAN_ROWS 4             /* Least number of rows per thread, if there
                                 * are as many. */
#define PLAN_MAX_CHUNKS 264     /* Two for each multiprocessor of an H100. */
#define PLAN_AHEAD 4            /* Rows that a thread reads at once. */

/* For n packs of columns.  Chunks times packs is at most 'max_packs', for up to
 * as many packs. */
static inline struct column_plan
column_plan(int m, int n, int max_packs)
{
    struct column_plan plan;
    int columns = 1, rows, wanted, limit = max_packs / n;

    while (columns < WARP && columns < n) {
        columns *= 2;
    }
    rows = BLOCK / columns;
    wanted = (m + rows * PLAN_ROWS - 1) / (rows * PLAN_ROWS);
    limit = limit < 1 ? 1 : limit > PLAN_MAX_CHUNKS ? PLAN_MAX_CHUNKS : limit;
    wanted = wanted < 1 ? 1 : wanted < limit ? wanted : limit;
    plan.length = (m + wanted - 1) / wanted;
    plan.block = dim3(columns, rows);
    plan.grid = dim3((n + columns - 1) / columns, wanted);
    return plan;
}

/* Adds the 'values' of the rows of a block, which thread row 0 gets. */
template<int n_values>
static __device__ inline void
add_rows(double tile[n_values][BLOCK], double values[n_values])
{
    int thread = threadIdx.y * blockDim.x + threadIdx.x;

    UNROLL
    for (int i = 0; i < n_values; i++) {
        tile[i][thread] = values[i];
    }
    __syncthreads();
    for (unsigned int step = blockDim.y / 2; step; step /= 2) {
        if (threadIdx.y < step) {
            UNROLL
            for (int i = 0; i < n_values; i++) {
                tile[i][thread] += tile[i][thread + step * blockDim.x];
            }
        }
        __syncthreads();
    }
    UNROLL
    for (int i = 0; i < n_values; i++) {
        values[i] = tile[i][threadIdx.x];
    }
    __syncthreads();
}

/* Returns true in all threads of the last block that calls this with the same
 * 'ticket'; what the others have written is visible to it.  The ticket is 0
 * again afterwards. */
static __device__ inline bool
is_last_block(unsigned int *ticket, unsigned int n_blocks)
{
    __shared__ bool is_last;

    __threadfence();
    __syncthreads();
    if (!threadIdx.x && !threadIdx.y) {
        is_last = atomicAdd(ticket, 1u) == n_blocks - 1;
        if (is_last) {
            *ticket = 0;
        }
    }
    __syncthreads();
    __threadfence();
    return is_last;
}

template<int pack, class value, class end>
static __global__ void
column_sums_kernel(int m, int n, int length, value v, end e, double *chunks,
                   unsigned int *tickets)
{
    /* The first sums of the columns, then the second ones. */
    const int n_values = 2 * pack;
    __shared__ double tile[n_values][BLOCK];
    int column = (blockIdx.x * blockDim.x + threadIdx.x) * pack;
    int first = blockIdx.y * length;
    int last = m - first < length ? m : first + length;
    double sums[n_values] = { 0 };
    double *mine = chunks + (size_t) column * 2;

    if (column < n) {
        for (int i = first + threadIdx.y; i < last;
             i += PLAN_AHEAD * blockDim.y) {
            float read[PLAN_AHEAD][value::n_vectors][pack];

            UNROLL
            for (int j = 0; j < PLAN_AHEAD; j++) {
                int row = i + j * blockDim.y;

                /* A row that is not there counts as nothing. */
                v.template read<pack>((size_t) (row < last ? row : i) * n
                                      + column, read[j]);
            }
            UNROLL
            for (int j = 0; j < PLAN_AHEAD; j++) {
                if (i + j * (int) blockDim.y < last) {
                    v.template add<pack>(column, read[j], sums);
                }
            }
        }
    }
    add_rows<n_values>(tile, sums);
    if (!threadIdx.y && column < n) {
        UNROLL
        for (int j = 0; j < n_values; j++) {
            mine[(size_t) blockIdx.y * 2 * n + j] = sums[j];
        }
    }
    if (!is_last_block(&tickets[blockIdx.x], gridDim.y)) {
        return;
    }
    UNROLL
    for (int j = 0; j < n_values; j++) {
        sums[j] = 0;
    }
    if (column < n) {
        for (unsigned int i = threadIdx.y; i < gridDim.y; i += blockDim.y) {
            UNROLL
            for (int j = 0; j < n_values; j++) {
                sums[j] += mine[(size_t) i * 2 * n + j];
            }
        }
    }
    add_rows<n_values>(tile, sums);
    if (!threadIdx.y && column < n) {
        UNROLL
        for (int j = 0; j < pack; j++) {
            e(column + j, sums[j], sums[pack + j]);
        }
    }
}

template<int pack, class value, class end>
static cudaError_t
launch_column_sums(struct backend *b, int m, int n, value v, end e)
{
    struct column_plan plan = column_plan(
        m, n / pack, CUDA_KERNELS_WORK / 2 / pack);

    return LAUNCH_MEETING((column_sums_kernel<pack, value, end>), plan.grid,
                          plan.block, cuda_stream(b), m, n, plan.length, v, e,
                          cuda_work(b), cuda_tickets(b));
}

/* Sums over the m rows of each of n columns.  'v' reads a pack of each of its
 * vectors and adds them to one or two sums of each column; 'e' gets those of a
 * column, in one thread.  'aligned': the vectors are. */
template<class value, class end>
static void
sum_columns(struct backend *b, const char *what, int m, int n, bool aligned,
            value v, end e)
{
    cuda_check(b, what,
               n > CUDA_KERNELS_WORK / 2
               ? cudaErrorInvalidValue
               : aligned && n % 4 == 0
               ? launch_column_sums<4>(b, m, n, v, e)
               : launch_column_sums<1>(b, m, n, v, e));
}

#endif /* trainer/backend/cuda-launch.h */
