/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_POLICY_H
#define CLI_POLICY_H 1

/* The commands of "stagecoach policy", see command.h. */

int policy_diff(int argc, char *argv[]);
int policy_whatif(int argc, char *argv[]);
int policy_tune(int argc, char *argv[]);

#endif /* cli/simulate/policy.h */
