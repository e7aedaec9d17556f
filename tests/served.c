/* Preloaded into a program: where it is the one that SERVED_PROGRAM names, it waits before main() for calls, and for each of
 * them goes on in a child, so that loading the program and its libraries is done once.
 *
 * A call is a packet on the socket SERVED_SOCKET: working directory, arguments, an empty text, variables, each ended by a
 * zero; with descriptors for its status, as waitpid() has it, and for what it writes to stdout and stderr. A call that is
 * confined has an empty text more, seconds and bytes of memory, and descriptors of its own for stderr, of its stdin, of
 * Landlock's rules and of the filter of system calls (compass_core/confine/child.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int Main(int, char **, char **);
typedef int Start(Main *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
enum { JOBS = 64, WORDS = 16384 };
enum { STATUS, OUTPUT, MESSAGES, INPUT, RULES, FILTER, CONFINED };  /* the descriptors of a call, how many */
enum { RESTRICT = 446 };  /* landlock_restrict_self */

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

/* Whether the program that `words` call writes what it makes to a file. */
static int writes_file(void) {
  for (char **word = words; word[0] != NULL && word[1] != NULL; word++)
    if (strcmp(word[0], "-o") == 0) return strcmp(word[1], "-") != 0;
  return 0;
}

/* What `child.confine` does with Landlock. Without a parent there is nobody who reads what the call writes. */
static int confined(const int *given, const char *seconds, const char *memory) {
  struct { unsigned short count; const char *steps; } filter;
  static char steps[4096];
  ssize_t size = pread(given[FILTER], steps, sizeof steps, 0);
  if (size <= 0 || size == sizeof steps || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return 0;
  const struct { int what; rlim_t most; } limits[] = {
      {RLIMIT_CPU, strtoul(seconds, NULL, 10)}, {RLIMIT_AS, strtoul(memory, NULL, 10)},
      {RLIMIT_FSIZE, 0}, {RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 128}};
  for (unsigned i = 0; i < sizeof limits / sizeof *limits; i++) {
    struct rlimit limit;
    if (getrlimit(limits[i].what, &limit) != 0) return 0;
    if (limits[i].most < limit.rlim_max) limit.rlim_max = limits[i].most;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(limits[i].what, &limit) != 0) return 0;
  }
  filter.count = size / 8, filter.steps = steps;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || syscall(RESTRICT, given[RULES], 0) != 0) return 0;
  close(given[RULES]), close(given[FILTER]);
  return prctl(PR_SET_SECCOMP, 2, &filter) == 0;
}

static void become(ssize_t size, const int *given, int descriptors, const sigset_t *awaited) {
  close(calls), close(ended), close(given[STATUS]);
  for (int i = 0; i < running; i++) close(jobs[i].status);
  sigprocmask(SIG_UNBLOCK, awaited, NULL);
  signal(SIGPIPE, SIG_DFL);
  char *at = message + strlen(message) + 1, *end = message + size;
  int errors = given[descriptors == CONFINED ? MESSAGES : OUTPUT];
  if (chdir(message) != 0 || dup2(given[OUTPUT], 1) < 0 || dup2(errors, 2) < 0) _exit(125);
  close(given[OUTPUT]);
  int count = split(&at, end, 0), variables = split(&at, end, count + 1);
  environ = words + count + 1;
  if (descriptors == CONFINED) {
    char **limits = environ + variables + 1;
    if (dup2(given[INPUT], 0) < 0 || split(&at, end, (int)(limits - words)) != 2) _exit(125);
    close(given[MESSAGES]), close(given[INPUT]);
    if (!confined(given, limits[0], limits[1])) _exit(125);
  }
  int status = program(count, words, environ);
  if (writes_file()) _exit(status);  /* a millisecond quicker: nothing waits to be written, and what there is need not be taken apart */
  exit(status);
}

static void begin(const sigset_t *awaited) {
  union { char bytes[CMSG_SPACE(CONFINED * sizeof(int))]; struct cmsghdr header; } control;
  struct iovec part = {message, sizeof message};
  struct msghdr call = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control};
  ssize_t size = recvmsg(calls, &call, MSG_CMSG_CLOEXEC);
  if (size <= 0 || call.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) _exit(0);
  int given[CONFINED], bytes = CMSG_FIRSTHDR(&call)->cmsg_len - CMSG_LEN(0), descriptors = bytes / sizeof(int);
  memcpy(given, CMSG_DATA(CMSG_FIRSTHDR(&call)), bytes);
  pid_t child = fork();
  if (child == 0) become(size, given, descriptors, awaited);
  for (int i = OUTPUT; i < descriptors; i++) close(given[i]);
  if (child < 0) close(given[STATUS]);
  else jobs[running].child = child, jobs[running++].status = given[STATUS];
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

/* Whether the system gives large pages to who asks for them. */
static int has_large_pages(void) {
  char mode[64] = "";
  int file = open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  ssize_t size = file < 0 ? -1 : read(file, mode, sizeof mode - 1);
  close(file);
  return size > 0 && strstr(mode, "[never]") == NULL;
}

/* Copies the code of a library, as far as it fills large pages, into such: of children that a hundred megabytes of code are mapped
 * for anew, a tenth of their time goes into finding its pages. Our own code, and the C library's, is too small to be moved. */
static int enlarge(struct dl_phdr_info *library, size_t size, void *unused) {
  const uintptr_t large = 2 << 20;
  (void)size, (void)unused;
  for (int i = 0; i < library->dlpi_phnum; i++) {
    const ElfW(Phdr) *part = &library->dlpi_phdr[i];
    uintptr_t start = library->dlpi_addr + part->p_vaddr;
    uintptr_t begin = (start + large - 1) & -large, end = (start + part->p_filesz) & -large;
    if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) || part->p_flags & PF_W || begin >= end) continue;
    size_t bytes = end - begin;
    char *room = mmap(NULL, bytes + large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return 1;
    char *copy = (char *)(((uintptr_t)room + large - 1) & -large);
    madvise(copy, bytes, MADV_HUGEPAGE);
    memcpy(copy, (const void *)begin, bytes);
    if (mprotect(copy, bytes, PROT_READ | PROT_EXEC) != 0) return 1;
    if (mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)begin) == MAP_FAILED) _exit(1);
  }
  return 0;
}

/* Takes what is left of the large page that the heap ends in, and sees that there is another behind it: what children allocate
 * lies in large pages from the start on, for which the system is asked once, not four hundred times. */
static void end_heap_with_page(void) {
  const uintptr_t large = 2 << 20, step = 32 << 10, header = 64;
  for (int i = 0; i < 512; i++) {
    uintptr_t start = (uintptr_t)malloc(step), end = (start + step + large) & -large, rest = end - start - step;
    if (rest > step + header || end + 2 * large > (uintptr_t)sbrk(0)) continue;
    if (rest > 2 * header) malloc(rest - header);
    return;
  }
}

static int serve(int count, char **arguments, char **variables) {
  (void)count, (void)arguments, (void)variables;
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  sigprocmask(SIG_BLOCK, &awaited, NULL);
  signal(SIGPIPE, SIG_IGN);
  if (has_large_pages()) dl_iterate_phdr(enlarge, NULL), end_heap_with_page();
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
