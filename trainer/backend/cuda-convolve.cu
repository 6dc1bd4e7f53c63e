/* SPDX-License-Identifier: Apache-2.0 */

/* Convolutions of few channels, as nets for small images have them.
 *
 * Libraries are made for more channels: on an H100, cuDNN takes 21 ms for the
 * convolutions of a step of ResNet-32 in fp32.  A kernel here is a matrix
 * product.  Its first factor, the neighbourhoods of the pixels, exists only in
 * shared memory.  Each thread computes a tile of 8 by 4 elements in registers,
 * while the next factors are on their way to the other half of the shared
 * memory.  All sums are in fp32, in an order that depends on sizes only. */

#include "trainer/backend/cuda-kernels.h"

#include <climits>

#include "trainer/backend/cuda-launch.h"
#include "trainer/backend/geometry.h"

#define DEPTH 16                /* Terms of the sums in one step. */
#define MAX_KERNEL 5
#define TILE_ROWS 8             /* Of a thread: two runs of 4. */
#define TILE_COLUMNS 4

/* Adds the products of 8 elements of a row of the first factor, which are 4 at
 * 'a' and 4 at 'a' + 'half', with 4 of the second. */
static __device__ inline void
multiply_tile(const float *a, int half, const float *b,
              float sums[TILE_ROWS][TILE_COLUMNS])
{
    float left[TILE_ROWS], right[TILE_COLUMNS];

    read_pack<4>(a, left);
    read_pack<4>(a + half, left + 4);
    read_pack<4>(b, right);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        UNROLL
        for (int j = 0; j < TILE_COLUMNS; j++) {
            sums[i][j] += left[i] * right[j];
        }
    }
}

/* Convolution, and the gradient of its input.
 *
 * Both are sums over the taps of the kernel: element (m, n) of the result is
 * the sum of products of the channels of a pixel of 'from' with weights.
 * Rows m are pixels of the result, and columns n its channels. */

struct sides {
    int height, width;          /* Of the images that are read... */
    int n_from;                 /* ...and their channels. */
    int to_height, to_width;    /* Of the result. */
    int n_to;
    int kernel, stride, pad;
};

/* A row of the first factor: a pixel of the result. */
struct row {
    int first;                  /* The index of the pixel of tap 0, 0, or what
                                 * it would be. */
    unsigned int rows, columns; /* Bit sets: those taps read a pixel. */
};

/* The gradient visits the outputs that have read a pixel: the outputs at a
 * multiple of the stride. */
template<bool gradient>
static __device__ unsigned int
taps_inside(int at, int limit, const struct sides &s)
{
    unsigned int inside = 0;

    for (int tap = 0; tap < s.kernel; tap++) {
        int seen = gradient ? at + s.pad - tap : at * s.stride - s.pad + tap;
        bool hits = !gradient || s.stride == 1 || seen % s.stride == 0;

        seen = gradient && s.stride > 1 && seen > 0 ? seen / s.stride : seen;
        inside |= (unsigned int) (hits && seen >= 0 && seen < limit) << tap;
    }
    return inside;
}

template<bool gradient>
static __device__ struct row
row_of(int m, int n_rows, const struct sides &s)
{
    struct row row = { 0, 0, 0 };

    if (m < n_rows) {
        int column = m % s.to_width, left = m / s.to_width;
        int line = left % s.to_height, image = left / s.to_height;
        int y = gradient ? (line + s.pad) / s.stride : line * s.stride - s.pad;
        int x =
            gradient ? (column + s.pad) / s.stride : column * s.stride - s.pad;

        row.first = ((image * s.height + y) * s.width + x) * s.n_from;
        row.rows = taps_inside<gradient>(line, s.height, s);
        row.columns = taps_inside<gradient>(column, s.width, s);
    }
    return row;
}

/* The threads of a block, in groups that take their parts of the terms. */
template <int n_m, int n_n> struct tiles {
    static const int n = n_m * n_n / (TILE_ROWS * TILE_COLUMNS);
};

/* Adds the sums of the other groups to the sums of group 0. */
template<int n_tiles, int n_groups>
static __device__ inline void
add_groups(int group, int tile, float sums[TILE_ROWS][TILE_COLUMNS])
{
    const int n_sums = TILE_ROWS * TILE_COLUMNS;
    __shared__ float others[n_groups > 1 ? n_sums * n_tiles : 1];

    for (int other = 1; other < n_groups; other++) {
        UNROLL
        for (int i = 0; i < n_sums; i++) {
            if (group == other) {
                others[i * n_tiles + tile] = sums[i / 4][i % 4];
            }
        }
        __syncthreads();
        UNROLL
        for (int i = 0; i < n_sums; i++) {
            if (!group) {
                sums[i / 4][i % 4] += others[i * n_tiles + tile];
            }
        }
        __syncthreads();
    }
}

