/* SPDX-License-Identifier: Apache-2.0 */

#ifndef POLICY_FILE_H
#define POLICY_FILE_H 1

/* The policy in force, read again when its file changes.
 *
 * An operator edits a policy while searches run.  If the new file is invalid,
 * incomplete or missing, it is reported once, and the previous policy stays in
 * force until the file changes again.
 *
 *    error = policy_file_open("policies/stage.json", &pf);
 *    if (policy_file_run(pf)) {
 *        ...policy_file_get(pf) is another one...
 *    }
 *    policy_file_wait(pf);
 *
 * A policy lives until the policy_file_run() or policy_file_reload() after the
 * one that replaced it.  Main thread only. */

#include <stdbool.h>

struct policy;
struct policy_file;

char *policy_file_open(const char *name, struct policy_file **);
void policy_file_close(struct policy_file *);

bool policy_file_run(struct policy_file *);
void policy_file_wait(const struct policy_file *);
bool policy_file_reload(struct policy_file *);

const struct policy *policy_file_get(const struct policy_file *);
const char *policy_file_error(const struct policy_file *);

#endif /* controller/decide/policy-file.h */
