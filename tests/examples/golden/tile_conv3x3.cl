#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_conv3x3(__global char* src, __global char* flat, __global char* dst, int h, int w, int shift);

__kernel void tile_conv3x3(__global char* src, __global char* flat, __global char* dst, int h, int w, int shift) {
  *addr_of_event_state() = 0;
  __lsram char kernel_1[9216];
  __lsram char tile_t1[9216];
  __lsram char row[2176];
  __lsram char row_1[2176];
  __lsram char row_2[2176];
  __lsram char tile_t0[2048];
  __lsram int acc[1024];
  DmaDirect_kGlobal_to_kLsram((int)kernel_1, (int)flat, 32, 32, 9216, 32);
  int count_t0 = h;
  int count_t1 = ceildiv(w, 32);
  for (int i_t1 = 0; i_t1 < 72; i_t1 += 1) {
    int cse_var_4 = (i_t1 * 128);
    int cse_var_3 = (cse_var_4 + 96);
    int cse_var_2 = (cse_var_4 + 64);
    int cse_var_1 = (cse_var_4 + 32);
    char32 even_t0 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_4), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_2), ALL_TRUE_b));
    char32 even_t1 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_1), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_3), ALL_TRUE_b));
    char32 odd_t0 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_4), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_2), ALL_TRUE_b));
    char32 odd_t1 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_1), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_3), ALL_TRUE_b));
    __vstore(__vzipl(even_t0, even_t1), (__lsram char32*)(tile_t1 + cse_var_4), ALL_TRUE_b);
    __vstore(__vziph(even_t0, even_t1), (__lsram char32*)(tile_t1 + cse_var_1), ALL_TRUE_b);
    __vstore(__vzipl(odd_t0, odd_t1), (__lsram char32*)(tile_t1 + cse_var_2), ALL_TRUE_b);
    __vstore(__vziph(odd_t0, odd_t1), (__lsram char32*)(tile_t1 + cse_var_3), ALL_TRUE_b);
  }
  int turn_t0_stop = (count_t0 * count_t1);
  int turn_t0_step = get_local_size(0);
  int turn_t0_start = get_local_id(0);
  int row_came = alloc_event();
  int row_came_1 = alloc_event();
  int row_came_2 = alloc_event();
  int tile_t0_went = alloc_event();
  int turn_of_2 = 0;
  if (turn_t0_start < turn_t0_stop) {
    int cse_var_5 = (w + 1);
    int turn_t0 = turn_t0_start;
    __lsram char* row_ahead = row;
    __lsram char* row_ahead_1 = row_1;
    __lsram char* row_ahead_2 = row_2;
    int _place_t0 = (turn_t0 % count_t1);
    int cse_var_8 = (_place_t0 * 32);
    int cse_var_7 = max((1 - cse_var_8), 0);
    int cse_var_6 = min((cse_var_5 - cse_var_8), 34);
    int _place_t1 = (turn_t0 / count_t1);
    int cse_var_10 = (_place_t1 - 1);
    int cse_var_9 = (_place_t1 + 1);
    bool exists_t2 = (0 <= cse_var_10);
    bool exists_t3 = (cse_var_10 < h);
    int end_t1 = cse_var_6;
    int low_t1 = cse_var_7;
    int count_t3 = (end_t1 - low_t1);
    bool exists_t4 = (0 <= _place_t1);
    bool exists_t5 = (_place_t1 < h);
    int end_t2 = cse_var_6;
    int low_t2 = cse_var_7;
    int count_t4 = (end_t2 - low_t2);
    bool exists_t6 = (0 <= cse_var_9);
    bool exists_t7 = (cse_var_9 < h);
    int end_t3 = cse_var_6;
    int low_t3 = cse_var_7;
    int count_t5 = (end_t3 - low_t3);
    if (((count_t3 < 34) || !exists_t2) || !exists_t3) {
      MemsetSRAM(row_ahead, 1088, 0, 0, 4);
    }
    if (((0 < count_t3) && exists_t2) && exists_t3) {
      int cse_var_11 = (low_t1 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead + cse_var_11), (int)(src + (((((cse_var_10 * w) * 32) + (_place_t0 * 1024)) + cse_var_11) - 32)), 32, 32, (count_t3 * 32), 32, row_came);
    }
    if (((count_t4 < 34) || !exists_t4) || !exists_t5) {
      MemsetSRAM(row_ahead_1, 1088, 0, 0, 4);
    }
    if (((0 < count_t4) && exists_t4) && exists_t5) {
      int cse_var_12 = (low_t2 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_1 + cse_var_12), (int)(src + (((((_place_t1 * w) * 32) + (_place_t0 * 1024)) + cse_var_12) - 32)), 32, 32, (count_t4 * 32), 32, row_came_1);
    }
    if (((count_t5 < 34) || !exists_t6) || !exists_t7) {
      MemsetSRAM(row_ahead_2, 1088, 0, 0, 4);
    }
    if (((0 < count_t5) && exists_t6) && exists_t7) {
      int cse_var_13 = (low_t3 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_2 + cse_var_13), (int)(src + (((((cse_var_9 * w) * 32) + (_place_t0 * 1024)) + cse_var_13) - 32)), 32, 32, (count_t5 * 32), 32, row_came_2);
    }
  }
  for (int turn_t0_1 = turn_t0_start; turn_t0_1 < turn_t0_start+(turn_t0_stop - turn_t0_start); turn_t0_1 += turn_t0_step) {
    int cse_var_14 = (w + 1);
    __lsram char* row_here = (row + (turn_of_2 * 1088));
    __lsram char* row_here_1 = (row_1 + (turn_of_2 * 1088));
    __lsram char* row_here_2 = (row_2 + (turn_of_2 * 1088));
    __lsram char* tile_t0_here = (tile_t0 + (turn_of_2 * 1024));
    int _place_t0_1 = (turn_t0_1 % count_t1);
    int cse_var_17 = (_place_t0_1 * 32);
    int cse_var_16 = max((1 - cse_var_17), 0);
    int cse_var_15 = min((cse_var_14 - cse_var_17), 34);
    int _place_t1_1 = (turn_t0_1 / count_t1);
    int cse_var_21 = (_place_t1_1 - 1);
    int cse_var_20 = (_place_t1_1 + 1);
    bool cse_var_19 = (0 <= _place_t1_1);
    bool cse_var_18 = (_place_t1_1 < h);
    bool exists_t2_1 = (0 <= cse_var_21);
    bool exists_t3_1 = (cse_var_21 < h);
    int end_t1_1 = cse_var_15;
    int low_t1_1 = cse_var_16;
    int count_t3_1 = (end_t1_1 - low_t1_1);
    if (((0 < count_t3_1) && exists_t2_1) && exists_t3_1) {
      wait_events((1 << row_came));
    }
    bool exists_t4_1 = cse_var_19;
    bool exists_t5_1 = cse_var_18;
    int end_t2_1 = cse_var_15;
    int low_t2_1 = cse_var_16;
    int count_t4_1 = (end_t2_1 - low_t2_1);
    if (((0 < count_t4_1) && exists_t4_1) && exists_t5_1) {
      wait_events((1 << row_came_1));
    }
    bool exists_t6_1 = (0 <= cse_var_20);
    bool exists_t7_1 = (cse_var_20 < h);
    int end_t3_1 = cse_var_15;
    int low_t3_1 = cse_var_16;
    int count_t5_1 = (end_t3_1 - low_t3_1);
    if (((0 < count_t5_1) && exists_t6_1) && exists_t7_1) {
      wait_events((1 << row_came_2));
    }
    if (turn_t0_step < (turn_t0_stop - turn_t0_1)) {
      int turn_t0_2 = (turn_t0_1 + turn_t0_step);
      __lsram char* row_ahead_3 = (row + (1088 - (turn_of_2 * 1088)));
      __lsram char* row_ahead_4 = (row_1 + (1088 - (turn_of_2 * 1088)));
      __lsram char* row_ahead_5 = (row_2 + (1088 - (turn_of_2 * 1088)));
      int _place_t0_2 = (turn_t0_2 % count_t1);
      int cse_var_24 = (_place_t0_2 * 32);
      int cse_var_23 = max((1 - cse_var_24), 0);
      int cse_var_22 = min((cse_var_14 - cse_var_24), 34);
      int _place_t1_2 = (turn_t0_2 / count_t1);
      int cse_var_26 = (_place_t1_2 - 1);
      int cse_var_25 = (_place_t1_2 + 1);
      bool exists_t2_2 = (0 <= cse_var_26);
      bool exists_t3_2 = (cse_var_26 < h);
      int end_t1_2 = cse_var_22;
      int low_t1_2 = cse_var_23;
      int count_t3_2 = (end_t1_2 - low_t1_2);
      bool exists_t4_2 = (0 <= _place_t1_2);
      bool exists_t5_2 = (_place_t1_2 < h);
      int end_t2_2 = cse_var_22;
      int low_t2_2 = cse_var_23;
      int count_t4_2 = (end_t2_2 - low_t2_2);
      bool exists_t6_2 = (0 <= cse_var_25);
      bool exists_t7_2 = (cse_var_25 < h);
      int end_t3_2 = cse_var_22;
      int low_t3_2 = cse_var_23;
      int count_t5_2 = (end_t3_2 - low_t3_2);
      if (((count_t3_2 < 34) || !exists_t2_2) || !exists_t3_2) {
        MemsetSRAM(row_ahead_3, 1088, 0, 0, 4);
      }
      if (((0 < count_t3_2) && exists_t2_2) && exists_t3_2) {
        int cse_var_27 = (low_t1_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_3 + cse_var_27), (int)(src + (((((cse_var_26 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_27) - 32)), 32, 32, (count_t3_2 * 32), 32, row_came);
      }
      if (((count_t4_2 < 34) || !exists_t4_2) || !exists_t5_2) {
        MemsetSRAM(row_ahead_4, 1088, 0, 0, 4);
      }
      if (((0 < count_t4_2) && exists_t4_2) && exists_t5_2) {
        int cse_var_28 = (low_t2_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_4 + cse_var_28), (int)(src + (((((_place_t1_2 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_28) - 32)), 32, 32, (count_t4_2 * 32), 32, row_came_1);
      }
      if (((count_t5_2 < 34) || !exists_t6_2) || !exists_t7_2) {
        MemsetSRAM(row_ahead_5, 1088, 0, 0, 4);
      }
      if (((0 < count_t5_2) && exists_t6_2) && exists_t7_2) {
        int cse_var_29 = (low_t3_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_5 + cse_var_29), (int)(src + (((((cse_var_25 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_29) - 32)), 32, 32, (count_t5_2 * 32), 32, row_came_2);
      }
    }
    __lsram int* words_t0 = (__lsram int*)row_here;
    __lsram int* words_t1 = (__lsram int*)row_here_1;
    __lsram int* words_t2 = (__lsram int*)row_here_2;
    for (int i_t2 = 0; i_t2 < 32; i_t2 += 4) {
      int cse_var_30 = (i_t2 * 32);
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
      for (int i_t3 = 0; i_t3 < 24; i_t3 += 1) {
        int cse_var_32 = (i_t3 * 128);
        int cse_var_31 = ((i_t2 * 8) + i_t3);
        char32 right_t0 = __vload((__lsram char32*)(tile_t1 + cse_var_32), ALL_TRUE_b);
        char32 right_t1 = __vload((__lsram char32*)(tile_t1 + (cse_var_32 + 32)), ALL_TRUE_b);
        char32 right_t2 = __vload((__lsram char32*)(tile_t1 + (cse_var_32 + 64)), ALL_TRUE_b);
        char32 right_t3 = __vload((__lsram char32*)(tile_t1 + (cse_var_32 + 96)), ALL_TRUE_b);
        char32 left_t0 = as_char32((int8)words_t0[cse_var_31]);
        total_t0 = __vqdpa(total_t0, left_t0, right_t0, ALL_TRUE_b);
        total_t1 = __vqdpa(total_t1, left_t0, right_t1, ALL_TRUE_b);
        total_t2 = __vqdpa(total_t2, left_t0, right_t2, ALL_TRUE_b);
        total_t3 = __vqdpa(total_t3, left_t0, right_t3, ALL_TRUE_b);
        char32 left_t1 = as_char32((int8)words_t0[(cse_var_31 + 8)]);
        total_t4 = __vqdpa(total_t4, left_t1, right_t0, ALL_TRUE_b);
        total_t5 = __vqdpa(total_t5, left_t1, right_t1, ALL_TRUE_b);
        total_t6 = __vqdpa(total_t6, left_t1, right_t2, ALL_TRUE_b);
        total_t7 = __vqdpa(total_t7, left_t1, right_t3, ALL_TRUE_b);
        char32 left_t2 = as_char32((int8)words_t0[(cse_var_31 + 16)]);
        total_t8 = __vqdpa(total_t8, left_t2, right_t0, ALL_TRUE_b);
        total_t9 = __vqdpa(total_t9, left_t2, right_t1, ALL_TRUE_b);
        total_t10 = __vqdpa(total_t10, left_t2, right_t2, ALL_TRUE_b);
        total_t11 = __vqdpa(total_t11, left_t2, right_t3, ALL_TRUE_b);
        char32 left_t3 = as_char32((int8)words_t0[(cse_var_31 + 24)]);
        total_t12 = __vqdpa(total_t12, left_t3, right_t0, ALL_TRUE_b);
        total_t13 = __vqdpa(total_t13, left_t3, right_t1, ALL_TRUE_b);
        total_t14 = __vqdpa(total_t14, left_t3, right_t2, ALL_TRUE_b);
        total_t15 = __vqdpa(total_t15, left_t3, right_t3, ALL_TRUE_b);
      }
      for (int i_t4 = 0; i_t4 < 24; i_t4 += 1) {
        int cse_var_34 = (i_t4 * 128);
        int cse_var_33 = ((i_t2 * 8) + i_t4);
        char32 right_t4 = __vload((__lsram char32*)(tile_t1 + (cse_var_34 + 3072)), ALL_TRUE_b);
        char32 right_t5 = __vload((__lsram char32*)(tile_t1 + (cse_var_34 + 3104)), ALL_TRUE_b);
        char32 right_t6 = __vload((__lsram char32*)(tile_t1 + (cse_var_34 + 3136)), ALL_TRUE_b);
        char32 right_t7 = __vload((__lsram char32*)(tile_t1 + (cse_var_34 + 3168)), ALL_TRUE_b);
        char32 left_t4 = as_char32((int8)words_t1[cse_var_33]);
        total_t0 = __vqdpa(total_t0, left_t4, right_t4, ALL_TRUE_b);
        total_t1 = __vqdpa(total_t1, left_t4, right_t5, ALL_TRUE_b);
        total_t2 = __vqdpa(total_t2, left_t4, right_t6, ALL_TRUE_b);
        total_t3 = __vqdpa(total_t3, left_t4, right_t7, ALL_TRUE_b);
        char32 left_t5 = as_char32((int8)words_t1[(cse_var_33 + 8)]);
        total_t4 = __vqdpa(total_t4, left_t5, right_t4, ALL_TRUE_b);
        total_t5 = __vqdpa(total_t5, left_t5, right_t5, ALL_TRUE_b);
        total_t6 = __vqdpa(total_t6, left_t5, right_t6, ALL_TRUE_b);
        total_t7 = __vqdpa(total_t7, left_t5, right_t7, ALL_TRUE_b);
        char32 left_t6 = as_char32((int8)words_t1[(cse_var_33 + 16)]);
        total_t8 = __vqdpa(total_t8, left_t6, right_t4, ALL_TRUE_b);
        total_t9 = __vqdpa(total_t9, left_t6, right_t5, ALL_TRUE_b);
        total_t10 = __vqdpa(total_t10, left_t6, right_t6, ALL_TRUE_b);
        total_t11 = __vqdpa(total_t11, left_t6, right_t7, ALL_TRUE_b);
        char32 left_t7 = as_char32((int8)words_t1[(cse_var_33 + 24)]);
        total_t12 = __vqdpa(total_t12, left_t7, right_t4, ALL_TRUE_b);
        total_t13 = __vqdpa(total_t13, left_t7, right_t5, ALL_TRUE_b);
        total_t14 = __vqdpa(total_t14, left_t7, right_t6, ALL_TRUE_b);
        total_t15 = __vqdpa(total_t15, left_t7, right_t7, ALL_TRUE_b);
      }
      for (int i_t5 = 0; i_t5 < 24; i_t5 += 1) {
        int cse_var_36 = (i_t5 * 128);
        int cse_var_35 = ((i_t2 * 8) + i_t5);
        char32 right_t8 = __vload((__lsram char32*)(tile_t1 + (cse_var_36 + 6144)), ALL_TRUE_b);
        char32 right_t9 = __vload((__lsram char32*)(tile_t1 + (cse_var_36 + 6176)), ALL_TRUE_b);
        char32 right_t10 = __vload((__lsram char32*)(tile_t1 + (cse_var_36 + 6208)), ALL_TRUE_b);
        char32 right_t11 = __vload((__lsram char32*)(tile_t1 + (cse_var_36 + 6240)), ALL_TRUE_b);
        char32 left_t8 = as_char32((int8)words_t2[cse_var_35]);
        total_t0 = __vqdpa(total_t0, left_t8, right_t8, ALL_TRUE_b);
        total_t1 = __vqdpa(total_t1, left_t8, right_t9, ALL_TRUE_b);
        total_t2 = __vqdpa(total_t2, left_t8, right_t10, ALL_TRUE_b);
        total_t3 = __vqdpa(total_t3, left_t8, right_t11, ALL_TRUE_b);
        char32 left_t9 = as_char32((int8)words_t2[(cse_var_35 + 8)]);
        total_t4 = __vqdpa(total_t4, left_t9, right_t8, ALL_TRUE_b);
        total_t5 = __vqdpa(total_t5, left_t9, right_t9, ALL_TRUE_b);
        total_t6 = __vqdpa(total_t6, left_t9, right_t10, ALL_TRUE_b);
        total_t7 = __vqdpa(total_t7, left_t9, right_t11, ALL_TRUE_b);
        char32 left_t10 = as_char32((int8)words_t2[(cse_var_35 + 16)]);
        total_t8 = __vqdpa(total_t8, left_t10, right_t8, ALL_TRUE_b);
        total_t9 = __vqdpa(total_t9, left_t10, right_t9, ALL_TRUE_b);
        total_t10 = __vqdpa(total_t10, left_t10, right_t10, ALL_TRUE_b);
        total_t11 = __vqdpa(total_t11, left_t10, right_t11, ALL_TRUE_b);
        char32 left_t11 = as_char32((int8)words_t2[(cse_var_35 + 24)]);
        total_t12 = __vqdpa(total_t12, left_t11, right_t8, ALL_TRUE_b);
        total_t13 = __vqdpa(total_t13, left_t11, right_t9, ALL_TRUE_b);
        total_t14 = __vqdpa(total_t14, left_t11, right_t10, ALL_TRUE_b);
        total_t15 = __vqdpa(total_t15, left_t11, right_t11, ALL_TRUE_b);
      }
      __vstore((total_t0 + (int8)0), (__lsram int8*)(acc + cse_var_30), ALL_TRUE_w);
      __vstore((total_t1 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 8)), ALL_TRUE_w);
      __vstore((total_t2 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 16)), ALL_TRUE_w);
      __vstore((total_t3 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 24)), ALL_TRUE_w);
      __vstore((total_t4 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 32)), ALL_TRUE_w);
      __vstore((total_t5 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 40)), ALL_TRUE_w);
      __vstore((total_t6 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 48)), ALL_TRUE_w);
      __vstore((total_t7 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 56)), ALL_TRUE_w);
      __vstore((total_t8 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 64)), ALL_TRUE_w);
      __vstore((total_t9 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 72)), ALL_TRUE_w);
      __vstore((total_t10 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 80)), ALL_TRUE_w);
      __vstore((total_t11 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 88)), ALL_TRUE_w);
      __vstore((total_t12 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 96)), ALL_TRUE_w);
      __vstore((total_t13 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 104)), ALL_TRUE_w);
      __vstore((total_t14 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 112)), ALL_TRUE_w);
      __vstore((total_t15 + (int8)0), (__lsram int8*)(acc + (cse_var_30 + 120)), ALL_TRUE_w);
    }
    bool exists_t8 = cse_var_19;
    bool exists_t9 = cse_var_18;
    int end_t4 = min((w - cse_var_17), 32);
    int low_t4 = max((_place_t0_1 * -32), 0);
    int count_t6 = (end_t4 - low_t4);
    int scalar_t0 = shift;
    for (int i_t0 = 0; i_t0 < 32; i_t0 += 1) {
      int cse_var_37 = (i_t0 * 32);
      __vstore(__vexte(__vexte(__vnsrasr_s(__vload((__lsram int8*)(acc + cse_var_37), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)), __vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_37 + 8)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153))), __vexte(__vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_37 + 16)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)), __vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_37 + 24)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)))), (__lsram char32*)(tile_t0_here + cse_var_37), ALL_TRUE_b);
    }
    if (turn_t0_start < turn_t0_1) {
      wait_events((1 << tile_t0_went));
    }
    if (((0 < count_t6) && exists_t8) && exists_t9) {
      int cse_var_38 = (low_t4 * 32);
      AsyncDmaDirect_kLsram_to_kGlobal((int)(dst + ((((_place_t1_1 * w) * 32) + (_place_t0_1 * 1024)) + cse_var_38)), (int)(tile_t0_here + cse_var_38), 32, 32, (count_t6 * 32), 32, tile_t0_went);
    }
    turn_of_2 = (1 - turn_of_2);
  }
  free_events(((((1 << row_came) | (1 << row_came_1)) | (1 << row_came_2)) | (1 << tile_t0_went)));
  barrier(CLK_LOCAL_MEM_FENCE);
}
