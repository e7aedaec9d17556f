#include <compass/dsl.h>

GEN_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_EXT2INT(kGlobal, kLsram);
GEN_ASYNC_DMA_DIRECT_INT2EXT(kLsram, kGlobal);

__kernel void tile_conv3x3(__global char* src, __global char* flat, __global char* dst, int h, int w, int shift);

__kernel void tile_conv3x3(__global char* src, __global char* flat, __global char* dst, int h, int w, int shift) {
  *addr_of_event_state() = 0;
  __lsram char kernel_1[9216];
  __lsram char row[2176];
  __lsram char row_1[2176];
  __lsram char row_2[2176];
  __lsram char tile_t9[2048];
  __lsram int acc[1024];
  __lsram char tile_t0[1024];
  __lsram char tile_t1[1024];
  __lsram char tile_t2[1024];
  __lsram char tile_t3[1024];
  __lsram char tile_t4[1024];
  __lsram char tile_t5[1024];
  __lsram char tile_t6[1024];
  __lsram char tile_t7[1024];
  __lsram char tile_t8[1024];
  DmaDirect_kGlobal_to_kLsram((int)kernel_1, (int)flat, 32, 32, 9216, 32);
  int count_t0 = h;
  int count_t1 = ceildiv(w, 32);
  int turn_t0_stop = (count_t0 * count_t1);
  int turn_t0_step = get_local_size(0);
  int turn_t0_start = get_local_id(0);
  int row_came = alloc_event();
  int row_came_1 = alloc_event();
  int row_came_2 = alloc_event();
  int tile_t9_went = alloc_event();
  int turn_of_2 = 0;
  if (turn_t0_start < turn_t0_stop) {
    int cse_var_1 = (w + 1);
    int turn_t0 = turn_t0_start;
    __lsram char* row_ahead = row;
    __lsram char* row_ahead_1 = row_1;
    __lsram char* row_ahead_2 = row_2;
    int _place_t0 = (turn_t0 % count_t1);
    int cse_var_4 = (_place_t0 * 32);
    int cse_var_3 = max((1 - cse_var_4), 0);
    int cse_var_2 = min((cse_var_1 - cse_var_4), 34);
    int _place_t1 = (turn_t0 / count_t1);
    int cse_var_6 = (_place_t1 - 1);
    int cse_var_5 = (_place_t1 + 1);
    bool exists_t2 = (0 <= cse_var_6);
    bool exists_t3 = (cse_var_6 < h);
    int end_t1 = cse_var_2;
    int low_t1 = cse_var_3;
    int count_t3 = (end_t1 - low_t1);
    bool exists_t4 = (0 <= _place_t1);
    bool exists_t5 = (_place_t1 < h);
    int end_t2 = cse_var_2;
    int low_t2 = cse_var_3;
    int count_t4 = (end_t2 - low_t2);
    bool exists_t6 = (0 <= cse_var_5);
    bool exists_t7 = (cse_var_5 < h);
    int end_t3 = cse_var_2;
    int low_t3 = cse_var_3;
    int count_t5 = (end_t3 - low_t3);
    if (((count_t3 < 34) || !exists_t2) || !exists_t3) {
      MemsetSRAM(row_ahead, 1088, 0, 0, 4);
    }
    if (((0 < count_t3) && exists_t2) && exists_t3) {
      int cse_var_7 = (low_t1 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead + cse_var_7), (int)(src + (((((cse_var_6 * w) * 32) + (_place_t0 * 1024)) + cse_var_7) - 32)), 32, 32, (count_t3 * 32), 32, row_came);
    }
    if (((count_t4 < 34) || !exists_t4) || !exists_t5) {
      MemsetSRAM(row_ahead_1, 1088, 0, 0, 4);
    }
    if (((0 < count_t4) && exists_t4) && exists_t5) {
      int cse_var_8 = (low_t2 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_1 + cse_var_8), (int)(src + (((((_place_t1 * w) * 32) + (_place_t0 * 1024)) + cse_var_8) - 32)), 32, 32, (count_t4 * 32), 32, row_came_1);
    }
    if (((count_t5 < 34) || !exists_t6) || !exists_t7) {
      MemsetSRAM(row_ahead_2, 1088, 0, 0, 4);
    }
    if (((0 < count_t5) && exists_t6) && exists_t7) {
      int cse_var_9 = (low_t3 * 32);
      AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_2 + cse_var_9), (int)(src + (((((cse_var_5 * w) * 32) + (_place_t0 * 1024)) + cse_var_9) - 32)), 32, 32, (count_t5 * 32), 32, row_came_2);
    }
  }
  for (int turn_t0_1 = turn_t0_start; turn_t0_1 < turn_t0_start+(turn_t0_stop - turn_t0_start); turn_t0_1 += turn_t0_step) {
    int cse_var_10 = (w + 1);
    __lsram char* row_here = (row + (turn_of_2 * 1088));
    __lsram char* row_here_1 = (row_1 + (turn_of_2 * 1088));
    __lsram char* row_here_2 = (row_2 + (turn_of_2 * 1088));
    __lsram char* tile_t9_here = (tile_t9 + (turn_of_2 * 1024));
    int _place_t0_1 = (turn_t0_1 % count_t1);
    int cse_var_13 = (_place_t0_1 * 32);
    int cse_var_12 = max((1 - cse_var_13), 0);
    int cse_var_11 = min((cse_var_10 - cse_var_13), 34);
    int _place_t1_1 = (turn_t0_1 / count_t1);
    int cse_var_17 = (_place_t1_1 - 1);
    int cse_var_16 = (_place_t1_1 + 1);
    bool cse_var_15 = (0 <= _place_t1_1);
    bool cse_var_14 = (_place_t1_1 < h);
    for (int i_t0 = 0; i_t0 < 32; i_t0 += 1) {
      __vstore((int8)0, (__lsram int8*)(acc + (i_t0 * 32)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t0 * 32) + 8)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t0 * 32) + 16)), ALL_TRUE_w);
      __vstore((int8)0, (__lsram int8*)(acc + ((i_t0 * 32) + 24)), ALL_TRUE_w);
    }
    bool exists_t2_1 = (0 <= cse_var_17);
    bool exists_t3_1 = (cse_var_17 < h);
    int end_t1_1 = cse_var_11;
    int low_t1_1 = cse_var_12;
    int count_t3_1 = (end_t1_1 - low_t1_1);
    if (((0 < count_t3_1) && exists_t2_1) && exists_t3_1) {
      wait_events((1 << row_came));
    }
    __lsram int* words_t0 = (__lsram int*)row_here;
    for (int i_t1 = 0; i_t1 < 8; i_t1 += 1) {
      int cse_var_21 = (i_t1 * 128);
      int cse_var_20 = (cse_var_21 + 96);
      int cse_var_19 = (cse_var_21 + 64);
      int cse_var_18 = (cse_var_21 + 32);
      char32 even_t0 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_21), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_19), ALL_TRUE_b));
      char32 even_t1 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_18), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_20), ALL_TRUE_b));
      char32 odd_t0 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_21), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_19), ALL_TRUE_b));
      char32 odd_t1 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_18), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_20), ALL_TRUE_b));
      __vstore(__vzipl(even_t0, even_t1), (__lsram char32*)(tile_t0 + cse_var_21), ALL_TRUE_b);
      __vstore(__vziph(even_t0, even_t1), (__lsram char32*)(tile_t0 + cse_var_18), ALL_TRUE_b);
      __vstore(__vzipl(odd_t0, odd_t1), (__lsram char32*)(tile_t0 + cse_var_19), ALL_TRUE_b);
      __vstore(__vziph(odd_t0, odd_t1), (__lsram char32*)(tile_t0 + cse_var_20), ALL_TRUE_b);
    }
    for (int i_t2 = 0; i_t2 < 32; i_t2 += 4) {
      int cse_var_37 = (i_t2 * 32);
      int cse_var_36 = (cse_var_37 + 96);
      int cse_var_35 = (cse_var_37 + 88);
      int cse_var_34 = (cse_var_37 + 80);
      int cse_var_33 = (cse_var_37 + 8);
      int cse_var_32 = (cse_var_37 + 72);
      int cse_var_31 = (cse_var_37 + 64);
      int cse_var_30 = (cse_var_37 + 56);
      int cse_var_29 = (cse_var_37 + 48);
      int cse_var_28 = (cse_var_37 + 40);
      int cse_var_27 = (cse_var_37 + 32);
      int cse_var_26 = (cse_var_37 + 24);
      int cse_var_25 = (cse_var_37 + 16);
      int cse_var_24 = (cse_var_37 + 120);
      int cse_var_23 = (cse_var_37 + 112);
      int cse_var_22 = (cse_var_37 + 104);
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
      for (int i_t3 = 0; i_t3 < 8; i_t3 += 1) {
        int cse_var_39 = (i_t3 * 128);
        int cse_var_38 = ((i_t2 * 8) + i_t3);
        char32 right_t0 = __vload((__lsram char32*)(tile_t0 + cse_var_39), ALL_TRUE_b);
        char32 right_t1 = __vload((__lsram char32*)(tile_t0 + (cse_var_39 + 32)), ALL_TRUE_b);
        char32 right_t2 = __vload((__lsram char32*)(tile_t0 + (cse_var_39 + 64)), ALL_TRUE_b);
        char32 right_t3 = __vload((__lsram char32*)(tile_t0 + (cse_var_39 + 96)), ALL_TRUE_b);
        char32 left_t0 = as_char32((int8)words_t0[cse_var_38]);
        total_t0 = __vqdpa(total_t0, left_t0, right_t0, ALL_TRUE_b);
        total_t1 = __vqdpa(total_t1, left_t0, right_t1, ALL_TRUE_b);
        total_t2 = __vqdpa(total_t2, left_t0, right_t2, ALL_TRUE_b);
        total_t3 = __vqdpa(total_t3, left_t0, right_t3, ALL_TRUE_b);
        char32 left_t1 = as_char32((int8)words_t0[(cse_var_38 + 8)]);
        total_t4 = __vqdpa(total_t4, left_t1, right_t0, ALL_TRUE_b);
        total_t5 = __vqdpa(total_t5, left_t1, right_t1, ALL_TRUE_b);
        total_t6 = __vqdpa(total_t6, left_t1, right_t2, ALL_TRUE_b);
        total_t7 = __vqdpa(total_t7, left_t1, right_t3, ALL_TRUE_b);
        char32 left_t2 = as_char32((int8)words_t0[(cse_var_38 + 16)]);
        total_t8 = __vqdpa(total_t8, left_t2, right_t0, ALL_TRUE_b);
        total_t9 = __vqdpa(total_t9, left_t2, right_t1, ALL_TRUE_b);
        total_t10 = __vqdpa(total_t10, left_t2, right_t2, ALL_TRUE_b);
        total_t11 = __vqdpa(total_t11, left_t2, right_t3, ALL_TRUE_b);
        char32 left_t3 = as_char32((int8)words_t0[(cse_var_38 + 24)]);
        total_t12 = __vqdpa(total_t12, left_t3, right_t0, ALL_TRUE_b);
        total_t13 = __vqdpa(total_t13, left_t3, right_t1, ALL_TRUE_b);
        total_t14 = __vqdpa(total_t14, left_t3, right_t2, ALL_TRUE_b);
        total_t15 = __vqdpa(total_t15, left_t3, right_t3, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_37), ALL_TRUE_w) + total_t0), (__lsram int8*)(acc + cse_var_37), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_33), ALL_TRUE_w) + total_t1), (__lsram int8*)(acc + cse_var_33), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_25), ALL_TRUE_w) + total_t2), (__lsram int8*)(acc + cse_var_25), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_26), ALL_TRUE_w) + total_t3), (__lsram int8*)(acc + cse_var_26), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_27), ALL_TRUE_w) + total_t4), (__lsram int8*)(acc + cse_var_27), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_28), ALL_TRUE_w) + total_t5), (__lsram int8*)(acc + cse_var_28), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_29), ALL_TRUE_w) + total_t6), (__lsram int8*)(acc + cse_var_29), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_30), ALL_TRUE_w) + total_t7), (__lsram int8*)(acc + cse_var_30), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_31), ALL_TRUE_w) + total_t8), (__lsram int8*)(acc + cse_var_31), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_32), ALL_TRUE_w) + total_t9), (__lsram int8*)(acc + cse_var_32), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_34), ALL_TRUE_w) + total_t10), (__lsram int8*)(acc + cse_var_34), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_35), ALL_TRUE_w) + total_t11), (__lsram int8*)(acc + cse_var_35), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_36), ALL_TRUE_w) + total_t12), (__lsram int8*)(acc + cse_var_36), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_22), ALL_TRUE_w) + total_t13), (__lsram int8*)(acc + cse_var_22), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_23), ALL_TRUE_w) + total_t14), (__lsram int8*)(acc + cse_var_23), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_24), ALL_TRUE_w) + total_t15), (__lsram int8*)(acc + cse_var_24), ALL_TRUE_w);
    }
    __lsram int* words_t1 = (__lsram int*)(row_here + 32);
    for (int i_t4 = 0; i_t4 < 8; i_t4 += 1) {
      int cse_var_44 = (i_t4 * 128);
      int cse_var_43 = (cse_var_44 + 1120);
      int cse_var_42 = (cse_var_44 + 1088);
      int cse_var_41 = (cse_var_44 + 1056);
      int cse_var_40 = (cse_var_44 + 1024);
      char32 even_t2 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_40), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_42), ALL_TRUE_b));
      char32 even_t3 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_41), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_43), ALL_TRUE_b));
      char32 odd_t2 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_40), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_42), ALL_TRUE_b));
      char32 odd_t3 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_41), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_43), ALL_TRUE_b));
      __vstore(__vzipl(even_t2, even_t3), (__lsram char32*)(tile_t1 + cse_var_44), ALL_TRUE_b);
      __vstore(__vziph(even_t2, even_t3), (__lsram char32*)(tile_t1 + (cse_var_44 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t2, odd_t3), (__lsram char32*)(tile_t1 + (cse_var_44 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t2, odd_t3), (__lsram char32*)(tile_t1 + (cse_var_44 + 96)), ALL_TRUE_b);
    }
    for (int i_t5 = 0; i_t5 < 32; i_t5 += 4) {
      int cse_var_60 = (i_t5 * 32);
      int cse_var_59 = (cse_var_60 + 96);
      int cse_var_58 = (cse_var_60 + 88);
      int cse_var_57 = (cse_var_60 + 80);
      int cse_var_56 = (cse_var_60 + 8);
      int cse_var_55 = (cse_var_60 + 72);
      int cse_var_54 = (cse_var_60 + 64);
      int cse_var_53 = (cse_var_60 + 56);
      int cse_var_52 = (cse_var_60 + 48);
      int cse_var_51 = (cse_var_60 + 40);
      int cse_var_50 = (cse_var_60 + 32);
      int cse_var_49 = (cse_var_60 + 24);
      int cse_var_48 = (cse_var_60 + 16);
      int cse_var_47 = (cse_var_60 + 120);
      int cse_var_46 = (cse_var_60 + 112);
      int cse_var_45 = (cse_var_60 + 104);
      int8 total_t16 = (int8)0;
      int8 total_t17 = (int8)0;
      int8 total_t18 = (int8)0;
      int8 total_t19 = (int8)0;
      int8 total_t20 = (int8)0;
      int8 total_t21 = (int8)0;
      int8 total_t22 = (int8)0;
      int8 total_t23 = (int8)0;
      int8 total_t24 = (int8)0;
      int8 total_t25 = (int8)0;
      int8 total_t26 = (int8)0;
      int8 total_t27 = (int8)0;
      int8 total_t28 = (int8)0;
      int8 total_t29 = (int8)0;
      int8 total_t30 = (int8)0;
      int8 total_t31 = (int8)0;
      for (int i_t6 = 0; i_t6 < 8; i_t6 += 1) {
        int cse_var_62 = (i_t6 * 128);
        int cse_var_61 = ((i_t5 * 8) + i_t6);
        char32 right_t4 = __vload((__lsram char32*)(tile_t1 + cse_var_62), ALL_TRUE_b);
        char32 right_t5 = __vload((__lsram char32*)(tile_t1 + (cse_var_62 + 32)), ALL_TRUE_b);
        char32 right_t6 = __vload((__lsram char32*)(tile_t1 + (cse_var_62 + 64)), ALL_TRUE_b);
        char32 right_t7 = __vload((__lsram char32*)(tile_t1 + (cse_var_62 + 96)), ALL_TRUE_b);
        char32 left_t4 = as_char32((int8)words_t1[cse_var_61]);
        total_t16 = __vqdpa(total_t16, left_t4, right_t4, ALL_TRUE_b);
        total_t17 = __vqdpa(total_t17, left_t4, right_t5, ALL_TRUE_b);
        total_t18 = __vqdpa(total_t18, left_t4, right_t6, ALL_TRUE_b);
        total_t19 = __vqdpa(total_t19, left_t4, right_t7, ALL_TRUE_b);
        char32 left_t5 = as_char32((int8)words_t1[(cse_var_61 + 8)]);
        total_t20 = __vqdpa(total_t20, left_t5, right_t4, ALL_TRUE_b);
        total_t21 = __vqdpa(total_t21, left_t5, right_t5, ALL_TRUE_b);
        total_t22 = __vqdpa(total_t22, left_t5, right_t6, ALL_TRUE_b);
        total_t23 = __vqdpa(total_t23, left_t5, right_t7, ALL_TRUE_b);
        char32 left_t6 = as_char32((int8)words_t1[(cse_var_61 + 16)]);
        total_t24 = __vqdpa(total_t24, left_t6, right_t4, ALL_TRUE_b);
        total_t25 = __vqdpa(total_t25, left_t6, right_t5, ALL_TRUE_b);
        total_t26 = __vqdpa(total_t26, left_t6, right_t6, ALL_TRUE_b);
        total_t27 = __vqdpa(total_t27, left_t6, right_t7, ALL_TRUE_b);
        char32 left_t7 = as_char32((int8)words_t1[(cse_var_61 + 24)]);
        total_t28 = __vqdpa(total_t28, left_t7, right_t4, ALL_TRUE_b);
        total_t29 = __vqdpa(total_t29, left_t7, right_t5, ALL_TRUE_b);
        total_t30 = __vqdpa(total_t30, left_t7, right_t6, ALL_TRUE_b);
        total_t31 = __vqdpa(total_t31, left_t7, right_t7, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_60), ALL_TRUE_w) + total_t16), (__lsram int8*)(acc + cse_var_60), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_56), ALL_TRUE_w) + total_t17), (__lsram int8*)(acc + cse_var_56), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_48), ALL_TRUE_w) + total_t18), (__lsram int8*)(acc + cse_var_48), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_49), ALL_TRUE_w) + total_t19), (__lsram int8*)(acc + cse_var_49), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_50), ALL_TRUE_w) + total_t20), (__lsram int8*)(acc + cse_var_50), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_51), ALL_TRUE_w) + total_t21), (__lsram int8*)(acc + cse_var_51), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_52), ALL_TRUE_w) + total_t22), (__lsram int8*)(acc + cse_var_52), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_53), ALL_TRUE_w) + total_t23), (__lsram int8*)(acc + cse_var_53), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_54), ALL_TRUE_w) + total_t24), (__lsram int8*)(acc + cse_var_54), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_55), ALL_TRUE_w) + total_t25), (__lsram int8*)(acc + cse_var_55), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_57), ALL_TRUE_w) + total_t26), (__lsram int8*)(acc + cse_var_57), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_58), ALL_TRUE_w) + total_t27), (__lsram int8*)(acc + cse_var_58), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_59), ALL_TRUE_w) + total_t28), (__lsram int8*)(acc + cse_var_59), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_45), ALL_TRUE_w) + total_t29), (__lsram int8*)(acc + cse_var_45), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_46), ALL_TRUE_w) + total_t30), (__lsram int8*)(acc + cse_var_46), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_47), ALL_TRUE_w) + total_t31), (__lsram int8*)(acc + cse_var_47), ALL_TRUE_w);
    }
    __lsram int* words_t2 = (__lsram int*)(row_here + 64);
    for (int i_t7 = 0; i_t7 < 8; i_t7 += 1) {
      int cse_var_67 = (i_t7 * 128);
      int cse_var_66 = (cse_var_67 + 2144);
      int cse_var_65 = (cse_var_67 + 2112);
      int cse_var_64 = (cse_var_67 + 2080);
      int cse_var_63 = (cse_var_67 + 2048);
      char32 even_t4 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_63), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_65), ALL_TRUE_b));
      char32 even_t5 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_64), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_66), ALL_TRUE_b));
      char32 odd_t4 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_63), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_65), ALL_TRUE_b));
      char32 odd_t5 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_64), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_66), ALL_TRUE_b));
      __vstore(__vzipl(even_t4, even_t5), (__lsram char32*)(tile_t2 + cse_var_67), ALL_TRUE_b);
      __vstore(__vziph(even_t4, even_t5), (__lsram char32*)(tile_t2 + (cse_var_67 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t4, odd_t5), (__lsram char32*)(tile_t2 + (cse_var_67 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t4, odd_t5), (__lsram char32*)(tile_t2 + (cse_var_67 + 96)), ALL_TRUE_b);
    }
    for (int i_t8 = 0; i_t8 < 32; i_t8 += 4) {
      int cse_var_83 = (i_t8 * 32);
      int cse_var_82 = (cse_var_83 + 96);
      int cse_var_81 = (cse_var_83 + 88);
      int cse_var_80 = (cse_var_83 + 80);
      int cse_var_79 = (cse_var_83 + 8);
      int cse_var_78 = (cse_var_83 + 72);
      int cse_var_77 = (cse_var_83 + 64);
      int cse_var_76 = (cse_var_83 + 56);
      int cse_var_75 = (cse_var_83 + 48);
      int cse_var_74 = (cse_var_83 + 40);
      int cse_var_73 = (cse_var_83 + 32);
      int cse_var_72 = (cse_var_83 + 24);
      int cse_var_71 = (cse_var_83 + 16);
      int cse_var_70 = (cse_var_83 + 120);
      int cse_var_69 = (cse_var_83 + 112);
      int cse_var_68 = (cse_var_83 + 104);
      int8 total_t32 = (int8)0;
      int8 total_t33 = (int8)0;
      int8 total_t34 = (int8)0;
      int8 total_t35 = (int8)0;
      int8 total_t36 = (int8)0;
      int8 total_t37 = (int8)0;
      int8 total_t38 = (int8)0;
      int8 total_t39 = (int8)0;
      int8 total_t40 = (int8)0;
      int8 total_t41 = (int8)0;
      int8 total_t42 = (int8)0;
      int8 total_t43 = (int8)0;
      int8 total_t44 = (int8)0;
      int8 total_t45 = (int8)0;
      int8 total_t46 = (int8)0;
      int8 total_t47 = (int8)0;
      for (int i_t9 = 0; i_t9 < 8; i_t9 += 1) {
        int cse_var_85 = (i_t9 * 128);
        int cse_var_84 = ((i_t8 * 8) + i_t9);
        char32 right_t8 = __vload((__lsram char32*)(tile_t2 + cse_var_85), ALL_TRUE_b);
        char32 right_t9 = __vload((__lsram char32*)(tile_t2 + (cse_var_85 + 32)), ALL_TRUE_b);
        char32 right_t10 = __vload((__lsram char32*)(tile_t2 + (cse_var_85 + 64)), ALL_TRUE_b);
        char32 right_t11 = __vload((__lsram char32*)(tile_t2 + (cse_var_85 + 96)), ALL_TRUE_b);
        char32 left_t8 = as_char32((int8)words_t2[cse_var_84]);
        total_t32 = __vqdpa(total_t32, left_t8, right_t8, ALL_TRUE_b);
        total_t33 = __vqdpa(total_t33, left_t8, right_t9, ALL_TRUE_b);
        total_t34 = __vqdpa(total_t34, left_t8, right_t10, ALL_TRUE_b);
        total_t35 = __vqdpa(total_t35, left_t8, right_t11, ALL_TRUE_b);
        char32 left_t9 = as_char32((int8)words_t2[(cse_var_84 + 8)]);
        total_t36 = __vqdpa(total_t36, left_t9, right_t8, ALL_TRUE_b);
        total_t37 = __vqdpa(total_t37, left_t9, right_t9, ALL_TRUE_b);
        total_t38 = __vqdpa(total_t38, left_t9, right_t10, ALL_TRUE_b);
        total_t39 = __vqdpa(total_t39, left_t9, right_t11, ALL_TRUE_b);
        char32 left_t10 = as_char32((int8)words_t2[(cse_var_84 + 16)]);
        total_t40 = __vqdpa(total_t40, left_t10, right_t8, ALL_TRUE_b);
        total_t41 = __vqdpa(total_t41, left_t10, right_t9, ALL_TRUE_b);
        total_t42 = __vqdpa(total_t42, left_t10, right_t10, ALL_TRUE_b);
        total_t43 = __vqdpa(total_t43, left_t10, right_t11, ALL_TRUE_b);
        char32 left_t11 = as_char32((int8)words_t2[(cse_var_84 + 24)]);
        total_t44 = __vqdpa(total_t44, left_t11, right_t8, ALL_TRUE_b);
        total_t45 = __vqdpa(total_t45, left_t11, right_t9, ALL_TRUE_b);
        total_t46 = __vqdpa(total_t46, left_t11, right_t10, ALL_TRUE_b);
        total_t47 = __vqdpa(total_t47, left_t11, right_t11, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_83), ALL_TRUE_w) + total_t32), (__lsram int8*)(acc + cse_var_83), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_79), ALL_TRUE_w) + total_t33), (__lsram int8*)(acc + cse_var_79), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_71), ALL_TRUE_w) + total_t34), (__lsram int8*)(acc + cse_var_71), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_72), ALL_TRUE_w) + total_t35), (__lsram int8*)(acc + cse_var_72), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_73), ALL_TRUE_w) + total_t36), (__lsram int8*)(acc + cse_var_73), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_74), ALL_TRUE_w) + total_t37), (__lsram int8*)(acc + cse_var_74), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_75), ALL_TRUE_w) + total_t38), (__lsram int8*)(acc + cse_var_75), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_76), ALL_TRUE_w) + total_t39), (__lsram int8*)(acc + cse_var_76), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_77), ALL_TRUE_w) + total_t40), (__lsram int8*)(acc + cse_var_77), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_78), ALL_TRUE_w) + total_t41), (__lsram int8*)(acc + cse_var_78), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_80), ALL_TRUE_w) + total_t42), (__lsram int8*)(acc + cse_var_80), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_81), ALL_TRUE_w) + total_t43), (__lsram int8*)(acc + cse_var_81), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_82), ALL_TRUE_w) + total_t44), (__lsram int8*)(acc + cse_var_82), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_68), ALL_TRUE_w) + total_t45), (__lsram int8*)(acc + cse_var_68), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_69), ALL_TRUE_w) + total_t46), (__lsram int8*)(acc + cse_var_69), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_70), ALL_TRUE_w) + total_t47), (__lsram int8*)(acc + cse_var_70), ALL_TRUE_w);
    }
    bool exists_t4_1 = cse_var_15;
    bool exists_t5_1 = cse_var_14;
    int end_t2_1 = cse_var_11;
    int low_t2_1 = cse_var_12;
    int count_t4_1 = (end_t2_1 - low_t2_1);
    if (((0 < count_t4_1) && exists_t4_1) && exists_t5_1) {
      wait_events((1 << row_came_1));
    }
    __lsram int* words_t3 = (__lsram int*)row_here_1;
    for (int i_t10 = 0; i_t10 < 8; i_t10 += 1) {
      int cse_var_90 = (i_t10 * 128);
      int cse_var_89 = (cse_var_90 + 3168);
      int cse_var_88 = (cse_var_90 + 3136);
      int cse_var_87 = (cse_var_90 + 3104);
      int cse_var_86 = (cse_var_90 + 3072);
      char32 even_t6 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_86), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_88), ALL_TRUE_b));
      char32 even_t7 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_87), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_89), ALL_TRUE_b));
      char32 odd_t6 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_86), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_88), ALL_TRUE_b));
      char32 odd_t7 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_87), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_89), ALL_TRUE_b));
      __vstore(__vzipl(even_t6, even_t7), (__lsram char32*)(tile_t3 + cse_var_90), ALL_TRUE_b);
      __vstore(__vziph(even_t6, even_t7), (__lsram char32*)(tile_t3 + (cse_var_90 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t6, odd_t7), (__lsram char32*)(tile_t3 + (cse_var_90 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t6, odd_t7), (__lsram char32*)(tile_t3 + (cse_var_90 + 96)), ALL_TRUE_b);
    }
    for (int i_t11 = 0; i_t11 < 32; i_t11 += 4) {
      int cse_var_106 = (i_t11 * 32);
      int cse_var_105 = (cse_var_106 + 96);
      int cse_var_104 = (cse_var_106 + 88);
      int cse_var_103 = (cse_var_106 + 80);
      int cse_var_102 = (cse_var_106 + 8);
      int cse_var_101 = (cse_var_106 + 72);
      int cse_var_100 = (cse_var_106 + 64);
      int cse_var_99 = (cse_var_106 + 56);
      int cse_var_98 = (cse_var_106 + 48);
      int cse_var_97 = (cse_var_106 + 40);
      int cse_var_96 = (cse_var_106 + 32);
      int cse_var_95 = (cse_var_106 + 24);
      int cse_var_94 = (cse_var_106 + 16);
      int cse_var_93 = (cse_var_106 + 120);
      int cse_var_92 = (cse_var_106 + 112);
      int cse_var_91 = (cse_var_106 + 104);
      int8 total_t48 = (int8)0;
      int8 total_t49 = (int8)0;
      int8 total_t50 = (int8)0;
      int8 total_t51 = (int8)0;
      int8 total_t52 = (int8)0;
      int8 total_t53 = (int8)0;
      int8 total_t54 = (int8)0;
      int8 total_t55 = (int8)0;
      int8 total_t56 = (int8)0;
      int8 total_t57 = (int8)0;
      int8 total_t58 = (int8)0;
      int8 total_t59 = (int8)0;
      int8 total_t60 = (int8)0;
      int8 total_t61 = (int8)0;
      int8 total_t62 = (int8)0;
      int8 total_t63 = (int8)0;
      for (int i_t12 = 0; i_t12 < 8; i_t12 += 1) {
        int cse_var_108 = (i_t12 * 128);
        int cse_var_107 = ((i_t11 * 8) + i_t12);
        char32 right_t12 = __vload((__lsram char32*)(tile_t3 + cse_var_108), ALL_TRUE_b);
        char32 right_t13 = __vload((__lsram char32*)(tile_t3 + (cse_var_108 + 32)), ALL_TRUE_b);
        char32 right_t14 = __vload((__lsram char32*)(tile_t3 + (cse_var_108 + 64)), ALL_TRUE_b);
        char32 right_t15 = __vload((__lsram char32*)(tile_t3 + (cse_var_108 + 96)), ALL_TRUE_b);
        char32 left_t12 = as_char32((int8)words_t3[cse_var_107]);
        total_t48 = __vqdpa(total_t48, left_t12, right_t12, ALL_TRUE_b);
        total_t49 = __vqdpa(total_t49, left_t12, right_t13, ALL_TRUE_b);
        total_t50 = __vqdpa(total_t50, left_t12, right_t14, ALL_TRUE_b);
        total_t51 = __vqdpa(total_t51, left_t12, right_t15, ALL_TRUE_b);
        char32 left_t13 = as_char32((int8)words_t3[(cse_var_107 + 8)]);
        total_t52 = __vqdpa(total_t52, left_t13, right_t12, ALL_TRUE_b);
        total_t53 = __vqdpa(total_t53, left_t13, right_t13, ALL_TRUE_b);
        total_t54 = __vqdpa(total_t54, left_t13, right_t14, ALL_TRUE_b);
        total_t55 = __vqdpa(total_t55, left_t13, right_t15, ALL_TRUE_b);
        char32 left_t14 = as_char32((int8)words_t3[(cse_var_107 + 16)]);
        total_t56 = __vqdpa(total_t56, left_t14, right_t12, ALL_TRUE_b);
        total_t57 = __vqdpa(total_t57, left_t14, right_t13, ALL_TRUE_b);
        total_t58 = __vqdpa(total_t58, left_t14, right_t14, ALL_TRUE_b);
        total_t59 = __vqdpa(total_t59, left_t14, right_t15, ALL_TRUE_b);
        char32 left_t15 = as_char32((int8)words_t3[(cse_var_107 + 24)]);
        total_t60 = __vqdpa(total_t60, left_t15, right_t12, ALL_TRUE_b);
        total_t61 = __vqdpa(total_t61, left_t15, right_t13, ALL_TRUE_b);
        total_t62 = __vqdpa(total_t62, left_t15, right_t14, ALL_TRUE_b);
        total_t63 = __vqdpa(total_t63, left_t15, right_t15, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_106), ALL_TRUE_w) + total_t48), (__lsram int8*)(acc + cse_var_106), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_102), ALL_TRUE_w) + total_t49), (__lsram int8*)(acc + cse_var_102), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_94), ALL_TRUE_w) + total_t50), (__lsram int8*)(acc + cse_var_94), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_95), ALL_TRUE_w) + total_t51), (__lsram int8*)(acc + cse_var_95), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_96), ALL_TRUE_w) + total_t52), (__lsram int8*)(acc + cse_var_96), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_97), ALL_TRUE_w) + total_t53), (__lsram int8*)(acc + cse_var_97), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_98), ALL_TRUE_w) + total_t54), (__lsram int8*)(acc + cse_var_98), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_99), ALL_TRUE_w) + total_t55), (__lsram int8*)(acc + cse_var_99), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_100), ALL_TRUE_w) + total_t56), (__lsram int8*)(acc + cse_var_100), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_101), ALL_TRUE_w) + total_t57), (__lsram int8*)(acc + cse_var_101), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_103), ALL_TRUE_w) + total_t58), (__lsram int8*)(acc + cse_var_103), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_104), ALL_TRUE_w) + total_t59), (__lsram int8*)(acc + cse_var_104), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_105), ALL_TRUE_w) + total_t60), (__lsram int8*)(acc + cse_var_105), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_91), ALL_TRUE_w) + total_t61), (__lsram int8*)(acc + cse_var_91), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_92), ALL_TRUE_w) + total_t62), (__lsram int8*)(acc + cse_var_92), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_93), ALL_TRUE_w) + total_t63), (__lsram int8*)(acc + cse_var_93), ALL_TRUE_w);
    }
    __lsram int* words_t4 = (__lsram int*)(row_here_1 + 32);
    for (int i_t13 = 0; i_t13 < 8; i_t13 += 1) {
      int cse_var_113 = (i_t13 * 128);
      int cse_var_112 = (cse_var_113 + 4192);
      int cse_var_111 = (cse_var_113 + 4160);
      int cse_var_110 = (cse_var_113 + 4128);
      int cse_var_109 = (cse_var_113 + 4096);
      char32 even_t8 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_109), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_111), ALL_TRUE_b));
      char32 even_t9 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_110), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_112), ALL_TRUE_b));
      char32 odd_t8 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_109), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_111), ALL_TRUE_b));
      char32 odd_t9 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_110), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_112), ALL_TRUE_b));
      __vstore(__vzipl(even_t8, even_t9), (__lsram char32*)(tile_t4 + cse_var_113), ALL_TRUE_b);
      __vstore(__vziph(even_t8, even_t9), (__lsram char32*)(tile_t4 + (cse_var_113 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t8, odd_t9), (__lsram char32*)(tile_t4 + (cse_var_113 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t8, odd_t9), (__lsram char32*)(tile_t4 + (cse_var_113 + 96)), ALL_TRUE_b);
    }
    for (int i_t14 = 0; i_t14 < 32; i_t14 += 4) {
      int cse_var_129 = (i_t14 * 32);
      int cse_var_128 = (cse_var_129 + 96);
      int cse_var_127 = (cse_var_129 + 88);
      int cse_var_126 = (cse_var_129 + 80);
      int cse_var_125 = (cse_var_129 + 8);
      int cse_var_124 = (cse_var_129 + 72);
      int cse_var_123 = (cse_var_129 + 64);
      int cse_var_122 = (cse_var_129 + 56);
      int cse_var_121 = (cse_var_129 + 48);
      int cse_var_120 = (cse_var_129 + 40);
      int cse_var_119 = (cse_var_129 + 32);
      int cse_var_118 = (cse_var_129 + 24);
      int cse_var_117 = (cse_var_129 + 16);
      int cse_var_116 = (cse_var_129 + 120);
      int cse_var_115 = (cse_var_129 + 112);
      int cse_var_114 = (cse_var_129 + 104);
      int8 total_t64 = (int8)0;
      int8 total_t65 = (int8)0;
      int8 total_t66 = (int8)0;
      int8 total_t67 = (int8)0;
      int8 total_t68 = (int8)0;
      int8 total_t69 = (int8)0;
      int8 total_t70 = (int8)0;
      int8 total_t71 = (int8)0;
      int8 total_t72 = (int8)0;
      int8 total_t73 = (int8)0;
      int8 total_t74 = (int8)0;
      int8 total_t75 = (int8)0;
      int8 total_t76 = (int8)0;
      int8 total_t77 = (int8)0;
      int8 total_t78 = (int8)0;
      int8 total_t79 = (int8)0;
      for (int i_t15 = 0; i_t15 < 8; i_t15 += 1) {
        int cse_var_131 = (i_t15 * 128);
        int cse_var_130 = ((i_t14 * 8) + i_t15);
        char32 right_t16 = __vload((__lsram char32*)(tile_t4 + cse_var_131), ALL_TRUE_b);
        char32 right_t17 = __vload((__lsram char32*)(tile_t4 + (cse_var_131 + 32)), ALL_TRUE_b);
        char32 right_t18 = __vload((__lsram char32*)(tile_t4 + (cse_var_131 + 64)), ALL_TRUE_b);
        char32 right_t19 = __vload((__lsram char32*)(tile_t4 + (cse_var_131 + 96)), ALL_TRUE_b);
        char32 left_t16 = as_char32((int8)words_t4[cse_var_130]);
        total_t64 = __vqdpa(total_t64, left_t16, right_t16, ALL_TRUE_b);
        total_t65 = __vqdpa(total_t65, left_t16, right_t17, ALL_TRUE_b);
        total_t66 = __vqdpa(total_t66, left_t16, right_t18, ALL_TRUE_b);
        total_t67 = __vqdpa(total_t67, left_t16, right_t19, ALL_TRUE_b);
        char32 left_t17 = as_char32((int8)words_t4[(cse_var_130 + 8)]);
        total_t68 = __vqdpa(total_t68, left_t17, right_t16, ALL_TRUE_b);
        total_t69 = __vqdpa(total_t69, left_t17, right_t17, ALL_TRUE_b);
        total_t70 = __vqdpa(total_t70, left_t17, right_t18, ALL_TRUE_b);
        total_t71 = __vqdpa(total_t71, left_t17, right_t19, ALL_TRUE_b);
        char32 left_t18 = as_char32((int8)words_t4[(cse_var_130 + 16)]);
        total_t72 = __vqdpa(total_t72, left_t18, right_t16, ALL_TRUE_b);
        total_t73 = __vqdpa(total_t73, left_t18, right_t17, ALL_TRUE_b);
        total_t74 = __vqdpa(total_t74, left_t18, right_t18, ALL_TRUE_b);
        total_t75 = __vqdpa(total_t75, left_t18, right_t19, ALL_TRUE_b);
        char32 left_t19 = as_char32((int8)words_t4[(cse_var_130 + 24)]);
        total_t76 = __vqdpa(total_t76, left_t19, right_t16, ALL_TRUE_b);
        total_t77 = __vqdpa(total_t77, left_t19, right_t17, ALL_TRUE_b);
        total_t78 = __vqdpa(total_t78, left_t19, right_t18, ALL_TRUE_b);
        total_t79 = __vqdpa(total_t79, left_t19, right_t19, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_129), ALL_TRUE_w) + total_t64), (__lsram int8*)(acc + cse_var_129), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_125), ALL_TRUE_w) + total_t65), (__lsram int8*)(acc + cse_var_125), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_117), ALL_TRUE_w) + total_t66), (__lsram int8*)(acc + cse_var_117), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_118), ALL_TRUE_w) + total_t67), (__lsram int8*)(acc + cse_var_118), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_119), ALL_TRUE_w) + total_t68), (__lsram int8*)(acc + cse_var_119), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_120), ALL_TRUE_w) + total_t69), (__lsram int8*)(acc + cse_var_120), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_121), ALL_TRUE_w) + total_t70), (__lsram int8*)(acc + cse_var_121), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_122), ALL_TRUE_w) + total_t71), (__lsram int8*)(acc + cse_var_122), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_123), ALL_TRUE_w) + total_t72), (__lsram int8*)(acc + cse_var_123), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_124), ALL_TRUE_w) + total_t73), (__lsram int8*)(acc + cse_var_124), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_126), ALL_TRUE_w) + total_t74), (__lsram int8*)(acc + cse_var_126), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_127), ALL_TRUE_w) + total_t75), (__lsram int8*)(acc + cse_var_127), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_128), ALL_TRUE_w) + total_t76), (__lsram int8*)(acc + cse_var_128), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_114), ALL_TRUE_w) + total_t77), (__lsram int8*)(acc + cse_var_114), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_115), ALL_TRUE_w) + total_t78), (__lsram int8*)(acc + cse_var_115), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_116), ALL_TRUE_w) + total_t79), (__lsram int8*)(acc + cse_var_116), ALL_TRUE_w);
    }
    __lsram int* words_t5 = (__lsram int*)(row_here_1 + 64);
    for (int i_t16 = 0; i_t16 < 8; i_t16 += 1) {
      int cse_var_136 = (i_t16 * 128);
      int cse_var_135 = (cse_var_136 + 5216);
      int cse_var_134 = (cse_var_136 + 5184);
      int cse_var_133 = (cse_var_136 + 5152);
      int cse_var_132 = (cse_var_136 + 5120);
      char32 even_t10 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_132), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_134), ALL_TRUE_b));
      char32 even_t11 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_133), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_135), ALL_TRUE_b));
      char32 odd_t10 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_132), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_134), ALL_TRUE_b));
      char32 odd_t11 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_133), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_135), ALL_TRUE_b));
      __vstore(__vzipl(even_t10, even_t11), (__lsram char32*)(tile_t5 + cse_var_136), ALL_TRUE_b);
      __vstore(__vziph(even_t10, even_t11), (__lsram char32*)(tile_t5 + (cse_var_136 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t10, odd_t11), (__lsram char32*)(tile_t5 + (cse_var_136 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t10, odd_t11), (__lsram char32*)(tile_t5 + (cse_var_136 + 96)), ALL_TRUE_b);
    }
    for (int i_t17 = 0; i_t17 < 32; i_t17 += 4) {
      int cse_var_152 = (i_t17 * 32);
      int cse_var_151 = (cse_var_152 + 96);
      int cse_var_150 = (cse_var_152 + 88);
      int cse_var_149 = (cse_var_152 + 80);
      int cse_var_148 = (cse_var_152 + 8);
      int cse_var_147 = (cse_var_152 + 72);
      int cse_var_146 = (cse_var_152 + 64);
      int cse_var_145 = (cse_var_152 + 56);
      int cse_var_144 = (cse_var_152 + 48);
      int cse_var_143 = (cse_var_152 + 40);
      int cse_var_142 = (cse_var_152 + 32);
      int cse_var_141 = (cse_var_152 + 24);
      int cse_var_140 = (cse_var_152 + 16);
      int cse_var_139 = (cse_var_152 + 120);
      int cse_var_138 = (cse_var_152 + 112);
      int cse_var_137 = (cse_var_152 + 104);
      int8 total_t80 = (int8)0;
      int8 total_t81 = (int8)0;
      int8 total_t82 = (int8)0;
      int8 total_t83 = (int8)0;
      int8 total_t84 = (int8)0;
      int8 total_t85 = (int8)0;
      int8 total_t86 = (int8)0;
      int8 total_t87 = (int8)0;
      int8 total_t88 = (int8)0;
      int8 total_t89 = (int8)0;
      int8 total_t90 = (int8)0;
      int8 total_t91 = (int8)0;
      int8 total_t92 = (int8)0;
      int8 total_t93 = (int8)0;
      int8 total_t94 = (int8)0;
      int8 total_t95 = (int8)0;
      for (int i_t18 = 0; i_t18 < 8; i_t18 += 1) {
        int cse_var_154 = (i_t18 * 128);
        int cse_var_153 = ((i_t17 * 8) + i_t18);
        char32 right_t20 = __vload((__lsram char32*)(tile_t5 + cse_var_154), ALL_TRUE_b);
        char32 right_t21 = __vload((__lsram char32*)(tile_t5 + (cse_var_154 + 32)), ALL_TRUE_b);
        char32 right_t22 = __vload((__lsram char32*)(tile_t5 + (cse_var_154 + 64)), ALL_TRUE_b);
        char32 right_t23 = __vload((__lsram char32*)(tile_t5 + (cse_var_154 + 96)), ALL_TRUE_b);
        char32 left_t20 = as_char32((int8)words_t5[cse_var_153]);
        total_t80 = __vqdpa(total_t80, left_t20, right_t20, ALL_TRUE_b);
        total_t81 = __vqdpa(total_t81, left_t20, right_t21, ALL_TRUE_b);
        total_t82 = __vqdpa(total_t82, left_t20, right_t22, ALL_TRUE_b);
        total_t83 = __vqdpa(total_t83, left_t20, right_t23, ALL_TRUE_b);
        char32 left_t21 = as_char32((int8)words_t5[(cse_var_153 + 8)]);
        total_t84 = __vqdpa(total_t84, left_t21, right_t20, ALL_TRUE_b);
        total_t85 = __vqdpa(total_t85, left_t21, right_t21, ALL_TRUE_b);
        total_t86 = __vqdpa(total_t86, left_t21, right_t22, ALL_TRUE_b);
        total_t87 = __vqdpa(total_t87, left_t21, right_t23, ALL_TRUE_b);
        char32 left_t22 = as_char32((int8)words_t5[(cse_var_153 + 16)]);
        total_t88 = __vqdpa(total_t88, left_t22, right_t20, ALL_TRUE_b);
        total_t89 = __vqdpa(total_t89, left_t22, right_t21, ALL_TRUE_b);
        total_t90 = __vqdpa(total_t90, left_t22, right_t22, ALL_TRUE_b);
        total_t91 = __vqdpa(total_t91, left_t22, right_t23, ALL_TRUE_b);
        char32 left_t23 = as_char32((int8)words_t5[(cse_var_153 + 24)]);
        total_t92 = __vqdpa(total_t92, left_t23, right_t20, ALL_TRUE_b);
        total_t93 = __vqdpa(total_t93, left_t23, right_t21, ALL_TRUE_b);
        total_t94 = __vqdpa(total_t94, left_t23, right_t22, ALL_TRUE_b);
        total_t95 = __vqdpa(total_t95, left_t23, right_t23, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_152), ALL_TRUE_w) + total_t80), (__lsram int8*)(acc + cse_var_152), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_148), ALL_TRUE_w) + total_t81), (__lsram int8*)(acc + cse_var_148), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_140), ALL_TRUE_w) + total_t82), (__lsram int8*)(acc + cse_var_140), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_141), ALL_TRUE_w) + total_t83), (__lsram int8*)(acc + cse_var_141), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_142), ALL_TRUE_w) + total_t84), (__lsram int8*)(acc + cse_var_142), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_143), ALL_TRUE_w) + total_t85), (__lsram int8*)(acc + cse_var_143), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_144), ALL_TRUE_w) + total_t86), (__lsram int8*)(acc + cse_var_144), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_145), ALL_TRUE_w) + total_t87), (__lsram int8*)(acc + cse_var_145), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_146), ALL_TRUE_w) + total_t88), (__lsram int8*)(acc + cse_var_146), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_147), ALL_TRUE_w) + total_t89), (__lsram int8*)(acc + cse_var_147), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_149), ALL_TRUE_w) + total_t90), (__lsram int8*)(acc + cse_var_149), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_150), ALL_TRUE_w) + total_t91), (__lsram int8*)(acc + cse_var_150), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_151), ALL_TRUE_w) + total_t92), (__lsram int8*)(acc + cse_var_151), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_137), ALL_TRUE_w) + total_t93), (__lsram int8*)(acc + cse_var_137), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_138), ALL_TRUE_w) + total_t94), (__lsram int8*)(acc + cse_var_138), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_139), ALL_TRUE_w) + total_t95), (__lsram int8*)(acc + cse_var_139), ALL_TRUE_w);
    }
    bool exists_t6_1 = (0 <= cse_var_16);
    bool exists_t7_1 = (cse_var_16 < h);
    int end_t3_1 = cse_var_11;
    int low_t3_1 = cse_var_12;
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
      int cse_var_157 = (_place_t0_2 * 32);
      int cse_var_156 = max((1 - cse_var_157), 0);
      int cse_var_155 = min((cse_var_10 - cse_var_157), 34);
      int _place_t1_2 = (turn_t0_2 / count_t1);
      int cse_var_159 = (_place_t1_2 - 1);
      int cse_var_158 = (_place_t1_2 + 1);
      bool exists_t2_2 = (0 <= cse_var_159);
      bool exists_t3_2 = (cse_var_159 < h);
      int end_t1_2 = cse_var_155;
      int low_t1_2 = cse_var_156;
      int count_t3_2 = (end_t1_2 - low_t1_2);
      bool exists_t4_2 = (0 <= _place_t1_2);
      bool exists_t5_2 = (_place_t1_2 < h);
      int end_t2_2 = cse_var_155;
      int low_t2_2 = cse_var_156;
      int count_t4_2 = (end_t2_2 - low_t2_2);
      bool exists_t6_2 = (0 <= cse_var_158);
      bool exists_t7_2 = (cse_var_158 < h);
      int end_t3_2 = cse_var_155;
      int low_t3_2 = cse_var_156;
      int count_t5_2 = (end_t3_2 - low_t3_2);
      if (((count_t3_2 < 34) || !exists_t2_2) || !exists_t3_2) {
        MemsetSRAM(row_ahead_3, 1088, 0, 0, 4);
      }
      if (((0 < count_t3_2) && exists_t2_2) && exists_t3_2) {
        int cse_var_160 = (low_t1_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_3 + cse_var_160), (int)(src + (((((cse_var_159 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_160) - 32)), 32, 32, (count_t3_2 * 32), 32, row_came);
      }
      if (((count_t4_2 < 34) || !exists_t4_2) || !exists_t5_2) {
        MemsetSRAM(row_ahead_4, 1088, 0, 0, 4);
      }
      if (((0 < count_t4_2) && exists_t4_2) && exists_t5_2) {
        int cse_var_161 = (low_t2_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_4 + cse_var_161), (int)(src + (((((_place_t1_2 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_161) - 32)), 32, 32, (count_t4_2 * 32), 32, row_came_1);
      }
      if (((count_t5_2 < 34) || !exists_t6_2) || !exists_t7_2) {
        MemsetSRAM(row_ahead_5, 1088, 0, 0, 4);
      }
      if (((0 < count_t5_2) && exists_t6_2) && exists_t7_2) {
        int cse_var_162 = (low_t3_2 * 32);
        AsyncDmaDirect_kGlobal_to_kLsram((int)(row_ahead_5 + cse_var_162), (int)(src + (((((cse_var_158 * w) * 32) + (_place_t0_2 * 1024)) + cse_var_162) - 32)), 32, 32, (count_t5_2 * 32), 32, row_came_2);
      }
    }
    __lsram int* words_t6 = (__lsram int*)row_here_2;
    for (int i_t19 = 0; i_t19 < 8; i_t19 += 1) {
      int cse_var_167 = (i_t19 * 128);
      int cse_var_166 = (cse_var_167 + 6240);
      int cse_var_165 = (cse_var_167 + 6208);
      int cse_var_164 = (cse_var_167 + 6176);
      int cse_var_163 = (cse_var_167 + 6144);
      char32 even_t12 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_163), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_165), ALL_TRUE_b));
      char32 even_t13 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_164), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_166), ALL_TRUE_b));
      char32 odd_t12 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_163), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_165), ALL_TRUE_b));
      char32 odd_t13 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_164), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_166), ALL_TRUE_b));
      __vstore(__vzipl(even_t12, even_t13), (__lsram char32*)(tile_t6 + cse_var_167), ALL_TRUE_b);
      __vstore(__vziph(even_t12, even_t13), (__lsram char32*)(tile_t6 + (cse_var_167 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t12, odd_t13), (__lsram char32*)(tile_t6 + (cse_var_167 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t12, odd_t13), (__lsram char32*)(tile_t6 + (cse_var_167 + 96)), ALL_TRUE_b);
    }
    for (int i_t20 = 0; i_t20 < 32; i_t20 += 4) {
      int cse_var_183 = (i_t20 * 32);
      int cse_var_182 = (cse_var_183 + 96);
      int cse_var_181 = (cse_var_183 + 88);
      int cse_var_180 = (cse_var_183 + 80);
      int cse_var_179 = (cse_var_183 + 8);
      int cse_var_178 = (cse_var_183 + 72);
      int cse_var_177 = (cse_var_183 + 64);
      int cse_var_176 = (cse_var_183 + 56);
      int cse_var_175 = (cse_var_183 + 48);
      int cse_var_174 = (cse_var_183 + 40);
      int cse_var_173 = (cse_var_183 + 32);
      int cse_var_172 = (cse_var_183 + 24);
      int cse_var_171 = (cse_var_183 + 16);
      int cse_var_170 = (cse_var_183 + 120);
      int cse_var_169 = (cse_var_183 + 112);
      int cse_var_168 = (cse_var_183 + 104);
      int8 total_t96 = (int8)0;
      int8 total_t97 = (int8)0;
      int8 total_t98 = (int8)0;
      int8 total_t99 = (int8)0;
      int8 total_t100 = (int8)0;
      int8 total_t101 = (int8)0;
      int8 total_t102 = (int8)0;
      int8 total_t103 = (int8)0;
      int8 total_t104 = (int8)0;
      int8 total_t105 = (int8)0;
      int8 total_t106 = (int8)0;
      int8 total_t107 = (int8)0;
      int8 total_t108 = (int8)0;
      int8 total_t109 = (int8)0;
      int8 total_t110 = (int8)0;
      int8 total_t111 = (int8)0;
      for (int i_t21 = 0; i_t21 < 8; i_t21 += 1) {
        int cse_var_185 = (i_t21 * 128);
        int cse_var_184 = ((i_t20 * 8) + i_t21);
        char32 right_t24 = __vload((__lsram char32*)(tile_t6 + cse_var_185), ALL_TRUE_b);
        char32 right_t25 = __vload((__lsram char32*)(tile_t6 + (cse_var_185 + 32)), ALL_TRUE_b);
        char32 right_t26 = __vload((__lsram char32*)(tile_t6 + (cse_var_185 + 64)), ALL_TRUE_b);
        char32 right_t27 = __vload((__lsram char32*)(tile_t6 + (cse_var_185 + 96)), ALL_TRUE_b);
        char32 left_t24 = as_char32((int8)words_t6[cse_var_184]);
        total_t96 = __vqdpa(total_t96, left_t24, right_t24, ALL_TRUE_b);
        total_t97 = __vqdpa(total_t97, left_t24, right_t25, ALL_TRUE_b);
        total_t98 = __vqdpa(total_t98, left_t24, right_t26, ALL_TRUE_b);
        total_t99 = __vqdpa(total_t99, left_t24, right_t27, ALL_TRUE_b);
        char32 left_t25 = as_char32((int8)words_t6[(cse_var_184 + 8)]);
        total_t100 = __vqdpa(total_t100, left_t25, right_t24, ALL_TRUE_b);
        total_t101 = __vqdpa(total_t101, left_t25, right_t25, ALL_TRUE_b);
        total_t102 = __vqdpa(total_t102, left_t25, right_t26, ALL_TRUE_b);
        total_t103 = __vqdpa(total_t103, left_t25, right_t27, ALL_TRUE_b);
        char32 left_t26 = as_char32((int8)words_t6[(cse_var_184 + 16)]);
        total_t104 = __vqdpa(total_t104, left_t26, right_t24, ALL_TRUE_b);
        total_t105 = __vqdpa(total_t105, left_t26, right_t25, ALL_TRUE_b);
        total_t106 = __vqdpa(total_t106, left_t26, right_t26, ALL_TRUE_b);
        total_t107 = __vqdpa(total_t107, left_t26, right_t27, ALL_TRUE_b);
        char32 left_t27 = as_char32((int8)words_t6[(cse_var_184 + 24)]);
        total_t108 = __vqdpa(total_t108, left_t27, right_t24, ALL_TRUE_b);
        total_t109 = __vqdpa(total_t109, left_t27, right_t25, ALL_TRUE_b);
        total_t110 = __vqdpa(total_t110, left_t27, right_t26, ALL_TRUE_b);
        total_t111 = __vqdpa(total_t111, left_t27, right_t27, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_183), ALL_TRUE_w) + total_t96), (__lsram int8*)(acc + cse_var_183), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_179), ALL_TRUE_w) + total_t97), (__lsram int8*)(acc + cse_var_179), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_171), ALL_TRUE_w) + total_t98), (__lsram int8*)(acc + cse_var_171), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_172), ALL_TRUE_w) + total_t99), (__lsram int8*)(acc + cse_var_172), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_173), ALL_TRUE_w) + total_t100), (__lsram int8*)(acc + cse_var_173), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_174), ALL_TRUE_w) + total_t101), (__lsram int8*)(acc + cse_var_174), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_175), ALL_TRUE_w) + total_t102), (__lsram int8*)(acc + cse_var_175), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_176), ALL_TRUE_w) + total_t103), (__lsram int8*)(acc + cse_var_176), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_177), ALL_TRUE_w) + total_t104), (__lsram int8*)(acc + cse_var_177), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_178), ALL_TRUE_w) + total_t105), (__lsram int8*)(acc + cse_var_178), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_180), ALL_TRUE_w) + total_t106), (__lsram int8*)(acc + cse_var_180), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_181), ALL_TRUE_w) + total_t107), (__lsram int8*)(acc + cse_var_181), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_182), ALL_TRUE_w) + total_t108), (__lsram int8*)(acc + cse_var_182), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_168), ALL_TRUE_w) + total_t109), (__lsram int8*)(acc + cse_var_168), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_169), ALL_TRUE_w) + total_t110), (__lsram int8*)(acc + cse_var_169), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_170), ALL_TRUE_w) + total_t111), (__lsram int8*)(acc + cse_var_170), ALL_TRUE_w);
    }
    __lsram int* words_t7 = (__lsram int*)(row_here_2 + 32);
    for (int i_t22 = 0; i_t22 < 8; i_t22 += 1) {
      int cse_var_190 = (i_t22 * 128);
      int cse_var_189 = (cse_var_190 + 7264);
      int cse_var_188 = (cse_var_190 + 7232);
      int cse_var_187 = (cse_var_190 + 7200);
      int cse_var_186 = (cse_var_190 + 7168);
      char32 even_t14 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_186), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_188), ALL_TRUE_b));
      char32 even_t15 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_187), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_189), ALL_TRUE_b));
      char32 odd_t14 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_186), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_188), ALL_TRUE_b));
      char32 odd_t15 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_187), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_189), ALL_TRUE_b));
      __vstore(__vzipl(even_t14, even_t15), (__lsram char32*)(tile_t7 + cse_var_190), ALL_TRUE_b);
      __vstore(__vziph(even_t14, even_t15), (__lsram char32*)(tile_t7 + (cse_var_190 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t14, odd_t15), (__lsram char32*)(tile_t7 + (cse_var_190 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t14, odd_t15), (__lsram char32*)(tile_t7 + (cse_var_190 + 96)), ALL_TRUE_b);
    }
    for (int i_t23 = 0; i_t23 < 32; i_t23 += 4) {
      int cse_var_206 = (i_t23 * 32);
      int cse_var_205 = (cse_var_206 + 96);
      int cse_var_204 = (cse_var_206 + 88);
      int cse_var_203 = (cse_var_206 + 80);
      int cse_var_202 = (cse_var_206 + 8);
      int cse_var_201 = (cse_var_206 + 72);
      int cse_var_200 = (cse_var_206 + 64);
      int cse_var_199 = (cse_var_206 + 56);
      int cse_var_198 = (cse_var_206 + 48);
      int cse_var_197 = (cse_var_206 + 40);
      int cse_var_196 = (cse_var_206 + 32);
      int cse_var_195 = (cse_var_206 + 24);
      int cse_var_194 = (cse_var_206 + 16);
      int cse_var_193 = (cse_var_206 + 120);
      int cse_var_192 = (cse_var_206 + 112);
      int cse_var_191 = (cse_var_206 + 104);
      int8 total_t112 = (int8)0;
      int8 total_t113 = (int8)0;
      int8 total_t114 = (int8)0;
      int8 total_t115 = (int8)0;
      int8 total_t116 = (int8)0;
      int8 total_t117 = (int8)0;
      int8 total_t118 = (int8)0;
      int8 total_t119 = (int8)0;
      int8 total_t120 = (int8)0;
      int8 total_t121 = (int8)0;
      int8 total_t122 = (int8)0;
      int8 total_t123 = (int8)0;
      int8 total_t124 = (int8)0;
      int8 total_t125 = (int8)0;
      int8 total_t126 = (int8)0;
      int8 total_t127 = (int8)0;
      for (int i_t24 = 0; i_t24 < 8; i_t24 += 1) {
        int cse_var_208 = (i_t24 * 128);
        int cse_var_207 = ((i_t23 * 8) + i_t24);
        char32 right_t28 = __vload((__lsram char32*)(tile_t7 + cse_var_208), ALL_TRUE_b);
        char32 right_t29 = __vload((__lsram char32*)(tile_t7 + (cse_var_208 + 32)), ALL_TRUE_b);
        char32 right_t30 = __vload((__lsram char32*)(tile_t7 + (cse_var_208 + 64)), ALL_TRUE_b);
        char32 right_t31 = __vload((__lsram char32*)(tile_t7 + (cse_var_208 + 96)), ALL_TRUE_b);
        char32 left_t28 = as_char32((int8)words_t7[cse_var_207]);
        total_t112 = __vqdpa(total_t112, left_t28, right_t28, ALL_TRUE_b);
        total_t113 = __vqdpa(total_t113, left_t28, right_t29, ALL_TRUE_b);
        total_t114 = __vqdpa(total_t114, left_t28, right_t30, ALL_TRUE_b);
        total_t115 = __vqdpa(total_t115, left_t28, right_t31, ALL_TRUE_b);
        char32 left_t29 = as_char32((int8)words_t7[(cse_var_207 + 8)]);
        total_t116 = __vqdpa(total_t116, left_t29, right_t28, ALL_TRUE_b);
        total_t117 = __vqdpa(total_t117, left_t29, right_t29, ALL_TRUE_b);
        total_t118 = __vqdpa(total_t118, left_t29, right_t30, ALL_TRUE_b);
        total_t119 = __vqdpa(total_t119, left_t29, right_t31, ALL_TRUE_b);
        char32 left_t30 = as_char32((int8)words_t7[(cse_var_207 + 16)]);
        total_t120 = __vqdpa(total_t120, left_t30, right_t28, ALL_TRUE_b);
        total_t121 = __vqdpa(total_t121, left_t30, right_t29, ALL_TRUE_b);
        total_t122 = __vqdpa(total_t122, left_t30, right_t30, ALL_TRUE_b);
        total_t123 = __vqdpa(total_t123, left_t30, right_t31, ALL_TRUE_b);
        char32 left_t31 = as_char32((int8)words_t7[(cse_var_207 + 24)]);
        total_t124 = __vqdpa(total_t124, left_t31, right_t28, ALL_TRUE_b);
        total_t125 = __vqdpa(total_t125, left_t31, right_t29, ALL_TRUE_b);
        total_t126 = __vqdpa(total_t126, left_t31, right_t30, ALL_TRUE_b);
        total_t127 = __vqdpa(total_t127, left_t31, right_t31, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_206), ALL_TRUE_w) + total_t112), (__lsram int8*)(acc + cse_var_206), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_202), ALL_TRUE_w) + total_t113), (__lsram int8*)(acc + cse_var_202), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_194), ALL_TRUE_w) + total_t114), (__lsram int8*)(acc + cse_var_194), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_195), ALL_TRUE_w) + total_t115), (__lsram int8*)(acc + cse_var_195), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_196), ALL_TRUE_w) + total_t116), (__lsram int8*)(acc + cse_var_196), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_197), ALL_TRUE_w) + total_t117), (__lsram int8*)(acc + cse_var_197), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_198), ALL_TRUE_w) + total_t118), (__lsram int8*)(acc + cse_var_198), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_199), ALL_TRUE_w) + total_t119), (__lsram int8*)(acc + cse_var_199), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_200), ALL_TRUE_w) + total_t120), (__lsram int8*)(acc + cse_var_200), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_201), ALL_TRUE_w) + total_t121), (__lsram int8*)(acc + cse_var_201), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_203), ALL_TRUE_w) + total_t122), (__lsram int8*)(acc + cse_var_203), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_204), ALL_TRUE_w) + total_t123), (__lsram int8*)(acc + cse_var_204), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_205), ALL_TRUE_w) + total_t124), (__lsram int8*)(acc + cse_var_205), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_191), ALL_TRUE_w) + total_t125), (__lsram int8*)(acc + cse_var_191), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_192), ALL_TRUE_w) + total_t126), (__lsram int8*)(acc + cse_var_192), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_193), ALL_TRUE_w) + total_t127), (__lsram int8*)(acc + cse_var_193), ALL_TRUE_w);
    }
    __lsram int* words_t8 = (__lsram int*)(row_here_2 + 64);
    for (int i_t25 = 0; i_t25 < 8; i_t25 += 1) {
      int cse_var_213 = (i_t25 * 128);
      int cse_var_212 = (cse_var_213 + 8288);
      int cse_var_211 = (cse_var_213 + 8256);
      int cse_var_210 = (cse_var_213 + 8224);
      int cse_var_209 = (cse_var_213 + 8192);
      char32 even_t16 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_209), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_211), ALL_TRUE_b));
      char32 even_t17 = __vzipl(__vload((__lsram char32*)(kernel_1 + cse_var_210), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_212), ALL_TRUE_b));
      char32 odd_t16 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_209), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_211), ALL_TRUE_b));
      char32 odd_t17 = __vziph(__vload((__lsram char32*)(kernel_1 + cse_var_210), ALL_TRUE_b), __vload((__lsram char32*)(kernel_1 + cse_var_212), ALL_TRUE_b));
      __vstore(__vzipl(even_t16, even_t17), (__lsram char32*)(tile_t8 + cse_var_213), ALL_TRUE_b);
      __vstore(__vziph(even_t16, even_t17), (__lsram char32*)(tile_t8 + (cse_var_213 + 32)), ALL_TRUE_b);
      __vstore(__vzipl(odd_t16, odd_t17), (__lsram char32*)(tile_t8 + (cse_var_213 + 64)), ALL_TRUE_b);
      __vstore(__vziph(odd_t16, odd_t17), (__lsram char32*)(tile_t8 + (cse_var_213 + 96)), ALL_TRUE_b);
    }
    for (int i_t26 = 0; i_t26 < 32; i_t26 += 4) {
      int cse_var_229 = (i_t26 * 32);
      int cse_var_228 = (cse_var_229 + 96);
      int cse_var_227 = (cse_var_229 + 88);
      int cse_var_226 = (cse_var_229 + 80);
      int cse_var_225 = (cse_var_229 + 8);
      int cse_var_224 = (cse_var_229 + 72);
      int cse_var_223 = (cse_var_229 + 64);
      int cse_var_222 = (cse_var_229 + 56);
      int cse_var_221 = (cse_var_229 + 48);
      int cse_var_220 = (cse_var_229 + 40);
      int cse_var_219 = (cse_var_229 + 32);
      int cse_var_218 = (cse_var_229 + 24);
      int cse_var_217 = (cse_var_229 + 16);
      int cse_var_216 = (cse_var_229 + 120);
      int cse_var_215 = (cse_var_229 + 112);
      int cse_var_214 = (cse_var_229 + 104);
      int8 total_t128 = (int8)0;
      int8 total_t129 = (int8)0;
      int8 total_t130 = (int8)0;
      int8 total_t131 = (int8)0;
      int8 total_t132 = (int8)0;
      int8 total_t133 = (int8)0;
      int8 total_t134 = (int8)0;
      int8 total_t135 = (int8)0;
      int8 total_t136 = (int8)0;
      int8 total_t137 = (int8)0;
      int8 total_t138 = (int8)0;
      int8 total_t139 = (int8)0;
      int8 total_t140 = (int8)0;
      int8 total_t141 = (int8)0;
      int8 total_t142 = (int8)0;
      int8 total_t143 = (int8)0;
      for (int i_t27 = 0; i_t27 < 8; i_t27 += 1) {
        int cse_var_231 = (i_t27 * 128);
        int cse_var_230 = ((i_t26 * 8) + i_t27);
        char32 right_t32 = __vload((__lsram char32*)(tile_t8 + cse_var_231), ALL_TRUE_b);
        char32 right_t33 = __vload((__lsram char32*)(tile_t8 + (cse_var_231 + 32)), ALL_TRUE_b);
        char32 right_t34 = __vload((__lsram char32*)(tile_t8 + (cse_var_231 + 64)), ALL_TRUE_b);
        char32 right_t35 = __vload((__lsram char32*)(tile_t8 + (cse_var_231 + 96)), ALL_TRUE_b);
        char32 left_t32 = as_char32((int8)words_t8[cse_var_230]);
        total_t128 = __vqdpa(total_t128, left_t32, right_t32, ALL_TRUE_b);
        total_t129 = __vqdpa(total_t129, left_t32, right_t33, ALL_TRUE_b);
        total_t130 = __vqdpa(total_t130, left_t32, right_t34, ALL_TRUE_b);
        total_t131 = __vqdpa(total_t131, left_t32, right_t35, ALL_TRUE_b);
        char32 left_t33 = as_char32((int8)words_t8[(cse_var_230 + 8)]);
        total_t132 = __vqdpa(total_t132, left_t33, right_t32, ALL_TRUE_b);
        total_t133 = __vqdpa(total_t133, left_t33, right_t33, ALL_TRUE_b);
        total_t134 = __vqdpa(total_t134, left_t33, right_t34, ALL_TRUE_b);
        total_t135 = __vqdpa(total_t135, left_t33, right_t35, ALL_TRUE_b);
        char32 left_t34 = as_char32((int8)words_t8[(cse_var_230 + 16)]);
        total_t136 = __vqdpa(total_t136, left_t34, right_t32, ALL_TRUE_b);
        total_t137 = __vqdpa(total_t137, left_t34, right_t33, ALL_TRUE_b);
        total_t138 = __vqdpa(total_t138, left_t34, right_t34, ALL_TRUE_b);
        total_t139 = __vqdpa(total_t139, left_t34, right_t35, ALL_TRUE_b);
        char32 left_t35 = as_char32((int8)words_t8[(cse_var_230 + 24)]);
        total_t140 = __vqdpa(total_t140, left_t35, right_t32, ALL_TRUE_b);
        total_t141 = __vqdpa(total_t141, left_t35, right_t33, ALL_TRUE_b);
        total_t142 = __vqdpa(total_t142, left_t35, right_t34, ALL_TRUE_b);
        total_t143 = __vqdpa(total_t143, left_t35, right_t35, ALL_TRUE_b);
      }
      __vstore((__vload((__lsram int8*)(acc + cse_var_229), ALL_TRUE_w) + total_t128), (__lsram int8*)(acc + cse_var_229), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_225), ALL_TRUE_w) + total_t129), (__lsram int8*)(acc + cse_var_225), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_217), ALL_TRUE_w) + total_t130), (__lsram int8*)(acc + cse_var_217), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_218), ALL_TRUE_w) + total_t131), (__lsram int8*)(acc + cse_var_218), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_219), ALL_TRUE_w) + total_t132), (__lsram int8*)(acc + cse_var_219), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_220), ALL_TRUE_w) + total_t133), (__lsram int8*)(acc + cse_var_220), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_221), ALL_TRUE_w) + total_t134), (__lsram int8*)(acc + cse_var_221), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_222), ALL_TRUE_w) + total_t135), (__lsram int8*)(acc + cse_var_222), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_223), ALL_TRUE_w) + total_t136), (__lsram int8*)(acc + cse_var_223), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_224), ALL_TRUE_w) + total_t137), (__lsram int8*)(acc + cse_var_224), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_226), ALL_TRUE_w) + total_t138), (__lsram int8*)(acc + cse_var_226), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_227), ALL_TRUE_w) + total_t139), (__lsram int8*)(acc + cse_var_227), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_228), ALL_TRUE_w) + total_t140), (__lsram int8*)(acc + cse_var_228), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_214), ALL_TRUE_w) + total_t141), (__lsram int8*)(acc + cse_var_214), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_215), ALL_TRUE_w) + total_t142), (__lsram int8*)(acc + cse_var_215), ALL_TRUE_w);
      __vstore((__vload((__lsram int8*)(acc + cse_var_216), ALL_TRUE_w) + total_t143), (__lsram int8*)(acc + cse_var_216), ALL_TRUE_w);
    }
    bool exists_t8 = cse_var_15;
    bool exists_t9 = cse_var_14;
    int end_t4 = min((w - cse_var_13), 32);
    int low_t4 = max((_place_t0_1 * -32), 0);
    int count_t6 = (end_t4 - low_t4);
    int scalar_t0 = shift;
    for (int i_t28 = 0; i_t28 < 32; i_t28 += 1) {
      int cse_var_232 = (i_t28 * 32);
      __vstore(__vexte(__vexte(__vnsrasr_s(__vload((__lsram int8*)(acc + cse_var_232), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)), __vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_232 + 8)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153))), __vexte(__vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_232 + 16)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)), __vnsrasr_s(__vload((__lsram int8*)(acc + (cse_var_232 + 24)), __vmov_w(286331153)), as_uint8((int8)scalar_t0), __vmov_w(286331153)))), (__lsram char32*)(tile_t9_here + cse_var_232), ALL_TRUE_b);
    }
    if (turn_t0_start < turn_t0_1) {
      wait_events((1 << tile_t9_went));
    }
    if (((0 < count_t6) && exists_t8) && exists_t9) {
      int cse_var_233 = (low_t4 * 32);
      AsyncDmaDirect_kLsram_to_kGlobal((int)(dst + ((((_place_t1_1 * w) * 32) + (_place_t0_1 * 1024)) + cse_var_233)), (int)(tile_t9_here + cse_var_233), 32, 32, (count_t6 * 32), 32, tile_t9_went);
    }
    turn_of_2 = (1 - turn_of_2);
  }
  free_events(((((1 << row_came) | (1 << row_came_1)) | (1 << row_came_2)) | (1 << tile_t9_went)));
  barrier(CLK_LOCAL_MEM_FENCE);
}
