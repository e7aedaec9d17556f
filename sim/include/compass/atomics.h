/* Atomic operations on 32-bit integers in memory that TECs share, by OpenCL's names. They give the value before. */
#ifndef COMPASS_ATOMICS_H
#define COMPASS_ATOMICS_H

/* Schedules change the turn here. */
void __compass_atomic_point(void);

#ifdef __COMPASS_CHECK
/* The engine looks at the access; clang adds no checks of plain accesses to these functions. */
void __compass_checked_atomic(volatile void *at, ulong pc);
#define __COMPASS_ATOMIC_FN __COMPASS_CHECKED_FN
#define __COMPASS_ATOMIC_BEGIN(p) __compass_checked_atomic(p, (ulong)__builtin_return_address(0));
#else
#define __COMPASS_ATOMIC_FN __COMPASS_FN
#define __COMPASS_ATOMIC_BEGIN(p) __compass_atomic_point();
#endif

/* An address that is no multiple of four is no mistake on hosts; checked runs tell it. */
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wsync-alignment"
#define __COMPASS_ATOMIC(name, SPACE, T, builtin)                                   \
  __COMPASS_ATOMIC_FN T name(volatile SPACE T *at, T value) {                       \
    volatile T *p = (volatile T *)(ulong)at;                                        \
    __COMPASS_ATOMIC_BEGIN(p)                                                       \
    return builtin(p, value);                                                       \
  }
#define __COMPASS_ATOMICS(SPACE, T, u)                                              \
  __COMPASS_ATOMIC(atomic_add, SPACE, T, __sync_fetch_and_add)                      \
  __COMPASS_ATOMIC(atomic_min, SPACE, T, __sync_fetch_and_##u##min)                 \
  __COMPASS_ATOMIC(atomic_max, SPACE, T, __sync_fetch_and_##u##max)                 \
  __COMPASS_ATOMIC(atomic_xchg, SPACE, T, __sync_swap)                              \
  __COMPASS_ATOMIC_FN T atomic_cmpxchg(volatile SPACE T *at, T expected, T value) { \
    volatile T *p = (volatile T *)(ulong)at;                                        \
    __COMPASS_ATOMIC_BEGIN(p)                                                       \
    return __sync_val_compare_and_swap(p, expected, value);                         \
  }
__COMPASS_ATOMICS(__global, int, )
__COMPASS_ATOMICS(__global, uint, u)
__COMPASS_ATOMICS(__local, int, )
__COMPASS_ATOMICS(__local, uint, u)
#pragma clang diagnostic pop

#endif
