/* Preloaded into a program: where it is the one that SERVED_PROGRAM names, it waits before main() for calls, and for each of
 * them goes on in a child, so that loading the program and its libraries is done once.
 *
 * A call is a packet on the socket SERVED_SOCKET: working directory, arguments, an empty text, variables, each ended by a
 * zero; with two descriptors, of what the call writes to stdout and stderr, and for its status as waitpid() has it. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int, char **, char **);
typedef int Start(Main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
enum { JOBS = 64, WORDS = 16384 };

static Main *program;
static int calls, ended;  /* the socket, and where the ends of children are told */
static char message[1 << 18];
static char *words[WORDS];
static struct { pid_t child; int status; } jobs[JOBS];
static int running;

/* The words from `at` on up to an empty one or `end`, in `words` from `first` on; how many. */
static int split(char **at, char *end, int first) {
  int count = 0;
  for (; *at < end && **at != 0; *at += strlen(*at) + 1) {
    if (first + count + 1 >= WORDS) _exit(125);
    words[first + count++] = *at;
  }
  words[first + count] = NULL;
  *at += 1;
  return count;
}

static void become(ssize_t size, int output, const sigset_t *awaited) {
  close(calls), close(ended);
  for (int i = 0; i < running; i++) close(jobs[i].status);
  sigprocmask(SIG_UNBLOCK, awaited, NULL);
  signal(SIGPIPE, SIG_DFL);
  char *at = message + strlen(message) + 1, *end = message + size;
  if (chdir(message) != 0 || dup2(output, 1) < 0 || dup2(output, 2) < 0) _exit(125);
  close(output);
  int count = split(&at, end, 0);
  split(&at, end, count + 1);
  environ = words + count + 1;
  exit(program(count, words, environ));
}

static void begin(const sigset_t *awaited) {
  union { char bytes[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr header; } control;
  struct iovec part = {message, sizeof message};
  struct msghdr call = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  ssize_t size = recvmsg(calls, &call, MSG_CMSG_CLOEXEC);
  if (size <= 0 || call.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) _exit(0);
  int given[2];
  memcpy(given, CMSG_DATA(CMSG_FIRSTHDR(&call)), sizeof given);
  pid_t child = fork();
  if (child == 0) become(size, given[0], awaited);
  close(given[0]);
  if (child < 0) close(given[1]);
  else jobs[running].child = child, jobs[running++].status = given[1];
}

static void end(void) {
  struct signalfd_siginfo told;
  if (read(ended, &told, sizeof told) < 0) return;
  int status;
  for (pid_t child; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (int i = 0; i < running; i++) {
      if (jobs[i].child != child) continue;
      if (write(jobs[i].status, &status, sizeof status) < 0) _exit(1);
      close(jobs[i].status);
      jobs[i] = jobs[--running];
      break;
    }
  }
}

static int serve(int count, char **arguments, char **variables) {
  (void)count, (void)arguments, (void)variables;
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  signal(SIGPIPE, SIG_IGN);
  ended = signalfd(-1, &awaited, SFD_CLOEXEC);
  if (ended < 0 || send(calls, "ready", 5, 0) != 5) return 1;
  for (;;) {
    struct pollfd sources[] = {{ended, POLLIN, 0}, {running < JOBS ? calls : -1, POLLIN, 0}};
    if (poll(sources, 2, -1) <= 0) continue;
    if (sources[0].revents) end();
    else begin(&awaited);
  }
}

int __libc_start_main(Main *main, int count, char **arguments, void (*init)(void), void (*fini)(void), void (*loader)(void),
                      void *stack) {
  Start *start = (Start *)dlsym(RTLD_NEXT, "__libc_start_main");
  const char *served = getenv("SERVED_PROGRAM"), *socket = getenv("SERVED_SOCKET");
  char own[4096];
  ssize_t size = readlink("/proc/self/exe", own, sizeof own - 1);
  if (served != NULL && socket != NULL && size > 0 && (own[size] = 0, strcmp(own, served) == 0)) {
    calls = atoi(socket);
    program = main, main = serve;
  }
  return start(main, count, arguments, init, fini, loader, stack);
}
