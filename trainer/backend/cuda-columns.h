/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CUDA_COLUMNS_H
#define CUDA_COLUMNS_H 1

/* Both steps of sums over columns; see cuda-launch.h.
 *
 *    LAUNCH_MEETING(column_chunks<value>, plan.grid, plan.block, stream,
 *                   m, n, plan.length, v, d_sums, d_others);
 *    LAUNCH_MEETING(end, n, COLUMN_BLOCK, stream, plan.n_chunks, d_sums, ...);
 *
 * A value is a class that adds an element to one or two sums.  The end is a
 * kernel with a block per column; its first thread gets the total from
 * column_total(). */

#include "trainer/backend/cuda-launch.h"

#define COLUMN_BLOCK 128        /* Threads of the second step. */

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

#endif /* trainer/backend/cuda-columns.h */
