/* One job, a grid of a chain: the buffers that it names are copied to the device of the worker, its blocks are written
 * anew with the addresses they have there, run, and when that succeeded, the buffers are copied back.
 *
 * The driver's addresses are 64 bits wide, an ASID's base plus 32 bits. Kernel code works on 32 bits alone, so each
 * buffer gets a place of its own below 4 GiB; which words of parameters and of AIFF descriptors are addresses is told by the
 * entry records of `.text`. Descriptors stay where they are, so what they hold becomes the driver's again in the end. */
#include "plugin.h"
#include "ranges.h"

#define MAX_TOLD (1u << 20) /* characters that tell of a task's words */
#define MOST_DESCRIPTORS (1u << 22) /* words of descriptors that are addresses, in a job */
#define ASIDS 4u
#define FULL_BASE(entry) ((entry) & ~0xfffull) /* the low bits of an ASID entry are permissions */

/* Entry records of `.text` (docs/internals/files.md). */
enum { RECORD_BACK = 8, RECORD_ASIDS = 12, RECORD_BYTES = 64 };

struct buffer {
  uint64_t base, size; /* the driver's */
  uint32_t memory;     /* what was allocated for it on the device */
  uint32_t start;      /* device address of its first byte */
  bool written;        /* kernels have an address in it that is not a constant's */
};

/* A word of descriptors that is an address. */
struct word {
  uint32_t at;              /* its device address */
  uint32_t given, replaced; /* what the driver wrote there, and the address on the device */
  uint64_t asid;            /* the base that the driver's counts from */
};

struct launch {
  struct sim_aipu *sim;
  bool (*take_task)(struct launch *launch, const uint8_t *block); /* what is done with the block of a task */
  struct done *done;
  struct buffer *buffers;
  uint32_t buffer_count, buffer_room;
  uint8_t *blocks; /* of tasks; PP holds an offset in `words` until they are placed */
  uint32_t block_count, block_room;
  uint32_t *words; /* parameter blocks, translated */
  uint32_t word_count, word_room;
  struct word *descriptors;
  uint32_t descriptor_count, descriptor_room;
  uint64_t *followed; /* where descriptors begin that were translated */
  uint32_t followed_count, followed_room;
  uint64_t asids[ASIDS];
  uint32_t last_spc, last_pp, last_words; /* the tasks of a group have the same parameters */
  bool has_last;
  uint32_t text, text_bytes; /* the first code that was found: device address, bytes to the end of its buffer */
};

static void put32(uint8_t *block, uint32_t offset, uint32_t value) { memcpy(block + offset, &value, sizeof value); }

/* Room for `more` items behind `count`. */
static bool grow(void **items, uint32_t *room, uint32_t count, uint32_t more, size_t item) {
  if (*items && count + more <= *room) return true;
  uint32_t wanted = (count + more) * 2 + 16;
  void *grown = realloc(*items, wanted * item);
  if (!grown) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no host memory for a job"), false;
  *items = grown;
  *room = wanted;
  return true;
}

/* Copies the buffer with this address to the device. */
static struct buffer *bring(struct launch *launch, uint64_t address) {
  const mem_interface_t *memory = &launch->sim->memory;
  uint64_t base = 0;
  size_t size = 0;
  if (!memory->get_info(address, &base, &size, memory->cxt) || address < base || address - base >= size)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the address %#llx is in no buffer", (unsigned long long)address),
           NULL;
  if (!grow((void **)&launch->buffers, &launch->buffer_room, launch->buffer_count, 1, sizeof *launch->buffers))
    return NULL;
  struct buffer *buffer = &launch->buffers[launch->buffer_count];
  uint32_t skew = (uint32_t)(base % PAGE); /* what is aligned there stays so */
  *buffer = (struct buffer){.base = base, .size = size};
  if (size > WINDOW_HIGH || !(buffer->memory = device_reserve(&launch->sim->device, size + skew)))
    return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no device memory for a buffer of %zu bytes", size), NULL;
  buffer->start = buffer->memory + skew;
  launch->buffer_count++;
  uint8_t *start = launch->sim->device.memory + buffer->start;
  memset(start - skew, 0, skew);
  memset(start + size, 0, pages(size + skew) - size - skew);
  return read_memory(launch->sim, base, start, size) ? buffer : NULL;
}

