/* Runs an aipu.bin on files. The program's name says of which family: aipu_simulator_x2, _x3p, _x3s. */
#include "compass_runtime.h"
#include "device.h"
#include "file.h"
#include "limit.h"

#define MOST_TENSORS 256u
#define PATH_BYTES 4096u

long readlink(const char *, char *, size_t);

static const char usage[] =
    "usage: %s AIPU_BIN [-i FILE[,FILE ...]] [-o FILE]\n"
    "\n"
    "Runs an aipu.bin that compassc built for this family of targets. Tensors are raw bytes, without a header.\n"
    "\n"
    "  -i FILE,FILE   the inputs in their order; may be given several times\n"
    "  -o FILE        where the outputs go: FILE, FILE1, FILE2, ... (default: output.bin); they are written when the\n"
    "                 kernel has ended without a fault\n"
    "  --version, --help\n"
    "\n"
    "The environment variable " TIME_LIMIT " says how many seconds the kernel may take.\n";

/* Where this program lies; its name; and the engine beside it. */
static struct {
  char path[PATH_BYTES], engine[PATH_BYTES];
  const char *name;
} self = {.name = "aipu_simulator"};

struct options {
  const char *binary, *output;
  char *inputs[MOST_TENSORS];
  uint32_t input_count;
};

/* What a run holds. */
struct session {
  aipu_ctx_handle_t *context;
  uint64_t graph, job;
};

/* Where the program lies is known from the system: it may have been started by its name alone. */
static bool find_self(void) {
  ssize_t size = readlink("/proc/self/exe", self.path, sizeof self.path - sizeof COMPASS_ENGINE);
  const char *slash = size > 0 ? strrchr(self.path, '/') : NULL;
  if (!slash) return false;
  self.name = slash + 1;
  memcpy(self.engine, self.path, (size_t)(self.name - self.path));
  memcpy(self.engine + (self.name - self.path), COMPASS_ENGINE, sizeof COMPASS_ENGINE);
  return true;
}

/* Under another name it takes files of every family. */
static bool is_of_family(const struct file *file) {
  const char *family = strrchr(self.name, '_');
  return !family || (strncmp(family, "_x2", 3) && strncmp(family, "_x3", 3)) || file->x3 == (family[2] == '3');
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  char text[PATH_BYTES];
  va_list arguments;
  va_start(arguments, format);
  int size = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  write_all(1, text, size < (int)sizeof text ? (size_t)size : sizeof text - 1);
}

__attribute__((format(printf, 2, 3))) static int complain(int status, const char *format, ...) {
  char text[600], line[700];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (char *at = text; *at; at++)
    if ((unsigned char)*at < ' ' || *at == 127) *at = '?'; /* names in it may come from a damaged file */
  write_all(2, line, (size_t)snprintf(line, sizeof line, "%.80s: error: %s\n", self.name, text));
  return status;
}

static bool add_inputs(struct options *options, char *list) {
  for (char *at = list, *end; at; at = end ? end + 1 : NULL) {
    end = (char *)memchr(at, ',', strlen(at));
    if (end) *end = 0;
    if (options->input_count == MOST_TENSORS) return false;
    options->inputs[options->input_count++] = at;
  }
  return true;
}

/* Returns the exit status, or -1 when there is something to run. */
static int read_options(struct options *options, char **arguments) {
  *options = (struct options){.output = "output.bin"};
  for (char **at = arguments + 1; *at; at++) {
    bool is_input = !strcmp(*at, "-i"), is_output = !strcmp(*at, "-o");
    if (!strcmp(*at, "--help") || !strcmp(*at, "-h")) return say(usage, self.name), 0;
    if (!strcmp(*at, "--version")) return say("%s, compassc " COMPASS_VERSION "\n", self.name), 0;
    if ((is_input || is_output) && !at[1]) return complain(2, "option %s needs a value", *at);
    if (is_input && !add_inputs(options, *++at)) return complain(2, "there are more than %u inputs", MOST_TENSORS);
    if (is_output) options->output = *++at;
    if (is_input || is_output) continue;
    if (**at == '-' && at[0][1]) return complain(2, "there is no option '%s', see --help", *at);
    if (options->binary) return complain(2, "more than one aipu.bin: '%s' and '%s'", options->binary, *at);
    options->binary = *at;
  }
  return options->binary ? -1 : complain(2, "no aipu.bin is given, see --help");
}

/* The content of a file, of one that is larger one byte more than `most`; NULL with a message when it cannot be read. */
static char *read_whole(const char *path, size_t most, size_t *size) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  size_t room = 0;
  char *data = NULL;
  ssize_t n = file < 0 ? -1 : 1;
  for (*size = 0; n > 0 && *size <= most; *size += n > 0 ? (size_t)n : 0) {
    if (*size == room) {
      char *grown = realloc(data, room = room * 2 + (64u << 10));
      if (!grown) break;
      data = grown;
    }
    size_t wanted = room < most + 1 ? room : most + 1;
    do n = read(file, data + *size, wanted - *size);
    while (n < 0 && errno == EINTR);
  }
  const char *why = n < 0 ? strerror(errno) : n > 0 && *size <= most ? "there is no memory for it" : NULL;
  if (file >= 0) close(file);
  if (!why) return data;
  free(data);
  return complain(1, "cannot read '%s': %s", path, why), NULL;
}

