/* What the server uses of the C library besides system.h, declared here as there. Numbers and structures are those of
 * 64-bit Linux, on x86-64 and aarch64. */
#ifndef DAEMON_OS_H
#define DAEMON_OS_H

#include "system.h"

#undef SEEK_END
#undef SEEK_SET

struct dirent {
  uint64_t inode;
  int64_t offset;
  uint16_t size;
  uint8_t type;
  char name[256];
};
struct address_in {
  uint16_t family, port; /* port: big-endian */
  uint32_t host;
  char rest[8];
};
struct limit {
  uint64_t soft, hard;
};
/* struct statx, the same on all machines. */
struct about_file {
  uint32_t mask, block;
  uint64_t attributes;
  uint32_t links, user, group;
  uint16_t mode, unused;
  uint64_t inode, size, rest[27];
};

int fork(void);
int setsid(void);
int getuid(void);
int prctl(int, unsigned long, unsigned long, unsigned long, unsigned long);
int setrlimit(int, const struct limit *);
int getrlimit(int, struct limit *);
void (*signal(int, void (*)(int)))(int);
int socket(int, int, int);
int connect(int, const void *, uint32_t);
int getsockopt(int, int, int, void *, uint32_t *);
int bind(int, const void *, uint32_t);
int listen(int, int);
int accept4(int, void *, uint32_t *, int);
int setsockopt(int, int, int, const void *, uint32_t);
int getsockname(int, void *, uint32_t *);
ssize_t pread(int, void *, size_t, long);
ssize_t pwrite(int, const void *, size_t, long);
int dup2(int, int);
int flock(int, int);
int openat(int, const char *, int, ...);
int mkdirat(int, const char *, uint32_t);
int unlinkat(int, const char *, int);
int chdir(const char *);
int statx(int, const char *, int, unsigned, struct about_file *);
char *mkdtemp(char *);
char *realpath(const char *, char *);
void *fdopendir(int);
struct dirent *readdir(void *);
int closedir(void *);
int nanosleep(const struct timespec *, struct timespec *);
long strtol(const char *, char **, int);
void *memmove(void *, const void *, size_t);
char *strchr(const char *, int);
ssize_t readlink(const char *, char *, size_t);
int fflush(void *);
void *dlopen(const char *, int);
void *dlsym(void *, const char *);
char *dlerror(void);

#define AF_INET 2
#define SOCK_STREAM 1
#define SOCK_SEQPACKET 5
#define SOCK_CLOEXEC 02000000
#define SOL_SOCKET 1
#define SO_REUSEADDR 2
#define SO_ERROR 4
#define SO_KEEPALIVE 9
#define IPPROTO_TCP 6
#define TCP_NODELAY 1
#define TCP_KEEPIDLE 4
#define TCP_KEEPINTVL 5
#define TCP_KEEPCNT 6
#define TCP_USER_TIMEOUT 18
#define POLLOUT 4
#define POLLERR 8
#define POLLHUP 16
#define EAGAIN 11
#define ENOENT 2
#define EEXIST 17
#define EINPROGRESS 115
#define MAP_ANONYMOUS 0x20
#define PR_SET_PDEATHSIG 1
#define RLIMIT_CORE 4
#define RLIMIT_DATA 2
#define RLIMIT_NOFILE 7
#define SIGINT 2
#define SIGPIPE 13
#define SIGTERM 15
#define SIGCHLD 17
#define SIG_DFL ((void (*)(int))0)
#define SIG_IGN ((void (*)(int))1)
#define AT_FDCWD (-100)
#define AT_REMOVEDIR 0x200
#define AT_EMPTY_PATH 0x1000
#define STATX_BASIC 0x7ff
#define MODE_KIND 0170000
#define MODE_FILE 0100000
#define MODE_FOLDER 0040000
#define LOCK_EX 2
#define LOCK_NB 4
#define RTLD_NOW 2
#ifdef __aarch64__
#define O_DIRECTORY 040000
#define O_NOFOLLOW 0100000
#else
#define O_DIRECTORY 0200000
#define O_NOFOLLOW 0400000
#endif
#define O_NONBLOCK 04000
#define MFD_ALLOW_SEALING 2u
#define F_ADD_SEALS 1033
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4

void write_out(int file, const char *text, size_t size);

/* Seconds of a clock that only goes forward. */
static inline double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.seconds + (double)time.nanoseconds * 1e-9;
}

#endif
