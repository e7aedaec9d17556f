#include "aiff.h"

enum { HEADER_WORDS = 8, MORE = 0x18, LAST = 0x81, ADVANCE_PARAMETERS = 1 << 16, MOST_EXECUTIONS = 1 << 16 };
enum header { KIND = 0, NEXT_ADDRESS = 1, LENGTH = 3, REPEAT = 4 };

uint8_t *aiff_reach(const struct aiff_memory *memory, uint64_t address, uint64_t size) {
  for (uint64_t i = 0; i < memory->count; i++) {
    const struct aiff_range *range = &memory->ranges[i];
    if (address >= range->address && address - range->address <= range->size &&
        size <= range->size - (address - range->address))
      return range->host + (address - range->address);
  }
  return NULL;
}

bool aiff_refuse(struct aiff_plan *plan, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(plan->message, plan->message_size, format, arguments);
  va_end(arguments);
  return false;
}

bool aiff_assume(struct aiff_plan *plan, uint32_t assumption) {
  if (!(plan->assumed >> assumption & 1)) return false;
  plan->used |= 1u << assumption;
  return true;
}

/* Copies the words of a descriptor, which may be anywhere. */
static bool read_words(struct aiff_node *node, const char *what, uint64_t address, uint32_t *words, uint32_t count) {
  const uint8_t *from = address % 4 ? NULL : aiff_reach(&node->plan->memory, address, 4ull * count);
  if (!from)
    return aiff_refuse(node->plan, "AIFF node %u: its %s descriptor, %u words at %#llx, does not lie in memory of the job",
                       node->number, what, count, (unsigned long long)address);
  memcpy(words, from, 4ull * count);
  return true;
}

/* --------------------------------------------------------------------------------------------------------------- areas */

static uint32_t surfaces_of(const struct aiff_image *image) {
  uint32_t each = AIFF_SURFACE / image->item;
  return (image->channels + each - 1) / each;
}

static struct aiff_area area_of(const struct aiff_image *image, const char *name, bool writes) {
  if (image->is_nhwc)
    return (struct aiff_area){image->address, image->line, image->surface, (uint64_t)image->channels * image->item,
                              image->width, image->height, writes, name};
  return (struct aiff_area){image->address, image->line, image->surface, (uint64_t)image->width * AIFF_SURFACE,
                            image->height, surfaces_of(image), writes, name};
}

static struct aiff_area piece(uint64_t address, uint64_t bytes, const char *name) {
  return (struct aiff_area){address, bytes, 0, bytes, 1, 1, false, name};
}

enum { TABLE_BYTES = 257 * 2, MOST_AREAS = 12 };
static const char *const INPUT_NAMES[] = {"mtp[0].iact_addr", "mtp[1].iact_addr"};
static const char *const OUTPUT_NAMES[] = {"wrb.region0_oact_addr", "wrb.region1_oact_addr"};
static const char *const WEIGHT_NAMES[] = {"mtp[0].weight_addr", "mtp[1].weight_addr"};
static const char *const BIAS_NAMES[] = {"itp[0].m0_alu_mcfg", "itp[1].m0_alu_mcfg"};

static uint32_t areas_of(const struct aiff_execution *execution, struct aiff_area *areas) {
  uint32_t count = 0;
  if (execution->pools) {
    areas[count++] = area_of(&execution->pool.input, "ptp.iact_addr", false);
    areas[count++] = area_of(&execution->pool.output, OUTPUT_NAMES[1], true);
    return count;
  }
  for (uint32_t u = 0; u < 2; u++) {
    const struct aiff_stream *stream = &execution->streams[u];
    areas[count++] = area_of(&stream->input, INPUT_NAMES[u], false);
    areas[count++] = area_of(&stream->output, OUTPUT_NAMES[u], true);
    if (stream->kind == INPUT_CONVOLVED) areas[count++] = piece(stream->weights, stream->weight_bytes, WEIGHT_NAMES[u]);
    if (stream->has_m0) areas[count++] = piece(stream->biases, 2ull * stream->output.channels, BIAS_NAMES[u]);
    if (stream->has_table)
      areas[count++] = piece(stream->table, TABLE_BYTES, stream->table_shift == 8 ? "itp.lut_mcfg" : "itp.lut_mcfg0");
  }
  return count;
}

bool aiff_visit(const struct aiff_plan *plan, aiff_visitor *visit, void *context) {
  struct aiff_area areas[MOST_AREAS];
  for (uint32_t i = 0; i < plan->count; i++)
    for (uint32_t k = 0, count = areas_of(&plan->executions[i], areas); k < count; k++)
      if (!visit(context, &areas[k])) return false;
  return true;
}

/* Whether no two rows of an area meet: then the work is bounded by the memory. */
static bool is_apart(const struct aiff_area *area) {
  struct {
    uint64_t count, stride;
  } near = {area->count, area->stride}, far = {area->times, area->step}, other = near;
  if (far.count > 1 && (near.count == 1 || far.stride < near.stride)) near = far, far = other;
  if (near.count > 1 && near.stride < area->width) return false;
  uint64_t size = near.count > 1 ? (near.count - 1) * near.stride + area->width : area->width;
  return far.count <= 1 || far.stride >= size;
}

