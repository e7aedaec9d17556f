#include "sandbox.h"

#include "processors.h"

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
#define PR_SET_NO_NEW_PRIVS 38
#define SYS_FSTAT 5
#define SYS_SCHED_SETAFFINITY 203
#define SYS_SECCOMP 317
#define SET_MODE_FILTER 1
#define FILTER_ALL_THREADS 1
#define LIMIT_FILE_SIZE 1
#define LIMIT_CORE 4
#define LIMIT_ADDRESS_SPACE 9
#define ARCHITECTURE_X86_64 0xc000003eu
#define ALLOW 0x7fff0000u
#define TRAP 0x00030000u

/* Instructions of the filter: loads of a word of the call's description, comparisons, the verdict. */
enum { LOAD = 0x20, JUMP_EQUAL = 0x15, JUMP_ANY_BIT = 0x45, RETURN = 0x06 };
enum { AT_NUMBER = 0, AT_ARCHITECTURE = 4, AT_ARGUMENT = 16 };
#define ARGUMENT(i) (AT_ARGUMENT + 8 * (i))

/* System calls by number, and with what argument: its low word must equal `value`, or have a bit of it. */
enum rule { ANY, EQUALS, HAS_BIT };
static struct permission {
  uint16_t call;
  uint8_t rule, argument;
  uint32_t value;
} permissions[] = {
    {202, ANY, 0, 0},               /* futex */
    {44, EQUALS, 0, 0},             /* sendto, to the parent */
    {45, EQUALS, 0, 0},             /* recvfrom, from the parent */
    {SYS_FSTAT, EQUALS, 0, 0},      /* fstat of device memory */
    {15, ANY, 0, 0},                /* rt_sigreturn */
    {14, ANY, 0, 0},                /* rt_sigprocmask */
    {228, ANY, 0, 0},               /* clock_gettime */
    {35, ANY, 0, 0},                /* nanosleep */
    {230, ANY, 0, 0},               /* clock_nanosleep */
    {34, ANY, 0, 0},                /* pause */
    {219, ANY, 0, 0},               /* restart_syscall */
    {9, HAS_BIT, 3, MAP_ANONYMOUS}, /* mmap, of no file */
    {10, ANY, 0, 0},                /* mprotect */
    {11, ANY, 0, 0},                /* munmap */
    {25, ANY, 0, 0},                /* mremap */
    {28, ANY, 0, 0},                /* madvise */
    {12, ANY, 0, 0},                /* brk */
    {39, ANY, 0, 0},                /* getpid */
    {186, ANY, 0, 0},               /* gettid */
    {234, EQUALS, 0, 0},            /* tgkill, of own threads */
    {24, ANY, 0, 0},                /* sched_yield */
    {309, ANY, 0, 0},               /* getcpu */
    {60, ANY, 0, 0},                /* exit */
    {231, ANY, 0, 0},               /* exit_group */
};
enum { SENDTO = 1, RECVFROM = 2, FSTAT = 3, TGKILL = 19, PERMISSIONS = sizeof permissions / sizeof *permissions };
int getpid(void);

static int device_file;
static uint64_t memory_limit;

uint64_t memory_in_use(void) {
  uint64_t status[18]; /* struct stat; word 8 counts blocks of 512 bytes */
  return syscall(SYS_FSTAT, device_file, status) == 0 ? status[8] * 512 : 0;
}

bool memory_is_exceeded(void) { return memory_limit && memory_in_use() > memory_limit; }

#define OWN_MEMORY (512ull << 20) /* beyond the device's: code, printed text, heap */
#define ADDRESS_SPACE ((4ull << 30) + (1ull << 30))

void limit_memory(int shared_file, uint64_t most, uint64_t shadows) {
  device_file = shared_file;
  memory_limit = most;
  setrlimit(LIMIT_FILE_SIZE, &(struct resource_limit){0, 0});
  setrlimit(LIMIT_CORE, &(struct resource_limit){0, 0});
  uint64_t all = ADDRESS_SPACE + OWN_MEMORY + shadows;
  setrlimit(LIMIT_ADDRESS_SPACE, &(struct resource_limit){all, all});
}

/* Appends one permission, which falls through for what it does not allow. The call's number is in the accumulator
 * before and after. */
static uint16_t add(struct filter_step *steps, uint16_t at, const struct permission *p) {
  if (p->rule == ANY) {
    steps[at++] = (struct filter_step){JUMP_EQUAL, 0, 1, p->call};
  } else {
    steps[at++] = (struct filter_step){JUMP_EQUAL, 0, 4, p->call};
    steps[at++] = (struct filter_step){LOAD, 0, 0, ARGUMENT(p->argument)};
    steps[at++] = (struct filter_step){p->rule == EQUALS ? JUMP_EQUAL : JUMP_ANY_BIT, 0, 1, p->value};
  }
  steps[at++] = (struct filter_step){RETURN, 0, 0, ALLOW};
  if (p->rule != ANY) steps[at++] = (struct filter_step){LOAD, 0, 0, AT_NUMBER};
  return at;
}

bool forbid_system_calls(int socket, int shared_file, char *message, size_t size) {
  struct filter_step steps[5 + 5 * (PERMISSIONS + MAX_TECS)];
  uint16_t count = 0;
  permissions[SENDTO].value = permissions[RECVFROM].value = (uint32_t)socket;
  permissions[FSTAT].value = (uint32_t)shared_file;
  permissions[TGKILL].value = (uint32_t)getpid();
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
