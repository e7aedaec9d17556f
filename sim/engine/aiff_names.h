/* Registers and rules of the AIFF. Written by `python -m compass_sim.aiff_tables` from compass_core/aiff. */
#ifndef ENGINE_AIFF_NAMES_H
#define ENGINE_AIFF_NAMES_H

enum aiff_assumption {
    ASSUME_REPEAT, ASSUME_HALF_UP, ASSUME_CLAMP, ASSUME_RELU, ASSUME_SIGNED_POOL, ASSUME_FORMAT5, ASSUME_RAW_WEIGHTS,
    ASSUME_INTERPOLATE, ASSUME_PARTIAL_CHANNELS, ASSUMPTIONS,
};

#define AIFF_ASSUMPTION_NAMES \
  "repeat", "half-up", "clamp", "relu", "signed-pool", "format5", "raw-weights", "interpolate", "partial-channels"

#endif
