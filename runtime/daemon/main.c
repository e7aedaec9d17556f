/* compass-rpcd: the server of remote sessions for machines without Python. docs/remote.md tells how it is used. */
#include "server.h"

static const char usage[] =
    "usage: compass-rpcd --token-file FILE [options]\n"
    "\n"
    "Runs aipu.bin for clients of compassc's remote sessions on this machine's NPU, by the driver's library. It "
    "listens on\n"
    "loopback alone: a tunnel leads to it from other machines (ssh -L 9090:127.0.0.1:9090 board).\n"
    "\n"
    "  --token-file FILE        tokens, one a line, which others cannot read\n"
    "  --driver LIBRARY         the driver's library, such as libaipudrv.so (default: libcompass_runtime.so beside "
    "this\n"
    "                           program, with the simulator compass-worker)\n"
    "  --port N --port-end M    first port to try (9090), and the end of the ports (9199)\n"
    "  --host 127.N.N.N         address of loopback to listen at (127.0.0.1)\n"
    "  --key KEY                what kind of device this is; clients ask for it\n"
    "  --tracker 127.N.N.N:PORT tracker at which it registers, under the key; --custom-addr HOST:PORT: address that it "
    "gives\n"
    "                           to clients\n"
    "  --folder DIR             where sessions have their folders (/tmp)\n"
    "  --sessions N             clients at once (1)\n"
    "  --memory MB, --disk MB   of a session's tensors (1024), and files (1024)\n"
    "  --call-seconds S, --session-seconds S, --idle-seconds S, --stall-seconds S, --greeting-seconds S\n"
    "                           limits (600, 86400, 3600, 30, 5)\n"
    "  --until-stdin-ends       end when nothing can be said to it any more\n"
    "  --version, --help\n";

static int complain(const char *format, const char *what) {
  char line[900];
  int size = snprintf(line, sizeof line, format, what);
  write_out(2, "compass-rpcd: error: ", 21);
  write_out(2, line, size < (int)sizeof line ? (size_t)size : sizeof line - 1);
  write_out(2, "\n", 1);
  return 2;
}

enum kind_of_option {
  OPTION_TEXT,
  OPTION_COUNT,
  OPTION_PORT,
  OPTION_MEGABYTES,
  OPTION_SECONDS,
  OPTION_HOST,
  OPTION_TRACKER
};

/* An address of loopback as the system has it; 0 for others. */
static uint32_t loopback(const char *text) {
  uint32_t parts[4] = {0};
  if (!strcmp(text, "localhost")) text = "127.0.0.1";
  for (int i = 0; i < 4; i++) {
    char *end;
    if (*text < '0' || *text > '9') return 0;
    parts[i] = (uint32_t)strtoul(text, &end, 10);
    if (parts[i] > 255 || *end != (i < 3 ? '.' : 0)) return 0;
    text = end + 1;
  }
  return parts[0] == 127 ? parts[0] | parts[1] << 8 | parts[2] << 16 | parts[3] << 24 : 0;
}

/* HOST:PORT, the host being of loopback. */
static bool read_address(const char *text, struct options *out) {
  char host[64], *end = NULL;
  size_t size = strcspn(text, ":");
  unsigned long port = text[size] && text[size + 1] ? strtoul(text + size + 1, &end, 10) : 0;
  if (size >= sizeof host || !port || port > 65535 || *end) return false;
  memcpy(host, text, size);
  host[size] = 0;
  out->tracker = loopback(host);
  out->tracker_port = (uint16_t)port;
  return out->tracker != 0;
}

static bool read_value(enum kind_of_option kind, const char *text, void *out) {
  char *end = NULL;
  if (kind == OPTION_TEXT) return *(const char **)out = text, true;
  if (kind == OPTION_HOST) return (*(uint32_t *)out = loopback(text)) != 0;
  if (kind == OPTION_TRACKER) return read_address(text, out);
  double value = strtod(text, &end);
  if (!*text || *end || !(value >= 0) || value > 1e9) return false;
  if (kind == OPTION_SECONDS) return *(double *)out = value, true;
  if (value != (double)(uint32_t)value) return false;
  if (kind == OPTION_PORT) return *(uint16_t *)out = (uint16_t)value, value <= 65535;
  if (kind == OPTION_MEGABYTES) return *(uint64_t *)out = (uint64_t)value << 20, value > 0 && value < 1 << 20;
  return *(uint32_t *)out = (uint32_t)value, value > 0 && value <= 1000;
}

