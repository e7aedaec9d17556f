#include <compass/dsl.h>

GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void softmax(__global half* src, __global half* dst, int rows, int cols);
float softmax_exponentials(__lsram float* e, __lsram half* row, int n, float top);
float softmax_row_max(__lsram half* row, int n);

__kernel void softmax(__global half* src, __global half* dst, int rows, int cols) {
  *addr_of_event_state() = 0;
  __lsram half row_buf[8192];
  __lsram float e_buf[4096];
  __lsram half* row = row_buf;
  __lsram float* e = e_buf;
  int last = (((cols - 1) >> 4) * 16);
  bool16 beyond = (~__vmov_h((((((max(min((cols - last), 16), 0) << 1) >> 5) ^ 1) << (max(min((cols - last), 16), 0) << 1)) - 1)));
  int r_step = get_local_size(0);
  int r_start = get_local_id(0);
  int row_came = alloc_event();
  int row_went = alloc_event();
  int turn_of_2 = 0;
  if (r_start < rows) {
    int cse_var_1 = (cols * 2);
    int r = r_start;
    __lsram half* row_ahead = row;
    AsyncDmaDirect_kGlobal_to_kLsram((int)row_ahead, (int)(src + (r * cols)), cse_var_1, cse_var_1, cse_var_1, cse_var_1, row_came);
  }
  for (int r_1 = r_start; r_1 < r_start+(rows - r_start); r_1 += r_step) {
    int cse_var_2 = (cols * 2);
    __lsram half* row_here = (row + (turn_of_2 * 4096));
    wait_events((1 << row_came));
    if (r_step < (rows - r_1)) {
      if (r_start < r_1) {
        wait_events((1 << row_went));
      }
      int r_2 = (r_1 + r_step);
      __lsram half* row_ahead_1 = (row + (4096 - (turn_of_2 * 4096)));
      AsyncDmaDirect_kGlobal_to_kLsram((int)row_ahead_1, (int)(src + (r_2 * cols)), cse_var_2, cse_var_2, cse_var_2, cse_var_2, row_came);
    }
    __vstore((half16)-INFINITY, (__lsram half16*)(row_here + last), beyond);
    float scale = (float)(0x1p+0f/*1.000000e+00*/ / softmax_exponentials(e, row_here, cols, softmax_row_max(row_here, cols)));
    for (int i = 0; i < cols; i += 16) {
      __vstore(__vcvtd((__vload((__lsram float8*)(e + i), ALL_TRUE_w) * (float8)scale), (__vload((__lsram float8*)(e + (i + 8)), ALL_TRUE_w) * (float8)scale)), (__lsram half16*)(row_here + i), ALL_TRUE_h);
    }
    if (r_start < r_1) {
      wait_events((1 << row_went));
    }
    AsyncDmaDirect_kLsram_to_kGlobal((int)(dst + (r_1 * cols)), (int)row_here, cse_var_2, cse_var_2, cse_var_2, cse_var_2, row_went);
    turn_of_2 = (1 - turn_of_2);
  }
  free_events(((1 << row_came) | (1 << row_went)));
  barrier(CLK_LOCAL_MEM_FENCE);
}

float softmax_exponentials(__lsram float* e, __lsram half* row, int n, float top) {
  float8 total[2];
  total[0] = (float8)0x0p+0f/*0.000000e+00*/;
  total[1] = (float8)0x0p+0f/*0.000000e+00*/;
  for (int i = 0; i < n; i += 16) {
    float8 v[2];
    v[0] = vexp((__vzipl(__vcvtue_tfp32(__vload((__lsram half16*)(row + i), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(row + i), ALL_TRUE_h))) - (float8)top));
    v[1] = vexp((__vziph(__vcvtue_tfp32(__vload((__lsram half16*)(row + i), ALL_TRUE_h)), __vcvtuo_tfp32(__vload((__lsram half16*)(row + i), ALL_TRUE_h))) - (float8)top));
    __vstore(v[0], (__lsram float8*)(e + i), ALL_TRUE_w);
    __vstore(v[1], (__lsram float8*)(e + (i + 8)), ALL_TRUE_w);
    total[0] = (total[0] + v[0]);
    total[1] = (total[1] + v[1]);
  }
  return (__vrpadd((float8)0x0p+0f/*0.000000e+00*/, total[0], ALL_TRUE_w) + __vrpadd((float8)0x0p+0f/*0.000000e+00*/, total[1], ALL_TRUE_w))[0];
}

float softmax_row_max(__lsram half* row, int n) {
  half16 best = __vload((__lsram half16*)row, ALL_TRUE_h);
  for (int i = 16; i < 16+(n - 16); i += 16) {
    best = __vmax((half16)(half)0x0p+0f/*0.000000e+00*/, best, __vload((__lsram half16*)(row + i), ALL_TRUE_h), ALL_TRUE_h);
  }
  return (float)__vrpmax((half16)(half)0x0p+0f/*0.000000e+00*/, best, ALL_TRUE_h)[0];
}
