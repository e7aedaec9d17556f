#include "aiff.h"
#include "aiff_tables.h"

static uint32_t field_of(uint32_t word, uint32_t low, uint32_t bits) {
  return (uint32_t)((uint64_t)word >> low & ((1ull << bits) - 1));
}

static uint32_t word_at(const struct aiff_node *node, enum aiff_field_name name, uint32_t unit) {
  const struct aiff_place *place = &node->generation->places[name];
  return node->registers[place->address + unit * place->stride];
}

static uint32_t value(const struct aiff_node *node, enum aiff_field_name name, uint32_t unit) {
  const struct aiff_place *place = &node->generation->places[name];
  return field_of(word_at(node, name, unit), place->low, place->bits);
}

/* A stride in bytes: the register without the bits below and above the field. */
static uint32_t stride(const struct aiff_node *node, enum aiff_field_name name, uint32_t unit) {
  return value(node, name, unit) << node->generation->places[name].low;
}

static uint32_t address(const struct aiff_node *node, enum aiff_word_name name, uint32_t unit) {
  const struct aiff_word *word = &node->generation->words[name];
  return (word->of_parameters ? node->parameters : node->activations)[word->word + unit * word->step];
}

bool aiff_read_registers(struct aiff_node *node, const uint32_t *words, uint32_t count) {
  static const uint32_t KNOWN = 1;
  uint8_t known[AIFF_ADDRESSES] = {0};
  const struct aiff_generation *generation = node->generation;
  for (uint64_t i = 0; i < generation->register_count; i++) {
    node->registers[generation->registers[i].address] = generation->registers[i].standard;
    known[generation->registers[i].address] = KNOWN;
  }
  for (uint32_t at = 0; at < count;) {
    uint32_t first = words[at] & 0x7ff, amount = words[at] >> 16 & 0x3f;
    if (words[at] & ~0x3f07ffu || at + 1 + amount > count)
      return aiff_refuse(node->plan, "AIFF node %u: word %u of its control descriptor is no item: %#x", node->number,
                         at + 8, words[at]);
    for (uint32_t i = 0; i < amount; i++) {
      if (first + i >= AIFF_ADDRESSES || !known[first + i])
        return aiff_refuse(node->plan, "AIFF node %u: there is no register at %#x", node->number, first + i);
      node->registers[first + i] = words[at + 1 + i];
    }
    at += (amount + 8) / 8 * 8;
  }
  return true;
}

/* ------------------------------------------------------------------------------------------------------------- rules */

/* The name of a field of a sub-unit: `mtp[1].ctrl.op_mode` for `mtp[].ctrl.op_mode`. */
static void path_of(const char *name, uint32_t unit, char *text, size_t size) {
  size_t head = 0;
  while (name[head] && name[head] != '[') head++;
  if (name[head])
    snprintf(text, size, "%.*s[%u%s", (int)head, name, unit, name + head + 1);
  else
    snprintf(text, size, "%s", name);
}

static bool is_in(uint32_t values, uint32_t value) { return value < 32 && values >> value & 1; }

/* The assumption that allows a value; NULL where none does. */
static const struct aiff_trust *trust_of(const struct aiff_rule *rule, uint32_t value) {
  for (int i = 0; i < 2; i++)
    if (is_in(rule->assumed[i].values, value)) return &rule->assumed[i];
  return NULL;
}

static bool refuse_field(const struct aiff_node *node, const struct aiff_rule *rule, uint32_t unit, uint32_t found) {
  char path[96], help[120] = "";
  const struct aiff_trust *trust = trust_of(rule, found);
  path_of(rule->name, unit, path, sizeof path);
  if (trust) snprintf(help, sizeof help, "; COMPASS_AIFF_ASSUME=%s takes it on trust", aiff_assumptions[trust->assumption]);
  return aiff_refuse(node->plan, "AIFF node %u: %s = %u is not modelled%s", node->number, path, found, help);
}

/* Whether all fields of a group have values that the model knows. */
static bool follows(struct aiff_node *node, enum aiff_group_name name, uint32_t unit) {
  const struct aiff_group *group = &node->generation->groups[name];
  for (uint32_t i = 0; i < group->count; i++) {
    const struct aiff_rule *rule = &node->generation->rules[group->first + i];
    uint32_t found = field_of(node->registers[rule->address + unit * group->stride], rule->low, rule->bits);
    if (is_in(rule->values, found) || (rule->or_default && found == rule->standard)) continue;
    const struct aiff_trust *trust = trust_of(rule, found);
    if (!trust || !aiff_assume(node->plan, trust->assumption)) return refuse_field(node, rule, unit, found);
  }
  return true;
}

#define REFUSE(...) aiff_refuse(node->plan, "AIFF node %u: " __VA_ARGS__)

