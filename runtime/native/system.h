/* What the library uses of the C library, declared here: the build machine needs no libc headers.
 * Linux, x86-64, glibc. */
#ifndef RUNTIME_SYSTEM_H
#define RUNTIME_SYSTEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef long ssize_t;
typedef unsigned long pthread_t;
typedef union {
  char bytes[40];
  long align;
} pthread_mutex_t;
typedef union {
  char bytes[48];
  long long align;
} pthread_cond_t;
struct pollfd {
  int fd;
  short events, revents;
};
#define POLLIN 1
struct timespec {
  int64_t seconds, nanoseconds;
};

void *memcpy(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memchr(const void *, int, size_t);
size_t strlen(const char *);
size_t strnlen(const char *, size_t);
int strcmp(const char *, const char *);
char *strrchr(const char *, int);
int strncmp(const char *, const char *, size_t);
int strncasecmp(const char *, const char *, size_t);
size_t strspn(const char *, const char *);
size_t strcspn(const char *, const char *);
unsigned long strtoul(const char *, char **, int);
char *strdup(const char *);
char *strstr(const char *, const char *);
char *strerror(int);
int snprintf(char *, size_t, const char *, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char *, size_t, const char *, va_list);
char *getenv(const char *);
double strtod(const char *, char **);
void *malloc(size_t);
void *calloc(size_t, size_t);
void *realloc(void *, size_t);
void free(void *);
void qsort(void *, size_t, size_t, int (*)(const void *, const void *));

int open(const char *, int, ...);
ssize_t read(int, void *, size_t);
ssize_t write(int, const void *, size_t);
int close(int);
long lseek(int, long, int);
int ftruncate(int, long);
int memfd_create(const char *, unsigned);
int pipe2(int *, int);
ssize_t getrandom(void *, size_t, unsigned);
int fcntl(int, int, ...);
int socketpair(int, int, int, int *);
ssize_t send(int, const void *, size_t, int);
ssize_t recv(int, void *, size_t, int);
int sched_yield(void);
int poll(struct pollfd *, unsigned long, int);
typedef union {
  char bytes[80];
  long align;
} posix_spawn_file_actions_t;
int posix_spawn(int *, const char *, const posix_spawn_file_actions_t *, const void *attributes, char *const *,
                char *const *);
int posix_spawn_file_actions_init(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_destroy(posix_spawn_file_actions_t *);
int posix_spawn_file_actions_addopen(posix_spawn_file_actions_t *, int, const char *, int, unsigned);
int posix_spawn_file_actions_adddup2(posix_spawn_file_actions_t *, int, int);
_Noreturn void _exit(int);
int kill(int, int);
int waitpid(int, int *, int);
void *mmap(void *, size_t, int, int, int, long);
int munmap(void *, size_t);
int madvise(void *, size_t, int);
int *__errno_location(void);
#define errno (*__errno_location())
int clock_gettime(int, struct timespec *);
#define CLOCK_MONOTONIC 1
int pthread_create(pthread_t *, const void *, void *(*)(void *), void *);
int pthread_join(pthread_t, void **);
int pthread_mutex_lock(pthread_mutex_t *);
int pthread_mutex_unlock(pthread_mutex_t *);
int pthread_cond_wait(pthread_cond_t *, pthread_mutex_t *);
int pthread_cond_signal(pthread_cond_t *);
pthread_t pthread_self(void);
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);
int __cxa_atexit(void (*)(void *), void *, void *library);
void __cxa_finalize(void *library);
struct library_place {
  const char *path;
  void *base;
  const char *symbol;
  void *address;
};
int dladdr(const void *, struct library_place *);

#define O_RDONLY 0
#define O_WRONLY 1
#define O_RDWR 2
#define O_CREAT 0100
#define O_TRUNC 01000
#define O_APPEND 02000
#define O_CLOEXEC 02000000
#define MFD_CLOEXEC 1u
#define MFD_ALLOW_SEALING 2u
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#define SEEK_END 2
#define SEEK_SET 0
#define AF_UNIX 1
#define SOCK_STREAM_CLOEXEC (1 | 02000000)
#define MSG_PEEK 2
#define MSG_DONTWAIT 0x40
#define MSG_NOSIGNAL 0x4000
#define F_GETFD 1
#define F_DUPFD_CLOEXEC 1030
#define EINTR 4
#define SIGKILL 9
#define SIGBUS 7 /* a page of device memory that the file behind it does not have */
#define WNOHANG 1
#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_SHARED 1
#define MAP_FIXED 0x10
#define MAP_NORESERVE 0x4000
#define MAP_FAILED ((void *)-1)
#define MADV_REMOVE 9

#endif
