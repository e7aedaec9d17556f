/* A part per work item, then the first one's turn. */
__kernel void max_reduce(__global const int *x, __global int *out, int n) {
  __local int partial[64];
  int id = get_local_id(0), best = INT_MIN;
  for (int i = id; i < n; i += get_local_size(0)) best = max(best, x[i]);
  partial[id] = best;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id == 0) {
    for (int k = 1; k < get_local_size(0); k++) best = max(best, partial[k]);
    out[0] = best;
  }
}
