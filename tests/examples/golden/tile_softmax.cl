#include <compass/dsl.h>

GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_softmax(__global half* src, __global half* dst, int rows, int cols);

__kernel void tile_softmax(__global half* src, __global half* dst, int rows, int cols) {
  *addr_of_event_state() = 0;
  __lsram half v[4096];
  __lsram half tile_t2[4096];
  __lsram half tile_t1[16];
  __lsram float tile_t0[8];
  __lsram float e[2048];
  __lsram float tile_t3[8];
  int count_t0 = ceildiv(rows, 2);
  int t_step = get_local_size(0);
  int t_start = get_local_id(0);
  int v_came = alloc_event();
  int tile_t2_went = alloc_event();
  int turn_of_2 = 0;
  if (t_start < count_t0) {
    int t = t_start;
    __lsram half* v_ahead = v;
    int end_t0 = min((rows - (t * 2)), 2);
    int low_t0 = max((t * -2), 0);
    int count_t1 = (end_t0 - low_t0);
    int end_t1 = min(cols, 1024);
    __lsram short* words_t0 = (__lsram short*)v_ahead;
    if ((count_t1 < 2) || (end_t1 < 1024)) {
      MemsetSRAM(words_t0, 4096, -1024, 1, 4);
    }
    if ((0 < count_t1) && (0 < end_t1)) {
      int cse_var_1 = (end_t1 * 2);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(v_ahead + (low_t0 * 1024)), (int)(src + (((t * 2) + low_t0) * cols)), cse_var_1, (cols * 2), (cse_var_1 * count_t1), 2048, v_came);
    }
  }
  for (int t_1 = t_start; t_1 < t_start+(count_t0 - t_start); t_1 += t_step) {
    int cse_var_4 = min(cols, 1024);
    int cse_var_3 = max((t_1 * -2), 0);
    int cse_var_2 = min((rows - (t_1 * 2)), 2);
    __lsram half* v_here = (v + (turn_of_2 * 2048));
    __lsram half* tile_t2_here = (tile_t2 + (turn_of_2 * 2048));
    int end_t0_1 = cse_var_2;
    int low_t0_1 = cse_var_3;
    int count_t1_1 = (end_t0_1 - low_t0_1);
    int end_t1_1 = cse_var_4;
    (__lsram short*)v_here;
    if ((0 < count_t1_1) && (0 < end_t1_1)) {
      wait_events((1 << v_came));
    }
    if (t_step < (count_t0 - t_1)) {
      int t_2 = (t_1 + t_step);
      __lsram half* v_ahead_1 = (v + (2048 - (turn_of_2 * 2048)));
      int end_t0_2 = min((rows - (t_2 * 2)), 2);
      int low_t0_2 = max((t_2 * -2), 0);
      int count_t1_2 = (end_t0_2 - low_t0_2);
      int end_t1_2 = cse_var_4;
      __lsram short* words_t0_1 = (__lsram short*)v_ahead_1;
      if ((count_t1_2 < 2) || (end_t1_2 < 1024)) {
        MemsetSRAM(words_t0_1, 4096, -1024, 1, 4);
      }
      if ((0 < count_t1_2) && (0 < end_t1_2)) {
        int cse_var_5 = (end_t1_2 * 2);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(v_ahead_1 + (low_t0_2 * 1024)), (int)(src + (((t_2 * 2) + low_t0_2) * cols)), cse_var_5, (cols * 2), (cse_var_5 * count_t1_2), 2048, v_came);
      }
    }
    for (int i_t0 = 0; i_t0 < 2; i_t0 += 1) {
      half16 total_t0[4];
      total_t0[0] = __vload((__lsram half16*)(v_here + (i_t0 * 1024)), ALL_TRUE_h);
      total_t0[1] = __vload((__lsram half16*)(v_here + ((i_t0 * 1024) + 16)), ALL_TRUE_h);
      total_t0[2] = __vload((__lsram half16*)(v_here + ((i_t0 * 1024) + 32)), ALL_TRUE_h);
      total_t0[3] = __vload((__lsram half16*)(v_here + ((i_t0 * 1024) + 48)), ALL_TRUE_h);
      for (int i_t1 = 64; i_t1 < 64+960; i_t1 += 64) {
        total_t0[0] = __vmax(total_t0[0], total_t0[0], __vload((__lsram half16*)(v_here + ((i_t0 * 1024) + i_t1)), ALL_TRUE_h), ALL_TRUE_h);
        total_t0[1] = __vmax(total_t0[1], total_t0[1], __vload((__lsram half16*)(v_here + (((i_t0 * 1024) + i_t1) + 16)), ALL_TRUE_h), ALL_TRUE_h);
        total_t0[2] = __vmax(total_t0[2], total_t0[2], __vload((__lsram half16*)(v_here + (((i_t0 * 1024) + i_t1) + 32)), ALL_TRUE_h), ALL_TRUE_h);
        total_t0[3] = __vmax(total_t0[3], total_t0[3], __vload((__lsram half16*)(v_here + (((i_t0 * 1024) + i_t1) + 48)), ALL_TRUE_h), ALL_TRUE_h);
      }
      tile_t1[i_t0] = __vrpmax((half16)(half)0x0p+0f/*0.000000e+00*/, __vmax((half16)(half)0x0p+0f/*0.000000e+00*/, __vmax((half16)(half)0x0p+0f/*0.000000e+00*/, total_t0[0], total_t0[1], ALL_TRUE_h), __vmax((half16)(half)0x0p+0f/*0.000000e+00*/, total_t0[2], total_t0[3], ALL_TRUE_h), ALL_TRUE_h), ALL_TRUE_h)[0];
    }
    __vstore(__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)tile_t1, __vmov_h(0x00000005))), __vcvtuo_tfp32(__vload((__lsram half16*)tile_t1, __vmov_h(0x00000005)))), (__lsram float8*)tile_t0, __vmov_w(0x00000011));
    for (int i_t2 = 0; i_t2 < 2; i_t2 += 1) {
      float element_t0 = tile_t0[i_t2];
      for (int i_t3 = 0; i_t3 < 1024; i_t3 += 32) {
        int cse_var_6 = ((i_t2 * 1024) + i_t3);
        __vstore(vexp((__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + cse_var_6), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + cse_var_6), ALL_TRUE_h))) - (float8)element_t0)), (__lsram float8*)(e + cse_var_6), ALL_TRUE_w);
        __vstore(vexp((__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + cse_var_6), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + cse_var_6), ALL_TRUE_h))) - (float8)element_t0)), (__lsram float8*)(e + (cse_var_6 + 8)), ALL_TRUE_w);
        __vstore(vexp((__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + (cse_var_6 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + (cse_var_6 + 16)), ALL_TRUE_h))) - (float8)element_t0)), (__lsram float8*)(e + (cse_var_6 + 16)), ALL_TRUE_w);
        __vstore(vexp((__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(v_here + (cse_var_6 + 16)), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(v_here + (cse_var_6 + 16)), ALL_TRUE_h))) - (float8)element_t0)), (__lsram float8*)(e + (cse_var_6 + 24)), ALL_TRUE_w);
      }
    }
    int end_t2 = cse_var_2;
    int low_t1 = cse_var_3;
    int count_t2 = (end_t2 - low_t1);
    int end_t3 = cse_var_4;
    for (int i_t4 = 0; i_t4 < 2; i_t4 += 1) {
      float8 total_t1[4];
      total_t1[0] = __vload((__lsram float8*)(e + (i_t4 * 1024)), ALL_TRUE_w);
      total_t1[1] = __vload((__lsram float8*)(e + ((i_t4 * 1024) + 8)), ALL_TRUE_w);
      total_t1[2] = __vload((__lsram float8*)(e + ((i_t4 * 1024) + 16)), ALL_TRUE_w);
      total_t1[3] = __vload((__lsram float8*)(e + ((i_t4 * 1024) + 24)), ALL_TRUE_w);
      for (int i_t5 = 32; i_t5 < 32+992; i_t5 += 32) {
        total_t1[0] = (total_t1[0] + __vload((__lsram float8*)(e + ((i_t4 * 1024) + i_t5)), ALL_TRUE_w));
        total_t1[1] = (total_t1[1] + __vload((__lsram float8*)(e + (((i_t4 * 1024) + i_t5) + 8)), ALL_TRUE_w));
        total_t1[2] = (total_t1[2] + __vload((__lsram float8*)(e + (((i_t4 * 1024) + i_t5) + 16)), ALL_TRUE_w));
        total_t1[3] = (total_t1[3] + __vload((__lsram float8*)(e + (((i_t4 * 1024) + i_t5) + 24)), ALL_TRUE_w));
      }
      tile_t0[i_t4] = __vrpadd((float8)0x0p+0f/*0.000000e+00*/, ((total_t1[0] + total_t1[1]) + (total_t1[2] + total_t1[3])), ALL_TRUE_w)[0];
    }
    __vstore(__vdiv((float8)0x0p+0f/*0.000000e+00*/, (float8)0x1p+0f/*1.000000e+00*/, __vload((__lsram float8*)tile_t0, __vmov_w(0x00000011)), ALL_TRUE_w), (__lsram float8*)tile_t3, __vmov_w(0x00000011));
    for (int i_t6 = 0; i_t6 < 2; i_t6 += 1) {
      float element_t1 = tile_t3[i_t6];
      for (int i_t7 = 0; i_t7 < 1024; i_t7 += 32) {
        int cse_var_7 = ((i_t6 * 1024) + i_t7);
        __vstore(__vcvtd((__vload((__lsram float8*)(e + cse_var_7), ALL_TRUE_w) * (float8)element_t1), (__vload((__lsram float8*)(e + (cse_var_7 + 8)), ALL_TRUE_w) * (float8)element_t1)), (__lsram half16*)(tile_t2_here + cse_var_7), ALL_TRUE_h);
        __vstore(__vcvtd((__vload((__lsram float8*)(e + (cse_var_7 + 16)), ALL_TRUE_w) * (float8)element_t1), (__vload((__lsram float8*)(e + (cse_var_7 + 24)), ALL_TRUE_w) * (float8)element_t1)), (__lsram half16*)(tile_t2_here + (cse_var_7 + 16)), ALL_TRUE_h);
      }
    }
    if (t_start < t_1) {
      wait_events((1 << tile_t2_went));
    }
    if ((0 < count_t2) && (0 < end_t3)) {
      int cse_var_8 = (end_t3 * 2);
      AsyncDmaDirect_kLsram_to_kGlobal((int)(dst + (((t_1 * 2) + low_t1) * cols)), (int)(tile_t2_here + (low_t1 * 1024)), cse_var_8, 2048, (cse_var_8 * count_t2), (cols * 2), tile_t2_went);
    }
    turn_of_2 = (1 - turn_of_2);
  }
  free_events(((1 << v_came) | (1 << tile_t2_went)));
  barrier(CLK_LOCAL_MEM_FENCE);
}
