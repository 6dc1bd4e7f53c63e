/* SPDX-License-Identifier: Apache-2.0 */

#ifndef AGENT_OPTIONS_H
#define AGENT_OPTIONS_H 1

/* The agent's command line; stagecoach-agent(8) describes it. */

struct agent_config;

/* Ends the program if 'argv' is not right, or asks for no more than help. */
void agent_options_parse(int argc, char *argv[], struct agent_config *);
void agent_options_uninit(struct agent_config *);

#endif /* agent/options.h */
