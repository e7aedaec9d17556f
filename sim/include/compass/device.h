/* The device around the vector unit: work items, barrier, events, DMA, AIFF, profiling. The engine does the work; its
 * exported functions begin with __compass_. */
#ifndef COMPASS_DEVICE_H
#define COMPASS_DEVICE_H

/* Work items: TEC index and number of TECs. They do not change while a kernel runs. */
int __compass_local_id(void) __attribute__((const));
int __compass_local_size(void) __attribute__((const));
int __compass_group_id(void) __attribute__((const));
__COMPASS_FN int get_local_id(uint dimension) { return dimension == 0 ? __compass_local_id() : 0; }
__COMPASS_FN int get_local_size(uint dimension) { return dimension == 0 ? __compass_local_size() : 1; }
__COMPASS_FN int get_group_id(uint dimension) { return dimension == 0 ? __compass_group_id() : 0; }

/* Compilers may not keep __local values in registers across these. */
#define __COMPASS_MEMORY_FENCE() __asm__ __volatile__("" : : : "memory")

#define CLK_LOCAL_MEM_FENCE 1
#define CLK_GLOBAL_MEM_FENCE 2
void __compass_barrier(void);
__COMPASS_FN void barrier(uint fence) {
  __COMPASS_MEMORY_FENCE();
  __compass_barrier();
  __COMPASS_MEMORY_FENCE();
}
/* The barrier at the end of a kernel; the cc stage puts it in the place of `barrier`. */
void __compass_last_barrier(void);

/* Events 0..3 of the TEC. */
int *__compass_event_state(void);
int __compass_alloc_event(void);
void __compass_wait_events(int bits);
void __compass_free_events(int bits);
__COMPASS_FN int *addr_of_event_state(void) { return __compass_event_state(); }
__COMPASS_FN int alloc_event(void) { return __compass_alloc_event(); }
__COMPASS_FN void wait_events(int bits) {
  __compass_wait_events(bits);
  __COMPASS_MEMORY_FENCE();
}
__COMPASS_FN void free_events(int bits) {
  __compass_free_events(bits);
  __COMPASS_MEMORY_FENCE();
}

enum ASID { REGION0 = 0, REGION1 = 1 };
enum DMADirection { kInt2Ext = 0, kExt2Int = 1 };
enum DmaMode { kDirect = 0, kTranspose = 1, kUpsample = 2, kMemset = 3 };
enum DmaDataUnit { kUseless = 0, kByte = 0, kHalf = 1, kWord = 2 };
enum DmaAddrBase { kGlobal = 0, kGlobal1 = 1, kGlobal2 = 2, kGlobal3 = 3, kLsram = 4, kShared = 8 };

#ifdef __AIPUX2__
#define WFE_MODE_IN_ASYNC_DMA 1
#else
#define WFE_MODE_IN_ASYNC_DMA 3
#endif
#define DMA_BUFFER 32u
#define DMA_BURST_BUFFER 512u
#define DMA_MAX_ALIGNED_WIDTH 0xFE00u
#define DMA_MAX_WIDTH 0xFFFFu
#define DMA_MAX_STRIDE 0xFFFFFFu
#define DMA_MAX_TRANS_SIZE 0xFFFFFFu
#define DMA_MAX_TRANS_NUM 0xFFu
#define DMA_MAX_GAP 0xFFFFFFu
#define DMA_GET_BEST_WIDTH(size) \
  ((size) < 32 ? (size) : ((size) < 512 ? 32 : ((size) < 0xFE00 ? (size) & 0xFFFFFE00 : 0xFE00)))

/* One request to the DMA unit. sim/engine/dma.h has the same struct; sizes are bytes unless noted.
 *   kDirect     rows of `width` bytes, `size` bytes in all, strides between rows
 *   kUpsample   `count` pixels of `width` bytes, each repeated `w_scale` times in each of `h_scale` rows; the strides
 *               are those of pixels, `row_stride` that of destination rows
 *   kTranspose  `count` rows of `width` elements of `item` bytes; strides in elements
 *   kMemset     `size` bytes filled with the `item` low bytes of `src`
 */
struct __compass_dma_request {
  uint mode, dst, src, dst_base, src_base, width, size, count, src_stride, dst_stride, row_stride;
  uint h_scale, w_scale, item;
  int event; /* event to trigger, or -1: return after completion */
};
void __compass_dma(const struct __compass_dma_request *request);
__COMPASS_FN void __compass_start_dma(struct __compass_dma_request request) {
  __COMPASS_MEMORY_FENCE();
  __compass_dma(&request);
  __COMPASS_MEMORY_FENCE();
}

/* The text instantiates one function per pair of memories; the last words absorb the `;` after the macro. */
#define __COMPASS_DMA_COPY(prefix, S, D, more, EVENT)                                                                 \
  __COMPASS_FN void prefix##_##S##_to_##D(int dst, int src, uint width, uint src_stride, uint size,                   \
                                          uint dst_stride more) {                                                     \
    __compass_start_dma((struct __compass_dma_request){.mode = kDirect, .dst = (uint)dst, .src = (uint)src,           \
        .dst_base = D, .src_base = S, .width = width, .size = size, .src_stride = src_stride,                         \
        .dst_stride = dst_stride, .event = EVENT});                                                                   \
  }                                                                                                                   \
  struct __compass_dma_request
