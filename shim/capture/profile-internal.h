/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CAPTURE_PROFILE_INTERNAL_H
#define CAPTURE_PROFILE_INTERNAL_H 1

/* For the files of profile.h only. */

#include "shim/capture/profile.h"

struct capture_frame;

/* Calls 'see' for each frame of 'file' that belongs to a flow, with the flow's
 * number; 'now' never falls. */
typedef void profile_see_func(void *aux, size_t flow, bool from_local,
                              uint32_t bytes, uint64_t now);
char *profile_pass(const char *file, const struct profile *,
                   profile_see_func *, void *aux);

/* Sorts the flows into groups. */
char *profile_group_flows(const char *file, struct profile *);

#endif /* shim/capture/profile-internal.h */