/* ------------------------------------------------------------------------------------------------------------ images */

/* Whether channels fill the surfaces they lie in, or may not. */
static bool fills_surfaces(struct aiff_node *node, const char *what, const struct aiff_image *image) {
  if (image->is_nhwc || image->channels % (AIFF_SURFACE / image->item) == 0) return true;
  if (aiff_assume(node->plan, ASSUME_PARTIAL_CHANNELS)) return true;
  return REFUSE("%s = %u is not modelled: channels fill surfaces of %u; COMPASS_AIFF_ASSUME=%s takes it on trust",
                node->number, what, image->channels, AIFF_SURFACE / image->item,
                aiff_assumptions[ASSUME_PARTIAL_CHANNELS]);
}

static bool is_empty(const struct aiff_image *image) { return !image->width || !image->height || !image->channels; }

/* Where a region is written, and how its elements lie there. */
static bool decode_output(struct aiff_node *node, uint32_t region, struct aiff_image *output) {
  bool nhwc = value(node, WRB_NHWC, 0), bypass = value(node, WRB_BYPASS, 0) >> region & 1;
  if (nhwc == bypass)
    return REFUSE("wrb.mode_ctrl.region_bypass = %u is not modelled with fmt_trans = %u", node->number,
                  value(node, WRB_BYPASS, 0), nhwc);
  if (!follows(node, region ? GROUP_WRB_REGION1 : GROUP_WRB_REGION0, 0)) return false;
  output->is_nhwc = nhwc;
  output->address = address(node, region ? OUTPUT_1 : OUTPUT_0, 0);
  output->line = stride(node, region ? WRB_LINE_STRIDE_1 : WRB_LINE_STRIDE_0, 0);
  output->surface = stride(node, region ? WRB_SURFACE_STRIDE_1 : WRB_SURFACE_STRIDE_0, 0);
  return true;
}

/* -------------------------------------------------------------------------------------------------------------- units */

static bool decode_pool(struct aiff_node *node, struct aiff_pool *pool) {
  if (!node->generation->groups[GROUP_PTP_POOL].known)
    return REFUSE("ptp.mode.mode = %u is not modelled for this generation", node->number, value(node, PTP_MODE, 0));
  if (!follows(node, GROUP_TWIN_PTP, 0) || !follows(node, GROUP_PTP_POOL, 0) || !follows(node, GROUP_ITP_OFF, 0))
    return false;
  if (value(node, WRB_REGIONS, 0) != 2)
    return REFUSE("wrb.mode_ctrl.region_en = %u is not modelled: the PTP writes region 1", node->number,
                  value(node, WRB_REGIONS, 0));
  uint32_t format = value(node, PTP_FORMAT, 0), item = format & 1 ? 2 : 1;
  *pool = (struct aiff_pool){
      .input = {.address = address(node, PTP_INPUT, 0), .line = stride(node, PTP_ROW_STRIDE, 0),
                .surface = stride(node, PTP_SURFACE_STRIDE, 0), .width = value(node, PTP_WIDTH, 0),
                .height = value(node, PTP_HEIGHT, 0), .channels = value(node, PTP_CHANNELS, 0), .item = item},
      .output = {.width = value(node, PTP_OUT_WIDTH, 0), .height = value(node, PTP_OUT_HEIGHT, 0),
                 .channels = value(node, PTP_OUT_CHANNELS, 0), .item = item},
      .kernel_w = value(node, PTP_KERNEL_W, 0), .kernel_h = value(node, PTP_KERNEL_H, 0),
      .stride_w = value(node, PTP_STRIDE_W, 0), .stride_h = value(node, PTP_STRIDE_H, 0),
      .is_signed = format & 4,
  };
  if (!decode_output(node, 1, &pool->output)) return false;
  const struct aiff_image *in = &pool->input, *out = &pool->output;
  if (!pool->kernel_w || !pool->kernel_h || !pool->stride_w || !pool->stride_h)
    return REFUSE("ptp.kernel: a window of %ux%u in steps of %ux%u is not modelled", node->number, pool->kernel_w,
                  pool->kernel_h, pool->stride_w, pool->stride_h);
  if (is_empty(in) || in->width < pool->kernel_w || in->height < pool->kernel_h ||
      out->width != (in->width - pool->kernel_w) / pool->stride_w + 1 ||
      out->height != (in->height - pool->kernel_h) / pool->stride_h + 1)
    return REFUSE("ptp.act_w_ctrl, act_h_ctrl: %ux%u from %ux%u is not modelled: all windows lie in the input",
                  node->number, out->width, out->height, in->width, in->height);
  if (out->channels != in->channels)
    return REFUSE("ptp.act_c_ctrl.oact_chan = %u is not modelled with iact_chan = %u", node->number, out->channels,
                  in->channels);
  return fills_surfaces(node, "ptp.act_c_ctrl.iact_chan", in);
}

