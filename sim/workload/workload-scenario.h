/* SPDX-License-Identifier: Apache-2.0 */

#ifndef WORKLOAD_SCENARIO_H
#define WORKLOAD_SCENARIO_H 1

/* Reads a scenario of the simulator.
 *
 * A lab scenario describes what real programs train; their traffic follows
 * from the models and is limited by one machine.  A scenario of the simulator
 * states the compute time of each job and the bytes between hosts directly.
 *
 *    {"kind": "sim", "name": "two", "fabric": {"hosts": 4, "rate": "10Gbit"},
 *     "cojobs": [
 *       {"name": "asha", "user": "ann", "weight": 1, "arrival_s": 0,
 *        "rungs": [{"iterations": 20, "keep": 1}, {"iterations": 60}],
 *        "jobs": [
 *          {"name": "t0", "compute_s": 0.02, "devices": 2,
 *           "ps": {"workers": ["h0", "h1"], "servers": ["h2"],
 *                  "bytes": 1e8},
 *           "curve": {"final": 0.9, "span": 0.8, "exponent": 0.5}},
 *          {"name": "t1", "compute_s": 0.02,
 *           "ring": {"hosts": ["h1", "h2", "h3"], "bytes": 1e8}},
 *          {"name": "t2", "transfers": [
 *             {"from": "h0", "to": "h3", "bytes": 1e6, "shard": 0,
 *              "phase": 0}]}]}]}
 *
 * A cojob with "method": "asynchronous" judges its trials one by one: it has
 * "places", "eta" and "brackets", and its rungs have no "keep".
 * stagecoach-sim-scenario(5) has all members.  A rung keeps the jobs with the
 * best curves at its end; those without a curve come last, in the order of the
 * file.
 *
 * The workload is the caller's. */

struct workload;

/* Messages begin with 'name'.  Returns NULL and stores the workload in '*wp',
 * or returns a malloc()'d message and stores NULL. */
char *workload_scenario_from_string(const char *name, const char *text,
                                    struct workload **wp);

#endif /* sim/workload/workload-scenario.h */
