/* Whose code a job runs. A kernel may have broken its worker and left things in device memory, so jobs share both only
 * with those that run the same code, byte by byte: before a job of another program copies anything to the device, the
 * worker is ended and the memory is emptied.
 *
 * What is compared are copies in this process, which no kernel can change. */
#include "plugin.h"

#define MAX_TEXT (64u << 20) /* the engine's limit of a `.text`; here of all that a job has */

/* Fields of the head of `.text`, and of an entry record (docs/internals/files.md). */
enum { OBJECT_OFFSET = 12, OBJECT_SIZE = 16, HEAD_BYTES = 64, RECORD_BACK = 8, BACK_END = 12 };

static bool refuse(const char *why) { return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "%s", why), false; }

/* Where the `.text` with the entry record at `entry` starts, in the driver's memory. */
static bool find_text(struct sim_aipu *sim, uint64_t entry, uint64_t *start) {
  uint8_t record[BACK_END];
  if (!read_memory(sim, entry, record, sizeof record)) return false;
  uint32_t back = get32(record, RECORD_BACK);
  if (memcmp(record, "CPSENTRY", 8) != 0 || back > entry)
    return refuse("a task does not start at host code of this toolchain");
  *start = entry - back;
  return true;
}

/* Room for `more` bytes in what the next job runs. */
static bool make_room(struct code *code, size_t more) {
  if (more > MAX_TEXT - code->size) return refuse("the code of a job is larger than 64 MiB");
  if (code->size + more <= code->room) return true;
  size_t room = code->size + more;
  uint8_t *grown = realloc(code->bytes, room);
  if (!grown) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no host memory for the code of a job"), false;
  code->bytes = grown;
  code->room = room;
  return true;
}

void code_begin(struct sim_aipu *sim) { sim->next_code.size = sim->next_code.last = 0; }

bool code_add(struct sim_aipu *sim, uint64_t entry) {
  struct code *code = &sim->next_code;
  uint8_t head[HEAD_BYTES];
  uint64_t start;
  if (!find_text(sim, entry, &start)) return false;
  if (code->size && code->last == start) return true;
  if (!read_memory(sim, start, head, sizeof head)) return false;
  uint64_t size = (uint64_t)get32(head, OBJECT_OFFSET) + get32(head, OBJECT_SIZE);
  if (memcmp(head, "CPSHOST1", 8) != 0 || size < HEAD_BYTES) return refuse("the head of the host code is damaged");
  if (!make_room(code, size) || !read_memory(sim, start, code->bytes + code->size, size)) return false;
  code->size += size;
  code->last = start;
  return true;
}

bool code_admit(struct sim_aipu *sim) {
  struct code *latest = &sim->code, *next = &sim->next_code;
  bool same = latest->size == next->size && memcmp(latest->bytes, next->bytes, next->size) == 0;
  if (!next->size || same) return true;
  if (latest->size && device_empty(&sim->device) != AIPU_STATUS_SUCCESS) return false;
  const struct code kept = *latest;
  *latest = *next;
  *next = kept;
  return true;
}