/* The buffer that holds `size` bytes at an address; NULL with a failure when they are not in one buffer. */
static struct buffer *find(struct launch *launch, uint64_t address, uint64_t size) {
  struct buffer *buffer = NULL;
  for (uint32_t i = 0; i < launch->buffer_count && !buffer; i++)
    if (address >= launch->buffers[i].base && address - launch->buffers[i].base < launch->buffers[i].size)
      buffer = &launch->buffers[i];
  if (!buffer && !(buffer = bring(launch, address))) return NULL;
  if (size <= buffer->base + buffer->size - address) return buffer;
  return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "%llu bytes at %#llx go beyond their buffer",
              (unsigned long long)size, (unsigned long long)address),
         NULL;
}

static uint32_t device_address(const struct buffer *buffer, uint64_t address) {
  return buffer->start + (uint32_t)(address - buffer->base);
}

/* A copy of what the entry record at device address `at` tells about words, or NULL with a failure. The kernel that ran
 * last may still write here, so nothing is read twice. */
static char *record_asids(struct launch *launch, const struct buffer *text, uint32_t at) {
  const uint8_t *record = launch->sim->device.memory + at;
  uint32_t back = get32(record, RECORD_BACK), told = get32(record, RECORD_ASIDS);
  if (memcmp(record, "CPSENTRY", 8) != 0 || back > at - text->start)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "a task does not start at host code of this toolchain"), NULL;
  uint64_t rest = text->start + text->size - (at - back); /* from the start of `.text` to the end of its buffer */
  size_t room = !told || told >= rest ? 0 : rest - told < MAX_TOLD ? rest - told : MAX_TOLD;
  if (!launch->text) {
    launch->text = at - back;
    launch->text_bytes = (uint32_t)rest;
  }
  const char *from = (const char *)record - back + told, *end = room ? memchr(from, 0, room) : NULL;
  size_t length = end ? (size_t)(end - from) : 0;
  if (!end)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL,
                "the code of a task does not tell what its parameters are: it was built by an older version"),
           NULL;
  char *asids = calloc(1, length + 1);
  if (!asids) return fail(AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "no host memory for a job"), NULL;
  return memcpy(asids, from, length);
}

/* Translates a word; `asid` is a digit, 'd' for ASID 0, or '-' for what is no address. */
static bool translate(struct launch *launch, char asid, uint32_t *word) {
  if (asid == '-') return true;
  uint32_t number = asid == 'd' ? 0 : (uint32_t)(asid - '0');
  if (number >= ASIDS)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "a parameter is in ASID '%c', which there is not", asid), false;
  uint64_t address = launch->asids[number] + *word;
  struct buffer *buffer = find(launch, address, 1);
  if (!buffer) return false;
  buffer->written |= number == 0;
  *word = device_address(buffer, address);
  return true;
}

/* Translates the word of descriptors at a driver's address. */
static bool take_descriptor(struct launch *launch, uint64_t address, char asid) {
  if (launch->descriptor_count == MOST_DESCRIPTORS)
    return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the descriptors of a job have more than %u addresses",
                MOST_DESCRIPTORS),
           false;
  struct buffer *buffer = find(launch, address, 4);
  if (!buffer || !grow((void **)&launch->descriptors, &launch->descriptor_room, launch->descriptor_count, 1,
                       sizeof *launch->descriptors))
    return false;
  uint32_t at = device_address(buffer, address), given = get32(launch->sim->device.memory, at), word = given;
  if (!translate(launch, asid, &word)) return false;
  put32(launch->sim->device.memory, at, word);
  launch->descriptors[launch->descriptor_count++] =
      (struct word){.at = at, .given = given, .replaced = word, .asid = launch->asids[asid - '0']};
  return true;
}

/* Translates the words of descriptors behind an address of ASID 0, as they are told: by distances and ASIDs. */
static bool take_descriptors(struct launch *launch, uint32_t start, const char *told) {
  uint64_t first = launch->asids[0] + start;
  for (uint32_t i = 0; i < launch->followed_count; i++)
    if (launch->followed[i] == first) return true; /* of a launch on another core */
  if (!grow((void **)&launch->followed, &launch->followed_room, launch->followed_count, 1, sizeof *launch->followed))
    return false;
  launch->followed[launch->followed_count++] = first;
  while (*told) {
    char *end;
    start += (uint32_t)strtoul(told, &end, 16);
    if (end == told || end[0] != ':' || end[1] < '0' || end[1] >= '0' + (int)ASIDS || (end[2] && end[2] != ','))
      return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the code of a task does not tell what its descriptors are"), false;
    if (!take_descriptor(launch, launch->asids[0] + start, end[1])) return false;
    told = end + (end[2] ? 3 : 2);
  }
  return true;
}

