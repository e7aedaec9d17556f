#include "aiff.h"

int compass_aiff(const struct aiff_range *ranges, uint64_t count, uint32_t generation, uint32_t assumed, aiff_visitor *visit,
                 const uint32_t *chains, char *message, uint64_t size) {
  struct aiff_plan plan = {
      .memory = {ranges, count}, .assumed = assumed, .message = message, .message_size = size};
  *message = 0;
  bool done = aiff_prepare(&plan, generation, chains[0], chains[1], chains[2]) &&
              (visit ? aiff_visit(&plan, visit, NULL) : aiff_execute(&plan));
  if (done) aiff_assumption_names(plan.used, message, size);
  aiff_release(&plan);
  return done;
}
