/* The DMA unit: what a transfer does, and what a descriptor can say. */
#ifndef ENGINE_DMA_H
#define ENGINE_DMA_H

#include "libc.h"

enum dma_mode { DMA_DIRECT = 0, DMA_TRANSPOSE = 1, DMA_UPSAMPLE = 2, DMA_MEMSET = 3 };

/* sim/include/compass/device.h has the same struct and says what the fields mean per mode. */
struct dma_request {
  uint32_t mode, dst, src, dst_base, src_base, width, size, count, src_stride, dst_stride, row_stride;
  uint32_t h_scale, w_scale, item;
  int32_t event;
};
#define EVENTS 4

/* Does what the request says; device addresses are host addresses, so a bad one faults in the TEC's thread. */
void transfer(const struct dma_request *request);

/* The most bytes of a row, and of a stride or a whole transfer, that one descriptor can say: all ones in binary. */
#define MOST_ROW 0xffffu
#define MOST_BYTES 0xffffffu

/* Whether one descriptor can say this direct transfer. */
static inline bool fits_descriptor(const struct dma_request *r) {
  return !(r->width & ~MOST_ROW) && !((r->src_stride | r->dst_stride | r->size) & ~MOST_BYTES);
}

/* Why it cannot, written to `message`. */
void exceeds_descriptor(const struct dma_request *request, char *message, size_t size);

#endif