/* Whether all memory of an execution is the job's, and what is read does not change while it is read. */
static bool check_memory(struct aiff_node *node, const struct aiff_execution *execution) {
  struct aiff_area areas[MOST_AREAS];
  uint32_t count = areas_of(execution, areas);
  for (uint32_t i = 0; i < count; i++)
    if (!aiff_reach(&node->plan->memory, areas[i].first, aiff_end(&areas[i]) - areas[i].first))
      return aiff_refuse(node->plan, "AIFF node %u: %s: it %s %#llx to %#llx, which does not lie in memory of the job",
                         node->number, areas[i].name, areas[i].writes ? "writes" : "reads",
                         (unsigned long long)areas[i].first, (unsigned long long)aiff_end(&areas[i]));
  for (uint32_t i = 0; i < count; i++)
    if (!is_apart(&areas[i]))
      return aiff_refuse(node->plan, "AIFF node %u: %s: the rows that it %s from %#llx on meet each other: not modelled",
                         node->number, areas[i].name, areas[i].writes ? "writes" : "reads", (unsigned long long)areas[i].first);
  for (uint32_t i = 0; i < count; i++)
    for (uint32_t k = 0; k < count; k++)
      if (areas[i].writes && !areas[k].writes && areas[i].first < aiff_end(&areas[k]) &&
          areas[k].first < aiff_end(&areas[i]))
        return aiff_refuse(node->plan, "AIFF node %u: %s: the output at %#llx meets what %s reads at %#llx: which comes "
                           "first is not known", node->number, areas[i].name, (unsigned long long)areas[i].first,
                           areas[k].name, (unsigned long long)areas[k].first);
  return true;
}

/* ---------------------------------------------------------------------------------------------------------------- walk */

static bool append(struct aiff_node *node) {
  struct aiff_plan *plan = node->plan;
  if (plan->count == MOST_EXECUTIONS)
    return aiff_refuse(plan, "AIFF node %u: the chain runs more than %u times", node->number, MOST_EXECUTIONS);
  if (plan->count == plan->room) {
    uint32_t room = plan->room ? 2 * plan->room : 4;
    struct aiff_execution *more = regrow(plan->executions, plan->count * sizeof *more, room * sizeof *more);
    if (!more) return aiff_refuse(plan, "there is no memory for a chain of %u AIFF nodes", room);
    plan->executions = more;
    plan->room = room;
  }
  struct aiff_execution *execution = &plan->executions[plan->count];
  memset(execution, 0, sizeof *execution);
  if (!aiff_decode(node, execution) || !check_memory(node, execution)) return false;
  plan->count++;
  return true;
}

/* The header of a control descriptor, and the registers behind it. */
static bool read_control(struct aiff_node *node, uint64_t control, uint32_t *header) {
  struct aiff_plan *plan = node->plan;
  if (!read_words(node, "control", control, header, HEADER_WORDS)) return false;
  if (header[KIND] != MORE && header[KIND] != LAST)
    return aiff_refuse(plan, "AIFF node %u: there is no control descriptor at %#llx: its first word is %#x", node->number,
                       (unsigned long long)control, header[KIND]);
  uint32_t length = header[LENGTH];
  const uint8_t *words = length ? aiff_reach(&plan->memory, control, (uint64_t)length * AIFF_BLOCK) : NULL;
  if (!words)
    return aiff_refuse(plan, "AIFF node %u: the length of its control descriptor is %u blocks", node->number, length);
  if (header[KIND] == MORE && header[NEXT_ADDRESS] && header[NEXT_ADDRESS] != control + (uint64_t)length * AIFF_BLOCK)
    return aiff_refuse(plan, "AIFF node %u: the next control descriptor is said to lie at %#x, not behind this one: not "
                       "modelled", node->number, header[NEXT_ADDRESS]);
  if (header[REPEAT] && (header[REPEAT] >> 17 || !aiff_assume(plan, ASSUME_REPEAT)))
    return aiff_refuse(plan, "AIFF node %u: word 4 of its control descriptor is %#x: repetitions are not modelled; "
                       "COMPASS_AIFF_ASSUME=repeat takes them on trust", node->number, header[REPEAT]);
  for (uint32_t i = REPEAT + 1; i < HEADER_WORDS; i++)
    if (header[i])
      return aiff_refuse(plan, "AIFF node %u: word %u of its control descriptor is %#x, not 0: not modelled", node->number,
                         i, header[i]);
  return aiff_read_registers(node, (const uint32_t *)(words + AIFF_BLOCK), (length - 1) * (AIFF_BLOCK / 4));
}

static bool walk(struct aiff_node *node, uint64_t control, uint64_t parameters, uint64_t activations) {
  const struct aiff_generation *generation = node->generation;
  uint32_t header[HEADER_WORDS];
  do {
    if (!read_control(node, control, header)) return false;
    for (uint32_t repetition = 0; repetition <= (header[REPEAT] & 0xffff); repetition++) {
      if (repetition && header[REPEAT] & ADVANCE_PARAMETERS) parameters += 4ull * generation->parameter_words;
      if (!read_words(node, "parameter", parameters, node->parameters, generation->parameter_words) ||
          !read_words(node, "activation", activations, node->activations, generation->activation_words) || !append(node))
        return false;
      activations += 4ull * generation->activation_words;
    }
    parameters += 4ull * generation->parameter_words;
    control += (uint64_t)header[LENGTH] * AIFF_BLOCK;
    node->number++;
  } while (header[KIND] == MORE);
  return true;
}

bool aiff_prepare(struct aiff_plan *plan, uint32_t generation, uint32_t control, uint32_t parameters,
                  uint32_t activations) {
  struct aiff_node *node = malloc(sizeof *node);
  plan->executions = NULL;
  plan->count = plan->room = plan->used = 0;
  if (!node) return aiff_refuse(plan, "there is no memory to read AIFF descriptors");
  *node = (struct aiff_node){.generation = aiff_generation_of(generation), .plan = plan};
  bool done = walk(node, control, parameters, activations);
  free(node);
  return done;
}

void aiff_release(struct aiff_plan *plan) {
  free(plan->executions);
  plan->executions = NULL;
}
