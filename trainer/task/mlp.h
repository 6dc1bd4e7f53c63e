/* SPDX-License-Identifier: Apache-2.0 */

#ifndef MLP_H
#define MLP_H 1

/* A multi-layer perceptron: ReLU between layers, softmax at the end.
 *
 *
 * Motivation
 * ==========
 *
 * The parameter servers see a model as one flat vector, so the model keeps its
 * weights and its gradient as one flat vector each: layer after layer, the
 * weights (inputs by outputs), then the biases.
 *
 *
 * Usage
 * =====
 *
 *    struct mlp *mlp = mlp_create(backend, &shape, max_batch);
 *    mlp_init_weights(mlp_weights(mlp), &shape, seed);
 *    mlp_weights_changed(mlp);
 *    mlp_gradient(mlp, x, labels, n, &loss);
 *    ...mlp_gradient_vector(mlp) is what to push...
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Everything is allocated at creation.  The two vectors are host memory that
 * belongs to the model, in place where the backend allows that.  One
 * thread. */

#include <stddef.h>
#include <stdint.h>

struct backend;
struct mlp;
struct shape;

struct mlp *mlp_create(struct backend *, const struct shape *,
                       int max_batch);
void mlp_destroy(struct mlp *);

/* The weights.  Whoever has written them says so. */
float *mlp_weights(struct mlp *);
void mlp_weights_changed(struct mlp *);

/* First weights: normal, scaled so that no layer shrinks or blows up what
 * passes through it; biases 0. */
void mlp_init_weights(float *weights, const struct shape *, uint64_t seed);

/* Computes the gradient of the mean loss of 'n' samples, at most 'max_batch',
 * and the sum of their losses. */
void mlp_gradient(struct mlp *, const float *x, const int32_t *labels, int n,
                  double *loss_sum);
const float *mlp_gradient_vector(const struct mlp *);

/* Mean loss, and the part of 'n' samples (any number) that is right. */
void mlp_evaluate(struct mlp *, const float *x, const int32_t *labels,
                  size_t n, double *loss, double *accuracy);

#endif /* trainer/task/mlp.h */
