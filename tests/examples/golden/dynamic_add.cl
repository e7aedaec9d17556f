#include <compass/dsl.h>

GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void dynamic_add(__global half* a, __global half* b, __global half* c, int n);
void dynamic_add_add_tile(__lsram half* x, __lsram half* y, int n);

__kernel void dynamic_add(__global half* a, __global half* b, __global half* c, int n) {
  *addr_of_event_state() = 0;
  __lsram half la_buf[6144];
  __lsram half lb_buf[4096];
  __lsram half* la = la_buf;
  __lsram half* lb = lb_buf;
  int share = (ceildiv(ceildiv(n, 16), get_local_size(0)) * 16);
  int first = (get_local_id(0) * share);
  int left = min(share, (n - first));
  int la_came = alloc_event();
  int lb_came = alloc_event();
  int la_went = alloc_event();
  int turn_of_2 = 0;
  int turn_of_3 = 0;
  if (0 < left) {
    __lsram half* la_ahead = la;
    __lsram half* lb_ahead = lb;
    int now = min(left, 2048);
    int cse_var_1 = (now * 2);
    AsyncDmaDirect_kGlobal_to_kLsram((int)la_ahead, (int)(a + first), cse_var_1, cse_var_1, cse_var_1, cse_var_1, la_came);
    AsyncDmaDirect_kGlobal_to_kLsram((int)lb_ahead, (int)(b + first), cse_var_1, cse_var_1, cse_var_1, cse_var_1, lb_came);
  }
  for (int done = 0; done < left; done += 2048) {
    int cse_var_2 = (left - done);
    __lsram half* la_here = (la + (turn_of_3 * 2048));
    __lsram half* lb_here = (lb + (turn_of_2 * 2048));
    int now_1 = min(cse_var_2, 2048);
    int cse_var_3 = (now_1 * 2);
    wait_events((1 << la_came));
    wait_events((1 << lb_came));
    if (2048 < cse_var_2) {
      int done_1 = (done + 2048);
      int cse_var_4 = (first + done_1);
      __lsram half* la_ahead_1 = (la + (((turn_of_3 < 2) ? (turn_of_3 + 1) : (turn_of_3 - 2)) * 2048));
      __lsram half* lb_ahead_1 = (lb + (2048 - (turn_of_2 * 2048)));
      int now_2 = min((left - done_1), 2048);
      int cse_var_5 = (now_2 * 2);
      AsyncDmaDirect_kGlobal_to_kLsram((int)la_ahead_1, (int)(a + cse_var_4), cse_var_5, cse_var_5, cse_var_5, cse_var_5, la_came);
      AsyncDmaDirect_kGlobal_to_kLsram((int)lb_ahead_1, (int)(b + cse_var_4), cse_var_5, cse_var_5, cse_var_5, cse_var_5, lb_came);
    }
    dynamic_add_add_tile(la_here, lb_here, now_1);
    if (0 < done) {
      wait_events((1 << la_went));
    }
    AsyncDmaDirect_kLsram_to_kGlobal((int)(c + (first + done)), (int)la_here, cse_var_3, cse_var_3, cse_var_3, cse_var_3, la_went);
    turn_of_2 = (1 - turn_of_2);
    turn_of_3 = ((turn_of_3 < 2) ? (turn_of_3 + 1) : 0);
  }
  free_events((((1 << la_came) | (1 << lb_came)) | (1 << la_went)));
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
