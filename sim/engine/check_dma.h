/* Transfers and events in a checked run. */
#ifndef ENGINE_CHECK_DMA_H
#define ENGINE_CHECK_DMA_H

#include "aiff.h"
#include "check_access.h"

/* What the functions of events.c do in a checked run, before their own work; `caller`: where they return to.
 * `check_dma` is false when the transfer must not be made. */
bool check_dma(struct tec *tec, const struct dma_request *request, const void *caller);
void check_alloc_event(struct tec *tec, int event, const void *caller);
void check_wait_events(struct tec *tec, uint32_t bits, bool frees, const void *caller);

/* Makes a transfer, with all that is to be recorded of it. */
void check_transfer(struct tec *tec, const struct dma_request *request);

/* The same of a start of the AIFF: before it, and as it runs. `event`: -1 when the kernel waits for it. */
bool check_aiff(struct tec *tec, const struct aiff_plan *plan, int event, const void *caller);
void check_aiff_runs(struct tec *tec, const struct aiff_plan *plan, int event);

/* Reports an access that meets a transfer of the same TEC which is still on its way. */
void dma_meets(struct tec *tec, const struct access *access);

void dma_begin_job(void);
void dma_end_job(void);
void dma_begin_task(struct tec *tec);
void dma_end_task(struct tec *tec);
void dma_at_barrier(struct tec *tec);

#endif