/* A block computes 'n_m' pixels by 'n_n' channels. */
template<int n_m, int n_n, int n_groups, bool gradient>
static __global__ void
__launch_bounds__(tiles<n_m, n_n>::n * n_groups, 4 / n_groups)
convolve_kernel(int n_rows, struct sides s, const float *from,
                const float *weights, int add, float *to)
{
    const int n_tiles = tiles<n_m, n_n>::n, n_threads = n_tiles * n_groups;
    const int n_fours = DEPTH / 4;      /* Of a row of a factor. */
    const int n_loads = n_m * n_fours / n_threads;
    const int n_weights = (n_n * n_fours + n_threads - 1) / n_threads;
    const int n_k = DEPTH / n_groups;
    __shared__ __align__(16) float xs[2][DEPTH][n_m + 4];
    __shared__ __align__(16) float ws[2][DEPTH][n_n + 4];
    int thread = threadIdx.x;
    int group = thread / n_tiles, tile = thread % n_tiles;
    int tile_m = tile / (n_n / TILE_COLUMNS) * 4;
    int tile_n = tile % (n_n / TILE_COLUMNS) * TILE_COLUMNS;
    int first_m = blockIdx.x * n_m, first_n = blockIdx.y * n_n;
    int n_taps = s.kernel * s.kernel, n_steps = n_taps * (s.n_from / DEPTH);
    /* Of the step that is read. */
    int tap = 0, ty = 0, tx = 0, first = 0;
    float sums[TILE_ROWS][TILE_COLUMNS] = { { 0 } };
    float x[n_loads][4], w[n_weights][4] = { { 0 } };
    struct row rows[n_loads];

    UNROLL
    for (int i = 0; i < n_loads; i++) {
        rows[i] = row_of<gradient>(
            first_m + thread / n_fours + i * (n_threads / n_fours), n_rows, s);
    }
    for (int step = -1; step < n_steps; step++) {
        int next = step + 1, half = next & 1;

        if (next < n_steps) {
            int y_away = gradient && s.stride > 1 ? ty / s.stride : ty;
            int x_away = gradient && s.stride > 1 ? tx / s.stride : tx;
            int away = (y_away * s.width + x_away) * s.n_from;
            const float *at_from = from + first + thread % n_fours * 4;

            UNROLL
            for (int i = 0; i < n_loads; i++) {
                if (rows[i].rows >> ty & rows[i].columns >> tx & 1) {
                    read_pack<4>(at_from + rows[i].first
                                 + (gradient ? -away : away), x[i]);
                } else {
                    x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0;
                }
            }
            UNROLL
            for (int i = 0; i < n_weights; i++) {
                int at = thread + i * n_threads;

                if (at >= n_n * n_fours) {
                    break;
                }
                read_pack<4>(gradient
                             ? weights + ((first + at / (n_n / 4)) * n_taps
                                          + tap) * s.n_to
                               + first_n + at % (n_n / 4) * 4
                             : weights + ((first_n + at / n_fours) * n_taps
                                          + tap) * s.n_from
                               + first + at % n_fours * 4, w[i]);
            }
            first += DEPTH;
            if (first == s.n_from) {
                first = 0;
                tap++;
                if (++tx == s.kernel) {
                    tx = 0;
                    ty++;
                }
            }
        }
        if (step >= 0) {
            UNROLL
            for (int k = 0; k < n_k; k++) {
                multiply_tile(&xs[step & 1][group * n_k + k][tile_m], n_m / 2,
                              &ws[step & 1][group * n_k + k][tile_n], sums);
            }
        }
        if (next < n_steps) {
            UNROLL
            for (int i = 0; i < n_loads; i++) {
                int m = thread / n_fours + i * (n_threads / n_fours);

                UNROLL
                for (int j = 0; j < 4; j++) {
                    xs[half][thread % n_fours * 4 + j][m] = x[i][j];
                }
            }
            UNROLL
            for (int i = 0; i < n_weights; i++) {
                int at = thread + i * n_threads;

                if (at >= n_n * n_fours) {
                    break;
                }
                if (gradient) {
                    write_pack<4>(&ws[half][at / (n_n / 4)]
                                  [at % (n_n / 4) * 4], w[i]);
                } else {
                    for (int j = 0; j < 4; j++) {
                        ws[half][at % n_fours * 4 + j][at / n_fours] = w[i][j];
                    }
                }
            }
        }
        __syncthreads();
    }
    add_groups<n_tiles, n_groups>(group, tile, sums);
    UNROLL
    for (int i = 0; i < TILE_ROWS; i++) {
        int m = first_m + tile_m + i % 4 + i / 4 * (n_m / 2);

        if (m < n_rows && !group) {
            float *at = to + (size_t) m * s.n_to + first_n + tile_n;
            float old[4] = { 0 };

            if (add) {
                read_pack<4>(at, old);
            }
            UNROLL
            for (int j = 0; j < TILE_COLUMNS; j++) {
                old[j] += sums[i][j];
            }
            write_pack<4>(at, old);
        }
    }
}

