#include <compass/dsl.h>

GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);

__kernel void matmul_int8(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth);
int matmul_int8_dot(__lsram char* a, __global char* b, int depth);

__kernel void matmul_int8(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth) {
  *addr_of_event_state() = 0;
  __lsram char row_buf[16384];
  __lsram char* row = row_buf;
  int i_step = get_local_size(0);
  int i_start = get_local_id(0);
  int row_came = alloc_event();
  int turn_of_2 = 0;
  if (i_start < rows) {
    int i = i_start;
    __lsram char* row_ahead = row;
    AsyncDmaDirect_kGlobal_to_kLsram((int)row_ahead, (int)(a + (i * depth)), depth, depth, depth, depth, row_came);
  }
  for (int i_1 = i_start; i_1 < i_start+(rows - i_start); i_1 += i_step) {
    __lsram char* row_here = (row + (turn_of_2 * 8192));
    wait_events((1 << row_came));
    if (i_step < (rows - i_1)) {
      int i_2 = (i_1 + i_step);
      __lsram char* row_ahead_1 = (row + (8192 - (turn_of_2 * 8192)));
      AsyncDmaDirect_kGlobal_to_kLsram((int)row_ahead_1, (int)(a + (i_2 * depth)), depth, depth, depth, depth, row_came);
    }
    for (int j = 0; j < cols; j += 1) {
      c[((i_1 * cols) + j)] = matmul_int8_dot(row_here, (b + (j * depth)), depth);
    }
    turn_of_2 = (1 - turn_of_2);
  }
  free_events((1 << row_came));
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
