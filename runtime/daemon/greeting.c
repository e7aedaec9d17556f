/* Who may talk to the server: tokens, and proofs of them. */
#include "server.h"

#define TOKEN_FILE_BYTES (1u << 16)

/* Reads the tokens of a text, a line each; rights, which stand behind them, are of servers that have what they allow.
 */
static bool read_tokens(struct tokens *tokens, char *text, const char *path, struct failure *failure) {
  int number = 1;
  for (char *line = text, *end; line; line = end ? end + 1 : NULL, number++) {
    end = strchr(line, '\n');
    if (end) *end = 0;
    line[strcspn(line, "#\r")] = 0;
    line += strspn(line, " \t");
    size_t size = strcspn(line, " \t");
    if (!size) continue;
    if (size < LEAST_TOKEN)
      return wrong(failure, "rpc-token", "%s:%d: a token has %u characters or more", path, number, LEAST_TOKEN);
    if (tokens->count == MOST_TOKENS) return wrong(failure, "rpc-token", "%s: more than %d tokens", path, MOST_TOKENS);
    line[size] = 0;
    if (!(tokens->text[tokens->count++] = strdup(line))) return wrong(failure, "rpc-token", "there is no memory");
  }
  return tokens->count || wrong(failure, "rpc-token", "there is no token in '%s'", path);
}

bool tokens_read(struct tokens *tokens, const char *path, struct failure *failure) {
  static char text[TOKEN_FILE_BYTES];
  struct about_file about = {0};
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? -1 : pread(file, text, sizeof text, 0);
  bool known = file >= 0 && statx(file, "", AT_EMPTY_PATH, STATX_BASIC, &about) == 0;
  if (file >= 0) close(file);
  if (size < 0 || !known) return wrong(failure, "rpc-token", "there is no file of tokens '%s' that can be read", path);
  if (about.mode & 077) return wrong(failure, "rpc-token", "others can read the tokens in '%s': chmod 600 it", path);
  if (size == sizeof text) return wrong(failure, "rpc-token", "the file of tokens '%s' is too large", path);
  text[size] = 0;
  return read_tokens(tokens, text, path, failure);
}

bool refuse(struct channel *channel, const char *message, const char *code) {
  struct text head = {0};
  text_put(&head, "{\"message\":");
  text_string(&head, message, strlen(message));
  text_print(&head, ",\"code\":\"%s\"}", code);
  channel_send(channel, REFUSED, 0, &head, NULL, 0);
  free(head.data);
  return false;
}

bool begin(struct channel *channel, double end) {
  uint8_t ours[8] = {'C', 'P', 'S', 'R', 'P', 'C', PROTOCOL, 0}, theirs[8];
  char text[120];
  if (!channel_write(channel, ours, sizeof ours) || channel_read(channel, theirs, sizeof theirs, end, end) != RECEIVED)
    return false;
  if (memcmp(theirs, ours, 6) != 0)
    return refuse(channel, "this is a server of compassc's remote sessions", "rpc-stranger");
  unsigned version = theirs[6] | theirs[7] << 8;
  snprintf(text, sizeof text, "it speaks version %u of the protocol, here it is %u (compass-rpcd " COMPASS_VERSION ")",
           version, PROTOCOL);
  return version == PROTOCOL || refuse(channel, text, "rpc-version");
}

char *expected(struct channel *channel, enum kind kind, double end, size_t *size) {
  struct frame frame;
  enum receipt receipt = channel_receive(channel, end, &frame);
  if (receipt == DAMAGED || (receipt == RECEIVED && frame.kind != kind))
    return refuse(channel, receipt == DAMAGED ? channel->why : "a greeting that is none", "rpc-protocol"), NULL;
  char *text = receipt == RECEIVED ? malloc(frame.head_size + 1) : NULL;
  if (!text) return NULL;
  memcpy(text, frame.head, frame.head_size);
  *size = frame.head_size;
  return text;
}

bool same_proof(const char *right, const struct json *given) {
  unsigned difference = 0;
  if (!given || given->kind != JSON_TEXT || given->size != 64) return false;
  for (int i = 0; i < 64; i++) difference |= (unsigned char)right[i] ^ (unsigned char)given->text[i];
  return !difference;
}

void prove(const char *token, const char *who, const struct part *hello, const struct part *challenge, char proof[65]) {
  const struct part said[] = {{who, strlen(who) + 1}, *hello, {"", 1}, *challenge};
  hmac_hex(token, strlen(token), said, 4, proof);
}

bool add_nonce(struct text *text) {
  uint8_t random[32];
  if (getrandom(random, sizeof random, 0) != sizeof random) return false;
  for (size_t i = 0; i < sizeof random; i++) text_print(text, "%02x", random[i]);
  return true;
}

/* Holds a proof against all tokens, and makes the server's. */
static bool is_proved(const struct tokens *tokens, const struct part *hello, const struct part *challenge,
                      const struct json *given, char proof[65]) {
  bool found = false;
  for (uint32_t i = 0; i < tokens->count; i++) {
    char right[65];
    prove(tokens->text[i], "client", hello, challenge, right);
    if (!same_proof(right, given)) continue;
    prove(tokens->text[i], "server", hello, challenge, proof);
    found = true;
  }
  return found;
}

/* What HELLO wants: a key, and some time. */
static void read_wishes(const struct server *server, const struct json *hello, struct greeted *greeted) {
  const struct json *key = json_find(hello, "key"), *seconds = json_find(hello, "session_timeout");
  greeted->seconds = server->options.quota.session_seconds;
  if (seconds && (seconds->kind == JSON_INTEGER || seconds->kind == JSON_FLOAT) && seconds->number > 0 &&
      (seconds->number < greeted->seconds || !greeted->seconds))
    greeted->seconds = seconds->number < 1e9 ? seconds->number : 0;
  greeted->key_size = key && key->kind == JSON_TEXT ? key->size : 0;
  if (greeted->key_size > sizeof greeted->key)
    greeted->key_size = sizeof greeted->key; /* longer than any that is right */
  if (greeted->key_size) memcpy(greeted->key, key->text, greeted->key_size);
}

bool greet(struct channel *channel, const struct server *server, double end, struct greeted *greeted) {
  struct text challenge = {0};
  size_t hello_size = 0, proof_size = 0;
  if (!begin(channel, end)) return false;
  char *hello = expected(channel, HELLO, end, &hello_size), *copy = hello ? malloc(hello_size + 1) : NULL;
  if (copy) memcpy(copy, hello, hello_size);
  struct json *wanted = copy ? json_parse(copy, hello_size) : NULL, *given = NULL;
  bool good = wanted && wanted->kind == JSON_DICT;
  if (hello && !good) refuse(channel, "a greeting that is none", "rpc-protocol");
  text_put(&challenge, "{\"software\":\"" COMPASS_VERSION "\",\"nonce\":\"");
  good = good && add_nonce(&challenge);
  text_put(&challenge, "\"}");
  good = good && channel_send(channel, CHALLENGE, 0, &challenge, NULL, 0);
  char *proof = good ? expected(channel, PROOF, end, &proof_size) : NULL;
  if (proof) {
    struct part said = {hello, hello_size}, asked = {challenge.data, challenge.size};
    given = json_parse(proof, proof_size);
    good = is_proved(&server->tokens, &said, &asked, json_find(given, "proof"), greeted->proof) ||
           refuse(channel, "the token is wrong", "rpc-refused");
    read_wishes(server, wanted, greeted);
  }
  free(given);
  free(wanted);
  free(copy);
  free(hello);
  free(challenge.data);
  bool done = good && proof;
  free(proof);
  return done;
}