template<int n_m, int n_n, int n_groups, bool gradient>
static void
convolve(struct backend *b, struct sides s, int n, const float *d_from,
         const float *d_w, bool add, float *d_to)
{
    int n_rows = n * s.to_height * s.to_width;

    if (n_rows) {
        cuda_check(
            b, "convolve",
            LAUNCH_MEETING((convolve_kernel<n_m, n_n, n_groups, gradient>),
                           dim3((n_rows + n_m - 1) / n_m, s.n_to / n_n),
                           (tiles<n_m, n_n>::n * n_groups), cuda_stream(b),
                           n_rows, s, d_from, d_w, add, d_to));
    }
}

/* The fewer blocks, the more threads each has. */
template<bool gradient>
static void
convolve_sides(struct backend *b, struct sides s, int n,
               const float *d_from, const float *d_w, bool add, float *d_to)
{
    if (s.n_to % 64 == 0) {
        convolve<64, 64, 2, gradient>(b, s, n, d_from, d_w, add, d_to);
    } else if (s.n_to % 32 == 0) {
        convolve<128, 32, 2, gradient>(b, s, n, d_from, d_w, add, d_to);
    } else {
        convolve<256, 16, 1, gradient>(b, s, n, d_from, d_w, add, d_to);
    }
}

/* Gradient of the weights.
 *
 * Element (tap and input channel, output channel) is a sum over all pixels of
 * the output.  A block adds a chunk of them for 'n_m' taps and channels, and a
 * second kernel adds the chunks.  With 'pack' 4, the channels are read four at
 * once. */

template <int n_m, int n_n> struct weights_plan {
    /* Of one group; each group takes its part of the pixels of a step. */
    static const int n_tiles = tiles<n_m, n_n>::n;
    static const int n_groups = n_tiles < 48 ? 4 : n_tiles < 96 ? 2 : 1;
    static const int n_threads = n_tiles * n_groups;
};

struct place {
    int image, row, column;
};

static __device__ inline void
move_on(struct place *p, int by, int height, int width)
{
    p->column += by;
    while (p->column >= width) {
        p->column -= width;
        if (++p->row == height) {
            p->row = 0;
            p->image++;
        }
    }
}

