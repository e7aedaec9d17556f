#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_layer_norm(__global half* src, __global float* s, __global float* b, __global half* dst, int rows, int cols, float eps);

__kernel void tile_layer_norm(__global half* src, __global float* s, __global float* b, __global half* dst, int rows, int cols, float eps) {
  int cse_var_1 = min(cols, 512);
  *addr_of_event_state() = 0;
  __lsram float gain[512];
  __lsram float bias[512];
  __lsram float exists[512];
  __lsram half v[2048];
  __lsram half tile_t3[2048];
  __lsram float wide[1024];
  __lsram float tile_t1[1024];
  __lsram float tile_t0[8];
  int end_t0 = cse_var_1;
  int end_t1 = cse_var_1;
  if (end_t0 < 512) {
    MemsetSRAM(gain, 2048, 0, 2, 4);
  }
  if (0 < end_t0) {
    int cse_var_2 = (end_t0 * 4);
    DmaDirect_kGlobal_to_kLsram((int)gain, (int)s, cse_var_2, cse_var_2, cse_var_2, cse_var_2);
  }
  if (end_t1 < 512) {
    MemsetSRAM(bias, 2048, 0, 2, 4);
  }
  if (0 < end_t1) {
    int cse_var_3 = (end_t1 * 4);
    DmaDirect_kGlobal_to_kLsram((int)bias, (int)b, cse_var_3, cse_var_3, cse_var_3, cse_var_3);
  }
  float one = (float)(0x1p+0f/*1.000000e+00*/ / (float)cols);
  int scalar_t0 = cols;
  for (int i_t0 = 0; i_t0 < 512; i_t0 += 32) {
    __vstore(__vsel((float8)0x1p+0f/*1.000000e+00*/, (float8)0x0p+0f/*0.000000e+00*/, __vclt(((int8)(0,1,2,3,4,5,6,7) + (int8)i_t0), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(exists + i_t0), ALL_TRUE_w);
    __vstore(__vsel((float8)0x1p+0f/*1.000000e+00*/, (float8)0x0p+0f/*0.000000e+00*/, __vclt(((int8)(8,9,10,11,12,13,14,15) + (int8)i_t0), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(exists + (i_t0 + 8)), ALL_TRUE_w);
    __vstore(__vsel((float8)0x1p+0f/*1.000000e+00*/, (float8)0x0p+0f/*0.000000e+00*/, __vclt(((int8)(16,17,18,19,20,21,22,23) + (int8)i_t0), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(exists + (i_t0 + 16)), ALL_TRUE_w);
    __vstore(__vsel((float8)0x1p+0f/*1.000000e+00*/, (float8)0x0p+0f/*0.000000e+00*/, __vclt(((int8)(24,25,26,27,28,29,30,31) + (int8)i_t0), (int8)scalar_t0, ALL_TRUE_w)), (__lsram float8*)(exists + (i_t0 + 24)), ALL_TRUE_w);
  }
  int count_t0 = ceildiv(rows, 2);
  int t_step = get_local_size(0);
  int t_start = get_local_id(0);
  int v_came = alloc_event();
  int tile_t3_went = alloc_event();
  int turn_of_2 = 0;
  if (t_start < count_t0) {
    int t = t_start;
    __lsram half* v_ahead = v;
    int end_t2 = min((rows - (t * 2)), 2);
    int low_t0 = max((t * -2), 0);
    int count_t1 = (end_t2 - low_t0);
    int end_t3 = cse_var_1;
    if ((count_t1 < 2) || (end_t3 < 512)) {
      MemsetSRAM(v_ahead, 2048, 0, 1, 4);
    }
    if ((0 < count_t1) && (0 < end_t3)) {
      int cse_var_4 = (end_t3 * 2);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(v_ahead + (low_t0 * 512)), (int)(src + (((t * 2) + low_t0) * cols)), cse_var_4, (cols * 2), (cse_var_4 * count_t1), 1024, v_came);
    }
  }
  for (int t_1 = t_start; t_1 < t_start+(count_t0 - t_start); t_1 += t_step) {
    int cse_var_6 = max((t_1 * -2), 0);
    int cse_var_5 = min((rows - (t_1 * 2)), 2);
    __lsram half* v_here = (v + (turn_of_2 * 1024));
    __lsram half* tile_t3_here = (tile_t3 + (turn_of_2 * 1024));
    int end_t2_1 = cse_var_5;
    int low_t0_1 = cse_var_6;
    int count_t1_1 = (end_t2_1 - low_t0_1);
    int end_t3_1 = cse_var_1;
    if ((0 < count_t1_1) && (0 < end_t3_1)) {
      wait_events((1 << v_came));
    }
    if (t_step < (count_t0 - t_1)) {
      int t_2 = (t_1 + t_step);
      __lsram half* v_ahead_1 = (v + (1024 - (turn_of_2 * 1024)));
      int end_t2_2 = min((rows - (t_2 * 2)), 2);
      int low_t0_2 = max((t_2 * -2), 0);
      int count_t1_2 = (end_t2_2 - low_t0_2);
      int end_t3_2 = cse_var_1;
      if ((count_t1_2 < 2) || (end_t3_2 < 512)) {
        MemsetSRAM(v_ahead_1, 2048, 0, 1, 4);
      }
      if ((0 < count_t1_2) && (0 < end_t3_2)) {
        int cse_var_7 = (end_t3_2 * 2);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(v_ahead_1 + (low_t0_2 * 512)), (int)(src + (((t_2 * 2) + low_t0_2) * cols)), cse_var_7, (cols * 2), (cse_var_7 * count_t1_2), 1024, v_came);
      }
    }
    for (int i_t1 = 0; i_t1 < 2; i_t1 += 1) {
      for (int i_t2 = 0; i_t2 < 512; i_t2 += 32) {
        int cse_var_8 = ((i_t1 * 512) + i_t2);
        __vstore(__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + cse_var_8), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + cse_var_8), ALL_TRUE_h))), (__lsram float8*)(wide + cse_var_8), ALL_TRUE_w);
        __vstore(__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + cse_var_8), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + cse_var_8), ALL_TRUE_h))), (__lsram float8*)(wide + (cse_var_8 + 8)), ALL_TRUE_w);
        __vstore(__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + (cse_var_8 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + (cse_var_8 + 16)), ALL_TRUE_h))), (__lsram float8*)(wide + (cse_var_8 + 16)), ALL_TRUE_w);
        __vstore(__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + (cse_var_8 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + (cse_var_8 + 16)), ALL_TRUE_h))), (__lsram float8*)(wide + (cse_var_8 + 24)), ALL_TRUE_w);
      }
    }
    for (int i_t3 = 0; i_t3 < 2; i_t3 += 1) {
      float8 total_t0[4];
      total_t0[0] = __vload((__lsram float8*)(wide + (i_t3 * 512)), ALL_TRUE_w);
      total_t0[1] = __vload((__lsram float8*)(wide + ((i_t3 * 512) + 8)), ALL_TRUE_w);
      total_t0[2] = __vload((__lsram float8*)(wide + ((i_t3 * 512) + 16)), ALL_TRUE_w);
      total_t0[3] = __vload((__lsram float8*)(wide + ((i_t3 * 512) + 24)), ALL_TRUE_w);
      for (int i_t4 = 32; i_t4 < 32+480; i_t4 += 32) {
        total_t0[0] = (total_t0[0] + __vload((__lsram float8*)(wide + ((i_t3 * 512) + i_t4)), ALL_TRUE_w));
        total_t0[1] = (total_t0[1] + __vload((__lsram float8*)(wide + (((i_t3 * 512) + i_t4) + 8)), ALL_TRUE_w));
        total_t0[2] = (total_t0[2] + __vload((__lsram float8*)(wide + (((i_t3 * 512) + i_t4) + 16)), ALL_TRUE_w));
        total_t0[3] = (total_t0[3] + __vload((__lsram float8*)(wide + (((i_t3 * 512) + i_t4) + 24)), ALL_TRUE_w));
      }
      tile_t1[i_t3] = __vrpadd((float8)0x0p+0f/*0.000000e+00*/, ((total_t0[0] + total_t0[1]) + (total_t0[2] + total_t0[3])), ALL_TRUE_w)[0];
    }
    float scalar_t1 = one;
    __vstore((__vload((__lsram float8*)tile_t1, __vmov_w(0x00000011)) * (float8)scalar_t1), (__lsram float8*)tile_t0, __vmov_w(0x00000011));
    for (int i_t5 = 0; i_t5 < 2; i_t5 += 1) {
      float element_t0 = tile_t0[i_t5];
      for (int i_t6 = 0; i_t6 < 512; i_t6 += 32) {
        int cse_var_9 = ((i_t5 * 512) + i_t6);
        __vstore(((__vload((__lsram float8*)(wide + cse_var_9), ALL_TRUE_w) - (float8)element_t0) * __vload((__lsram float8*)(exists + i_t6), ALL_TRUE_w)), (__lsram float8*)(tile_t1 + cse_var_9), ALL_TRUE_w);
        __vstore(((__vload((__lsram float8*)(wide + (cse_var_9 + 8)), ALL_TRUE_w) - (float8)element_t0) * __vload((__lsram float8*)(exists + (i_t6 + 8)), ALL_TRUE_w)), (__lsram float8*)(tile_t1 + (cse_var_9 + 8)), ALL_TRUE_w);
        __vstore(((__vload((__lsram float8*)(wide + (cse_var_9 + 16)), ALL_TRUE_w) - (float8)element_t0) * __vload((__lsram float8*)(exists + (i_t6 + 16)), ALL_TRUE_w)), (__lsram float8*)(tile_t1 + (cse_var_9 + 16)), ALL_TRUE_w);
        __vstore(((__vload((__lsram float8*)(wide + (cse_var_9 + 24)), ALL_TRUE_w) - (float8)element_t0) * __vload((__lsram float8*)(exists + (i_t6 + 24)), ALL_TRUE_w)), (__lsram float8*)(tile_t1 + (cse_var_9 + 24)), ALL_TRUE_w);
      }
    }
    for (int i_t7 = 0; i_t7 < 2; i_t7 += 1) {
      int cse_var_10 = (i_t7 * 512);
      float8 total_t1[4];
      total_t1[0] = (__vload((__lsram float8*)(tile_t1 + cse_var_10), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + cse_var_10), ALL_TRUE_w));
      total_t1[1] = (__vload((__lsram float8*)(tile_t1 + (cse_var_10 + 8)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_10 + 8)), ALL_TRUE_w));
      total_t1[2] = (__vload((__lsram float8*)(tile_t1 + (cse_var_10 + 16)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_10 + 16)), ALL_TRUE_w));
      total_t1[3] = (__vload((__lsram float8*)(tile_t1 + (cse_var_10 + 24)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_10 + 24)), ALL_TRUE_w));
      for (int i_t8 = 32; i_t8 < 32+480; i_t8 += 32) {
        int cse_var_11 = (cse_var_10 + i_t8);
        total_t1[0] = (total_t1[0] + (__vload((__lsram float8*)(tile_t1 + cse_var_11), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + cse_var_11), ALL_TRUE_w)));
        total_t1[1] = (total_t1[1] + (__vload((__lsram float8*)(tile_t1 + (cse_var_11 + 8)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_11 + 8)), ALL_TRUE_w)));
        total_t1[2] = (total_t1[2] + (__vload((__lsram float8*)(tile_t1 + (cse_var_11 + 16)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_11 + 16)), ALL_TRUE_w)));
        total_t1[3] = (total_t1[3] + (__vload((__lsram float8*)(tile_t1 + (cse_var_11 + 24)), ALL_TRUE_w) * __vload((__lsram float8*)(tile_t1 + (cse_var_11 + 24)), ALL_TRUE_w)));
      }
      tile_t0[i_t7] = __vrpadd((float8)0x0p+0f/*0.000000e+00*/, ((total_t1[0] + total_t1[1]) + (total_t1[2] + total_t1[3])), ALL_TRUE_w)[0];
    }
    float scalar_t2 = one;
    __vstore((__vload((__lsram float8*)tile_t0, __vmov_w(0x00000011)) * (float8)scalar_t2), (__lsram float8*)wide, __vmov_w(0x00000011));
    int end_t4 = cse_var_5;
    int low_t1 = cse_var_6;
    int count_t2 = (end_t4 - low_t1);
    int end_t5 = cse_var_1;
    float scalar_t3 = eps;
    __vstore(vrsqrt((__vload((__lsram float8*)wide, __vmov_w(0x00000011)) + (float8)scalar_t3)), (__lsram float8*)tile_t0, __vmov_w(0x00000011));
    for (int i_t9 = 0; i_t9 < 2; i_t9 += 1) {
      float element_t1 = tile_t0[i_t9];
      for (int i_t10 = 0; i_t10 < 512; i_t10 += 32) {
        int cse_var_12 = ((i_t9 * 512) + i_t10);
        __vstore(__vcvtd((((__vload((__lsram float8*)(tile_t1 + cse_var_12), ALL_TRUE_w) * (float8)element_t1) * __vload((__lsram float8*)(gain + i_t10), ALL_TRUE_w)) + __vload((__lsram float8*)(bias + i_t10), ALL_TRUE_w)), (((__vload((__lsram float8*)(tile_t1 + (cse_var_12 + 8)), ALL_TRUE_w) * (float8)element_t1) * __vload((__lsram float8*)(gain + (i_t10 + 8)), ALL_TRUE_w)) + __vload((__lsram float8*)(bias + (i_t10 + 8)), ALL_TRUE_w))), (__lsram half16*)(tile_t3_here + cse_var_12), ALL_TRUE_h);
        __vstore(__vcvtd((((__vload((__lsram float8*)(tile_t1 + (cse_var_12 + 16)), ALL_TRUE_w) * (float8)element_t1) * __vload((__lsram float8*)(gain + (i_t10 + 16)), ALL_TRUE_w)) + __vload((__lsram float8*)(bias + (i_t10 + 16)), ALL_TRUE_w)), (((__vload((__lsram float8*)(tile_t1 + (cse_var_12 + 24)), ALL_TRUE_w) * (float8)element_t1) * __vload((__lsram float8*)(gain + (i_t10 + 24)), ALL_TRUE_w)) + __vload((__lsram float8*)(bias + (i_t10 + 24)), ALL_TRUE_w))), (__lsram half16*)(tile_t3_here + (cse_var_12 + 16)), ALL_TRUE_h);
      }
    }
    if (t_start < t_1) {
      wait_events((1 << tile_t3_went));
    }
    if ((0 < count_t2) && (0 < end_t5)) {
      int cse_var_13 = (end_t5 * 2);
      AsyncDmaDirect_kLsram_to_kGlobal((int)(dst + (((t_1 * 2) + low_t1) * cols)), (int)(tile_t3_here + (low_t1 * 512)), cse_var_13, 1024, (cse_var_13 * count_t2), (cols * 2), tile_t3_went);
    }
    turn_of_2 = (1 - turn_of_2);
  }
  free_events(((1 << v_came) | (1 << tile_t3_went)));
  barrier(CLK_LOCAL_MEM_FENCE);
}
