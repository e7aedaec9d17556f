/* The events of a TEC and the transfers they stand for. A transfer with an event is done when the kernel waits for the
 * event, and not before: a kernel that forgets to wait sees old data every time. */
#ifndef ENGINE_EVENTS_H
#define ENGINE_EVENTS_H

#include "tec.h"

/* Does the transfers of the events in `bits` that are not done yet. */
void finish_events(struct tec *tec, uint32_t bits);
#define ALL_EVENTS ((1u << EVENTS) - 1)

/* Exported functions. */
void __compass_dma(const struct dma_request *request);
int __compass_looked_at(void);
int *__compass_event_state(void);
int __compass_alloc_event(void);
void __compass_wait_events(int bits);
void __compass_free_events(int bits);

#endif
