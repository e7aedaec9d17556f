#include "link.h"

#define RETRY_SECONDS 2.0
#define ANSWER_SECONDS 2.0
#define CLAIM_SECONDS 1.0 /* beyond a greeting, a client has to come after the tracker gave him this server */

bool link_open(struct link *link, const struct server *server) {
  *link = (struct link){.channel = {.socket = -1, .stall = ANSWER_SECONDS}};
  link->keys = calloc(server->options.quota.sessions, sizeof *link->keys);
  return link->keys;
}

void link_close(struct link *link) {
  if (link->channel.socket >= 0) close(link->channel.socket);
  free(link->channel.buffer);
  link->channel = (struct channel){.socket = -1, .stall = ANSWER_SECONDS};
  link->count = 0;
}

static void complain(struct link *link, const char *what) {
  char line[300];
  int size = snprintf(line, sizeof line, "compass-rpcd: warning: no tracker: %s; trying again\n", what);
  if (!link->complained) write_out(2, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
  link->complained = true;
}

/* A socket that is connected to an address, or -1. */
static int connected(const struct options *options) {
  uint16_t port = options->tracker_port;
  struct address_in address = {AF_INET, (uint16_t)(port << 8 | port >> 8), options->tracker, {0}};
  int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | O_NONBLOCK, 0), why = 0;
  uint32_t size = sizeof why;
  struct pollfd look = {.fd = file, .events = POLLOUT};
  if (file < 0) return -1;
  if (connect(file, &address, sizeof address) != 0 &&
      (errno != EINPROGRESS || poll(&look, 1, (int)(ANSWER_SECONDS * 1000)) != 1 ||
       getsockopt(file, SOL_SOCKET, SO_ERROR, &why, &size) != 0 || why))
    return close(file), -1;
  channel_tune(file);
  return file;
}

/* What is said of this server, and asked: where clients reach it. */
static void say_hello(const struct server *server, struct text *out) {
  const struct options *options = &server->options;
  struct text key = {0};
  text_put(out, "{\"role\":\"server\",\"software\":\"" COMPASS_VERSION "\",\"nonce\":\"");
  if (!add_nonce(out)) out->failed = true;
  text_print(out, "\",\"port\":%u,\"key\":", server->port);
  text_put(&key, "server:");
  text_put(&key, options->key);
  text_string(out, key.data ? key.data : "", key.size);
  out->failed = out->failed || key.failed;
  free(key.data);
  text_put(out, ",\"announced\":");
  if (options->announced)
    text_string(out, options->announced, strlen(options->announced));
  else
    text_put(out, "null");
  text_put(out, "}");
}

/* The greeting of a tracker, in which both show that they know the token; NULL when it has gone well, else what went
 * wrong. */
static const char *greet_tracker(struct link *link, const struct server *server, double end) {
  struct channel *channel = &link->channel;
  struct text hello = {0}, shown = {0};
  struct part said, asked;
  size_t challenge_size = 0, welcome_size = 0;
  const char *token = server->tokens.text[0], *why = "it is none, or does not know the token";
  char proof[65];
  say_hello(server, &hello);
  char *challenge = begin(channel, end) && channel_send(channel, HELLO, 0, &hello, NULL, 0)
                        ? expected(channel, CHALLENGE, end, &challenge_size)
                        : NULL;
  said = (struct part){hello.data, hello.size};
  asked = (struct part){challenge, challenge_size};
  if (challenge) {
    prove(token, "client", &said, &asked, proof);
    text_print(&shown, "{\"proof\":\"%s\"}", proof);
  }
  char *welcome = challenge && channel_send(channel, PROOF, 0, &shown, NULL, 0)
                      ? expected(channel, WELCOME, end, &welcome_size)
                      : NULL;
  if (challenge) prove(token, "server", &said, &asked, proof);
  struct json *about = welcome ? json_parse(welcome, welcome_size) : NULL;
  if (about && same_proof(proof, json_find(about, "proof")))
    why = json_is(json_find(about, "is"), "tracker") ? NULL : "what listens there is another server";
  free(about);
  free(welcome);
  free(challenge);
  free(shown.data);
  free(hello.data);
  channel->greeting = why != NULL;
  return why;
}

static void call_tracker(struct link *link, const struct text *head) {
  if (!channel_send(&link->channel, CALL, ++link->calls, head, NULL, 0)) link_close(link);
}

/* Registers a key for one more client. */
static void put_key(struct link *link, const struct server *server) {
  const struct options *options = &server->options;
  struct match_key *made = &link->keys[link->count++];
  struct text head = {0};
  uint64_t number;
  *made = (struct match_key){.given = 0};
  if (getrandom(&number, sizeof number, 0) != sizeof number) return link_close(link);
  snprintf(made->text, sizeof made->text, "%s:%llu", options->key, (unsigned long long)(number >> 2));
  text_put(&head, "{\"f\":\"tracker.put\",\"v\":[");
  text_string(&head, options->key, strlen(options->key));
  text_put(&head, ",");
  text_string(&head, made->text, strlen(made->text));
  text_put(&head, ",");
  if (options->announced)
    text_string(&head, options->announced, strlen(options->announced));
  else
    text_put(&head, "null");
  text_print(&head, ",%u]}", server->port);
  call_tracker(link, &head);
  free(head.data);
}

static void link_connect(struct link *link, const struct server *server) {
  link->next_try = now() + RETRY_SECONDS;
  int file = connected(&server->options);
  if (file < 0) return complain(link, "nothing listens there");
  link->channel.socket = file;
  link->channel.greeting = true;
  const char *why = greet_tracker(link, server, now() + ANSWER_SECONDS);
  if (why) return link_close(link), complain(link, why);
  link->complained = false;
}

static void drop_key(struct link *link, uint32_t at) { link->keys[at] = link->keys[--link->count]; }

void link_step(struct link *link, const struct server *server, uint32_t available) {
  double patience = server->options.quota.greeting_seconds + CLAIM_SECONDS;
  if (link->channel.socket < 0 && now() >= link->next_try) link_connect(link, server);
  for (uint32_t i = link->count; i-- > 0;)
    if (link->keys[i].given > 0 && now() - link->keys[i].given > patience) drop_key(link, i);
  while (link->channel.socket >= 0 && link->count < available) put_key(link, server);
}

void link_hear(struct link *link) {
  struct frame frame;
  if (channel_receive(&link->channel, now() + ANSWER_SECONDS, &frame) != RECEIVED) {
    link_close(link);
    return complain(link, "it has gone");
  }
  struct json *head = frame.kind == NOTE ? json_parse(frame.head, frame.head_size) : NULL;
  const struct json *key = json_find(head, "granted");
  for (uint32_t i = 0; i < link->count; i++)
    if (json_is(key, link->keys[i].text)) link->keys[i].given = now();
  free(head);
}

bool link_claims(struct link *link, struct name key) {
  for (uint32_t i = 0; i < link->count; i++) {
    const char *text = link->keys[i].text;
    if (key.size != strlen(text) || memcmp(key.data, text, key.size) != 0) continue;
    drop_key(link, i);
    return true;
  }
  return false;
}
