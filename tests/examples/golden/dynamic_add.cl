#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void dynamic_add(__global half* a, __global half* b, __global half* c, int n);
void dynamic_add_add_tile(__lsram half* x, __lsram half* y, int n);

__kernel void dynamic_add(__global half* a, __global half* b, __global half* c, int n) {
  __lsram half la_buf[4096];
  __lsram half lb_buf[4096];
  __lsram half* la = la_buf;
  __lsram half* lb = lb_buf;
  int share = (ceildiv(ceildiv(n, 16), get_local_size(0)) * 16);
  int first = (get_local_id(0) * share);
  int left = min(share, (n - first));
  for (int done = 0; done < left; done += 4096) {
    int cse_var_1 = (first + done);
    int now = min((left - done), 4096);
    int cse_var_2 = (now * 2);
    DmaDirect_kGlobal_to_kLsram((int)la, (int)(a + cse_var_1), cse_var_2, cse_var_2, cse_var_2, cse_var_2);
    DmaDirect_kGlobal_to_kLsram((int)lb, (int)(b + cse_var_1), cse_var_2, cse_var_2, cse_var_2, cse_var_2);
    dynamic_add_add_tile(la, lb, now);
    DmaDirect_kLsram_to_kGlobal((int)(c + cse_var_1), (int)la, cse_var_2, cse_var_2, cse_var_2, cse_var_2);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

void dynamic_add_add_tile(__lsram half* x, __lsram half* y, int n) {
  int full = (n >> 4);
  for (int i = 0; i < full; i += 1) {
    int cse_var_1 = (i * 16);
    __lsram half* p = (x + cse_var_1);
    __vstore((__vload((__lsram half16*)p, ALL_TRUE_h) + __vload((__lsram half16*)(y + cse_var_1), ALL_TRUE_h)), (__lsram half16*)p, ALL_TRUE_h);
  }
  int rest = (n & 15);
  if (0 < rest) {
    int cse_var_2 = (full * 16);
    bool16 mask = __vmov_h((((((rest << 1) >> 5) ^ 1) << (rest << 1)) - 1));
    __lsram half* q = (x + cse_var_2);
    __vstore((__vload((__lsram half16*)q, mask) + __vload((__lsram half16*)(y + cse_var_2), mask)), (__lsram half16*)q, mask);
  }
}
