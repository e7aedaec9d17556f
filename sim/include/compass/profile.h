/* What a kernel compiled for profiling calls (runtime/compass_runtime/profile/instrument.py puts the calls in).
 *
 * Counters: first one per region of the text, which says how often it ran, then one per masked operand, which sums up
 * active lanes. Every function of the kernel gets them as its first parameter; `restrict` lets compilers keep them in
 * registers inside loops, and the parameter of __compass_profile_point makes them write the counters back there.
 */
#ifndef COMPASS_PROFILE_H
#define COMPASS_PROFILE_H

#define __COMPASS_COUNTERS ulong *restrict __compass_counters

/* At the start of a task: `bytes` of zeroed counters of this TEC. The first `regions` have a cost each; `first` is the
 * number of the first counter in the program. The attributes tell compilers that nobody else sees the counters, so that
 * they may count in registers where a counter is increased in a branch. */
ulong *__compass_profile_enter(__constant uint *costs, uint first, uint regions, uint bytes)
    __attribute__((malloc, returns_nonnull, alloc_size(4)));

/* Before the kernel calls the device, and at its end: work so far is what the counters say. `site` is the place, numbered through the
 * program. */
void __compass_profile_point(const ulong *counters __attribute__((noescape)), uint site);

/* A mask, whose active lanes are counted. */
#define __COMPASS_COUNT_LANES(B)                                                    \
  __COMPASS_FN B __compass_count_lanes(B m, ulong *counter) {                       \
    *counter += (uint)__compass_active(m);                                          \
    return m;                                                                       \
  }
__COMPASS_COUNT_LANES(bool8)
__COMPASS_COUNT_LANES(bool16)
__COMPASS_COUNT_LANES(bool32)
#define __compass_bits___compass_count_lanes(m, counter) __compass_bits_##m /* of __wstore */

#endif
