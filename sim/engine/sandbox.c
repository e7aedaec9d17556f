#include "sandbox.h"

#include "processors.h"
#include "signals.h"
#include "wire.h"

/* The interface of Linux for system-call filters and limits; x86-64. */
struct filter_step {
  uint16_t code;
  uint8_t if_true, if_false;
  uint32_t value;
};
struct filter {
  uint16_t count;
  const struct filter_step *steps;
};
struct resource_limit {
  uint64_t soft, hard;
};
int setrlimit(int, const struct resource_limit *);
int fcntl(int, int, ...);
int poll(void *, unsigned long, int);
int getpid(void);
#define PR_SET_NO_NEW_PRIVS 38
#define SYS_FSTAT 5
#define SYS_SCHED_SETAFFINITY 203
#define SYS_SECCOMP 317
#define SYS_CLOSE_RANGE 436
#define SET_MODE_FILTER 1
#define FILTER_ALL_THREADS 1
#define LIMIT_FILE_SIZE 1
#define LIMIT_DATA 2
#define LIMIT_STACK 3
#define LIMIT_CORE 4
#define LIMIT_LOCKED 8
#define LIMIT_ADDRESS_SPACE 9
#define F_SETFL 4
#define F_SETOWN 8
#define F_GETOWN 9
#define F_SETSIG 10
#define F_GETSIG 11
#define O_ASYNC 020000
#define POLL_HANGUP 0x10
#define SIGNAL_KILL 9
#define ARCHITECTURE_X86_64 0xc000003eu
#define ALLOW 0x7fff0000u
#define TRAP 0x00030000u

/* Instructions of the filter: loads of a word of the call's description, comparisons, the verdict. */
enum { LOAD = 0x20, JUMP_EQUAL = 0x15, RETURN = 0x06 };
enum { AT_NUMBER = 0, AT_ARCHITECTURE = 4, AT_ARGUMENT = 16 };
#define ARGUMENT(i) (AT_ARGUMENT + 8 * (i))

/* System calls by number, and with what argument: its low word must equal `value`, or any will do. What the engine needs
 * while jobs run, no more: it has all its threads, files and signal handlers by then. Mappings are private ones, which
 * LIMIT_DATA counts; none that grow by themselves, or are shared, or of a file. */
enum rule { ANY, EQUALS };
#define ADVICE_DROP 4 /* gives pages back */
static const struct permission {
  uint16_t call;
  uint8_t rule, argument;
  uint32_t value;
} permissions[] = {
    {SYS_FUTEX, EQUALS, 1, FUTEX_WAIT_PRIVATE},
    {SYS_FUTEX, EQUALS, 1, FUTEX_WAKE_PRIVATE},
    {44, EQUALS, 0, SOCKET},             /* sendto, to the parent */
    {45, EQUALS, 0, SOCKET},             /* recvfrom, from the parent */
    {SYS_FSTAT, EQUALS, 0, SHARED_FILE}, /* fstat of device memory */
    {15, ANY, 0, 0},                     /* rt_sigreturn */
    {SYS_TIMER_SETTIME, ANY, 0, 0},      /* of the timers by which threads are asked where they stand */
    {228, ANY, 0, 0},                    /* clock_gettime */
    {35, ANY, 0, 0},                     /* nanosleep */
    {230, ANY, 0, 0},                    /* clock_nanosleep */
    {34, ANY, 0, 0},                     /* pause */
    {219, ANY, 0, 0},                    /* restart_syscall */
    {9, EQUALS, 3, MAP_PRIVATE | MAP_ANONYMOUS},
    {9, EQUALS, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE},
    {9, EQUALS, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED},
    {9, EQUALS, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE},
    {10, ANY, 0, 0},             /* mprotect */
    {11, ANY, 0, 0},             /* munmap */
    {28, EQUALS, 2, ADVICE_DROP}, /* madvise */
    {12, ANY, 0, 0},             /* brk */
    {24, ANY, 0, 0},             /* sched_yield */
    {309, ANY, 0, 0},            /* getcpu */
    {231, ANY, 0, 0},            /* exit_group */
};
enum { PERMISSIONS = sizeof permissions / sizeof *permissions };

static uint64_t memory_limit;