/* Loads the file; returns the exit status, 0 when there is a job. */
static int load(struct session *session, const char *path) {
  size_t size;
  char *data = read_whole(path, 0x7ffffffe, &size);
  if (!data) return 1;
  struct file file;
  aipu_status_t status = file_read(&file, data, (uint32_t)size);
  bool fits = status || is_of_family(&file);
  if (!status) file_free(&file);
  if (!fits) return free(data), complain(1, "'%s' is for targets of another family", path);
  aipu_global_config_simulation_t config = {.simulator = self.engine};
  if (!status) status = aipu_init_context(&session->context);
  if (!status) status = aipu_config_global(session->context, AIPU_CONFIG_TYPE_SIMULATION, &config);
  if (!status) status = aipu_load_graph_helper(session->context, data, (uint32_t)size, &session->graph, NULL);
  if (!status) status = aipu_create_job(session->context, session->graph, &session->job, NULL);
  free(data);
  return status ? complain(1, "'%s': %s", path, compass_error_detail()) : 0;
}

static int load_inputs(const struct session *session, const struct options *options) {
  uint32_t count = 0;
  aipu_get_tensor_count(session->context, session->graph, AIPU_TENSOR_TYPE_INPUT, &count);
  if (count != options->input_count)
    return complain(1, "there are %u input files, and '%s' has %u inputs", options->input_count, options->binary, count);
  for (uint32_t i = 0; i < count; i++) {
    aipu_tensor_desc_t tensor;
    size_t size;
    if (aipu_get_tensor_descriptor(session->context, session->graph, AIPU_TENSOR_TYPE_INPUT, i, &tensor))
      return complain(1, "%s", compass_error_detail());
    char *data = read_whole(options->inputs[i], tensor.size, &size);
    if (!data) return 1;
    bool fits = size == tensor.size;
    aipu_status_t status = fits ? aipu_load_tensor(session->context, session->job, i, data) : AIPU_STATUS_SUCCESS;
    free(data);
    if (!fits)
      return complain(1, "'%s' has %s%zu bytes, and input %u has %u: tensors are raw bytes", options->inputs[i],
                      size > tensor.size ? "more than " : "", size > tensor.size ? tensor.size : size, i, tensor.size);
    if (status) return complain(1, "%s", compass_error_detail());
  }
  return 0;
}

static int write_file(const char *path, const char *data, size_t size) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  while (file >= 0 && size) {
    ssize_t n = write(file, data, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) break;
    data += n;
    size -= (size_t)n;
  }
  if (file < 0 || size || close(file) != 0) return complain(1, "cannot write '%s': %s", path, strerror(errno));
  return 0;
}

static int store_outputs(const struct session *session, const char *name) {
  uint32_t count = 0;
  aipu_get_tensor_count(session->context, session->graph, AIPU_TENSOR_TYPE_OUTPUT, &count);
  for (uint32_t i = 0; i < count; i++) {
    aipu_tensor_desc_t tensor;
    char path[PATH_BYTES];
    if (aipu_get_tensor_descriptor(session->context, session->graph, AIPU_TENSOR_TYPE_OUTPUT, i, &tensor))
      return complain(1, "%s", compass_error_detail());
    char *data = malloc(tensor.size ? tensor.size : 1);
    if (!data) return complain(1, "no memory for output %u", i);
    bool failed = aipu_get_tensor(session->context, session->job, AIPU_TENSOR_TYPE_OUTPUT, i, data) != 0;
    int size = i ? snprintf(path, sizeof path, "%s%u", name, i) : snprintf(path, sizeof path, "%s", name);
    int status = failed                     ? complain(1, "%s", compass_error_detail())
                 : size >= (int)sizeof path ? complain(1, "the name '%.100s...' is too long", name)
                                            : write_file(path, data, tensor.size);
    free(data);
    if (status) return status;
  }
  return 0;
}

static int run(struct session *session, const struct options *options) {
  const char *wrong;
  double seconds = time_limit(&wrong);
  if (wrong) return complain(2, TIME_LIMIT "='%.40s' is no number of seconds", wrong);
  int status = load(session, options->binary);
  if (!status) status = load_inputs(session, options);
  if (status) return status;
  uint32_t milliseconds = seconds < 2e6 ? (uint32_t)(seconds * 1000) + 1 : 2000000000;
  if (aipu_finish_job(session->context, session->job, (int32_t)milliseconds))
    return complain(1, "%s", compass_error_detail());
  return store_outputs(session, options->output);
}

int main(int count, char **arguments) {
  struct options options;
  struct session session = {0};
  (void)count;
  if (!find_self()) return complain(1, "the folder of this program is not known: is there no /proc?");
  int status = read_options(&options, arguments);
  if (status >= 0) return status;
  status = run(&session, &options);
  if (session.context) aipu_deinit_context(session.context);
  return status;
}
