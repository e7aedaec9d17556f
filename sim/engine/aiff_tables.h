/* Registers and rules of the AIFF. Written by `python -m compass_sim.aiff_tables` from compass_core/aiff. */
#ifndef ENGINE_AIFF_TABLES_H
#define ENGINE_AIFF_TABLES_H

#include "aiff.h"
#include "aiff_x2.h"
#include "aiff_x3.h"

static const char *const aiff_assumptions[] = {
    AIFF_ASSUMPTION_NAMES,
};

static const struct aiff_generation aiff_generations[] = {
    {x2_rules, x2_groups, x2_registers, sizeof x2_registers / sizeof *x2_registers, x2_places, x2_words, 72, 48},
    {x3_rules, x3_groups, x3_registers, sizeof x3_registers / sizeof *x3_registers, x3_places, x3_words, 88, 72},
};

enum aiff_group_name {
    GROUP_SYSTEM, GROUP_BUFFERS, GROUP_TWIN_MTP, GROUP_TWIN_PTP, GROUP_MTP_PASS, GROUP_MTP_CONVOLUTION,
    GROUP_ITP_SHARED, GROUP_ITP_OFF, GROUP_ITP, GROUP_ITP_M0, GROUP_ITP_M1, GROUP_ITP_E, GROUP_ITP_LUT, GROUP_PTP_OFF,
    GROUP_PTP_POOL, GROUP_WRB, GROUP_WRB_REGION0, GROUP_WRB_REGION1, GROUPS,
};

enum aiff_field_name {
    TWIN_DISABLED_0, TWIN_DISABLED_1, TWIN_MODE, MTP_MODE, MTP_REGION, MTP_ROW_STRIDE, MTP_SURFACE_STRIDE, MTP_CHANNELS,
    MTP_OUT_CHANNELS, MTP_WIDTH, MTP_OUT_WIDTH, MTP_HEIGHT, MTP_OUT_HEIGHT, MTP_FORMAT, MTP_WEIGHT_UNITS, LUT_GLOBAL,
    LUT_FETCHED_0, LUT_FETCHED_1, M0_BYPASS, M0_SHIFT, M0_RELU_BYPASS, M0_FACTOR, M1_BYPASS, E_BYPASS, E_FACTOR,
    LUT_BYPASS, ITP_HEIGHT, ITP_WIDTH, ITP_CHANNELS, PTP_MODE, PTP_FORMAT, PTP_KERNEL_W, PTP_KERNEL_H, PTP_STRIDE_W,
    PTP_STRIDE_H, PTP_CHANNELS, PTP_OUT_CHANNELS, PTP_WIDTH, PTP_OUT_WIDTH, PTP_HEIGHT, PTP_OUT_HEIGHT, PTP_ROW_STRIDE,
    PTP_SURFACE_STRIDE, WRB_REGIONS, WRB_NHWC, WRB_BYPASS, WRB_LINE_STRIDE_0, WRB_LINE_STRIDE_1, WRB_SURFACE_STRIDE_0,
    WRB_SURFACE_STRIDE_1, FIELDS,
};

enum aiff_word_name {
    WEIGHTS, BIASES, TABLE, SECOND_TABLE, MTP_INPUT, PTP_INPUT, OUTPUT_0, OUTPUT_1, WORDS,
};

#endif
