/* Runs an aipu.bin with one input and one output: run FILE; the input is 0, 1, 2, ... as int32. */
#include <compass_runtime.h>

int printf(const char *, ...);

int main(int count, char **arguments) {
  aipu_ctx_handle_t *ctx;
  uint64_t graph, job;
  int32_t in[1024], out[1024];
  for (int i = 0; i < 1024; i++) in[i] = i;
  aipu_status_t status = count == 2 ? aipu_init_context(&ctx) : AIPU_STATUS_ERROR_NULL_PTR;
  if (!status) status = aipu_load_graph(ctx, arguments[1], &graph, NULL);
  if (!status) status = aipu_create_job(ctx, graph, &job, NULL);
  if (!status) status = aipu_load_tensor(ctx, job, 0, in);
  if (!status) status = aipu_finish_job(ctx, job, -1);
  if (!status) status = aipu_get_tensor(ctx, job, AIPU_TENSOR_TYPE_OUTPUT, 0, out);
  if (status) return printf("error %#x: %s\n", status, compass_error_detail()), 1;
  printf("%d %d %d\n", out[0], out[1], out[2]);
  return aipu_deinit_context(ctx);
}
