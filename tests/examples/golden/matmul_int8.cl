#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);

__kernel void matmul_int8(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth);
int matmul_int8_dot(__lsram char* a, __global char* b, int depth);

__kernel void matmul_int8(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth) {
  __lsram char row_buf[8192];
  __lsram char* row = row_buf;
  for (int i = get_local_id(0); i < get_local_id(0)+(rows - get_local_id(0)); i += get_local_size(0)) {
    DmaDirect_kGlobal_to_kLsram((int)row, (int)(a + (i * depth)), depth, depth, depth, depth);
    for (int j = 0; j < cols; j += 1) {
      c[((i * cols) + j)] = matmul_int8_dot(row, (b + (j * depth)), depth);
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

int matmul_int8_dot(__lsram char* a, __global char* b, int depth) {
  int8 acc = (int8)0;
  int full = ((depth >> 5) * 32);
  for (int k = 0; k < full; k += 32) {
    acc = __vqdpa(acc, __vload((__lsram char32*)(a + k), ALL_TRUE_b), __vload((__global char32*)(b + k), ALL_TRUE_b), ALL_TRUE_b);
  }
  int rest = (depth & 31);
  if (0 < rest) {
    bool32 mask = __vmov_b(((((rest >> 5) ^ 1) << rest) - 1));
    acc = __vqdpa(acc, __vload((__lsram char32*)(a + full), mask), __vload((__global char32*)(b + full), mask), mask);
  }
  return __vrpadd((int8)0, acc, ALL_TRUE_w)[0];
}
