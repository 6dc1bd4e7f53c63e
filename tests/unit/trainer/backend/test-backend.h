/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TEST_BACKEND_H
#define TEST_BACKEND_H 1

/* What the parts of test-backend share: the backend under test, and vectors
 * that are both here and there.
 *
 * A tolerance is relative to the sum of the absolute values of what was added
 * up: float32 has 24 bits, so 1e-6 lets a few roundings be in the same
 * direction. */

#include <stddef.h>

#include "trainer/backend/backend.h"
#include "trainer/data/seeded.h"

#define TOLERANCE 1e-6

extern struct backend *b;       /* What is tested. */
extern struct seeded rs;

/* A vector here and, with the same values, there. */
struct vector {
    size_t n;
    float *x, *d_x;
};

struct vector vector_random(size_t n, double scale);
void vector_free(struct vector *);

/* What the backend's side has become; the caller frees it. */
float *vector_download(const struct vector *);

/* Fails if the backend has 'x' where 'wanted' is right. */
void assert_near(double x, double wanted, double magnitude);

/* The other parts.  Return the number of failed tests of 'b'. */
int test_backend_images(const char *name);
int test_backend_models(const char *name);

#endif /* tests/unit/trainer/backend/test-backend.h */
