/* A driver's library whose device prints without end; all else is libcompass_runtime's, which it is linked with. */
typedef unsigned long size_t;
typedef int (*finish_function)(const void *, unsigned long, int);
void *dlsym(void *, const char *);
long write(int, const void *, size_t);

int aipu_finish_job(const void *context, unsigned long job, int milliseconds) {
  static const char line[1024] = "flood";
  for (int i = 0; i < 9 << 10; i++) write(1, line, sizeof line);
  finish_function finish = (finish_function)dlsym((void *)-1l, "aipu_finish_job");
  return finish(context, job, milliseconds);
}
