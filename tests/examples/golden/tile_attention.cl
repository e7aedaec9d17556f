#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_attention(__global half* qs, __global half* ks, __global half* vs, __global half* outs, int n, int m);

__kernel void tile_attention(__global half* qs, __global half* ks, __global half* vs, __global half* outs, int n, int m) {
  *addr_of_event_state() = 0;
  __lsram half tile_t0[1536];
  __lsram float queries[1536];
  __lsram float top[24];
  __lsram float total[24];
  __lsram float sums[1536];
  __lsram half keys[2048];
  __lsram half values[2048];
  __lsram float scores[384];
  __lsram int tile_t1[16];
  __lsram float tile_t2[384];
  __lsram float higher[24];
  __lsram float tile_t3[24];
  int count_t0 = ceildiv(n, 24);
  for (int t = get_local_id(0); t < get_local_id(0)+(count_t0 - get_local_id(0)); t += get_local_size(0)) {
    int cse_var_2 = max((t * -24), 0);
    int cse_var_1 = min((n - (t * 24)), 24);
    int end_t0 = cse_var_1;
    int low_t0 = cse_var_2;
    int count_t1 = (end_t0 - low_t0);
    if (count_t1 < 24) {
      MemsetSRAM(tile_t0, 3072, 0, 1, 4);
    }
    if (0 < count_t1) {
      int cse_var_3 = (low_t0 * 64);
      DmaDirect_kGlobal_to_kLsram((int)(tile_t0 + cse_var_3), (int)(qs + ((t * 1536) + cse_var_3)), 128, 128, (count_t1 * 128), 128);
    }
    for (int i_t0 = 0; i_t0 < 24; i_t0 += 1) {
      for (int i_t1 = 0; i_t1 < 64; i_t1 += 32) {
        int cse_var_4 = ((i_t0 * 64) + i_t1);
        __vstore((__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + cse_var_4), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + cse_var_4), ALL_TRUE_h))) * (float8)0x1p-3f/*1.250000e-01*/), (__lsram float8*)(queries + cse_var_4), ALL_TRUE_w);
        __vstore((__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + cse_var_4), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + cse_var_4), ALL_TRUE_h))) * (float8)0x1p-3f/*1.250000e-01*/), (__lsram float8*)(queries + (cse_var_4 + 8)), ALL_TRUE_w);
        __vstore((__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + (cse_var_4 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + (cse_var_4 + 16)), ALL_TRUE_h))) * (float8)0x1p-3f/*1.250000e-01*/), (__lsram float8*)(queries + (cse_var_4 + 16)), ALL_TRUE_w);
        __vstore((__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + (cse_var_4 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + (cse_var_4 + 16)), ALL_TRUE_h))) * (float8)0x1p-3f/*1.250000e-01*/), (__lsram float8*)(queries + (cse_var_4 + 24)), ALL_TRUE_w);
      }
    }
    __vstore((float8)-0x1.93e5939a08ceap+99f/*-1.000000e+30*/, (__lsram float8*)top, ALL_TRUE_w);
    __vstore((float8)-0x1.93e5939a08ceap+99f/*-1.000000e+30*/, (__lsram float8*)(top + 8), ALL_TRUE_w);
    __vstore((float8)-0x1.93e5939a08ceap+99f/*-1.000000e+30*/, (__lsram float8*)(top + 16), ALL_TRUE_w);
    __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)total, ALL_TRUE_w);
    __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(total + 8), ALL_TRUE_w);
    __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(total + 16), ALL_TRUE_w);
    for (int i_t14 = 0; i_t14 < 24; i_t14 += 1) {
      for (int i_t15 = 0; i_t15 < 64; i_t15 += 32) {
        __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(sums + ((i_t14 * 64) + i_t15)), ALL_TRUE_w);
        __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(sums + (((i_t14 * 64) + i_t15) + 8)), ALL_TRUE_w);
        __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(sums + (((i_t14 * 64) + i_t15) + 16)), ALL_TRUE_w);
        __vstore((float8)0x0p+0f/*0.000000e+00*/, (__lsram float8*)(sums + (((i_t14 * 64) + i_t15) + 24)), ALL_TRUE_w);
      }
    }
    int keys_came = alloc_event();
    int values_came = alloc_event();
    int turn_of_2 = 0;
    if (0 < m) {
      int cse_var_5 = min(m, 16);
      __lsram half* keys_ahead = keys;
      __lsram half* values_ahead = values;
      int end_t1 = cse_var_5;
      int cse_var_6 = (0 * 64);
      int count_t2 = (end_t1 - 0);
      int end_t2 = cse_var_5;
      int cse_var_7 = (0 * 64);
      int count_t3 = (end_t2 - 0);
      if (count_t2 < 16) {
        MemsetSRAM(keys_ahead, 2048, 0, 1, 4);
      }
      AsyncDmaDirect_kGlobal_to_kLsram((int)(keys_ahead + cse_var_6), (int)(ks + cse_var_6), 128, 128, (count_t2 * 128), 128, keys_came);
      if (count_t3 < 16) {
        MemsetSRAM(values_ahead, 2048, 0, 1, 4);
      }
      AsyncDmaDirect_kGlobal_to_kLsram((int)(values_ahead + cse_var_7), (int)(vs + cse_var_7), 128, 128, (count_t3 * 128), 128, values_came);
    }
    for (int at = 0; at < m; at += 16) {
      int cse_var_9 = (m - at);
      int cse_var_8 = min(cse_var_9, 16);
      __lsram half* keys_here = (keys + (turn_of_2 * 1024));
      __lsram half* values_here = (values + (turn_of_2 * 1024));
      int end_t1_1 = cse_var_8;
      int count_t2_1 = (end_t1_1 - 0);
      int end_t2_1 = cse_var_8;
      int count_t3_1 = (end_t2_1 - 0);
      if (0 < count_t2_1) {
        wait_events((1 << keys_came));
      }
      if (0 < count_t3_1) {
        wait_events((1 << values_came));
      }
      if (16 < cse_var_9) {
        int at_1 = (at + 16);
        int cse_var_10 = min((m - at_1), 16);
        __lsram half* keys_ahead_1 = (keys + (1024 - (turn_of_2 * 1024)));
        __lsram half* values_ahead_1 = (values + (1024 - (turn_of_2 * 1024)));
        int end_t1_2 = cse_var_10;
        int count_t2_2 = (end_t1_2 - 0);
        int end_t2_2 = cse_var_10;
        int count_t3_2 = (end_t2_2 - 0);
        if (count_t2_2 < 16) {
          MemsetSRAM(keys_ahead_1, 2048, 0, 1, 4);
        }
        if (0 < count_t2_2) {
          int cse_var_11 = (0 * 64);
          AsyncDmaDirect_kGlobal_to_kLsram((int)(keys_ahead_1 + cse_var_11), (int)(ks + ((at_1 * 64) + cse_var_11)), 128, 128, (count_t2_2 * 128), 128, keys_came);
        }
        if (count_t3_2 < 16) {
          MemsetSRAM(values_ahead_1, 2048, 0, 1, 4);
        }
        if (0 < count_t3_2) {
          int cse_var_12 = (0 * 64);
          AsyncDmaDirect_kGlobal_to_kLsram((int)(values_ahead_1 + cse_var_12), (int)(vs + ((at_1 * 64) + cse_var_12)), 128, 128, (count_t3_2 * 128), 128, values_came);
        }
      }
      for (int i_t8 = 0; i_t8 < 64; i_t8 += 1) {
        __vstore(__vload_stride((__lsram half16*)(keys_here + i_t8), 128, ALL_TRUE_h), (__lsram half16*)(tile_t0 + (i_t8 * 16)), ALL_TRUE_h);
      }
      for (int i_t9 = 0; i_t9 < 24; i_t9 += 4) {
        int cse_var_13 = (i_t9 * 16);
        float8 total_t2[2];
        total_t2[0] = (float8)0x0p+0f/*0.000000e+00*/;
        total_t2[1] = (float8)0x0p+0f/*0.000000e+00*/;
        float8 total_t3[2];
        total_t3[0] = (float8)0x0p+0f/*0.000000e+00*/;
        total_t3[1] = (float8)0x0p+0f/*0.000000e+00*/;
        float8 total_t4[2];
        total_t4[0] = (float8)0x0p+0f/*0.000000e+00*/;
        total_t4[1] = (float8)0x0p+0f/*0.000000e+00*/;
        float8 total_t5[2];
        total_t5[0] = (float8)0x0p+0f/*0.000000e+00*/;
        total_t5[1] = (float8)0x0p+0f/*0.000000e+00*/;
        for (int i_t10 = 0; i_t10 < 64; i_t10 += 1) {
          int cse_var_14 = ((i_t9 * 64) + i_t10);
          float8 right_t0[2];
          right_t0[0] = __vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + (i_t10 * 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + (i_t10 * 16)), ALL_TRUE_h)));
          right_t0[1] = __vziph(__vcvtue_tfp32(__vload((__lsram half16*)(tile_t0 + (i_t10 * 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(tile_t0 + (i_t10 * 16)), ALL_TRUE_h)));
          total_t2[0] = __vfma(total_t2[0], (float8)queries[cse_var_14], right_t0[0], ALL_TRUE_w);
          total_t2[1] = __vfma(total_t2[1], (float8)queries[cse_var_14], right_t0[1], ALL_TRUE_w);
          total_t3[0] = __vfma(total_t3[0], (float8)queries[(cse_var_14 + 64)], right_t0[0], ALL_TRUE_w);
          total_t3[1] = __vfma(total_t3[1], (float8)queries[(cse_var_14 + 64)], right_t0[1], ALL_TRUE_w);
          total_t4[0] = __vfma(total_t4[0], (float8)queries[(cse_var_14 + 128)], right_t0[0], ALL_TRUE_w);
          total_t4[1] = __vfma(total_t4[1], (float8)queries[(cse_var_14 + 128)], right_t0[1], ALL_TRUE_w);
          total_t5[0] = __vfma(total_t5[0], (float8)queries[(cse_var_14 + 192)], right_t0[0], ALL_TRUE_w);
          total_t5[1] = __vfma(total_t5[1], (float8)queries[(cse_var_14 + 192)], right_t0[1], ALL_TRUE_w);
        }
        __vstore(total_t2[0], (__lsram float8*)(scores + cse_var_13), ALL_TRUE_w);
        __vstore(total_t2[1], (__lsram float8*)(scores + (cse_var_13 + 8)), ALL_TRUE_w);
        __vstore(total_t3[0], (__lsram float8*)(scores + (cse_var_13 + 16)), ALL_TRUE_w);
        __vstore(total_t3[1], (__lsram float8*)(scores + ((cse_var_13 + 16) + 8)), ALL_TRUE_w);
        __vstore(total_t4[0], (__lsram float8*)(scores + (cse_var_13 + 32)), ALL_TRUE_w);
        __vstore(total_t4[1], (__lsram float8*)(scores + ((cse_var_13 + 32) + 8)), ALL_TRUE_w);
        __vstore(total_t5[0], (__lsram float8*)(scores + (cse_var_13 + 48)), ALL_TRUE_w);
        __vstore(total_t5[1], (__lsram float8*)(scores + ((cse_var_13 + 48) + 8)), ALL_TRUE_w);
      }
      __vstore(((int8)(0,1,2,3,4,5,6,7) + (int8)0), (__lsram int8*)tile_t1, ALL_TRUE_w);
      __vstore(((int8)(8,9,10,11,12,13,14,15) + (int8)0), (__lsram int8*)(tile_t1 + 8), ALL_TRUE_w);
      int scalar_t0 = cse_var_9;
      for (int i_t2 = 0; i_t2 < 24; i_t2 += 1) {
        int cse_var_15 = (i_t2 * 16);
        __vstore(__vsel(__vload((__lsram float8*)(scores + cse_var_15), ALL_TRUE_w), (float8)-0x1.93e5939a08ceap+99f/*-1.000000e+30*/, __vclt(__vload((__lsram int8*)tile_t1, ALL_TRUE_w), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(scores + cse_var_15), ALL_TRUE_w);
        __vstore(__vsel(__vload((__lsram float8*)(scores + (cse_var_15 + 8)), ALL_TRUE_w), (float8)-0x1.93e5939a08ceap+99f/*-1.000000e+30*/, __vclt(__vload((__lsram int8*)(tile_t1 + 8), ALL_TRUE_w), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(scores + (cse_var_15 + 8)), ALL_TRUE_w);
      }
      for (int i_t3 = 0; i_t3 < 24; i_t3 += 1) {
        float8 total_t0[2];
        total_t0[0] = __vload((__lsram float8*)(scores + (i_t3 * 16)), ALL_TRUE_w);
        total_t0[1] = __vload((__lsram float8*)(scores + ((i_t3 * 16) + 8)), ALL_TRUE_w);
        tile_t2[i_t3] = __vrpmax((float8)0x0p+0f/*0.000000e+00*/, __vmax((float8)0x0p+0f/*0.000000e+00*/, total_t0[0], total_t0[1], ALL_TRUE_w), ALL_TRUE_w)[0];
      }
      __vstore(__vmax((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)top, ALL_TRUE_w), __vload((__lsram float8*)tile_t2, ALL_TRUE_w), ALL_TRUE_w), (__lsram float8*)higher, ALL_TRUE_w);
      __vstore(__vmax((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(top + 8), ALL_TRUE_w), __vload((__lsram float8*)(tile_t2 + 8), ALL_TRUE_w), ALL_TRUE_w), (__lsram float8*)(higher + 8), ALL_TRUE_w);
      __vstore(__vmax((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(top + 16), ALL_TRUE_w), __vload((__lsram float8*)(tile_t2 + 16), ALL_TRUE_w), ALL_TRUE_w), (__lsram float8*)(higher + 16), ALL_TRUE_w);
      for (int i_t4 = 0; i_t4 < 24; i_t4 += 1) {
        int cse_var_16 = (i_t4 * 16);
        float element_t0 = higher[i_t4];
        __vstore(vexp((__vload((__lsram float8*)(scores + cse_var_16), ALL_TRUE_w) - (float8)element_t0)), (__lsram float8*)(tile_t2 + cse_var_16), ALL_TRUE_w);
        __vstore(vexp((__vload((__lsram float8*)(scores + (cse_var_16 + 8)), ALL_TRUE_w) - (float8)element_t0)), (__lsram float8*)(tile_t2 + (cse_var_16 + 8)), ALL_TRUE_w);
      }
      __vstore(vexp((__vload((__lsram float8*)top, ALL_TRUE_w) - __vload((__lsram float8*)higher, ALL_TRUE_w))), (__lsram float8*)scores, ALL_TRUE_w);
      __vstore(vexp((__vload((__lsram float8*)(top + 8), ALL_TRUE_w) - __vload((__lsram float8*)(higher + 8), ALL_TRUE_w))), (__lsram float8*)(scores + 8), ALL_TRUE_w);
      __vstore(vexp((__vload((__lsram float8*)(top + 16), ALL_TRUE_w) - __vload((__lsram float8*)(higher + 16), ALL_TRUE_w))), (__lsram float8*)(scores + 16), ALL_TRUE_w);
      for (int i_t5 = 0; i_t5 < 24; i_t5 += 1) {
        float8 total_t1[2];
        total_t1[0] = __vload((__lsram float8*)(tile_t2 + (i_t5 * 16)), ALL_TRUE_w);
        total_t1[1] = __vload((__lsram float8*)(tile_t2 + ((i_t5 * 16) + 8)), ALL_TRUE_w);
        tile_t3[i_t5] = __vrpadd((float8)0x0p+0f/*0.000000e+00*/, (total_t1[0] + total_t1[1]), ALL_TRUE_w)[0];
      }
      __vstore(((__vload((__lsram float8*)total, ALL_TRUE_w) * __vload((__lsram float8*)scores, ALL_TRUE_w)) + __vload((__lsram float8*)tile_t3, ALL_TRUE_w)), (__lsram float8*)total, ALL_TRUE_w);
      __vstore(((__vload((__lsram float8*)(total + 8), ALL_TRUE_w) * __vload((__lsram float8*)(scores + 8), ALL_TRUE_w)) + __vload((__lsram float8*)(tile_t3 + 8), ALL_TRUE_w)), (__lsram float8*)(total + 8), ALL_TRUE_w);
      __vstore(((__vload((__lsram float8*)(total + 16), ALL_TRUE_w) * __vload((__lsram float8*)(scores + 16), ALL_TRUE_w)) + __vload((__lsram float8*)(tile_t3 + 16), ALL_TRUE_w)), (__lsram float8*)(total + 16), ALL_TRUE_w);
      for (int i_t11 = 0; i_t11 < 24; i_t11 += 4) {
        for (int i_t12 = 0; i_t12 < 64; i_t12 += 32) {
          int cse_var_20 = ((i_t11 * 64) + i_t12);
          int cse_var_19 = (cse_var_20 + 64);
          int cse_var_18 = (cse_var_20 + 192);
          int cse_var_17 = (cse_var_20 + 128);
          float element_t2 = scores[i_t11];
          float element_t3 = scores[(i_t11 + 1)];
          float element_t4 = scores[(i_t11 + 2)];
          float element_t5 = scores[(i_t11 + 3)];
          float8 total_t6[4];
          total_t6[0] = (__vload((__lsram float8*)(sums + cse_var_20), ALL_TRUE_w) * (float8)element_t2);
          total_t6[1] = (__vload((__lsram float8*)(sums + (cse_var_20 + 8)), ALL_TRUE_w) * (float8)element_t2);
          total_t6[2] = (__vload((__lsram float8*)(sums + (cse_var_20 + 16)), ALL_TRUE_w) * (float8)element_t2);
          total_t6[3] = (__vload((__lsram float8*)(sums + (cse_var_20 + 24)), ALL_TRUE_w) * (float8)element_t2);
          float8 total_t7[4];
          total_t7[0] = (__vload((__lsram float8*)(sums + cse_var_19), ALL_TRUE_w) * (float8)element_t3);
          total_t7[1] = (__vload((__lsram float8*)(sums + (cse_var_19 + 8)), ALL_TRUE_w) * (float8)element_t3);
          total_t7[2] = (__vload((__lsram float8*)(sums + (cse_var_19 + 16)), ALL_TRUE_w) * (float8)element_t3);
          total_t7[3] = (__vload((__lsram float8*)(sums + (cse_var_19 + 24)), ALL_TRUE_w) * (float8)element_t3);
          float8 total_t8[4];
          total_t8[0] = (__vload((__lsram float8*)(sums + cse_var_17), ALL_TRUE_w) * (float8)element_t4);
          total_t8[1] = (__vload((__lsram float8*)(sums + (cse_var_17 + 8)), ALL_TRUE_w) * (float8)element_t4);
          total_t8[2] = (__vload((__lsram float8*)(sums + (cse_var_17 + 16)), ALL_TRUE_w) * (float8)element_t4);
          total_t8[3] = (__vload((__lsram float8*)(sums + (cse_var_17 + 24)), ALL_TRUE_w) * (float8)element_t4);
          float8 total_t9[4];
          total_t9[0] = (__vload((__lsram float8*)(sums + cse_var_18), ALL_TRUE_w) * (float8)element_t5);
          total_t9[1] = (__vload((__lsram float8*)(sums + (cse_var_18 + 8)), ALL_TRUE_w) * (float8)element_t5);
          total_t9[2] = (__vload((__lsram float8*)(sums + (cse_var_18 + 16)), ALL_TRUE_w) * (float8)element_t5);
          total_t9[3] = (__vload((__lsram float8*)(sums + (cse_var_18 + 24)), ALL_TRUE_w) * (float8)element_t5);
          for (int i_t13 = 0; i_t13 < 16; i_t13 += 1) {
            int cse_var_21 = ((i_t11 * 16) + i_t13);
            float8 right_t1[4];
            right_t1[0] = __vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(values_here + ((i_t13 * 64) + i_t12)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(values_here + ((i_t13 * 64) + i_t12)), ALL_TRUE_h)));
            right_t1[1] = __vziph(__vcvtue_tfp32(__vload((__lsram half16*)(values_here + ((i_t13 * 64) + i_t12)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(values_here + ((i_t13 * 64) + i_t12)), ALL_TRUE_h)));
            right_t1[2] = __vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(values_here + (((i_t13 * 64) + i_t12) + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(values_here + (((i_t13 * 64) + i_t12) + 16)), ALL_TRUE_h)));
            right_t1[3] = __vziph(__vcvtue_tfp32(__vload((__lsram half16*)(values_here + (((i_t13 * 64) + i_t12) + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(values_here + (((i_t13 * 64) + i_t12) + 16)), ALL_TRUE_h)));
            total_t6[0] = __vfma(total_t6[0], (float8)tile_t2[cse_var_21], right_t1[0], ALL_TRUE_w);
            total_t6[1] = __vfma(total_t6[1], (float8)tile_t2[cse_var_21], right_t1[1], ALL_TRUE_w);
            total_t6[2] = __vfma(total_t6[2], (float8)tile_t2[cse_var_21], right_t1[2], ALL_TRUE_w);
            total_t6[3] = __vfma(total_t6[3], (float8)tile_t2[cse_var_21], right_t1[3], ALL_TRUE_w);
            total_t7[0] = __vfma(total_t7[0], (float8)tile_t2[(cse_var_21 + 16)], right_t1[0], ALL_TRUE_w);
            total_t7[1] = __vfma(total_t7[1], (float8)tile_t2[(cse_var_21 + 16)], right_t1[1], ALL_TRUE_w);
            total_t7[2] = __vfma(total_t7[2], (float8)tile_t2[(cse_var_21 + 16)], right_t1[2], ALL_TRUE_w);
            total_t7[3] = __vfma(total_t7[3], (float8)tile_t2[(cse_var_21 + 16)], right_t1[3], ALL_TRUE_w);
            total_t8[0] = __vfma(total_t8[0], (float8)tile_t2[(cse_var_21 + 32)], right_t1[0], ALL_TRUE_w);
            total_t8[1] = __vfma(total_t8[1], (float8)tile_t2[(cse_var_21 + 32)], right_t1[1], ALL_TRUE_w);
            total_t8[2] = __vfma(total_t8[2], (float8)tile_t2[(cse_var_21 + 32)], right_t1[2], ALL_TRUE_w);
            total_t8[3] = __vfma(total_t8[3], (float8)tile_t2[(cse_var_21 + 32)], right_t1[3], ALL_TRUE_w);
            total_t9[0] = __vfma(total_t9[0], (float8)tile_t2[(cse_var_21 + 48)], right_t1[0], ALL_TRUE_w);
            total_t9[1] = __vfma(total_t9[1], (float8)tile_t2[(cse_var_21 + 48)], right_t1[1], ALL_TRUE_w);
            total_t9[2] = __vfma(total_t9[2], (float8)tile_t2[(cse_var_21 + 48)], right_t1[2], ALL_TRUE_w);
            total_t9[3] = __vfma(total_t9[3], (float8)tile_t2[(cse_var_21 + 48)], right_t1[3], ALL_TRUE_w);
          }
          __vstore(total_t6[0], (__lsram float8*)(sums + cse_var_20), ALL_TRUE_w);
          __vstore(total_t6[1], (__lsram float8*)(sums + (cse_var_20 + 8)), ALL_TRUE_w);
          __vstore(total_t6[2], (__lsram float8*)(sums + (cse_var_20 + 16)), ALL_TRUE_w);
          __vstore(total_t6[3], (__lsram float8*)(sums + (cse_var_20 + 24)), ALL_TRUE_w);
          __vstore(total_t7[0], (__lsram float8*)(sums + cse_var_19), ALL_TRUE_w);
          __vstore(total_t7[1], (__lsram float8*)(sums + (cse_var_19 + 8)), ALL_TRUE_w);
          __vstore(total_t7[2], (__lsram float8*)(sums + (cse_var_19 + 16)), ALL_TRUE_w);
          __vstore(total_t7[3], (__lsram float8*)(sums + (cse_var_19 + 24)), ALL_TRUE_w);
          __vstore(total_t8[0], (__lsram float8*)(sums + cse_var_17), ALL_TRUE_w);
          __vstore(total_t8[1], (__lsram float8*)(sums + (cse_var_17 + 8)), ALL_TRUE_w);
          __vstore(total_t8[2], (__lsram float8*)(sums + (cse_var_17 + 16)), ALL_TRUE_w);
          __vstore(total_t8[3], (__lsram float8*)(sums + (cse_var_17 + 24)), ALL_TRUE_w);
          __vstore(total_t9[0], (__lsram float8*)(sums + cse_var_18), ALL_TRUE_w);
          __vstore(total_t9[1], (__lsram float8*)(sums + (cse_var_18 + 8)), ALL_TRUE_w);
          __vstore(total_t9[2], (__lsram float8*)(sums + (cse_var_18 + 16)), ALL_TRUE_w);
          __vstore(total_t9[3], (__lsram float8*)(sums + (cse_var_18 + 24)), ALL_TRUE_w);
        }
      }
      __vstore(__vload((__lsram float8*)higher, ALL_TRUE_w), (__lsram float8*)top, ALL_TRUE_w);
      __vstore(__vload((__lsram float8*)(higher + 8), ALL_TRUE_w), (__lsram float8*)(top + 8), ALL_TRUE_w);
      __vstore(__vload((__lsram float8*)(higher + 16), ALL_TRUE_w), (__lsram float8*)(top + 16), ALL_TRUE_w);
      turn_of_2 = (1 - turn_of_2);
    }
    free_events(((1 << keys_came) | (1 << values_came)));
    int end_t3 = cse_var_1;
    int low_t3 = cse_var_2;
    int count_t4 = (end_t3 - low_t3);
    for (int i_t6 = 0; i_t6 < 24; i_t6 += 1) {
      float element_t1 = total[i_t6];
      for (int i_t7 = 0; i_t7 < 64; i_t7 += 32) {
        int cse_var_22 = ((i_t6 * 64) + i_t7);
        __vstore(__vcvtd(__vdiv((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(sums + cse_var_22), ALL_TRUE_w), (float8)element_t1, ALL_TRUE_w), __vdiv((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(sums + (cse_var_22 + 8)), ALL_TRUE_w), (float8)element_t1, ALL_TRUE_w)), (__lsram half16*)(tile_t0 + cse_var_22), ALL_TRUE_h);
        __vstore(__vcvtd(__vdiv((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(sums + (cse_var_22 + 16)), ALL_TRUE_w), (float8)element_t1, ALL_TRUE_w), __vdiv((float8)0x0p+0f/*0.000000e+00*/, __vload((__lsram float8*)(sums + (cse_var_22 + 24)), ALL_TRUE_w), (float8)element_t1, ALL_TRUE_w)), (__lsram half16*)(tile_t0 + (cse_var_22 + 16)), ALL_TRUE_h);
      }
    }
    if (0 < count_t4) {
      int cse_var_23 = (low_t3 * 64);
      DmaDirect_kLsram_to_kGlobal((int)(outs + ((t * 1536) + cse_var_23)), (int)(tile_t0 + cse_var_23), 128, 128, (count_t4 * 128), 128);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