static bool decode_mtp(struct aiff_node *node, struct aiff_stream *stream) {
  uint32_t u = stream->unit, mode = value(node, MTP_MODE, u), twin = value(node, TWIN_MODE, 0);
  enum aiff_group_name group = mode == 2 ? GROUP_MTP_PASS : GROUP_MTP_CONVOLUTION;
  if ((mode != 0 && mode != 2) || !node->generation->groups[group].known)
    return REFUSE("mtp[%u].ctrl.op_mode = %u is not modelled%s", node->number, u, mode,
                  mode ? "" : " for this generation");
  if (!follows(node, group, u)) return false;
  if (value(node, MTP_REGION, u) != u)
    return REFUSE("mtp[%u].ctrl.w_region_id = %u is not modelled", node->number, u, value(node, MTP_REGION, u));
  stream->kind = mode == 2 ? INPUT_PASSES : INPUT_CONVOLVED;
  if (twin != (stream->kind == INPUT_PASSES ? 0u : 2u))
    return REFUSE("mtp.twin_ctrl.twin_op_mode = %u is not modelled with mtp[%u].ctrl.op_mode = %u", node->number, twin,
                  u, mode);
  stream->input = (struct aiff_image){.address = address(node, MTP_INPUT, u), .line = stride(node, MTP_ROW_STRIDE, u),
      .surface = stride(node, MTP_SURFACE_STRIDE, u), .width = value(node, MTP_WIDTH, u),
      .height = value(node, MTP_HEIGHT, u), .channels = value(node, MTP_CHANNELS, u), .item = 1};
  stream->output = (struct aiff_image){.width = value(node, MTP_OUT_WIDTH, u),
      .height = value(node, MTP_OUT_HEIGHT, u), .channels = value(node, MTP_OUT_CHANNELS, u), .item = 1};
  const struct aiff_image *in = &stream->input, *out = &stream->output;
  if (is_empty(in) || in->width != out->width || in->height != out->height || out->channels == 0 ||
      (stream->kind == INPUT_PASSES && out->channels != in->channels))
    return REFUSE("mtp[%u].act_*_ctrl: %ux%ux%u from %ux%ux%u is not modelled", node->number, u, out->height, out->width,
                  out->channels, in->height, in->width, in->channels);
  if (stream->kind == INPUT_PASSES) return fills_surfaces(node, u ? "mtp[1].act_c_ctrl.iact_chan" : "mtp[0].act_c_ctrl.iact_chan", in);
  if (in->channels % AIFF_SURFACE)
    return REFUSE("mtp[%u].act_c_ctrl.iact_chan = %u is not modelled: channels come in groups of 32", node->number, u,
                  in->channels);
  stream->weights = address(node, WEIGHTS, u);
  stream->weight_bytes = (uint64_t)value(node, MTP_WEIGHT_UNITS, u) * AIFF_BLOCK;
  stream->format = value(node, MTP_FORMAT, u);
  return true;
}

/* The first stage after the MTP. */
static bool decode_m0(struct aiff_node *node, struct aiff_stream *stream) {
  uint32_t u = stream->unit;
  stream->has_m0 = !value(node, M0_BYPASS, u);
  if (!stream->has_m0) return true;
  if (!follows(node, GROUP_ITP_M0, u)) return false;
  stream->biases = address(node, BIASES, u);
  stream->m0_factor = value(node, M0_FACTOR, u);
  stream->m0_shift = value(node, M0_SHIFT, u);
  stream->has_relu = !value(node, M0_RELU_BYPASS, u);
  if (stream->m0_factor >> 15)
    return REFUSE("itp[%u].m0_mul_pcfg.mul_pval = %lld is not modelled: whether such a factor has a sign is not known",
                  node->number, u, (long long)stream->m0_factor);
  if (stream->m0_shift < 1 || stream->m0_shift > 31)
    return REFUSE("itp[%u].m0_ccfg.mul_trsh = %u is not modelled", node->number, u, stream->m0_shift);
  return true;
}

static bool decode_table(struct aiff_node *node, struct aiff_stream *stream) {
  uint32_t u = stream->unit;
  stream->has_table = !value(node, LUT_BYPASS, u);
  if (!stream->has_table) return true;
  if (!follows(node, GROUP_ITP_LUT, u)) return false;
  bool is_x2 = node->generation->places[LUT_GLOBAL].bits;
  if (is_x2 && !value(node, LUT_GLOBAL, 0))
    return REFUSE("itp.mode_ccfg.lut_glb_mode = 0 is not modelled with a table", node->number);
  if (!value(node, LUT_FETCHED_0, 0) || !value(node, LUT_FETCHED_1, 0))
    return REFUSE("itp.mode_ccfg.lut%u_ft_en = 0 is not modelled with a table", node->number,
                  value(node, LUT_FETCHED_0, 0) ? 1 : 0);
  stream->table = address(node, TABLE, 0);
  stream->table_shift = is_x2 ? 8 : 16;
  if (address(node, SECOND_TABLE, 0) != stream->table)
    return REFUSE("itp.lut_mcfg1 = %#x is not modelled: it differs from lut_mcfg0", node->number,
                  address(node, SECOND_TABLE, 0));
  return true;
}

