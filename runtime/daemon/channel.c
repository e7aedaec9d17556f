#include "channel.h"

void channel_tune(int socket) {
  static const struct {
    int level, name, value;
  } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
                 {IPPROTO_TCP, TCP_KEEPIDLE, 10}, {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                 {IPPROTO_TCP, TCP_KEEPCNT, 4},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 30000}};
  for (size_t i = 0; i < sizeof options / sizeof *options; i++)
    setsockopt(socket, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

/* Waits until the socket can be read or written, or until the clock shows `end`; whether it can. */
static bool wait_for(int socket, short events, double end) {
  for (;;) {
    struct pollfd wait = {.fd = socket, .events = events};
    double left = end - now();
    if (left <= 0) return false;
    int ready = poll(&wait, 1, left < 1e6 ? (int)(left * 1000) + 1 : 1000000000);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return true; /* the call that follows says what is wrong */
  }
}

enum receipt channel_read(struct channel *channel, void *data, size_t size, double begin, double end) {
  uint8_t *at = data;
  bool begun = begin < 0;
  while (size) {
    ssize_t n = recv(channel->socket, at, size, MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return LOST;
    if (n > 0) {
      at += n;
      size -= (size_t)n;
      begun = true;
      continue;
    }
    double step = now() + channel->stall, limit = begun ? (step < end ? step : end) : begin;
    if (errno == EAGAIN && !wait_for(channel->socket, POLLIN, limit)) return begun ? SILENT : QUIET;
  }
  return RECEIVED;
}

bool channel_write(struct channel *channel, const void *data, size_t size) {
  const uint8_t *at = data;
  while (size) {
    ssize_t n = send(channel->socket, at, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      at += n;
      size -= (size_t)n;
    } else if (n < 0 && errno == EAGAIN) {
      if (!wait_for(channel->socket, POLLOUT, now() + channel->stall)) return false;
    } else if (n < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

static bool is_greeting(uint8_t kind) { return (kind >= HELLO && kind <= REFUSED) || kind == WAIT; }

static enum receipt damaged(struct channel *channel, const char *why) {
  channel->why = why;
  return DAMAGED;
}

enum receipt channel_receive(struct channel *channel, double begin, struct frame *frame) {
  uint8_t header[HEADER];
  double end = channel->greeting ? begin : 1e18;
  enum receipt receipt = channel_read(channel, header, sizeof header, begin, end);
  if (receipt != RECEIVED) return receipt;
  memcpy(&frame->call, header + 4, 4);
  memcpy(&frame->head_size, header + 8, 4);
  memcpy(&frame->body_size, header + 12, 4);
  frame->kind = (enum kind)header[0];
  if (header[1] || header[2] || header[3] || !header[0] || header[0] > NOTE)
    return damaged(channel, "a header that is none");
  if (is_greeting(header[0]) != channel->greeting) return damaged(channel, "a message that does not belong here");
  if (frame->head_size > (channel->greeting ? MOST_GREETING : MOST_HEAD) ||
      frame->body_size > (channel->greeting ? 0 : MOST_BODY))
    return damaged(channel, "a message that is too large");
  size_t body = ((size_t)frame->head_size + 1 + 15) / 16 * 16, size = body + frame->body_size + 1;
  if (size > channel->room) {
    uint8_t *grown = realloc(channel->buffer, size);
    if (!grown) return damaged(channel, "a message for which there is no memory");
    channel->buffer = grown;
    channel->room = size;
  }
  frame->head = (char *)channel->buffer;
  frame->body = channel->buffer + body;
  receipt = channel_read(channel, frame->head, frame->head_size, -1, end);
  return receipt == RECEIVED ? channel_read(channel, frame->body, frame->body_size, -1, end) : receipt;
}

bool channel_send(struct channel *channel, enum kind kind, uint32_t call, const struct text *head,
                  const struct part *parts, int count) {
  size_t size = 0;
  uint8_t header[HEADER] = {(uint8_t)kind};
  for (int i = 0; i < count; i++) size += parts[i].size;
  if (head->failed || head->size > MOST_HEAD || size > MOST_BODY) return false;
  uint32_t sizes[3] = {call, (uint32_t)head->size, (uint32_t)size};
  memcpy(header + 4, sizes, sizeof sizes);
  struct text first = {0};
  text_add(&first, (const char *)header, sizeof header);
  text_add(&first, head->data, head->size);
  bool together = size < 65536;
  for (int i = 0; together && i < count; i++) text_add(&first, parts[i].data, parts[i].size);
  bool good = !first.failed && channel_write(channel, first.data, first.size);
  for (int i = 0; good && !together && i < count; i++) good = channel_write(channel, parts[i].data, parts[i].size);
  free(first.data);
  return good;
}

enum receipt channel_peek(const struct channel *channel) {
  uint8_t header[HEADER];
  ssize_t n = recv(channel->socket, header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
  if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return LOST;
  return n == HEADER && header[0] == CANCEL ? RECEIVED : QUIET;
}
