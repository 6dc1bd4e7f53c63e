/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DOCTOR_CHECKS_H
#define DOCTOR_CHECKS_H 1

/* Checks of the doctor, and functions that they share; see doctor.h.
 *
 * Each check adds one or more findings. */

#include "agent/doctor/doctor.h"
#include "compiler.h"

/* Adds a finding.  'mend' may be NULL; it is copied. */
void doctor_add(struct doctor *, const char *check, enum doctor_result,
                const char *mend, const char *what, ...)
    OVS_PRINTF_FORMAT(5, 6);

/* Returns the path of 'path' below the root; the caller frees. */
char *doctor_path(const struct doctor *, const char *path);

/* Returns true if 'path' exists below the root.  'mode' is as of access(2). */
bool doctor_has(const struct doctor *, const char *path, int mode);

/* Returns the first line of 'path' below the root without its newline, or
 * NULL; the caller frees. */
char *doctor_read(const struct doctor *, const char *path);

/* Returns true if the host's kernel is at least 'major'.'minor', or its
 * version is unknown. */
bool doctor_kernel_from(const struct doctor *, int major, int minor);

/* kernel.c */
void doctor_check_cgroup(struct doctor *);
void doctor_check_capabilities(struct doctor *);
void doctor_check_queueing(struct doctor *);
void doctor_check_tcp(struct doctor *);
void doctor_check_clock(struct doctor *);

/* ports.c */
void doctor_check_memory(struct doctor *);
void doctor_check_ports(struct doctor *);

/* sockets.c */
void doctor_check_sock_diag(struct doctor *);
void doctor_check_daemons(struct doctor *);

#endif /* agent/doctor/checks.h */
