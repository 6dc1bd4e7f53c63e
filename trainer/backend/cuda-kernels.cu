/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/backend/cuda-kernels.h"

#include <climits>
#include <cmath>

#include "trainer/backend/cuda-launch.h"

/* Element-wise. */

template<int pack>
static __global__ void
bias_kernel(size_t n_packs, int n, const float *bias, int relu, float *y)
{
    FOR_EACH_ELEMENT (i, n_packs) {
        float sum[pack], value[pack];

        read_pack<pack>(y + i * pack, sum);
        read_pack<pack>(bias + rest(i, n / pack) * pack, value);
        UNROLL
        for (int j = 0; j < pack; j++) {
            sum[j] += value[j];
            sum[j] = relu && sum[j] < 0 ? 0 : sum[j];
        }
        write_pack<pack>(y + i * pack, sum);
    }
}

void
cuda_bias(struct backend *b, int m, int n, const float *d_bias, bool relu,
          float *d_y)
{
    size_t n_elements = (size_t) m * n;

    if (n % 4 == 0 && is_aligned(d_bias) && is_aligned(d_y)) {
        LAUNCH_EACH(b, "bias", bias_kernel<4>, n_elements / 4, n, d_bias,
                    relu, d_y);
    } else {
        LAUNCH_EACH(b, "bias", bias_kernel<1>, n_elements, n, d_bias, relu,
                    d_y);
    }
}

template<int pack>
static __global__ void
relu_gradient_kernel(size_t n_packs, const float *y, float *dy)
{
    FOR_EACH_ELEMENT (i, n_packs) {
        float value[pack], slope[pack];

        read_pack<pack>(y + i * pack, value);
        read_pack<pack>(dy + i * pack, slope);
        UNROLL
        for (int j = 0; j < pack; j++) {
            slope[j] = value[j] > 0 ? slope[j] : 0;
        }
        write_pack<pack>(dy + i * pack, slope);
    }
}

void
cuda_relu_gradient(struct backend *b, size_t n, const float *d_y, float *d_dy)
{
    if (n % 4 == 0 && is_aligned(d_y) && is_aligned(d_dy)) {
        LAUNCH_EACH(b, "relu_gradient", relu_gradient_kernel<4>, n / 4, d_y,
                    d_dy);
    } else {
        LAUNCH_EACH(b, "relu_gradient", relu_gradient_kernel<1>, n, d_y, d_dy);
    }
}

static __global__ void
accumulate_kernel(size_t n, float scale, const float *x, float *sum)
{
    FOR_EACH_ELEMENT (i, n) {
        sum[i] += scale * x[i];
    }
}

void
cuda_accumulate(struct backend *b, size_t n, float scale, const float *d_x,
                float *d_sum)
{
    LAUNCH_EACH(b, "accumulate", accumulate_kernel, n, scale, d_x, d_sum);
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

void
cuda_sgd(struct backend *b, size_t n, float rate, float momentum,
         const float *d_g, float *d_v, float *d_w)
{
    LAUNCH_EACH(b, "sgd", sgd_kernel, n, rate, momentum, d_g, d_v, d_w);
}

static __global__ void
count_kernel(uint32_t *counter)
{
    ++*counter;
}

void
cuda_count(struct backend *b, uint32_t *d_counter)
{
    cuda_check(b, "step",
               LAUNCH(count_kernel, 1, 1, cuda_stream(b), d_counter));
}

/* Sums. */

struct column_value {
    static const int n_vectors = 1;
    const float *y;

    template<int pack>
    __device__ void
    read(size_t at, float (*packs)[pack]) const
    {
        read_pack<pack>(y + at, packs[0]);
    }

    template<int pack>
    __device__ void
    add(const float (*packs)[pack], double *sums) const
    {
        UNROLL
        for (int j = 0; j < pack; j++) {
            sums[j] += packs[0][j];
        }
    }
};

void
cuda_column_sums(struct backend *b, int m, int n, const float *d_y,
                 float *d_sums)
{
    struct column_value value = { d_y };

    if (n) {
        sum_columns(b, "column_sums", m, n, is_aligned(d_y), value, d_sums);
    }
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

void
cuda_cross_entropy(struct backend *b, int m, int n, const float *d_y,
                   const int32_t *d_labels, float *d_dy)
{
    const int blocks = CUDA_KERNELS_N_PARTIALS / (BLOCK / WARP);
    struct cuda_partial *d_partials = cuda_partials(b);

    cuda_check(b, "cross_entropy",
               LAUNCH_MEETING(cross_entropy_kernel, blocks, BLOCK,
                              cuda_stream(b), m, n, d_y, d_labels,
                              m > 0 ? 1.0f / m : 0, d_dy, d_partials));
    cuda_post_partials(b);
}

/* A thread takes a row at a time. */
static __global__ void
margin_loss_kernel(int m, int hinge, const float *y, const int32_t *labels,
                   float *dy, struct cuda_partial *partials)
{
    int thread = blockIdx.x * BLOCK + threadIdx.x;
    struct cuda_partial total = { 0, 0 };

    for (int i = thread; i < m; i += CUDA_KERNELS_N_PARTIALS) {
        double sign = labels[i] ? 1 : -1, margin = sign * y[i], slope;

        if (hinge) {
            total.loss += margin < 1 ? 1 - margin : 0;
            slope = margin < 1;
        } else {
            total.loss += log1p(exp(-fabs(margin)))
                          + (margin < 0 ? -margin : 0);
            slope = 1 / (1 + exp(margin));
        }
        if (dy) {
            dy[i] = -sign * slope / m;
        }
        total.n_correct += (y[i] > 0) == labels[i];
    }
    partials[thread] = total;
}

void
cuda_margin_loss(struct backend *b, int m, bool hinge, const float *d_y,
                 const int32_t *d_labels, float *d_dy)
{
    const int blocks = CUDA_KERNELS_N_PARTIALS / BLOCK;
    struct cuda_partial *d_partials = cuda_partials(b);

    cuda_check(b, "margin_loss",
               LAUNCH(margin_loss_kernel, blocks, BLOCK, cuda_stream(b), m,
                      hinge, d_y, d_labels, d_dy, d_partials));
    cuda_post_partials(b);
}

/* A warp takes a row at a time. */
static __global__ void
gather_kernel(int m, const uint32_t *starts, const uint32_t *at,
              const float *values, const float *x, float *y)
{
    int lane = threadIdx.x % WARP;

    for (int i = blockIdx.x * (BLOCK / WARP) + threadIdx.x / WARP; i < m;
         i += gridDim.x * (BLOCK / WARP)) {
        double sum = 0;

        for (uint32_t e = starts[i] + lane; e < starts[i + 1]; e += WARP) {
            sum += (double) values[e] * x[at[e]];
        }
        for (int step = WARP / 2; step; step /= 2) {
            sum += __shfl_xor_sync(ALL_LANES, sum, step);
        }
        if (!lane) {
            y[i] = sum;
        }
    }
}

void
cuda_gather(struct backend *b, int m, const uint32_t *d_starts,
            const uint32_t *d_at, const float *d_values, const float *d_x,
            float *d_y)
{
    cuda_check(b, "gather", m
               ? LAUNCH_MEETING(gather_kernel, n_blocks((size_t) m * WARP),
                                BLOCK, cuda_stream(b), m, d_starts, d_at,
                                d_values, d_x, d_y)
               : cudaSuccess);
}
