/* The DMA unit and the events of a TEC. */
#ifndef ENGINE_DMA_H
#define ENGINE_DMA_H

#include "tec.h"

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

/* Waits until no event of the TEC is pending. */
void finish_events(struct tec *tec);

void __compass_dma(const struct dma_request *request);
int *__compass_event_state(void);
int __compass_alloc_event(void);
void __compass_wait_events(int bits);
void __compass_free_events(int bits);

#endif
