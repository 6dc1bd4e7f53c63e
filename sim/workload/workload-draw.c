/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/workload/workload-draw.h"

#include <assert.h>

#include "sim/workload/random.h"
#include "sim/workload/workload-pattern.h"
#include "sim/workload/workload.h"

void
workload_draw_exchange(struct workload_job *job, struct sim_random *r,
                       int n_hosts, int n_workers, int n_servers, double bytes)
{
    int hosts[WORKLOAD_DRAW_MAX_HOSTS];
    int n = n_workers + n_servers;

    assert(n <= n_hosts && n <= WORKLOAD_DRAW_MAX_HOSTS);
    sim_random_pick(r, n_hosts, n, hosts);
    job->devices = n_workers;
    if (n_servers) {
        workload_add_ps(job, hosts + n_servers, n_workers, hosts, n_servers,
                        bytes);
    } else {
        workload_add_ring(job, hosts, n_workers, bytes);
    }
}

void
workload_draw_rest(struct workload_job *job, struct sim_random *r,
                   const struct sim_fabric *fabric, double share)
{
    job->compute = workload_exchange_time(job, fabric) * share / (1 - share)
                   * sim_random_between(r, 0.8, 1.2);
    job->curve.final = sim_random_between(r, 0.5, 0.99);
    job->curve.span = job->curve.final * sim_random_between(r, 0.5, 1);
    job->curve.exponent = sim_random_log_between(r, 0.3, 1.5);
}
