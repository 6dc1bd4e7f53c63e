/* SPDX-License-Identifier: Apache-2.0 */

#ifndef CLI_POLICY_H
#define CLI_POLICY_H 1

/* The commands of "stagecoach policy", one file each; see command.h. */

int policy_check(int argc, char *argv[]);

#endif /* cli/policy.h */