#define __COMPASS_EVENT_PARAMETER , int event
/* A copy in one piece that is only read, by the pointer `copy`, whose source stays: unless somebody looks at transfers or
 * pointers, that points to the source instead. */
#if defined(__OPTIMIZE__) && !defined(__COMPASS_CHECK) && !defined(__COMPASS_CHECK_VALUES)
int __compass_looked_at(void);
#define __compass_only_read(copy) ((void **)&(copy))
#define __COMPASS_DMA_VIEW(S, D)                                                                                      \
  __COMPASS_FN void DmaDirect_##S##_to_##D(void **copy, int src, uint width, uint src_stride, uint size,              \
                                           uint dst_stride) {                                                         \
    if (__compass_looked_at())                                                                                        \
      DmaDirect_##S##_to_##D((int)(ulong)*copy, src, width, src_stride, size, dst_stride);                            \
    else                                                                                                              \
      *copy = (void *)(ulong)(uint)src;                                                                               \
  }                                                                                                                   \
  struct __compass_dma_request
#else
#define __COMPASS_DMA_VIEW(S, D) struct __compass_dma_request
#endif
#define GEN_DMA_DIRECT_EXT2INT(S, D) __COMPASS_DMA_COPY(DmaDirect, S, D, , -1); __COMPASS_DMA_VIEW(S, D)
#define GEN_DMA_DIRECT_INT2EXT(S, D) __COMPASS_DMA_COPY(DmaDirect, S, D, , -1)
#define GEN_ASYNC_DMA_DIRECT_EXT2INT(S, D) __COMPASS_DMA_COPY(AsyncDmaDirect, S, D, __COMPASS_EVENT_PARAMETER, event)
#define GEN_ASYNC_DMA_DIRECT_INT2EXT(S, D) __COMPASS_DMA_COPY(AsyncDmaDirect, S, D, __COMPASS_EVENT_PARAMETER, event)

#define __COMPASS_DMA_UPSAMPLE(S, D)                                                                                  \
  __COMPASS_FN void DmaUpsample_##S##_to_##D(int dst, int src, uint h_scale, uint w_scale, uint c, uint w,            \
                                             uint src_c_stride, uint dst_c_stride, uint dst_w_stride) {               \
    __compass_start_dma((struct __compass_dma_request){.mode = kUpsample, .dst = (uint)dst, .src = (uint)src,         \
        .dst_base = D, .src_base = S, .width = c, .count = w, .src_stride = src_c_stride, .dst_stride = dst_c_stride, \
        .row_stride = dst_w_stride * dst_c_stride, .h_scale = h_scale, .w_scale = w_scale, .event = -1});             \
  }                                                                                                                   \
  struct __compass_dma_request
#define GEN_DMA_UPSAMPLE_EXT2INT(S, D) __COMPASS_DMA_UPSAMPLE(S, D)
#define GEN_DMA_UPSAMPLE_INT2EXT(S, D) __COMPASS_DMA_UPSAMPLE(S, D)

__COMPASS_FN void __compass_transpose(uint src, uint dst, uint col, uint row, uint src_stride, uint dst_stride,
                                      uint item) {
  __compass_start_dma((struct __compass_dma_request){.mode = kTranspose, .dst = dst, .src = src, .width = col,
      .count = row, .src_stride = src_stride, .dst_stride = dst_stride, .item = item, .event = -1});
}
#define DMA_Transpose2D(src, dst, col, row, src_stride, dst_stride, du, itemsize) \
  __compass_transpose(as_uint(src), as_uint(dst), col, row, src_stride, dst_stride, itemsize)

/* Nothing happens for bytes <= 0. */
__COMPASS_FN void __compass_memset(uint dst, int bytes, uint value, uint unit, uint base) {
  if (bytes <= 0) return;
  __compass_start_dma((struct __compass_dma_request){.mode = kMemset, .dst = dst, .src = value, .dst_base = base,
      .size = (uint)bytes, .item = 1u << unit, .event = -1});
}
#define MemsetDDR(ptr, bytes, value, du, base) __compass_memset(as_uint(ptr), bytes, (uint)(value), du, base)
#define MemsetSRAM(ptr, bytes, value, du, base) __compass_memset(as_uint(ptr), bytes, (uint)(value), du, base)

/* The engine has a model of the accelerator, and ends the run where it is asked for what the model does not know. */
void __compass_aiff(uint ctrl, uint param, uint act, int event);
#define AIFF(ctrl, param, act, flags) __compass_aiff(as_uint(ctrl), as_uint(param), as_uint(act), -1)
#define ASYNC_AIFF(ctrl, param, act, event, flags) __compass_aiff(as_uint(ctrl), as_uint(param), as_uint(act), event)

/* What stands in the place of inline assembly: the engine ends the run and says so. */
void __compass_assembly(void);

#ifdef __COMPASS_CHECK
/* Checked runs tell which assertions do not hold; elsewhere the kernel's text defines the macro as nothing. */
void __compass_assertion_failed(const void *text);
#define __compass_assert(condition, text) \
  ((condition) ? (void)0 : __compass_assertion_failed((const void *)(ulong)(text)))
#endif

/* Host caches are coherent. */
__COMPASS_FN void __flush_cache(bool invalidate) { __COMPASS_MEMORY_FENCE(); }

void __compass_tick(uint id, int begin);
__COMPASS_FN void __perf_record_tick_begin(uint id) { __compass_tick(id, 1); }
__COMPASS_FN void __perf_record_tick_end(uint id) { __compass_tick(id, 0); }

#endif