template<int n_m, int n_n, int pack>
static __global__ void
__launch_bounds__((weights_plan<n_m, n_n>::n_threads))
weights_kernel(int n_pixels, int length, struct convolution c, int out_height,
               int out_width, const float *x, const float *dy, float *chunks)
{
    typedef weights_plan<n_m, n_n> plan;
    const int n_columns = n_m / pack;
    const int n_loads = DEPTH * n_columns / plan::n_threads;
    const int n_dy = (DEPTH * n_n / 4 + plan::n_threads - 1) / plan::n_threads;
    __shared__ __align__(16) float xs[2][DEPTH][n_m];
    __shared__ __align__(16) float dys[2][DEPTH][n_n];
    int thread = threadIdx.x;
    int group = thread / plan::n_tiles, tile = thread % plan::n_tiles;
    int tile_m = tile / (n_n / TILE_COLUMNS) * 4;
    int tile_n = tile % (n_n / TILE_COLUMNS) * TILE_COLUMNS;
    int begin = blockIdx.x * length;
    int end = n_pixels - begin < length ? n_pixels : begin + length;
    int n_steps = (end - begin + DEPTH - 1) / DEPTH;
    int first_m = blockIdx.y * n_m, n_rows = c.kernel * c.kernel * c.n_in;
    /* What this thread reads of 'x': channels of a tap, at some consecutive
     * pixels of each step. */
    int at_m = thread % n_columns * pack;
    int at_k = thread / n_columns * n_loads;
    int tap = (first_m + at_m) / c.n_in, channel = (first_m + at_m) % c.n_in;
    int ty = tap / c.kernel - c.pad, tx = tap % c.kernel - c.pad;
    int pixel = begin + at_k;
    struct place place = { pixel / out_width / out_height,
                           pixel / out_width % out_height, pixel % out_width };
    float sums[TILE_ROWS][TILE_COLUMNS] = { { 0 } };
    float read_x[n_loads][pack], read_dy[n_dy][4] = { { 0 } };

    for (int step = -1; step < n_steps; step++) {
        int next = step + 1, half = next & 1;

        if (next < n_steps) {
            UNROLL
            for (int i = 0; i < n_loads; i++) {
                int row = place.row * c.stride + ty;
                int column = place.column * c.stride + tx;

                UNROLL
                for (int j = 0; j < pack; j++) {
                    read_x[i][j] = 0;
                }
                if (pixel + i < end && first_m + at_m < n_rows && row >= 0
                    && row < c.height && column >= 0 && column < c.width) {
                    read_pack<pack>(x + ((place.image * c.height + row)
                                         * c.width + column) * c.n_in
                                    + channel, read_x[i]);
                }
                move_on(&place, 1, out_height, out_width);
            }
            move_on(&place, DEPTH - n_loads, out_height, out_width);
            pixel += DEPTH;
            UNROLL
            for (int i = 0; i < n_dy; i++) {
                int at = thread + i * plan::n_threads;
                int p = begin + next * DEPTH + at / (n_n / 4);

                if (at < DEPTH * n_n / 4 && p < end) {
                    read_pack<4>(dy + p * n_n + at % (n_n / 4) * 4,
                                 read_dy[i]);
                } else {
                    read_dy[i][0] = read_dy[i][1] = 0;
                    read_dy[i][2] = read_dy[i][3] = 0;
                }
            }
        }
        if (step >= 0) {
            const int n_k = DEPTH / plan::n_groups;

            UNROLL
            for (int k = 0; k < n_k; k++) {
                multiply_tile(&xs[step & 1][group * n_k + k][tile_m], n_m / 2,
                              &dys[step & 1][group * n_k + k][tile_n], sums);
            }
        }
        if (next < n_steps) {
            UNROLL
            for (int i = 0; i < n_loads; i++) {
                write_pack<pack>(&xs[half][at_k + i][at_m], read_x[i]);
            }
            UNROLL
            for (int i = 0; i < n_dy; i++) {
                int at = thread + i * plan::n_threads;

                if (at < DEPTH * n_n / 4) {
                    write_pack<4>(&dys[half][at / (n_n / 4)]
                                  [at % (n_n / 4) * 4], read_dy[i]);
                }
            }
        }
        __syncthreads();
    }
    add_groups<plan::n_tiles, plan::n_groups>(group, tile, sums);
    UNROLL
    for (int i = 0; i < TILE_ROWS * TILE_COLUMNS; i++) {
        int m = first_m + tile_m + i / 4 % 4 + i / 16 * (n_m / 2);

        if (m < n_rows && !group) {
            chunks[((size_t) blockIdx.x * n_n + tile_n + i % 4) * n_rows + m]
                = sums[i / 4][i % 4];
        }
    }
}

/* A row of threads takes every 8th chunk. */
static __global__ void
add_chunks_kernel(int n_chunks, int n, const float *chunks, float *dw)
{
    int column = blockIdx.x * WARP + threadIdx.x;
    double sum = 0;

    if (column < n) {
        for (int i = threadIdx.y; i < n_chunks; i += BLOCK / WARP) {
            sum += chunks[(size_t) i * n + column];
        }
    }
    sum = add_warps<BLOCK / WARP>(sum);
    if (!threadIdx.y && column < n) {
        dw[column] = sum;
    }
}

#define WANTED_BLOCKS 528       /* Four for each multiprocessor of an H100. */

template<int n_m, int n_n, int pack>
static bool
convolve_weights(struct backend *b, const struct convolution *c, int n,
                 const float *d_x, const float *d_dy, float *d_dw)
{
    int n_rows = c->kernel * c->kernel * c->n_in;
    int n_parts = (n_rows + n_m - 1) / n_m;
    int height = convolution_height(c), width = convolution_width(c);
    int n_pixels = n * height * width;
    size_t fit = c->max_columns / ((size_t) n_rows * n_n);
    int wanted = n_parts < WANTED_BLOCKS ? WANTED_BLOCKS / n_parts : 1;
    int length, n_chunks;

    wanted = fit < (size_t) wanted ? fit : wanted;
    if (!wanted || !n_pixels) {
        return false;
    }
    length = ((n_pixels + wanted - 1) / wanted + DEPTH - 1) / DEPTH * DEPTH;
    n_chunks = (n_pixels + length - 1) / length;
    cuda_check(b, "convolve_weights",
               LAUNCH_MEETING((weights_kernel<n_m, n_n, pack>),
                              dim3(n_chunks, n_parts),
                              (weights_plan<n_m, n_n>::n_threads),
                              cuda_stream(b), n_pixels, length, *c, height,
                              width, d_x, d_dy, c->d_columns));
    cuda_check(b, "convolve_weights",
               LAUNCH_MEETING(add_chunks_kernel,
                              (n_rows * n_n + WARP - 1) / WARP,
                              dim3(WARP, BLOCK / WARP), cuda_stream(b),
                              n_chunks, n_rows * n_n, c->d_columns, d_dw));
    return true;
}

