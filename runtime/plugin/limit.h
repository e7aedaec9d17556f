/* How long a job may take: the switch of the other runtimes, with their default. */
#ifndef PLUGIN_LIMIT_H
#define PLUGIN_LIMIT_H

#define TIME_LIMIT "COMPASS_TIMEOUT"

/* Seconds. When the variable says no number of seconds, `*wrong` is its text and the default counts; else NULL. */
double time_limit(const char **wrong);

#endif
