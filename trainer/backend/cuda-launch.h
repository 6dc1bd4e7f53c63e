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
 *    sum_columns(b, "norm", m, n, aligned, value, NULL);
 *    map_columns(b, "norm", m, n, aligned, true, map);
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
template <class T> struct as_is {
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

/* Sums over columns, by two kernels.  Each block of the first one sums some
 * rows of SUM_COLUMNS columns and stores these sums: a chunk.  In the second
 * one, each block adds the chunks of its columns and uses the totals, so that
 * no block waits for another one.  Sums are in double, in an order that
 * depends on the sizes only. */

#define SUM_COLUMNS 16          /* Of a block.  64 bytes of a row are two
                                 * sectors of memory. */
#define SUM_WARPS 16            /* Of a block. */
#define SUM_ROWS 2              /* Least number of rows per thread, if there
                                 * are as many. */
#define SUM_BLOCKS 128          /* Number of blocks for a large matrix of few
                                 * columns, and largest number of chunks: about
                                 * one for each multiprocessor of an H100. */
#define ALL_LANES 0xffffffffu

struct column_plan {
    dim3 grid;                  /* x: groups of columns; y: chunks of rows. */
    int length;                 /* Rows of a chunk. */
};

static inline struct column_plan
column_plan(int m, int n, int pack)
{
    int rows = SUM_WARPS * WARP / (SUM_COLUMNS / pack) * SUM_ROWS;
    int groups = (n + SUM_COLUMNS - 1) / SUM_COLUMNS;
    int limit = (SUM_BLOCKS + groups - 1) / groups;
    int wanted = m / rows + (m % rows > 0);
    int chunks = wanted < 1 ? 1 : wanted < limit ? wanted : limit;

    return { dim3(groups, chunks), m / chunks + (m % chunks > 0) };
}

/* Adds the values of the lanes of equal number of all warps; the first warp
 * gets the sums.  Lanes are threadIdx.x, warps threadIdx.y. */
template<int n_warps>
static __device__ inline double
add_warps(double value)
{
    __shared__ double tile[n_warps][WARP];
    double sum = 0;

    tile[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    if (!threadIdx.y) {
        UNROLL
        for (int i = 0; i < n_warps; i++) {
            sum += tile[i][threadIdx.x];
        }
    }
    return sum;
}

/* The part of a matrix that a thread processes: a pack of columns in every
 * 'n_rows'-th row of a chunk. */
template <int pack, int n_vectors> struct column_part {
    static const int n_lanes = SUM_COLUMNS / pack; /* Of a row. */
    static const int n_rows = SUM_WARPS * WARP / n_lanes;
    static const int ahead = n_vectors > 1 ? 4 : 8;     /* Read at once. */
    int n, at, column, first, last;

    __device__
    column_part(int m, int n_, int length)
        : n(n_), at(threadIdx.x % n_lanes * pack),
          column(blockIdx.x * SUM_COLUMNS + at),
          first(blockIdx.y * length
                + (threadIdx.y * WARP + threadIdx.x) / n_lanes),
          last(m - (int) blockIdx.y * length < length
               ? m : (blockIdx.y + 1) * length)
    {
    }

    __device__ bool
    has(int row) const
    {
        return row < last && column < n;
    }

    /* Returns the index of the first element of the matrix if has() is false,
     * so that reading needs no branch. */
    __device__ size_t
    index(int row) const
    {
        return has(row) ? (size_t) row * n + column : 0;
    }
};

/* Adds the values of all lanes of a warp that have the same columns.  In each
 * step a lane sends half of its values to another lane, which keeps that half,
 * until each lane has one sum.  Lanes from SUM_COLUMNS on get second sums. */
template<int pack>
static __device__ inline double
add_lanes(double values[2 * pack])
{
    UNROLL
    for (int half = pack; half; half /= 2) {
        int step = WARP / 2 * half / pack;
        bool is_upper = threadIdx.x & step;

        UNROLL
        for (int i = 0; i < half; i++) {
            double low = values[i], high = values[i + half];

            values[i] = (is_upper ? high : low)
                        + __shfl_xor_sync(ALL_LANES, is_upper ? low : high,
                                          step);
        }
    }
    return values[0];
}

/* Stores a chunk: the first sums of SUM_COLUMNS columns, then the second ones.
 * Stores the first sums in 'sums' instead, unless that is NULL. */
template<int pack, class value>
static __global__ void
__launch_bounds__(SUM_WARPS * WARP, 1)
column_chunks_kernel(int m, int n, int length, value v, double *chunks,
                     float *sums)
{
    const column_part<pack, value::n_vectors> part(m, n, length);
    const int ahead = part.ahead, n_lanes = part.n_lanes;
    double values[2 * pack] = { 0 }, sum;
    int lane = threadIdx.x, at, column;

    for (int i = part.first; i < part.last; i += ahead * part.n_rows) {
        float read[ahead][value::n_vectors][pack];

        UNROLL
        for (int j = 0; j < ahead; j++) {
            v.template read<pack>(part.index(i + j * part.n_rows), read[j]);
        }
        UNROLL
        for (int j = 0; j < ahead; j++) {
            if (part.has(i + j * part.n_rows)) {
                v.template add<pack>(read[j], values);
            }
        }
    }
    sum = add_warps<SUM_WARPS>(add_lanes<pack>(values));
    at = lane % n_lanes * pack + lane / n_lanes % pack;
    column = blockIdx.x * SUM_COLUMNS + at;
    if (threadIdx.y) {
        return;
    }
    if (!sums) {
        chunks[((size_t) blockIdx.x * gridDim.y + blockIdx.y) * WARP
               + lane / SUM_COLUMNS * SUM_COLUMNS + at] = sum;
    } else if (lane < SUM_COLUMNS && column < n) {
        sums[column] = sum;
    }
}

/* Adds the chunks of the columns of this block.  Lane i of the first warp gets
 * the first sum of column i, or the second one of column i - SUM_COLUMNS. */
static __device__ inline double
add_chunks(int n_chunks, const double *chunks)
{
    const int n_each = SUM_BLOCKS / SUM_WARPS;
    const double *mine = chunks + (size_t) blockIdx.x * n_chunks * WARP
                         + threadIdx.x;
    double sum = 0;

    UNROLL
    for (int i = 0; i < n_each; i++) {
        int chunk = i * SUM_WARPS + threadIdx.y;

        sum += chunk < n_chunks ? mine[chunk * WARP] : 0;
    }
    return add_warps<SUM_WARPS>(sum);
}

static __global__ void
column_totals_kernel(int n, int n_chunks, const double *chunks, float *sums)
{
    int column = blockIdx.x * SUM_COLUMNS + threadIdx.x;
    double sum = add_chunks(n_chunks, chunks);

    if (!threadIdx.y && threadIdx.x < SUM_COLUMNS && column < n) {
        sums[column] = sum;
    }
}

/* Reads the first rows before the chunks, so that both arrive together. */
template<int pack, class map>
static __global__ void
__launch_bounds__(SUM_WARPS * WARP, 1)
map_columns_kernel(int m, int n, int length, int n_chunks,
                   const double *chunks, map f)
{
    __shared__ float of_columns[SUM_COLUMNS][map::n_factors];
    const column_part<pack, map::n_vectors> part(m, n, length);
    const int ahead = part.ahead;
    float factors[pack][map::n_factors];
    int i = part.first;
    bool has_factors = false;

    do {
        float read[ahead][map::n_vectors][pack];

        UNROLL
        for (int j = 0; j < ahead; j++) {
            f.template read<pack>(part.index(i + j * part.n_rows), read[j]);
        }
        if (!has_factors) {
            int column = blockIdx.x * SUM_COLUMNS + threadIdx.x;
            double sum = add_chunks(n_chunks, chunks);
            double second = __shfl_xor_sync(ALL_LANES, sum, SUM_COLUMNS);

            if (!threadIdx.y && threadIdx.x < SUM_COLUMNS && column < n) {
                f.begin(column, sum, second, !blockIdx.y,
                        of_columns[threadIdx.x]);
            }
            __syncthreads();
            UNROLL
            for (int k = 0; k < pack * map::n_factors; k++) {
                factors[k / map::n_factors][k % map::n_factors]
                    = of_columns[part.at + k / map::n_factors]
                                [k % map::n_factors];
            }
            has_factors = true;
        }
        UNROLL
        for (int j = 0; j < ahead; j++) {
            int row = i + j * part.n_rows;
            float result[pack];

            if (part.has(row)) {
                f.template apply<pack>(factors, read[j], result);
                write_pack<pack>(f.to + part.index(row), result);
            }
        }
        i += ahead * part.n_rows;
    } while (i < part.last);
}

template<int pack, class value>
static cudaError_t
launch_column_sums(struct backend *b, int m, int n, value v, float *sums)
{
    struct column_plan plan = column_plan(m, n, pack);
    dim3 block(WARP, SUM_WARPS);
    bool is_one = plan.grid.y == 1;
    cudaError_t error;

    if (!(sums && is_one) && n > CUDA_KERNELS_WORK / 2) {
        return cudaErrorInvalidValue;
    }
    error = LAUNCH_MEETING((column_chunks_kernel<pack, value>), plan.grid,
                           block, cuda_stream(b), m, n, plan.length, v,
                           cuda_work(b), is_one ? sums : NULL);
    return error || !sums || is_one
           ? error
           : LAUNCH_MEETING(column_totals_kernel, plan.grid.x, block,
                            cuda_stream(b), n, plan.grid.y, cuda_work(b),
                            sums);
}

/* Sums over the m rows of each of n columns.  'v' reads a pack of each of its
 * vectors and adds them to one or two sums of each column.  'sums', unless it
 * is NULL, gets the first ones.  'aligned': the vectors are. */
template<class value>
static void
sum_columns(struct backend *b, const char *what, int m, int n, bool aligned,
            value v, float *sums)
{
    cuda_check(b, what, aligned && n % 4 == 0
                        ? launch_column_sums<4>(b, m, n, v, sums)
                        : launch_column_sums<1>(b, m, n, v, sums));
}

template<int pack, class map>
static cudaError_t
launch_map_columns(struct backend *b, int m, int n, bool has_sums, map f)
{
    struct column_plan plan = column_plan(m, n, pack);

    return LAUNCH_MEETING((map_columns_kernel<pack, map>), plan.grid,
                          dim3(WARP, SUM_WARPS), cuda_stream(b), m, n,
                          plan.length, has_sums ? plan.grid.y : 0,
                          cuda_work(b), f);
}

/* Computes m rows of n columns from their elements and 'n_factors' factors of
 * each column.  f.begin() derives these in each block that has the column; in
 * one of the blocks, with 'first' set.  If 'has_sums', it gets the sums of the
 * last sum_columns(), which had the same 'm', 'n' and 'aligned'. */
template<class map>
static void
map_columns(struct backend *b, const char *what, int m, int n, bool aligned,
            bool has_sums, map f)
{
    cuda_check(b, what, aligned && n % 4 == 0
                        ? launch_map_columns<4>(b, m, n, has_sums, f)
                        : launch_map_columns<1>(b, m, n, has_sums, f));
}

#endif /* trainer/backend/cuda-launch.h */
