#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void static_add(__global half* a, __global half* b, __global half* c);

__kernel void static_add(__global half* a, __global half* b, __global half* c) {
  int tid = get_local_id(0);
  __lsram half la_buf[512];
  __lsram half lb_buf[512];
  __lsram half* la = la_buf;
  __lsram half* lb = lb_buf;
  int base = (tid * 512);
  DmaDirect_kGlobal_to_kLsram((int)la, (int)(a + base), 1024, 1024, 1024, 1024);
  DmaDirect_kGlobal_to_kLsram((int)lb, (int)(b + base), 1024, 1024, 1024, 1024);
  for (int i = 0; i < 512; i += 16) {
    __vstore((__vload((__lsram half16*)(la + i), ALL_TRUE_h) + __vload((__lsram half16*)(lb + i), ALL_TRUE_h)), (__lsram half16*)(la + i), ALL_TRUE_h);
  }
  DmaDirect_kLsram_to_kGlobal((int)(c + base), (int)la, 1024, 1024, 1024, 1024);
  barrier(CLK_LOCAL_MEM_FENCE);
}
