/* One work group, as the network needs barriers between its steps. */
__kernel void bitonic_sort(__global const int *src, __global int *dst, int n) {
  __local int data[32768];
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) data[i] = src[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int run = 2; run <= n; run *= 2)
    for (int distance = run / 2; distance > 0; distance /= 2) {
      for (int k = get_local_id(0); k < n / 2; k += get_local_size(0)) {
        int low = k / distance * distance + k, high = low + distance;
        int x = data[low], y = data[high];
        bool down = (low & run) != 0;
        data[low] = down ? max(x, y) : min(x, y);
        data[high] = down ? min(x, y) : max(x, y);
      }
      barrier(CLK_LOCAL_MEM_FENCE);
    }
  for (int i = get_local_id(0); i < n; i += get_local_size(0)) dst[i] = data[i];
}