/* Translates `count` parameter words at `pp`, and the descriptors at one of them; `told` says what they are. */
static bool take_told(struct launch *launch, const char *told, uint32_t count, uint32_t pp) {
  uint32_t start = launch->word_count;
  struct buffer *block = count ? find(launch, launch->asids[0] + pp, count * 4ull) : NULL;
  if (count && !block) return false;
  if (!grow((void **)&launch->words, &launch->word_room, start, count, sizeof *launch->words)) return false;
  if (count)
    memcpy(launch->words + start, launch->sim->device.memory + device_address(block, launch->asids[0] + pp), count * 4);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t given = launch->words[start + i];
    if (!translate(launch, told[i], &launch->words[start + i])) return false;
    if (told[i] == 'd' && told[count] && !take_descriptors(launch, given, told + count + 1)) return false;
  }
  launch->word_count += count;
  return true;
}

/* Translates the parameters of a task block that starts at `spc`. */
static bool take_words(struct launch *launch, uint32_t spc, uint32_t pp) {
  if (launch->has_last && launch->last_spc == spc && launch->last_pp == pp) return true;
  uint64_t address = launch->asids[0] + spc;
  struct buffer *text = find(launch, address, RECORD_BYTES);
  char *told = text ? record_asids(launch, text, device_address(text, address)) : NULL;
  uint32_t start = launch->word_count;
  bool taken = told && take_told(launch, told, (uint32_t)strcspn(told, "+"), pp);
  free(told);
  launch->last_spc = spc;
  launch->last_pp = pp;
  launch->last_words = start * 4;
  return launch->has_last = taken;
}

/* Notes the code of a task, before anything is copied to the device. */
static bool note_code(struct launch *launch, const uint8_t *block) {
  uint32_t spc = get32(block, SPC);
  if (launch->has_last && launch->last_spc == spc) return true;
  launch->last_spc = spc;
  launch->has_last = true;
  return code_add(launch->sim, launch->asids[0] + spc);
}

static bool copy_task(struct launch *launch, const uint8_t *block) {
  uint32_t spc = get32(block, SPC);
  if (!take_words(launch, spc, get32(block, PP)) ||
      !grow((void **)&launch->blocks, &launch->block_room, launch->block_count, 1, BLOCK))
    return false;
  uint8_t *copy = launch->blocks + (size_t)launch->block_count++ * BLOCK;
  uint64_t entry = launch->asids[0] + spc;
  memcpy(copy, block, BLOCK);
  put32(copy, SPC, device_address(find(launch, entry, RECORD_BYTES), entry));
  put32(copy, PP, launch->last_words);
  return true;
}

static void take_asids(struct launch *launch, const uint8_t *block, uint32_t offset) {
  memcpy(launch->asids, block + offset, sizeof launch->asids);
  for (uint32_t i = 0; i < ASIDS; i++) launch->asids[i] = FULL_BASE(launch->asids[i]);
  launch->has_last = false;
}

static void take_grid(struct launch *launch, const uint8_t *block) {
  launch->done->has_grid = true;
  memcpy(&launch->done->grid, block + GRID_ID, sizeof launch->done->grid);
}

/* What the blocks of a family are, by type. On X2 a grid's block has the ASIDs, too. */
static bool take_x2(struct launch *launch, const uint8_t *block) {
  switch (TYPE(get32(block, FLAG))) {
    case 0:
      return take_asids(launch, block, X2_ASID), take_grid(launch, block), true;
    case 1:
      return launch->take_task(launch, block);
    default:
      return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "a block of the chain has the unknown type %u",
                  TYPE(get32(block, FLAG))),
             false;
  }
}

static bool take_x3(struct launch *launch, const uint8_t *block) {
  switch (TYPE(get32(block, FLAG))) {
    case 0:
      return take_grid(launch, block), true;
    case 1:
      return take_asids(launch, block, X3_ASID), true;
    case 2:
      return launch->take_task(launch, block);
    default:
      return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "a block of the chain has the unknown type %u",
                  TYPE(get32(block, FLAG))),
             false;
  }
}

