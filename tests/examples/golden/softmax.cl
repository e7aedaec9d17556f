#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void softmax(__global half* src, __global half* dst, int rows, int cols);
float softmax_exponentials(__lsram float* e, __lsram half* row, int n, float top);
float softmax_row_max(__lsram half* row, int n);

__kernel void softmax(__global half* src, __global half* dst, int rows, int cols) {
  __lsram half row_buf[4096];
  __lsram float e_buf[4096];
  __lsram half* row = row_buf;
  __lsram float* e = e_buf;
  int last = (((cols - 1) >> 4) * 16);
  bool16 beyond = (~__vmov_h((((((max(min((cols - last), 16), 0) << 1) >> 5) ^ 1) << (max(min((cols - last), 16), 0) << 1)) - 1)));
  for (int r = get_local_id(0); r < get_local_id(0)+(rows - get_local_id(0)); r += get_local_size(0)) {
    int cse_var_2 = (cols * 2);
    int cse_var_1 = (r * cols);
    DmaDirect_kGlobal_to_kLsram((int)row, (int)(src + cse_var_1), cse_var_2, cse_var_2, cse_var_2, cse_var_2);
    __vstore((half16)-INFINITY, (__lsram half16*)(row + last), beyond);
    float scale = (float)(0x1p+0f/*1.000000e+00*/ / softmax_exponentials(e, row, cols, softmax_row_max(row, cols)));
    for (int i = 0; i < cols; i += 16) {
      __vstore(__vcvtd((__vload((__lsram float8*)(e + i), ALL_TRUE_w) * (float8)scale), (__vload((__lsram float8*)(e + (i + 8)), ALL_TRUE_w) * (float8)scale)), (__lsram half16*)(row + i), ALL_TRUE_h);
    }
    DmaDirect_kLsram_to_kGlobal((int)(dst + cse_var_1), (int)row, cse_var_2, cse_var_2, cse_var_2, cse_var_2);
  }
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
