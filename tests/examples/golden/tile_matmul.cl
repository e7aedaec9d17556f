#include <compass/dsl.h>

GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_matmul(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth);

__kernel void tile_matmul(__global char* a, __global char* b, __global int* c, int rows, int cols, int depth) {
  *addr_of_event_state() = 0;
  __lsram int acc[1024];
  __lsram char ta[8192];
  __lsram char tb[8192];
  __lsram char tile_t0[4096];
  int count_t0 = ceildiv(rows, 32);
  int count_t1 = ceildiv(cols, 32);
  for (int turn_t0 = get_local_id(0); turn_t0 < get_local_id(0)+((count_t0 * count_t1) - get_local_id(0)); turn_t0 += get_local_size(0)) {
    int _place_t0 = (turn_t0 % count_t1);
    int _place_t1 = (turn_t0 / count_t1);
    for (int i_t4 = 0; i_t4 < 32; i_t4 += 1) {
      __vstore((int8)0, (__lsram int8*)(acc + (i_t4 * 32)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t4 * 32) + 8)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t4 * 32) + 16)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t4 * 32) + 24)), ALL_TRUE_w);
    }
    int ta_came = alloc_event();
    int tb_came = alloc_event();
    int turn_of_2 = 0;
    if (0 < depth) {
      int cse_var_1 = min(depth, 128);
      __lsram char* ta_ahead = ta;
      __lsram char* tb_ahead = tb;
      int end_t0 = min((rows - (_place_t1 * 32)), 32);
      int low_t0 = max((_place_t1 * -32), 0);
      int count_t2 = (end_t0 - low_t0);
      int end_t1 = cse_var_1;
      int count_t3 = (end_t1 - 0);
      int end_t2 = min((cols - (_place_t0 * 32)), 32);
      int low_t2 = max((_place_t0 * -32), 0);
      int count_t4 = (end_t2 - low_t2);
      int end_t3 = cse_var_1;
      int count_t5 = (end_t3 - 0);
      if ((count_t2 < 32) || (count_t3 < 128)) {
        MemsetSRAM(ta_ahead, 4096, 0, 0, 4);
      }
      if (0 < count_t2) {
        AsyncDmaDirect_kGlobal_to_kLsram((int)(ta_ahead + ((low_t0 * 128) + 0)), (int)(a + ((((_place_t1 * 32) + low_t0) * depth) + 0)), count_t3, depth, (count_t3 * count_t2), 128, ta_came);
      }
      if ((count_t4 < 32) || (count_t5 < 128)) {
        MemsetSRAM(tb_ahead, 4096, 0, 0, 4);
      }
      if (0 < count_t4) {
        AsyncDmaDirect_kGlobal_to_kLsram((int)(tb_ahead + ((low_t2 * 128) + 0)), (int)(b + ((((_place_t0 * 32) + low_t2) * depth) + 0)), count_t5, depth, (count_t5 * count_t4), 128, tb_came);
      }
    }
    for (int k = 0; k < depth; k += 128) {
      int cse_var_3 = (depth - k);
      int cse_var_2 = min(cse_var_3, 128);
      __lsram char* ta_here = (ta + (turn_of_2 * 4096));
      __lsram char* tb_here = (tb + (turn_of_2 * 4096));
      int end_t0_1 = min((rows - (_place_t1 * 32)), 32);
      int low_t0_1 = max((_place_t1 * -32), 0);
      int count_t2_1 = (end_t0_1 - low_t0_1);
      int end_t1_1 = cse_var_2;
      int count_t3_1 = (end_t1_1 - 0);
      if ((0 < count_t2_1) && (0 < count_t3_1)) {
        wait_events((1 << ta_came));
      }
      int end_t2_1 = min((cols - (_place_t0 * 32)), 32);
      int low_t2_1 = max((_place_t0 * -32), 0);
      int count_t4_1 = (end_t2_1 - low_t2_1);
      int end_t3_1 = cse_var_2;
      int count_t5_1 = (end_t3_1 - 0);
      if ((0 < count_t4_1) && (0 < count_t5_1)) {
        wait_events((1 << tb_came));
      }
      if (128 < cse_var_3) {
        int k_1 = (k + 128);
        int cse_var_4 = min((depth - k_1), 128);
        __lsram char* ta_ahead_1 = (ta + (4096 - (turn_of_2 * 4096)));
        __lsram char* tb_ahead_1 = (tb + (4096 - (turn_of_2 * 4096)));
        int end_t0_2 = end_t0_1;
        int low_t0_2 = low_t0_1;
        int count_t2_2 = (end_t0_2 - low_t0_2);
        int end_t1_2 = cse_var_4;
        int count_t3_2 = (end_t1_2 - 0);
        int end_t2_2 = end_t2_1;
        int low_t2_2 = low_t2_1;
        int count_t4_2 = (end_t2_2 - low_t2_2);
        int end_t3_2 = cse_var_4;
        int count_t5_2 = (end_t3_2 - 0);
        if ((count_t2_2 < 32) || (count_t3_2 < 128)) {
          MemsetSRAM(ta_ahead_1, 4096, 0, 0, 4);
        }
        if ((0 < count_t2_2) && (0 < count_t3_2)) {
          AsyncDmaDirect_kGlobal_to_kLsram((int)(ta_ahead_1 + ((low_t0_2 * 128) + 0)), (int)(a + (((((_place_t1 * 32) + low_t0_2) * depth) + k_1) + 0)), count_t3_2, depth, (count_t3_2 * count_t2_2), 128, ta_came);
        }
        if ((count_t4_2 < 32) || (count_t5_2 < 128)) {
          MemsetSRAM(tb_ahead_1, 4096, 0, 0, 4);
        }
        if ((0 < count_t4_2) && (0 < count_t5_2)) {
          AsyncDmaDirect_kGlobal_to_kLsram((int)(tb_ahead_1 + ((low_t2_2 * 128) + 0)), (int)(b + (((((_place_t0 * 32) + low_t2_2) * depth) + k_1) + 0)), count_t5_2, depth, (count_t5_2 * count_t4_2), 128, tb_came);
        }
      }
      __lsram int* words_t0 = (__lsram int*)tb_here;
      __lsram int* words_t1 = (__lsram int*)tile_t0;
      for (int i_t0 = 0; i_t0 < 32; i_t0 += 1) {
        for (int i_t1 = 0; i_t1 < 32; i_t1 += 8) {
          __vstore(__vload_stride((__lsram int8*)(words_t0 + ((i_t1 * 32) + i_t0)), 128, ALL_TRUE_w), (__lsram int8*)(words_t1 + ((i_t0 * 32) + i_t1)), ALL_TRUE_w);
        }
      }
      __lsram int* words_t2 = (__lsram int*)ta_here;
      for (int i_t2 = 0; i_t2 < 32; i_t2 += 4) {
        int cse_var_20 = (i_t2 * 32);
        int cse_var_19 = (cse_var_20 + 96);
        int cse_var_18 = (cse_var_20 + 88);
        int cse_var_17 = (cse_var_20 + 80);
        int cse_var_16 = (cse_var_20 + 8);
        int cse_var_15 = (cse_var_20 + 72);
        int cse_var_14 = (cse_var_20 + 64);
        int cse_var_13 = (cse_var_20 + 56);
        int cse_var_12 = (cse_var_20 + 48);
        int cse_var_11 = (cse_var_20 + 40);
        int cse_var_10 = (cse_var_20 + 32);
        int cse_var_9 = (cse_var_20 + 24);
        int cse_var_8 = (cse_var_20 + 16);
        int cse_var_7 = (cse_var_20 + 120);
        int cse_var_6 = (cse_var_20 + 112);
        int cse_var_5 = (cse_var_20 + 104);
        int8 total_t0 = (int8)0;
        int8 total_t1 = (int8)0;
        int8 total_t2 = (int8)0;
        int8 total_t3 = (int8)0;
        int8 total_t4 = (int8)0;
        int8 total_t5 = (int8)0;
        int8 total_t6 = (int8)0;
        int8 total_t7 = (int8)0;
        int8 total_t8 = (int8)0;
        int8 total_t9 = (int8)0;
        int8 total_t10 = (int8)0;
        int8 total_t11 = (int8)0;
        int8 total_t12 = (int8)0;
        int8 total_t13 = (int8)0;
        int8 total_t14 = (int8)0;
        int8 total_t15 = (int8)0;
        for (int i_t3 = 0; i_t3 < 32; i_t3 += 1) {
          int cse_var_22 = (i_t3 * 128);
          int cse_var_21 = (cse_var_20 + i_t3);
          char32 right_t0 = __vload((__lsram char32*)(tile_t0 + cse_var_22), ALL_TRUE_b);
          char32 right_t1 = __vload((__lsram char32*)(tile_t0 + (cse_var_22 + 32)), ALL_TRUE_b);
          char32 right_t2 = __vload((__lsram char32*)(tile_t0 + (cse_var_22 + 64)), ALL_TRUE_b);
          char32 right_t3 = __vload((__lsram char32*)(tile_t0 + (cse_var_22 + 96)), ALL_TRUE_b);
          char32 left_t0 = as_char32((int8)words_t2[cse_var_21]);
          total_t0 = __vqdpa(total_t0, left_t0, right_t0, ALL_TRUE_b);
          total_t1 = __vqdpa(total_t1, left_t0, right_t1, ALL_TRUE_b);
          total_t2 = __vqdpa(total_t2, left_t0, right_t2, ALL_TRUE_b);
          total_t3 = __vqdpa(total_t3, left_t0, right_t3, ALL_TRUE_b);
          char32 left_t1 = as_char32((int8)words_t2[(cse_var_21 + 32)]);
          total_t4 = __vqdpa(total_t4, left_t1, right_t0, ALL_TRUE_b);
          total_t5 = __vqdpa(total_t5, left_t1, right_t1, ALL_TRUE_b);
          total_t6 = __vqdpa(total_t6, left_t1, right_t2, ALL_TRUE_b);
          total_t7 = __vqdpa(total_t7, left_t1, right_t3, ALL_TRUE_b);
          char32 left_t2 = as_char32((int8)words_t2[(cse_var_21 + 64)]);
          total_t8 = __vqdpa(total_t8, left_t2, right_t0, ALL_TRUE_b);
          total_t9 = __vqdpa(total_t9, left_t2, right_t1, ALL_TRUE_b);
          total_t10 = __vqdpa(total_t10, left_t2, right_t2, ALL_TRUE_b);
          total_t11 = __vqdpa(total_t11, left_t2, right_t3, ALL_TRUE_b);
          char32 left_t3 = as_char32((int8)words_t2[(cse_var_21 + 96)]);
          total_t12 = __vqdpa(total_t12, left_t3, right_t0, ALL_TRUE_b);
          total_t13 = __vqdpa(total_t13, left_t3, right_t1, ALL_TRUE_b);
          total_t14 = __vqdpa(total_t14, left_t3, right_t2, ALL_TRUE_b);
          total_t15 = __vqdpa(total_t15, left_t3, right_t3, ALL_TRUE_b);
        }
        __vstore((__vload((__lsram int8*)(acc + cse_var_20), ALL_TRUE_w) + total_t0), (__lsram int8*)(acc + cse_var_20), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_16), ALL_TRUE_w) + total_t1), (__lsram int8*)(acc + cse_var_16), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_8), ALL_TRUE_w) + total_t2), (__lsram int8*)(acc + cse_var_8), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_9), ALL_TRUE_w) + total_t3), (__lsram int8*)(acc + cse_var_9), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_10), ALL_TRUE_w) + total_t4), (__lsram int8*)(acc + cse_var_10), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_11), ALL_TRUE_w) + total_t5), (__lsram int8*)(acc + cse_var_11), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_12), ALL_TRUE_w) + total_t6), (__lsram int8*)(acc + cse_var_12), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_13), ALL_TRUE_w) + total_t7), (__lsram int8*)(acc + cse_var_13), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_14), ALL_TRUE_w) + total_t8), (__lsram int8*)(acc + cse_var_14), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_15), ALL_TRUE_w) + total_t9), (__lsram int8*)(acc + cse_var_15), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_17), ALL_TRUE_w) + total_t10), (__lsram int8*)(acc + cse_var_17), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_18), ALL_TRUE_w) + total_t11), (__lsram int8*)(acc + cse_var_18), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_19), ALL_TRUE_w) + total_t12), (__lsram int8*)(acc + cse_var_19), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_5), ALL_TRUE_w) + total_t13), (__lsram int8*)(acc + cse_var_5), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_6), ALL_TRUE_w) + total_t14), (__lsram int8*)(acc + cse_var_6), ALL_TRUE_w);
        __vstore((__vload((__lsram int8*)(acc + cse_var_7), ALL_TRUE_w) + total_t15), (__lsram int8*)(acc + cse_var_7), ALL_TRUE_w);
      }
      turn_of_2 = (1 - turn_of_2);
    }
    free_events(((1 << ta_came) | (1 << tb_came)));
    int end_t4 = min((rows - (_place_t1 * 32)), 32);
    int low_t4 = max((_place_t1 * -32), 0);
    int count_t6 = (end_t4 - low_t4);
    int end_t5 = min((cols - (_place_t0 * 32)), 32);
    int low_t5 = max((_place_t0 * -32), 0);
    int count_t7 = (end_t5 - low_t5);
    if ((0 < count_t6) && (0 < count_t7)) {
      int cse_var_23 = (count_t7 * 4);
      DmaDirect_kLsram_to_kGlobal((int)(c + (((((_place_t1 * 32) + low_t4) * cols) + (_place_t0 * 32)) + low_t5)), (int)(acc + ((low_t4 * 32) + low_t5)), cse_var_23, 128, (cse_var_23 * count_t6), (cols * 4));
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