/* The exit status, or -1 when there is something to serve. */
static int read_options(struct options *o, char **arguments) {
  const struct {
    const char *name;
    enum kind_of_option kind;
    void *out;
  } known[] = {{"--token-file", OPTION_TEXT, &o->token_file},
               {"--driver", OPTION_TEXT, &o->driver},
               {"--key", OPTION_TEXT, &o->key},
               {"--folder", OPTION_TEXT, &o->folder},
               {"--host", OPTION_HOST, &o->host},
               {"--tracker", OPTION_TRACKER, o},
               {"--custom-addr", OPTION_TEXT, &o->announced},
               {"--port", OPTION_PORT, &o->port},
               {"--port-end", OPTION_PORT, &o->port_end},
               {"--sessions", OPTION_COUNT, &o->quota.sessions},
               {"--strangers", OPTION_COUNT, &o->quota.strangers},
               {"--memory", OPTION_MEGABYTES, &o->quota.memory},
               {"--disk", OPTION_MEGABYTES, &o->quota.disk},
               {"--call-seconds", OPTION_SECONDS, &o->quota.call_seconds},
               {"--session-seconds", OPTION_SECONDS, &o->quota.session_seconds},
               {"--idle-seconds", OPTION_SECONDS, &o->quota.idle_seconds},
               {"--stall-seconds", OPTION_SECONDS, &o->quota.stall_seconds},
               {"--greeting-seconds", OPTION_SECONDS, &o->quota.greeting_seconds}};
  for (char **at = arguments + 1; *at; at++) {
    size_t i = 0, count = sizeof known / sizeof *known;
    if (!strcmp(*at, "--help") || !strcmp(*at, "-h")) return write_out(1, usage, sizeof usage - 1), 0;
    if (!strcmp(*at, "--version"))
      return write_out(1, "compass-rpcd " COMPASS_VERSION "\n", sizeof "compass-rpcd " COMPASS_VERSION), 0;
    if (!strcmp(*at, "--until-stdin-ends")) {
      o->until_stdin_ends = true;
      continue;
    }
    while (i < count && strcmp(*at, known[i].name) != 0) i++;
    if (i == count) return complain("there is no option '%.200s', see --help", *at);
    if (!at[1]) return complain("option %s needs a value", *at);
    if (!read_value(known[i].kind, *++at, known[i].out))
      return known[i].kind == OPTION_HOST || known[i].kind == OPTION_TRACKER
                 ? complain(
                       "'%.200s' is no address of loopback (127.0.0.1; of a tracker with :PORT): there is no TLS here; "
                       "a tunnel leads there, ssh -L",
                       *at)
                 : complain("'%.200s' is no value of this option, see --help", *at);
  }
  const struct quota *quota = &o->quota;
  if (!quota->call_seconds || !quota->idle_seconds || !quota->stall_seconds || !quota->greeting_seconds)
    return complain("%s can be 0: no end", "of these limits only --session-seconds");
  if (strlen(o->key) > MOST_KEY) return complain("%s has at most 200 bytes", "--key");
  if (o->tracker && !o->key[0])
    return complain("%s: need key to present type of resource when tracker is available", "--tracker");
  return o->token_file ? -1 : complain("%s is needed: a file of tokens", "--token-file");
}

/* The path of a file beside this program; NULL where there is none. */
static const char *beside(const char *name) {
  static char paths[2][4200];
  static int next;
  char *path = paths[next++ % 2];
  ssize_t size = readlink("/proc/self/exe", path, 4095);
  if (size <= 0) return NULL;
  path[size] = 0;
  char *slash = strrchr(path, '/');
  snprintf(slash + 1, 100, "%s", name);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file >= 0) close(file);
  return file < 0 ? NULL : path;
}

void write_out(int file, const char *text, size_t size) {
  while (size) {
    ssize_t n = write(file, text, size);
    if (n <= 0) return;
    text += n;
    size -= (size_t)n;
  }
}

int main(int count, char **arguments) {
  static struct server server;
  struct failure failure;
  (void)count;
  server.options = (struct options){.host = loopback("127.0.0.1"),
                                    .port = 9090,
                                    .port_end = 9199,
                                    .key = "",
                                    .folder = "/tmp",
                                    .quota = {.memory = 1ull << 30,
                                              .disk = 1ull << 30,
                                              .call_seconds = 600,
                                              .session_seconds = 86400,
                                              .idle_seconds = 3600,
                                              .stall_seconds = 30,
                                              .greeting_seconds = 5,
                                              .sessions = 1,
                                              .strangers = 32}};
  int status = read_options(&server.options, arguments);
  if (status >= 0) return status;
  const char *driver = server.options.driver;
#ifndef COMPASS_STATIC_DRIVER
  if (!driver) driver = beside("libcompass_runtime.so");
  if (!driver) return complain("%s is needed: the driver's library, such as libaipudrv.so", "--driver");
#endif
  if (!tokens_read(&server.tokens, server.options.token_file, &failure) ||
      !driver_open(&server.driver, driver, beside("compass-worker"), &failure) || !server_open(&server, &failure))
    return complain("%s", failure.message);
  server_run(&server);
  return 0;
}