static bool decode_itp(struct aiff_node *node, struct aiff_stream *stream) {
  uint32_t u = stream->unit;
  const struct aiff_image *out = &stream->output;
  if (!follows(node, GROUP_ITP, u) || !decode_m0(node, stream)) return false;
  if (!value(node, M1_BYPASS, u) && !follows(node, GROUP_ITP_M1, u)) return false;
  stream->has_e = !value(node, E_BYPASS, u);
  if (stream->has_e && !follows(node, GROUP_ITP_E, u)) return false;
  stream->e_factor = value(node, E_FACTOR, u);
  if (stream->has_e && stream->e_factor >> 31)
    return REFUSE("itp[%u].e_mul_pcfg.mul_pval = %lld is not modelled: whether such a factor has a sign is not known",
                  node->number, u, (long long)stream->e_factor);
  if (!decode_table(node, stream)) return false;
  if (value(node, ITP_HEIGHT, u) != out->height || value(node, ITP_WIDTH, u) != out->width ||
      value(node, ITP_CHANNELS, u) != out->channels)
    return REFUSE("itp[%u].act_ccfg0, act_ccfg1: %ux%ux%u is not modelled with %ux%ux%u of the MTP", node->number, u,
                  value(node, ITP_HEIGHT, u), value(node, ITP_WIDTH, u), value(node, ITP_CHANNELS, u), out->height,
                  out->width, out->channels);
  return true;
}

static bool same_input(const struct aiff_image *a, const struct aiff_image *b) {
  return a->address == b->address && a->line == b->line && a->surface == b->surface && a->width == b->width &&
         a->height == b->height && a->channels == b->channels;
}

static bool decode_streams(struct aiff_node *node, struct aiff_stream *streams) {
  if (!follows(node, GROUP_TWIN_MTP, 0) || !follows(node, GROUP_PTP_OFF, 0)) return false;
  if (value(node, WRB_REGIONS, 0) != 3)
    return REFUSE("wrb.mode_ctrl.region_en = %u is not modelled: both MTPs write", node->number,
                  value(node, WRB_REGIONS, 0));
  for (uint32_t u = 0; u < 2; u++) {
    streams[u] = (struct aiff_stream){.unit = u};
    if (!decode_mtp(node, &streams[u])) return false;
  }
  if (!follows(node, GROUP_ITP_SHARED, 0)) return false;
  for (uint32_t u = 0; u < 2; u++)
    if (!decode_itp(node, &streams[u]) || !decode_output(node, u, &streams[u].output) ||
        !fills_surfaces(node, u ? "itp[1].act_ccfg1.act_chan" : "itp[0].act_ccfg1.act_chan", &streams[u].output))
      return false;
  if (streams[0].kind != streams[1].kind || (streams[0].kind == INPUT_CONVOLVED && !same_input(&streams[0].input, &streams[1].input)))
    return REFUSE("mtp.twin_ctrl.twin_op_mode = %u is not modelled with inputs that differ", node->number,
                  value(node, TWIN_MODE, 0));
  return true;
}

bool aiff_decode(struct aiff_node *node, struct aiff_execution *execution) {
  bool off0 = value(node, TWIN_DISABLED_0, 0), off1 = value(node, TWIN_DISABLED_1, 0);
  execution->node = node->number;
  execution->pools = off0 && off1;
  if (off0 != off1)
    return REFUSE("mtp.twin_ctrl.mtp_%u_disen = 1 is not modelled: one MTP alone", node->number, off1 ? 1 : 0);
  if (!follows(node, GROUP_SYSTEM, 0) || !follows(node, GROUP_BUFFERS, 0) || !follows(node, GROUP_WRB, 0)) return false;
  return execution->pools ? decode_pool(node, &execution->pool) : decode_streams(node, execution->streams);
}

/* -------------------------------------------------------------------------------------------------------------- tables */

const struct aiff_generation *aiff_generation_of(uint32_t generation) { return &aiff_generations[generation]; }

void aiff_assumption_names(uint32_t bits, char *text, size_t size) {
  *text = 0;
  for (uint32_t i = 0; i < ASSUMPTIONS; i++) {
    size_t used = strlen(text);
    if (bits >> i & 1) snprintf(text + used, size - used, "%s%s", used ? ", " : "", aiff_assumptions[i]);
  }
}
