#include "text.h"

#include "check.h"

struct text_header {
  char magic[8];
  uint32_t entries, object_offset, object_size, features_size;
  char triple[40];
};
struct text_record {
  char magic[8];
  uint32_t back, reserved;
  char symbol[48];
};
#define MAX_TEXT (64u << 20)

struct object loaded_object;

/* The loaded `.text`: where it came from and a private copy, which nobody can change while it is checked and used. */
static uint64_t loaded_from;
static uint8_t *copy;
static size_t copy_size;
static bool checked_in_this_job;
static uint8_t *data_image; /* writable sections as loaded */
static struct place {
  uint32_t spc;
  kernel_entry *entry; /* NULL: this place is free */
} found[64]; /* the entries found last in this job: the tasks of a group have the same, and many groups of a chain */

static struct place *place_of(uint32_t spc) {
  return &found[spc / sizeof(struct text_record) % (sizeof found / sizeof *found)];
}

void text_begin_job(void) {
  checked_in_this_job = false;
  memset(found, 0, sizeof found);
}

static kernel_entry *refuse(char *message, const char *why, uint64_t address) {
  snprintf(message, MESSAGE_SIZE, "%s (device address %#llx)", why, (unsigned long long)address);
  return NULL;
}

static void forget(void) {
  memset(found, 0, sizeof found);
  object_unload(&loaded_object);
  free(copy);
  free(data_image);
  copy = data_image = NULL;
  copy_size = 0;
}

static void keep_data_image(void) {
  size_t size = loaded_object.data_high - loaded_object.data_low;
  if (size && (data_image = malloc(size))) memcpy(data_image, (void *)loaded_object.data_low, size);
}

/* Brings the text at `start` in: checks its header, and loads its object unless it is the loaded one, unchanged. */
static bool load(uint64_t start, char *message) {
  struct text_header header;
  if (!is_device_memory(start, sizeof header))
    return refuse(message, "the code of a task lies outside device memory", start), false;
  memcpy(&header, (void *)start, sizeof header);
  uint64_t size = (uint64_t)header.object_offset + header.object_size;
  if (memcmp(header.magic, "CPSHOST1", 8) != 0)
    return refuse(message, "the code of a task is not host code of this toolchain", start), false;
  if (header.object_offset < sizeof header || header.object_offset % 64 || size > MAX_TEXT ||
      !is_device_memory(start, size))
    return refuse(message, "the header of the host code is damaged", start), false;
  if (copy && loaded_from == start && copy_size == size && memcmp(copy, (void *)start, size) == 0) {
    if (data_image)
      memcpy((void *)loaded_object.data_low, data_image, loaded_object.data_high - loaded_object.data_low);
    return true;
  }
  forget();
  if (!(copy = malloc(size))) return refuse(message, "no memory for the host code", start), false;
  memcpy(copy, (void *)start, size);
  copy_size = size;
  loaded_from = start;
  if (!object_load(&loaded_object, copy + header.object_offset, header.object_size, message)) {
    forget();
    return false;
  }
  keep_data_image();
  if (check_on) check_object_loaded();
  return true;
}

static bool read_record(uint32_t spc, struct text_record *record) {
  memcpy(record, (void *)(uint64_t)spc, sizeof *record);
  return memcmp(record->magic, "CPSENTRY", 8) == 0 && record->back <= spc &&
         memchr(record->symbol, 0, sizeof record->symbol);
}

bool text_is_loaded(uint32_t spc) {
  struct text_record record;
  return checked_in_this_job && is_device_memory(spc, sizeof record) && read_record(spc, &record) &&
         spc - record.back == loaded_from;
}

kernel_entry *text_entry(uint32_t spc, char *message) {
  struct text_record record;
  struct place *place = place_of(spc);
  if (place->entry && spc == place->spc) return place->entry;
  if (!is_device_memory(spc, sizeof record)) return refuse(message, "a task starts outside device memory", spc);
  if (!read_record(spc, &record)) return refuse(message, "a task does not start at an entry record of host code", spc);
  uint64_t start = spc - record.back;
  if (!checked_in_this_job || start != loaded_from) {
    if (!load(start, message)) return NULL;
    checked_in_this_job = true;
  }
  uint64_t address = object_function(record.symbol);
  if (!address) {
    snprintf(message, MESSAGE_SIZE, "the object in '.text' defines no function '%s'", record.symbol);
    return NULL;
  }
  *place = (struct place){spc, (kernel_entry *)address};
  return place->entry;
}
