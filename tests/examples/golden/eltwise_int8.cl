#include <compass/dsl.h>

__kernel void eltwise_int8(__global char* a, __global char* b, __global char* out, int n, int za, int sa, int zb, int sb, int shift, int zo);
_CLC_INLINE char32 eltwise_int8_add_quantised(char32 a, char32 b, int za, int sa, int zb, int sb, int shift, int zo);

__kernel void eltwise_int8(__global char* a, __global char* b, __global char* out, int n, int za, int sa, int zb, int sb, int shift, int zo) {
  int share = (ceildiv(ceildiv(n, 32), get_local_size(0)) * 32);
  int first = (get_local_id(0) * share);
  int last = min((first + share), n);
  int whole = ((last >> 5) * 32);
  for (int i = first; i < first+(whole - first); i += 32) {
    __vstore(eltwise_int8_add_quantised(__vload((__global char32*)(a + i), ALL_TRUE_b), __vload((__global char32*)(b + i), ALL_TRUE_b), za, sa, zb, sb, shift, zo), (__global char32*)(out + i), ALL_TRUE_b);
  }
  if ((first < last) && (whole < last)) {
    bool32 mask = __vmov_b(((((max(min((last - whole), 32), 0) >> 5) ^ 1) << max(min((last - whole), 32), 0)) - 1));
    char32 va = __vload((__global char32*)(a + whole), mask);
    char32 vb = __vload((__global char32*)(b + whole), mask);
    __vstore(eltwise_int8_add_quantised(va, vb, za, sa, zb, sb, shift, zo), (__global char32*)(out + whole), mask);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}

_CLC_INLINE char32 eltwise_int8_add_quantised(char32 a, char32 b, int za, int sa, int zb, int sb, int shift, int zo) {
  int8 wide[4];
  wide[0] = (((__vsxtl(__vsxtl(a)) - (int8)za) * (int8)sa) + ((__vsxtl(__vsxtl(b)) - (int8)zb) * (int8)sb));
  wide[1] = (((__vsxth(__vsxtl(a)) - (int8)za) * (int8)sa) + ((__vsxth(__vsxtl(b)) - (int8)zb) * (int8)sb));
  wide[2] = (((__vsxtl(__vsxth(a)) - (int8)za) * (int8)sa) + ((__vsxtl(__vsxth(b)) - (int8)zb) * (int8)sb));
  wide[3] = (((__vsxth(__vsxth(a)) - (int8)za) * (int8)sa) + ((__vsxth(__vsxth(b)) - (int8)zb) * (int8)sb));
  return __vexte(__vexte(__vnsras_s((__vasrr(wide[0], (int8)shift) + (int8)zo), (uint8)(uint)0, __vmov_w(286331153)), __vnsras_s((__vasrr(wide[1], (int8)shift) + (int8)zo), (uint8)(uint)0, __vmov_w(286331153))), __vexte(__vnsras_s((__vasrr(wide[2], (int8)shift) + (int8)zo), (uint8)(uint)0, __vmov_w(286331153)), __vnsras_s((__vasrr(wide[3], (int8)shift) + (int8)zo), (uint8)(uint)0, __vmov_w(286331153))));
}
