#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kShared);
GEN_DMA_DIRECT_INT2EXT(kShared, kGlobal);

__kernel void bitonic_sort(__global int* src, __global int* dst, int n);
void bitonic_sort_exchange_far(__local int* data, int size, int run, int distance);
void bitonic_sort_exchange_near(__local int* data, int size, int run, int distance);

__kernel void bitonic_sort(__global int* src, __global int* dst, int n) {
  __local int data_buf[32768];
  __local int* data = data_buf;
  int tec = get_local_id(0);
  bool cse_var_1 = (tec == 0);
  int size = 8;
  while (size < n){
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
  int run = 2;
  while (run <= size){
    int distance = (run >> 1);
    while (0 < distance){
      if (8 <= distance) {
        bitonic_sort_exchange_far(data, size, run, distance);
      } else {
        bitonic_sort_exchange_near(data, size, run, distance);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
      distance = (distance >> 1);
    }
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
    int8 x = __vload((__local int8*)low, ALL_TRUE_w);
    int8 y = __vload((__local int8*)high, ALL_TRUE_w);
    if (((cse_var_1 / run) & 1) == 0) {
      __vstore(__vmin((int8)0, x, y, ALL_TRUE_w), (__local int8*)low, ALL_TRUE_w);
      __vstore(__vmax((int8)0, x, y, ALL_TRUE_w), (__local int8*)high, ALL_TRUE_w);
    } else {
      __vstore(__vmax((int8)0, x, y, ALL_TRUE_w), (__local int8*)low, ALL_TRUE_w);
      __vstore(__vmin((int8)0, x, y, ALL_TRUE_w), (__local int8*)high, ALL_TRUE_w);
    }
  }
}

void bitonic_sort_exchange_near(__local int* data, int size, int run, int distance) {
  int8 lanes = (int8)(0,1,2,3,4,5,6,7);
  short16 partners = __vexte(as_short16(__vxor((int8)0, lanes, (int8)distance, __vmov_w(286331153))), as_short16(__vxor((int8)0, lanes, (int8)distance, __vmov_w(286331153))));
  for (int i = (get_local_id(0) * 8); i < (get_local_id(0) * 8)+(size - (get_local_id(0) * 8)); i += (get_local_size(0) * 8)) {
    int8 x = __vload((__local int8*)(data + i), ALL_TRUE_w);
    int8 y = __vload_gather((__local int8*)(data + i), as_ushort16(__vlsl((short16)(short)0, partners, as_short16((ushort16)(ushort)2), __vmov_h(0x00005555))));
    int8 number = (lanes + (int8)i);
    bool8 descending = __vcneq(__vand((int8)0, number, (int8)run, ALL_TRUE_w), (int8)0, ALL_TRUE_w);
    bool8 takes_smaller = __vxor(__vceq(__vand((int8)0, number, (int8)distance, ALL_TRUE_w), (int8)0, ALL_TRUE_w), descending, ALL_TRUE_w);
    __vstore(__vsel(__vmin((int8)0, x, y, ALL_TRUE_w), __vmax((int8)0, x, y, ALL_TRUE_w), takes_smaller), (__local int8*)(data + i), ALL_TRUE_w);
  }
}
