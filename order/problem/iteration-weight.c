/* SPDX-License-Identifier: Apache-2.0 */

#include "order/problem/iteration-weight.h"

#include <math.h>

#include "order/problem/problem.h"

/* Power of the urgency.  Powers from 3 to 6 hardly differ. */
#define URGENCY_POWER 3

/* Least urgency: a job that is nearly done keeps a place in the order. */
#define MIN_URGENCY 0.05

double
iteration_urgency(const struct iteration_need *need, double alone)
{
    double urgency = need->slowest > 0 ? alone / need->slowest : 1;

    return fmax(fmin(urgency, 1), MIN_URGENCY);
}

double
iteration_weight(const struct iteration_need *need, double alone,
                 double busiest)
{
    double weight = need->weight
                    * pow(iteration_urgency(need, alone), URGENCY_POWER);

    if (need->work > 0 && busiest > 0) {
        weight *= busiest / need->work;
    }
    return fmin(fmax(weight, 1 / ORDER_MAX_WEIGHT), ORDER_MAX_WEIGHT);
}

double
iteration_early_weight(const struct iteration_need *need, size_t n_jobs,
                       double busiest, double all)
{
    double weight = need->weight / n_jobs;

    return busiest > 0 && all > 0 ? weight * busiest / all : weight;
}
