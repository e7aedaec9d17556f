/* Frames of a connection, as docs/remote.md describes them. */
#ifndef DAEMON_CHANNEL_H
#define DAEMON_CHANNEL_H

#include "json.h"
#include "sha256.h"

#define PROTOCOL 2u
#define PIECE (4u << 20)
#define MOST_HEAD (1u << 20)
#define MOST_BODY (8u << 20)
#define MOST_GREETING 4096u
#define HEADER 16u

enum kind { HELLO = 1, CHALLENGE, PROOF, WELCOME, REFUSED, CALL, RESULT, ERROR, CANCEL, WAIT, NOTE };
/* How receiving ended: QUIET: nothing began in time; SILENT: a message that had begun did not go on; LOST: the other
 * side has gone; DAMAGED: what came is no message. */
enum receipt { RECEIVED, QUIET, SILENT, LOST, DAMAGED };

struct frame {
  enum kind kind;
  uint32_t call, head_size, body_size;
  char *head; /* both lie in the channel's buffer until the next frame; bytes may be written behind each */
  uint8_t *body;
};

struct channel {
  int socket;
  bool greeting;
  double stall; /* seconds that a step of a message may take */
  uint8_t *buffer;
  size_t room;
  const char *why; /* of what is damaged */
};

void channel_tune(int socket);
/* Reads exactly `size` bytes; the first one until the clock shows `begin`, each further step within `stall`, all until
 * `end`. */
enum receipt channel_read(struct channel *channel, void *data, size_t size, double begin, double end);
bool channel_write(struct channel *channel, const void *data, size_t size);
/* The next frame, which begins until the clock shows `begin`; a greeting ends until then, too. */
enum receipt channel_receive(struct channel *channel, double begin, struct frame *frame);
bool channel_send(struct channel *channel, enum kind kind, uint32_t call, const struct text *head,
                  const struct part *parts, int count);
/* Whether the other side has gone (LOST), or wants the call to end (RECEIVED); QUIET: neither. Never waits. */
enum receipt channel_peek(const struct channel *channel);

#endif