/* Goes through a grid, with what is to be done with its tasks. */
static bool take_blocks(struct launch *launch, const struct chain_copy *chain, uint32_t first, uint32_t end,
                        bool (*take_task)(struct launch *, const uint8_t *)) {
  launch->take_task = take_task;
  launch->has_last = false;
  bool taken = true;
  for (uint32_t i = first; taken && i < end; i++)
    taken = (launch->sim->x3 ? take_x3 : take_x2)(launch, chain->blocks + (size_t)i * BLOCK);
  return taken;
}

/* Puts the task blocks and their parameters on the device; returns where. */
static uint32_t place(struct launch *launch) {
  uint32_t block_bytes = launch->block_count * BLOCK, word_bytes = launch->word_count * 4;
  struct device *device = &launch->sim->device;
  uint32_t head = device_reserve(device, (uint64_t)block_bytes + word_bytes);
  for (uint32_t i = 0; head && i < launch->block_count; i++) {
    uint8_t *block = launch->blocks + (size_t)i * BLOCK;
    put32(block, PP, head + block_bytes + get32(block, PP));
    put32(block, NEXT, i + 1 < launch->block_count ? head + (i + 1) * BLOCK : 0);
  }
  if (head && block_bytes) memcpy(device->memory + head, launch->blocks, block_bytes);
  if (head && word_bytes) memcpy(device->memory + head + block_bytes, launch->words, word_bytes);
  return head;
}

/* What the driver has in the place of a word of descriptors: a kernel may have written another address. */
static uint32_t given_word(const struct launch *launch, const struct word *word) {
  uint32_t now = get32(launch->sim->device.memory, word->at);
  for (uint32_t i = 0; now != word->replaced && i < launch->buffer_count; i++) {
    const struct buffer *buffer = &launch->buffers[i];
    if (now - buffer->start < buffer->size) return (uint32_t)(buffer->base + (now - buffer->start) - word->asid);
  }
  return now == word->replaced ? word->given : now;
}

static aipu_status_t copy_back(const struct launch *launch) {
  for (uint32_t i = launch->descriptor_count; i-- > 0;)
    put32(launch->sim->device.memory, launch->descriptors[i].at, given_word(launch, &launch->descriptors[i]));
  const mem_interface_t *memory = &launch->sim->memory;
  for (uint32_t i = 0; i < launch->buffer_count; i++) {
    const struct buffer *buffer = &launch->buffers[i];
    const void *data = launch->sim->device.memory + buffer->start;
    if (buffer->written && memory->write(buffer->base, data, buffer->size, memory->cxt) < 0)
      return fail(AIPU_STATUS_ERROR_DEV_ABNORMAL, "the driver cannot write %llu bytes at %#llx",
                  (unsigned long long)buffer->size, (unsigned long long)buffer->base);
  }
  return AIPU_STATUS_SUCCESS;
}

static aipu_status_t run(struct launch *launch, bool record) {
  struct sim_aipu *sim = launch->sim;
  if (!launch->block_count) return fail(AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the chain has no tasks");
  uint32_t head = place(launch);
  if (!head) return AIPU_STATUS_ERROR_BUF_ALLOC_FAIL;
  const struct chain chain = {.head = head,
                              .count = launch->block_count,
                              .x3 = sim->x3,
                              .record = record,
                              .limit = sim->limit,
                              .shape = sim->shape};
  aipu_status_t status = device_run(&sim->device, &chain, &launch->done->report);
  device_release(&sim->device, head);
  if (status == AIPU_STATUS_SUCCESS) return copy_back(launch);
  return fail_in_kernel(status, &launch->done->report, sim->device.memory + launch->text, launch->text_bytes);
}

void job_run(struct sim_aipu *sim, const struct chain_copy *chain, uint32_t first, uint32_t end, bool record,
             struct done *done) {
  *done = (struct done){.status = AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL};
  struct launch launch = {.sim = sim, .done = done};
  code_begin(sim);
  if (take_blocks(&launch, chain, first, end, note_code) && code_admit(sim) &&
      take_blocks(&launch, chain, first, end, copy_task))
    done->status = run(&launch, record);
  for (uint32_t i = 0; i < launch.buffer_count; i++) device_release(&sim->device, launch.buffers[i].memory);
  free(launch.buffers);
  free(launch.blocks);
  free(launch.words);
  free(launch.descriptors);
  free(launch.followed);
}
