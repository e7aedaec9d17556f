#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kShared);
GEN_DMA_DIRECT_INT2EXT(kShared, kGlobal);

__kernel void bitonic_sort(__global int* src, __global int* dst, int n);
void bitonic_sort_exchange_far(__local int* data, int size, int run, int distance);
void bitonic_sort_sort_vectors(__local int* data, int size, int run);
_CLC_INLINE int8 bitonic_sort_vsort_int32x8(int8 x);
_CLC_INLINE int8 bitonic_sort_vsort_int32x8_descending(int8 x);

__kernel void bitonic_sort(__global int* src, __global int* dst, int n) {
  __local int data_buf[32768];
  __local int* data = data_buf;
  int tec = get_local_id(0);
  bool cse_var_1 = (tec == 0);
  int size = 8;
  while ((size < n)){
    size = (size * 2);
  }
  if (cse_var_1) {
    int cse_var_2 = (n * 4);
    for (int i = ((n >> 3) * 8); i < ((n >> 3) * 8)+(size - ((n >> 3) * 8)); i += 8) {
      __vstore((int8)2147483647, (__local int8*)(data + i), ALL_TRUE_w);
    }
    DmaDirect_kGlobal_to_kShared((int)data, (int)src, cse_var_2, cse_var_2, cse_var_2, cse_var_2);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  int run = 8;
  while ((run <= size)){
    int distance = (run >> 1);
    while ((8 <= distance)){
      bitonic_sort_exchange_far(data, size, run, distance);
      barrier(CLK_LOCAL_MEM_FENCE);
      distance = (distance >> 1);
    }
    bitonic_sort_sort_vectors(data, size, run);
    barrier(CLK_LOCAL_MEM_FENCE);
    run = (run * 2);
  }
  if (cse_var_1) {
    int cse_var_3 = (n * 4);
    DmaDirect_kShared_to_kGlobal((int)dst, (int)data, cse_var_3, cse_var_3, cse_var_3, cse_var_3);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

void bitonic_sort_exchange_far(__local int* data, int size, int run, int distance) {
  for (int i = (get_local_id(0) * 8); i < (get_local_id(0) * 8)+((size >> 1) - (get_local_id(0) * 8)); i += (get_local_size(0) * 8)) {
    int cse_var_1 = (((i / distance) * distance) + i);
    __local int* low = (data + cse_var_1);
    __local int* high = (low + distance);
    int8 small = __vmin(small, __vload((__local int8*)low, ALL_TRUE_w), __vload((__local int8*)high, ALL_TRUE_w), ALL_TRUE_w);
    int8 large = __vmax(large, __vload((__local int8*)low, ALL_TRUE_w), __vload((__local int8*)high, ALL_TRUE_w), ALL_TRUE_w);
    if (0 < ((cse_var_1 / run) & 1)) {
      int8 tmp_small = small;
      small = large;
      large = tmp_small;
    }
    __vstore(small, (__local int8*)low, ALL_TRUE_w);
    __vstore(large, (__local int8*)high, ALL_TRUE_w);
  }
}

void bitonic_sort_sort_vectors(__local int* data, int size, int run) {
  for (int i = (get_local_id(0) * 8); i < (get_local_id(0) * 8)+(size - (get_local_id(0) * 8)); i += (get_local_size(0) * 8)) {
    int8 x = __vload((__local int8*)(data + i), ALL_TRUE_w);
    __vstore((((i & run) == 0) ? bitonic_sort_vsort_int32x8(x) : bitonic_sort_vsort_int32x8_descending(x)), (__local int8*)(data + i), ALL_TRUE_w);
  }
}

_CLC_INLINE int8 bitonic_sort_vsort_int32x8(int8 x) {
  int8 x_0 = __vperm(x, x, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_1 = __vmin(x_1, x, x_0, ALL_TRUE_w);
  int8 x_2 = __vmax(x_2, x, x_0, ALL_TRUE_w);
  int8 x_3 = __vsel(x_1, x_2, __vmov_w(0x10011001));
  int8 x_4 = __vperm(x_3, x_3, as_uint8((int8)(2,3,0,1,6,7,4,5)));
  int8 x_5 = __vmin(x_5, x_3, x_4, ALL_TRUE_w);
  int8 x_6 = __vmax(x_6, x_3, x_4, ALL_TRUE_w);
  int8 x_7 = __vsel(x_5, x_6, __vmov_w(0x11000011));
  int8 x_8 = __vperm(x_7, x_7, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_9 = __vmin(x_9, x_7, x_8, ALL_TRUE_w);
  int8 x_10 = __vmax(x_10, x_7, x_8, ALL_TRUE_w);
  int8 x_11 = __vsel(x_9, x_10, __vmov_w(0x10100101));
  int8 x_12 = __vperm(x_11, x_11, as_uint8((int8)(4,5,6,7,0,1,2,3)));
  int8 x_13 = __vmin(x_13, x_11, x_12, ALL_TRUE_w);
  int8 x_14 = __vmax(x_14, x_11, x_12, ALL_TRUE_w);
  int8 x_15 = __vsel(x_13, x_14, __vmov_w(0x00001111));
  int8 x_16 = __vperm(x_15, x_15, as_uint8((int8)(2,3,0,1,6,7,4,5)));
  int8 x_17 = __vmin(x_17, x_15, x_16, ALL_TRUE_w);
  int8 x_18 = __vmax(x_18, x_15, x_16, ALL_TRUE_w);
  int8 x_19 = __vsel(x_17, x_18, __vmov_w(0x00110011));
  int8 x_20 = __vperm(x_19, x_19, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_21 = __vmin(x_21, x_19, x_20, ALL_TRUE_w);
  int8 x_22 = __vmax(x_22, x_19, x_20, ALL_TRUE_w);
  int8 x_23 = __vsel(x_21, x_22, __vmov_w(0x01010101));
  return x_23;
}

_CLC_INLINE int8 bitonic_sort_vsort_int32x8_descending(int8 x) {
  int8 x_0 = __vperm(x, x, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_1 = __vmin(x_1, x, x_0, ALL_TRUE_w);
  int8 x_2 = __vmax(x_2, x, x_0, ALL_TRUE_w);
  int8 x_3 = __vsel(x_1, x_2, __vmov_w(0x01100110));
  int8 x_4 = __vperm(x_3, x_3, as_uint8((int8)(2,3,0,1,6,7,4,5)));
  int8 x_5 = __vmin(x_5, x_3, x_4, ALL_TRUE_w);
  int8 x_6 = __vmax(x_6, x_3, x_4, ALL_TRUE_w);
  int8 x_7 = __vsel(x_5, x_6, __vmov_w(0x00111100));
  int8 x_8 = __vperm(x_7, x_7, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_9 = __vmin(x_9, x_7, x_8, ALL_TRUE_w);
  int8 x_10 = __vmax(x_10, x_7, x_8, ALL_TRUE_w);
  int8 x_11 = __vsel(x_9, x_10, __vmov_w(0x01011010));
  int8 x_12 = __vperm(x_11, x_11, as_uint8((int8)(4,5,6,7,0,1,2,3)));
  int8 x_13 = __vmin(x_13, x_11, x_12, ALL_TRUE_w);
  int8 x_14 = __vmax(x_14, x_11, x_12, ALL_TRUE_w);
  int8 x_15 = __vsel(x_13, x_14, __vmov_w(0x11110000));
  int8 x_16 = __vperm(x_15, x_15, as_uint8((int8)(2,3,0,1,6,7,4,5)));
  int8 x_17 = __vmin(x_17, x_15, x_16, ALL_TRUE_w);
  int8 x_18 = __vmax(x_18, x_15, x_16, ALL_TRUE_w);
  int8 x_19 = __vsel(x_17, x_18, __vmov_w(0x11001100));
  int8 x_20 = __vperm(x_19, x_19, as_uint8((int8)(1,0,3,2,5,4,7,6)));
  int8 x_21 = __vmin(x_21, x_19, x_20, ALL_TRUE_w);
  int8 x_22 = __vmax(x_22, x_19, x_20, ALL_TRUE_w);
  int8 x_23 = __vsel(x_21, x_22, __vmov_w(0x10101010));
  return x_23;
}
