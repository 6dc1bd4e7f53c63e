/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H 1

/* Command line of the agent; stagecoach-agent(8) describes it. */

struct agent_config;

/* Ends the program after an error, --help or --version. */
void agent_options_parse(int argc, char *argv[], struct agent_config *);
void agent_options_uninit(struct agent_config *);

#endif /* agent/options.h */
