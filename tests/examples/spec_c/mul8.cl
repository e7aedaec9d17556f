#include <compass/dsl.h>

__kernel void mul8(__global char* p, __global char* q, __global short* o, __global char* w);

__kernel void mul8(__global char* p, __global char* q, __global short* o, __global char* w) {
  char32 pv = __vload((__global char32*)p, ALL_TRUE_b);
  char32 qv = __vload((__global char32*)q, ALL_TRUE_b);
  short16 prod[2];
  prod[0] = __vmul(prod[0], pv, qv, ALL_TRUE_b);
  prod[1] = __vmulh(prod[1], pv, qv, ALL_TRUE_b);
  __vstore(prod[0], (__global short16*)o, ALL_TRUE_h);
  __vstore(prod[1], (__global short16*)(o + 16), ALL_TRUE_h);
  __vstore(__vexte(__vnsras_s(prod[0], as_ushort16((short16)(short)7), __vmov_h(1431655765)), __vnsras_s(prod[1], as_ushort16((short16)(short)7), __vmov_h(1431655765))), (__global char32*)w, ALL_TRUE_b);
  barrier(CLK_LOCAL_MEM_FENCE);
}
