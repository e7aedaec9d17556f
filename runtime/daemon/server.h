/* The server: it listens, and gives every client a process of its own. */
#ifndef DAEMON_SERVER_H
#define DAEMON_SERVER_H

#include "session.h"

#define MOST_TOKENS 64
#define LEAST_TOKEN 32u
#define MOST_KEY 200u /* bytes of the server's key */

struct options {
  uint32_t host; /* as in address_in */
  uint16_t port, port_end;
  const char *key, *token_file, *driver, *engine, *folder;
  uint32_t tracker; /* address at which the server registers; 0: at none */
  uint16_t tracker_port;
  const char *announced; /* address that the tracker gives to clients; NULL: where it sees this server */
  bool until_stdin_ends;
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
  uint16_t port;
  char root[4096]; /* the folder of its sessions' folders */
  int root_file;   /* locked as long as the server lives */
};

/* What a client who is known wants. */
struct greeted {
  char proof[65]; /* that the server knows the token */
  double seconds; /* 0: no end */
  char key[MOST_KEY + 32];
  uint32_t key_size;
};

/* Parts of greetings, of who connects and who is connected to. Sends the preamble, and holds the other one against it.
 */
bool begin(struct channel *channel, double end);
/* The next message of a kind, as a text with room behind it, which is the caller's to free; NULL with a refusal. */
char *expected(struct channel *channel, enum kind kind, double end, size_t *size);
/* What shows that `who` ("client", "server") knows a token. */
void prove(const char *token, const char *who, const struct part *hello, const struct part *challenge, char proof[65]);
/* Whether two proofs are the same; the time tells nothing of where they differ. */
bool same_proof(const char *right, const struct json *given);
/* Adds a random number in hexadecimal; false where the system has none. */
bool add_nonce(struct text *text);
bool tokens_read(struct tokens *tokens, const char *path, struct failure *failure);
/* Says why nothing comes of the greeting; false. */
bool refuse(struct channel *channel, const char *message, const char *code);
/* The greeting of a client; false: nothing comes of it, which was said to him. */
bool greet(struct channel *channel, const struct server *server, double end, struct greeted *greeted);
bool server_open(struct server *server, struct failure *failure);
/* Serves until a signal ends it. */
void server_run(struct server *server);

#endif