void close_foreign_files(void) {
  if (syscall(SYS_CLOSE_RANGE, FIRST_FOREIGN, ~0u, 0) == 0) return;
  for (int file = FIRST_FOREIGN; file < 1 << 16; file++) close(file); /* before Linux 5.9 */
}

bool end_with_parent(void) {
  struct {
    int file;
    short wanted, found;
  } lifeline = {LIFELINE, 0, 0};
  int process = getpid();
  if (fcntl(LIFELINE, F_SETOWN, process) != 0 || fcntl(LIFELINE, F_SETSIG, SIGNAL_KILL) != 0 ||
      fcntl(LIFELINE, F_SETFL, O_ASYNC) != 0 || fcntl(LIFELINE, F_GETOWN) != process ||
      fcntl(LIFELINE, F_GETSIG) != SIGNAL_KILL)
    return false;
  return poll(&lifeline, 1, 0) == 0; /* not gone before anybody asked for the signal */
}

uint64_t memory_in_use(void) {
  uint64_t status[18]; /* struct stat; word 8 counts blocks of 512 bytes */
  return syscall(SYS_FSTAT, SHARED_FILE, status) == 0 ? status[8] * 512 : 0;
}

bool memory_is_exceeded(void) { return memory_limit && memory_in_use() > memory_limit; }

#define OWN_MEMORY (256ull << 20) /* beyond the device's: code, stacks, printed text, heap */
#define ADDRESS_SPACE ((4ull << 30) + (1ull << 30))
#define MAIN_STACK (8ull << 20)

static void limit(int which, uint64_t most) { setrlimit(which, &(struct resource_limit){most, most}); }

void limit_memory(uint64_t most, uint64_t shadows) {
  memory_limit = most;
  limit(LIMIT_FILE_SIZE, 0);
  limit(LIMIT_CORE, 0);
  limit(LIMIT_LOCKED, 0);
  limit(LIMIT_STACK, MAIN_STACK);
  limit(LIMIT_DATA, OWN_MEMORY + shadows);
  limit(LIMIT_ADDRESS_SPACE, ADDRESS_SPACE + OWN_MEMORY + shadows);
}

/* Appends one permission, which falls through for what it does not allow. The call's number is in the accumulator
 * before and after. */
static uint16_t add(struct filter_step *steps, uint16_t at, const struct permission *p) {
  if (p->rule == ANY) {
    steps[at++] = (struct filter_step){JUMP_EQUAL, 0, 1, p->call};
  } else {
    steps[at++] = (struct filter_step){JUMP_EQUAL, 0, 4, p->call};
    steps[at++] = (struct filter_step){LOAD, 0, 0, ARGUMENT(p->argument)};
    steps[at++] = (struct filter_step){JUMP_EQUAL, 0, 1, p->value};
  }
  steps[at++] = (struct filter_step){RETURN, 0, 0, ALLOW};
  if (p->rule != ANY) steps[at++] = (struct filter_step){LOAD, 0, 0, AT_NUMBER};
  return at;
}

bool forbid_system_calls(char *message, size_t size) {
  struct filter_step steps[5 + 5 * (PERMISSIONS + MAX_TECS)];
  uint16_t count = 0;
  steps[count++] = (struct filter_step){LOAD, 0, 0, AT_ARCHITECTURE};
  steps[count++] = (struct filter_step){JUMP_EQUAL, 1, 0, ARCHITECTURE_X86_64};
  steps[count++] = (struct filter_step){RETURN, 0, 0, TRAP};
  steps[count++] = (struct filter_step){LOAD, 0, 0, AT_NUMBER};
  for (size_t i = 0; i < PERMISSIONS; i++) count = add(steps, count, &permissions[i]);
  for (uint32_t i = 0; i < helpers.count; i++)
    count = add(steps, count, &(struct permission){SYS_SCHED_SETAFFINITY, EQUALS, 0, (uint32_t)helpers.ids[i]});
  steps[count++] = (struct filter_step){RETURN, 0, 0, TRAP};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      syscall(SYS_SECCOMP, SET_MODE_FILTER, FILTER_ALL_THREADS, &(struct filter){count, steps}) == 0)
    return true;
  snprintf(message, size, "the system refuses the system-call filter (%s): a kernel could harm files and processes",
           strerror(errno));
  return false;
}
