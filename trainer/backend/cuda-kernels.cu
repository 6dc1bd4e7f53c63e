/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/cuda-kernels.h"

#include <climits>
#include <cmath>

#define BLOCK 256               /* Threads. */
#define MAX_BLOCKS 4096         /* Beyond, a thread takes several elements. */
#define WARP 32
#define ALL_LANES 0xffffffffu
#define TILE_ROWS 8             /* Threads that share a column's sum. */

/* Element-wise. */

#define FOR_EACH_ELEMENT(I, N)                                          \
    for (size_t I = (size_t) blockIdx.x * blockDim.x + threadIdx.x;     \
         I < (N); I += (size_t) gridDim.x * blockDim.x)

static unsigned int
n_blocks(size_t n)
{
    size_t blocks = (n + BLOCK - 1) / BLOCK;

    return blocks < MAX_BLOCKS ? blocks : MAX_BLOCKS;
}

static __global__ void
bias_kernel(size_t n_elements, int n, const float *bias, int relu, float *y)
{
    FOR_EACH_ELEMENT (i, n_elements) {
        float sum = y[i] + bias[i % n];

        y[i] = relu && sum < 0 ? 0 : sum;
    }
}

cudaError_t
cuda_kernels_bias(cudaStream_t stream, int m, int n, const float *d_bias,
                  int relu, float *d_y)
{
    size_t n_elements = (size_t) m * n;

    if (!n_elements) {
        return cudaSuccess;
    }
    bias_kernel<<<n_blocks(n_elements), BLOCK, 0, stream>>>(
        n_elements, n, d_bias, relu, d_y);
    return cudaGetLastError();
}

static __global__ void
relu_gradient_kernel(size_t n, const float *y, float *dy)
{
    FOR_EACH_ELEMENT (i, n) {
        dy[i] = y[i] > 0 ? dy[i] : 0;
    }
}

cudaError_t
cuda_kernels_relu_gradient(cudaStream_t stream, size_t n, const float *d_y,
                           float *d_dy)
{
    if (!n) {
        return cudaSuccess;
    }
    relu_gradient_kernel<<<n_blocks(n), BLOCK, 0, stream>>>(n, d_y, d_dy);
    return cudaGetLastError();
}

static __global__ void
accumulate_kernel(size_t n, float scale, const float *x, float *sum)
{
    FOR_EACH_ELEMENT (i, n) {
        sum[i] += scale * x[i];
    }
}

cudaError_t
cuda_kernels_accumulate(cudaStream_t stream, size_t n, float scale,
                        const float *d_x, float *d_sum)
{
    if (!n) {
        return cudaSuccess;
    }
    accumulate_kernel<<<n_blocks(n), BLOCK, 0, stream>>>(n, scale, d_x,
                                                         d_sum);
    return cudaGetLastError();
}

static __global__ void
sgd_kernel(size_t n, float rate, float momentum, const float *g, float *v,
           float *w)
{
    FOR_EACH_ELEMENT (i, n) {
        v[i] = momentum * v[i] + g[i];
        w[i] -= rate * v[i];
    }
}

cudaError_t
cuda_kernels_sgd(cudaStream_t stream, size_t n, float rate, float momentum,
                 const float *d_g, float *d_v, float *d_w)
{
    if (!n) {
        return cudaSuccess;
    }
    sgd_kernel<<<n_blocks(n), BLOCK, 0, stream>>>(n, rate, momentum, d_g, d_v,
                                                  d_w);
    return cudaGetLastError();
}

/* Sums. */

/* A block has WARP columns and TILE_ROWS threads for each of them, so that a
 * warp reads neighbours. */
static __global__ void
column_sums_kernel(int m, int n, const float *y, float *sums)
{
    __shared__ float tile[TILE_ROWS][WARP];
    int column = blockIdx.x * WARP + threadIdx.x;
    float sum = 0;

    if (column < n) {
        for (int i = threadIdx.y; i < m; i += TILE_ROWS) {
            sum += y[(size_t) i * n + column];
        }
    }
    tile[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (!threadIdx.y && column < n) {
        for (int i = 1; i < TILE_ROWS; i++) {
            sum += tile[i][threadIdx.x];
        }
        sums[column] = sum;
    }
}

cudaError_t
cuda_kernels_column_sums(cudaStream_t stream, int m, int n, const float *d_y,
                         float *d_sums)
{
    dim3 block(WARP, TILE_ROWS);

    if (!n) {
        return cudaSuccess;
    }
    column_sums_kernel<<<(n + WARP - 1) / WARP, block, 0, stream>>>(m, n, d_y,
                                                                    d_sums);
    return cudaGetLastError();
}

/* The first of the largest of the row 'y' of 'n'.  All lanes of a warp call
 * this and get the same. */
static __device__ int
warp_argmax(int n, const float *y, int lane)
{
    float largest = -INFINITY;
    int at = INT_MAX;

    for (int j = lane; j < n; j += WARP) {
        if (y[j] > largest || at == INT_MAX) {
            largest = y[j];
            at = j;
        }
    }
    for (int step = WARP / 2; step; step /= 2) {
        float other = __shfl_xor_sync(ALL_LANES, largest, step);
        int other_at = __shfl_xor_sync(ALL_LANES, at, step);

        if (other_at != INT_MAX
            && (at == INT_MAX || other > largest
                || (other == largest && other_at < at))) {
            largest = other;
            at = other_at;
        }
    }
    return __shfl_sync(ALL_LANES, at, 0);
}

/* The sum of exp(y[j] - 'largest') over a row, for all lanes of a warp. */
static __device__ double
warp_sum_exp(int n, const float *y, float largest, int lane)
{
    double sum = 0;

    for (int j = lane; j < n; j += WARP) {
        sum += exp((double) (y[j] - largest));
    }
    for (int step = WARP / 2; step; step /= 2) {
        sum += __shfl_xor_sync(ALL_LANES, sum, step);
    }
    return sum;
}

/* A warp takes a row at a time.  Exponentials are of doubles, as on the CPU:
 * their cost is nothing next to the layers' products. */
static __global__ void
cross_entropy_kernel(int m, int n, const float *ys, const int32_t *labels,
                     float scale, float *dys, struct cuda_partial *partials)
{
    int warp = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP;
    int lane = threadIdx.x % WARP;
    struct cuda_partial total = { 0, 0 };

    for (int i = warp; i < m; i += CUDA_KERNELS_N_PARTIALS) {
        const float *y = ys + (size_t) i * n;
        int label = labels[i];
        int best = warp_argmax(n, y, lane);
        float largest = y[best];
        double sum = warp_sum_exp(n, y, largest, lane);

        if (dys) {
            float *dy = dys + (size_t) i * n;

            for (int j = lane; j < n; j += WARP) {
                double p = exp((double) (y[j] - largest)) / sum;

                dy[j] = scale * (p - (j == label));
            }
        }
        total.loss += log(sum) + largest - y[label];
        total.n_correct += best == label;
    }
    if (!lane) {
        partials[warp] = total;
    }
}

cudaError_t
cuda_kernels_cross_entropy(cudaStream_t stream, int m, int n,
                           const float *d_y, const int32_t *d_labels,
                           float *d_dy, struct cuda_partial *d_partials)
{
    const int blocks = CUDA_KERNELS_N_PARTIALS / (BLOCK / WARP);

    cross_entropy_kernel<<<blocks, BLOCK, 0, stream>>>(
        m, n, d_y, d_labels, m > 0 ? 1.0f / m : 0, d_dy, d_partials);
    return cudaGetLastError();
}
