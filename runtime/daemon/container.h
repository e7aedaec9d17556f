/* What a server needs to know of an aipu.bin besides what the driver says: the parameters of its kernel, and where the
 * sizes of its tensors stand. A build that leaves sizes open writes 0; a driver runs what has sizes. */
#ifndef DAEMON_CONTAINER_H
#define DAEMON_CONTAINER_H

#include "failure.h"
#include "json.h"

#define MOST_PARAMETERS 256u
#define ROOM                                                                                               \
  (64u << 10) /* bytes of memory behind a tensor whose size was left open: kernels may touch whole vectors \
               */

enum role { ROLE_INPUT, ROLE_OUTPUT, ROLE_CONSTANT, ROLE_DESCRIPTOR, ROLE_SCALAR };

struct element_type {
  const char *name;
  uint32_t size;
  char kind; /* b, i, u, f; g: bfloat16 */
};

struct parameter {
  char name[201];
  enum role role;
  uint32_t index; /* of inputs and outputs: the number by which the driver knows them */
  uint32_t word;  /* of a kernel's: where its word lies in the parameter blocks */
  const struct element_type *type;
  uint64_t nbytes;            /* of inputs and outputs as they were built; 0: open */
  size_t size_at, section_at; /* where the size stands in the file, and that of its section */
  size_t source;              /* of constants: where their content lies in the file */
};

struct container {
  uint8_t *data;
  uint32_t size;
  bool is_kernel; /* its parameters are those of a kernel, else inputs and then outputs */
  char kernel[201];
  struct parameter *parameters;
  uint32_t count;
};

const struct element_type *element_type(const char *name, size_t size);
/* Reads `size` bytes, which the container owns then; false with a failure, and they are still the caller's. */
bool container_read(struct container *container, uint8_t *data, uint32_t size, struct failure *failure);
void container_free(struct container *container);
/* A copy of the file in which the open tensors have these bytes, by parameter; NULL where there is no memory. */
uint8_t *container_sized(const struct container *container, const uint64_t *sizes);

#endif