template<int n_m, int pack>
static bool
convolve_weights_of(struct backend *b, const struct convolution *c, int n,
                    const float *d_x, const float *d_dy, float *d_dw)
{
    return c->n_out == 16
           ? convolve_weights<n_m, 16, pack>(b, c, n, d_x, d_dy, d_dw)
           : c->n_out == 32
           ? convolve_weights<n_m, 32, pack>(b, c, n, d_x, d_dy, d_dw)
           : convolve_weights<n_m, 64, pack>(b, c, n, d_x, d_dy, d_dw);
}

/* The backend's operations. */

static bool
is_few(int n_channels)
{
    return n_channels == 16 || n_channels == 32 || n_channels == 64;
}

/* Indices are of 32 bits. */
static bool
is_indexed(const struct convolution *c, int n)
{
    size_t in = (size_t) c->height * c->width * c->n_in;
    size_t out = (size_t) convolution_height(c) * convolution_width(c)
                 * c->n_out;

    return n * (in > out ? in : out) <= INT_MAX;
}

/* Kernels of 3x3 are faster here in fp32 than elsewhere in TF32; larger ones,
 * which compute more with what they read, are not. */
static bool
is_faster_here(struct backend *b, const struct convolution *c, int n)
{
    return is_indexed(c, n) && is_few(c->n_in) && is_few(c->n_out)
           && (c->kernel == 3 || (c->kernel <= MAX_KERNEL
                                  && !cuda_has_tf32(b)));
}

bool
cuda_convolve(struct backend *b, const struct convolution *c, int n,
              const float *d_x, const float *d_w, float *d_y)
{
    struct sides s = {
        c->height, c->width, c->n_in, convolution_height(c),
        convolution_width(c), c->n_out, c->kernel, c->stride, c->pad,
    };

    if (!is_faster_here(b, c, n) || !is_aligned(d_w)) {
        return cuda_dnn_convolve(b, c, n, d_x, d_w, d_y);
    }
    convolve_sides<false>(b, s, n, d_x, d_w, false, d_y);
    return true;
}

bool
cuda_convolve_input(struct backend *b, const struct convolution *c, int n,
                    const float *d_dy, const float *d_w, bool add, float *d_dx)
{
    struct sides s = {
        convolution_height(c), convolution_width(c), c->n_out, c->height,
        c->width, c->n_in, c->kernel, c->stride, c->pad,
    };

    if (!is_faster_here(b, c, n) || !is_aligned(d_w)) {
        return cuda_dnn_convolve_input(b, c, n, d_dy, d_w, add, d_dx);
    }
    convolve_sides<true>(b, s, n, d_dy, d_w, add, d_dx);
    return true;
}

/* The first layer has the three channels of colours. */
bool
cuda_convolve_weights(struct backend *b, const struct convolution *c, int n,
                      const float *d_x, const float *d_dy, float *d_dw)
{
    int n_rows = c->kernel * c->kernel * c->n_in;
    bool done = false;

    if (is_faster_here(b, c, n)) {
        done = c->n_in == 16
               ? convolve_weights_of<144, 4>(b, c, n, d_x, d_dy, d_dw)
               : c->n_in == 32
               ? convolve_weights_of<96, 4>(b, c, n, d_x, d_dy, d_dw)
               : convolve_weights_of<64, 4>(b, c, n, d_x, d_dy, d_dw);
    } else if (n_rows <= 80 && is_few(c->n_out) && is_indexed(c, n)) {
        done = n_rows <= 32
               ? convolve_weights_of<32, 1>(b, c, n, d_x, d_dy, d_dw)
               : convolve_weights_of<80, 1>(b, c, n, d_x, d_dy, d_dw);
    }
    return done || cuda_dnn_convolve_weights(b, c, n, d_x, d_dy, d_dw);
}
