/* What the engine uses of the C library, declared here: the build machine needs no libc headers.
 * Linux, x86-64, glibc. */
#ifndef ENGINE_LIBC_H
#define ENGINE_LIBC_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned long pthread_t;
typedef long ssize_t;
struct timespec {
  int64_t seconds, nanoseconds;
};

void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memchr(const void *, int, size_t);
size_t strlen(const char *);
size_t strnlen(const char *, size_t);
int strcmp(const char *, const char *);
int snprintf(char *, size_t, const char *, ...) __attribute__((format(printf, 3, 4)));
int vsnprintf(char *, size_t, const char *, va_list);
unsigned long strtoul(const char *, char **, int);
void *malloc(size_t);
void free(void *);
_Noreturn void _exit(int);
int close(int);

void *mmap(void *, size_t, int, int, int, long);
int munmap(void *, size_t);
int mprotect(void *, size_t, int);
#define PROT_READ 1
#define PROT_WRITE 2
#define PROT_EXEC 4
#define MAP_SHARED 1
#define MAP_PRIVATE 2
#define MAP_FIXED 0x10
#define MAP_ANONYMOUS 0x20
#define MAP_NORESERVE 0x4000
#define MAP_FIXED_NOREPLACE 0x100000
#define MAP_FAILED ((void *)-1)

/* A larger piece of memory with the content of `old`, which is freed; NULL, and `old` stays, when there is none. In place
 * of realloc(), which calls mremap(): the worker may not. */
/* glibc's; where there is none, there is nothing to set. */
int mallopt(int, int) __attribute__((weak));
#define M_ARENA_MAX (-8)

static inline void *regrow(void *old, size_t size, size_t room) {
  void *grown = malloc(room);
  if (!grown) return NULL;
  if (size) memcpy(grown, old, size);
  free(old);
  return grown;
}

ssize_t send(int, const void *, size_t, int);
ssize_t recv(int, void *, size_t, int);
#define MSG_PEEK 2
#define MSG_DONTWAIT 0x40
#define MSG_WAITALL 0x100
#define MSG_NOSIGNAL 0x4000
int *__errno_location(void);
#define errno (*__errno_location())
#define EINTR 4
char *strerror(int);

typedef union {
  char bytes[56];
  long align;
} pthread_attr_t;
int pthread_attr_init(pthread_attr_t *);
int pthread_attr_setstacksize(pthread_attr_t *, size_t);
int pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int pause(void);
int sched_getaffinity(int, size_t, void *);
int sched_setaffinity(int, size_t, const void *);
int sched_getcpu(void);
int gettid(void);
int nanosleep(const struct timespec *, struct timespec *);
int clock_gettime(int, struct timespec *);
#define CLOCK_MONOTONIC 1
long syscall(long, ...);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
#define SYS_FUTEX 202
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

double log(double), tanh(double), sin(double), cos(double), exp2(double), erf(double), pow(double, double);
float roundevenf(float), truncf(float), floorf(float), ceilf(float), fmaf(float, float, float), sqrtf(float);
float fminf(float, float), fmaxf(float, float);

#endif
