/* The server's connection to its tracker, which tells clients of it. */
#ifndef DAEMON_LINK_H
#define DAEMON_LINK_H

#include "server.h"

/* A key that a client may come with, once: the server's own one and a random number. `given`: when the tracker gave it
 * to one; 0: not yet. */
struct match_key {
  char text[MOST_KEY + 32];
  double given;
};

struct link {
  struct channel channel; /* its socket is -1 where there is none */
  struct match_key *keys; /* as many as there may be sessions */
  uint32_t count, calls;
  double next_try;
  bool complained;
};

bool link_open(struct link *link, const struct server *server);
/* Connects where there is no connection, and registers as many keys as there are sessions free. */
void link_step(struct link *link, const struct server *server, uint32_t available);
/* Takes what the tracker says: that a key was given to a client; or its end. */
void link_hear(struct link *link);
/* Whether a client may come with this key; he alone, and once. */
bool link_claims(struct link *link, struct name key);
void link_close(struct link *link);

#endif
