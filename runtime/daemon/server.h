/* The server: it listens, and gives every client a process of its own. */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include "session.h"

#define MOST_TOKENS 64
#define LEAST_TOKEN 32u

struct options {
  uint32_t host; /* as in address_in */
  uint16_t port, port_end;
  const char *key, *token_file, *driver, *engine, *folder;
  struct quota quota;
};

struct tokens {
  char *text[MOST_TOKENS];
  uint32_t count;
};

struct server {
  struct options options;
  struct tokens tokens;
  struct driver driver;
  int listener;
  char root[4096]; /* the folder of its sessions' folders */
  int root_file;   /* locked as long as the server lives */
};

/* What a client who is known wants. */
struct greeted {
  char proof[65]; /* that the server knows the token */
  double seconds; /* 0: no end */
};

bool tokens_read(struct tokens *tokens, const char *path, struct failure *failure);
/* Says why nothing comes of the greeting; false. */
bool refuse(struct channel *channel, const char *message, const char *code);
/* The greeting of a client; false: nothing comes of it, which was said to him. */
bool greet(struct channel *channel, const struct server *server, double end, struct greeted *greeted);
bool server_open(struct server *server, struct failure *failure);
/* Serves until a signal ends it. */
void server_run(struct server *server);

#endif
