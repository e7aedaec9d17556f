#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_inc(__global uchar* src, __global uchar* dst, int total);

__kernel void tile_inc(__global uchar* src, __global uchar* dst, int total) {
  __lsram uchar buf_buf[2048];
  __lsram uchar* buf = buf_buf;
  int tec = get_local_id(0);
  int per = ceildiv(total, get_local_size(0));
  int lo = (tec * per);
  int left = min(per, (total - lo));
  for (int off = 0; off < left; off += 2048) {
    int cse_var_1 = (lo + off);
    int now = min((left - off), 2048);
    DmaDirect_kGlobal_to_kLsram((int)buf, (int)(src + cse_var_1), now, now, now, now);
    for (int j = 0; j < now; j += 32) {
      __vstore(__vadds(__vload((__lsram uchar32*)(buf + j), ALL_TRUE_b), __vload((__lsram uchar32*)(buf + j), ALL_TRUE_b), (uchar32)(uchar)1, ALL_TRUE_b), (__lsram uchar32*)(buf + j), ALL_TRUE_b);
    }
    DmaDirect_kLsram_to_kGlobal((int)(dst + cse_var_1), (int)buf, now, now, now, now);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
