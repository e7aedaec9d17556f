/* The driver's API of Compass NPUs, as far as this runtime has it: load an aipu.bin, set inputs, run, get outputs.
 *
 * Names, structures, codes and ids are the driver's, so that a program written for it compiles and links against this
 * library. What the runtime does not have is refused with AIPU_STATUS_ERROR_OP_NOT_SUPPORTED; `compass_error_detail`
 * tells more about the last error of the calling thread than a status can.
 *
 * Several threads may use one context: run different jobs, or load, create and clean. One job, and one graph that is
 * unloaded, is for one thread at a time. Zero every configuration structure before filling it.
 */
#ifndef COMPASS_RUNTIME_H
#define COMPASS_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define COMPASS_DEFAULT(value) = value
#else
#define COMPASS_DEFAULT(value)
#endif
#define COMPASS_API __attribute__((visibility("default")))

typedef struct { uint32_t handle; } aipu_ctx_handle_t;

typedef enum {
  AIPU_TENSOR_TYPE_INPUT = 0,
  AIPU_TENSOR_TYPE_OUTPUT = 1,
  AIPU_TENSOR_TYPE_INTER_DUMP = 2,
  AIPU_TENSOR_TYPE_PRINTF = 3,
  AIPU_TENSOR_TYPE_PROFILER = 4,
  AIPU_TENSOR_TYPE_LAYER_COUNTER = 5,
  AIPU_TENSOR_TYPE_ERROR_CODE = 6,
  AIPU_TENSOR_TYPE_OUT_TENSOR_SHAPE = 7
} aipu_tensor_type_t;

typedef enum {
  AIPU_JOB_STATUS_NO_STATUS = 0,
  AIPU_JOB_STATUS_DONE = 1,
  AIPU_JOB_STATUS_EXCEPTION = 2,
  AIPU_JOB_COREDUMP = 3
} aipu_job_status_t;

typedef enum { DEV_IDLE = 0, DEV_BUSY = 1, DEV_EXCEPTION = 2 } device_status_t;

typedef enum {
  AIPU_DATA_TYPE_NONE = 0,
  AIPU_DATA_TYPE_BOOL = 1,
  AIPU_DATA_TYPE_U8 = 2,
  AIPU_DATA_TYPE_S8 = 3,
  AIPU_DATA_TYPE_U16 = 4,
  AIPU_DATA_TYPE_S16 = 5,
  AIPU_DATA_TYPE_U32 = 6,
  AIPU_DATA_TYPE_S32 = 7,
  AIPU_DATA_TYPE_U64 = 8,
  AIPU_DATA_TYPE_S64 = 9,
  AIPU_DATA_TYPE_F16 = 0xa,
  AIPU_DATA_TYPE_F32 = 0xb,
  AIPU_DATA_TYPE_F64 = 0xc,
  AIPU_DATA_TYPE_BF16 = 0xd,
  AIPU_DATA_TYPE_ALIGNED_U4 = 0x12,
  AIPU_DATA_TYPE_ALIGNED_S4 = 0x13,
  AIPU_DATA_TYPE_ALIGNED_U12 = 0x14,
  AIPU_DATA_TYPE_ALIGNED_S12 = 0x15,
  AIPU_DATA_TYPE_COMPACT_U4 = 0x20,
  AIPU_DATA_TYPE_COMPACT_S4 = 0x21,
  AIPU_DATA_TYPE_COMPACT_U12 = 0x22,
  AIPU_DATA_TYPE_COMPACT_S12 = 0x23
} aipu_data_type_t;

typedef enum {
  AIPU_STATUS_SUCCESS = 0x0,
  AIPU_STATUS_ERROR_NULL_PTR = 0x1,
  AIPU_STATUS_ERROR_INVALID_CTX = 0x2,
  AIPU_STATUS_ERROR_OPEN_DEV_FAIL = 0x3,
  AIPU_STATUS_ERROR_DEV_ABNORMAL = 0x4,
  AIPU_STATUS_ERROR_DEINIT_FAIL = 0x5,
  AIPU_STATUS_ERROR_INVALID_CONFIG = 0x6,
  AIPU_STATUS_ERROR_UNKNOWN_BIN = 0x7,
  AIPU_STATUS_ERROR_GVERSION_UNSUPPORTED = 0x8,
  AIPU_STATUS_ERROR_INVALID_GBIN = 0x9,
  AIPU_STATUS_ERROR_TARGET_NOT_FOUND = 0xa,
  AIPU_STATUS_ERROR_INVALID_GRAPH_ID = 0xb,
  AIPU_STATUS_ERROR_OPEN_FILE_FAIL = 0xc,
  AIPU_STATUS_ERROR_MAP_FILE_FAIL = 0xd,
  AIPU_STATUS_ERROR_READ_FILE_FAIL = 0xe,
  AIPU_STATUS_ERROR_WRITE_FILE_FAIL = 0xf,
  AIPU_STATUS_ERROR_INVALID_JOB_ID = 0x10,
  AIPU_STATUS_ERROR_JOB_EXCEPTION = 0x11,
  AIPU_STATUS_ERROR_JOB_TIMEOUT = 0x12,
  AIPU_STATUS_ERROR_OP_NOT_SUPPORTED = 0x13,
  AIPU_STATUS_ERROR_INVALID_OP = 0x14,
  AIPU_STATUS_ERROR_INVALID_SIZE = 0x15,
  AIPU_STATUS_ERROR_BUF_ALLOC_FAIL = 0x16,
  AIPU_STATUS_ERROR_BUF_FREE_FAIL = 0x17,
  AIPU_STATUS_ERROR_INVALID_CORE_ID = 0x18,
  AIPU_STATUS_ERROR_RESERVE_SRAM_FAIL = 0x19,
  AIPU_STATUS_ERROR_INVALID_TENSOR_ID = 0x1a,
  AIPU_STATUS_ERROR_INVALID_CLUSTER_ID = 0x1b,
  AIPU_STATUS_ERROR_INVALID_PARTITION_ID = 0x1c,
  AIPU_STATUS_ERROR_PRINTF_FAIL = 0x1d,
  AIPU_STATUS_ERROR_INVALID_TENSOR_TYPE = 0x1e,
  AIPU_STATUS_ERROR_INVALID_GM = 0x1f,
  AIPU_STATUS_ERROR_INVALID_SEGMMU = 0x20,
  AIPU_STATUS_ERROR_INVALID_QOS = 0x21,
  AIPU_STATUS_ERROR_INVALID_TENSOR_CNT = 0x22,
  AIPU_STATUS_ERROR_TIMEOUT = 0x23,
  AIPU_STATUS_ERROR_NO_BATCH_QUEUE = 0x24,
  AIPU_STATUS_ERROR_MARK_SHARED_TENSOR = 0x25,
  AIPU_STATUS_ERROR_SET_SHARED_TENSOR = 0x26,
  AIPU_STATUS_ERROR_DMABUF_SHARED_IO = 0x27,
  AIPU_STATUS_ERROR_GET_SHAPE_FAILED = 0x28,
  AIPU_STATUS_ERROR_SET_SHAPE_FAILED = 0x29,
  AIPU_STATUS_ERROR_NOT_CONFIG_SHAPE = 0x30,
  AIPU_STATUS_ERROR_UNMATCH_OUT_SHAPE = 0x31,
  AIPU_STATUS_ERROR_ZERO_TENSOR_SIZE = 0x32,
  AIPU_STATUS_ERROR_ALLOC_GRIP_ID = 0x33,
  AIPU_STATUS_ERROR_ALLOC_GROUP_ID = 0x34,
  AIPU_STATUS_ERROR_NOT_FOUND_IN_HASHTABLE = 0x35,
  AIPU_STATUS_ERROR_INVALID_COREDUMP = 0x36,
  AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL = 0x37,
  AIPU_STATUS_MAX = 0x38,
  AIPU_STATUS_ERROR_UNKNOWN_ERROR = 0x200,
  AIPU_STATUS_ERROR_KEYBOARD_INTERRUPT = 0x300,
  AIPU_STATUS_ERROR_SYSTEM_ERR = 0x301,
  AIPU_STATUS_ERROR_OUT_OF_SPEC = 0x380,
  AIPU_STATUS_ERROR_OUT_OF_AIFF_SPEC = 0x381,
  AIPU_STATUS_ERROR_OUT_OF_TPC_SPEC = 0x382,
  AIPU_STATUS_ERROR_OUT_OF_DMA_SPEC = 0x383,
  AIPU_STATUS_ERROR_OUT_OF_MEM_RANGE = 0x400,
  AIPU_STATUS_ERROR_OUT_OF_SRAM_RANGE = 0x401,
  AIPU_STATUS_ERROR_OUT_OF_LSRAM0_RANGE = 0x402,
  AIPU_STATUS_ERROR_OUT_OF_LSRAM1_RANGE = 0x403,
  AIPU_STATUS_ERROR_OUT_OF_LSRAM_RANGE = 0x404,
  AIPU_STATUS_ERROR_OUT_OF_GSRAM0_RANGE = 0x405,
  AIPU_STATUS_ERROR_OUT_OF_GSRAM1_RANGE = 0x406,
  AIPU_STATUS_ERROR_OUT_OF_GSRAM_RANGE = 0x407,
  AIPU_STATUS_ERROR_ARITHMETIC_ERR = 0x480,
  AIPU_STATUS_ERROR_FLOAT_POINT_ERR = 0x481,
  AIPU_STATUS_ERROR_UNDERFLOW_ERR = 0x482,
  AIPU_STATUS_ERROR_OVERFLOW_ERR = 0x483,
  AIPU_STATUS_ERROR_NOT_A_NUMBER_ERR = 0x484,
  AIPU_STATUS_ERROR_INFINITY_ERR = 0x485,
  AIPU_STATUS_ERROR_STRING_LENGTH_ERR = 0x486,
  AIPU_STATUS_ERROR_ZERO_DIVISION_ERR = 0x487
} aipu_status_t;

enum {
  AIPU_CONFIG_TYPE_SIMULATION = 0x10000,
  AIPU_CONFIG_TYPE_HW = 0x20000,
  AIPU_GLOBAL_CONFIG_TYPE_DISABLE_VER_CHECK = 0x1000000,
  AIPU_GLOBAL_CONFIG_TYPE_ENABLE_VER_CHECK = 0x2000000
};

typedef struct {
  uint32_t id;
  uint32_t size; /* bytes */
  float scale;
  int32_t zero_point;
  aipu_data_type_t data_type;
} aipu_tensor_desc_t;

/* Of these fields the runtime reads `simulator`: the simulator engine, instead of the one the library was built for. */
typedef struct {
  uint32_t log_level;
  bool verbose;
  char *log_file_path;
  char *json_filename;
  bool print_subg_info;
  char *plugin_name;
  char *simulator;
  char *npu_arch_desc;
  uint32_t gm_size;
  bool enable_avx, enable_calloc, en_eval;
  int8_t fp_mode;
  bool en_l2d, en_fast_perf;
  uint32_t freq_mhz, ddr_latency_rd, ddr_latency_wr, ddr_bw;
  float ddr_bw_ratio;
  char *perf_report;
} aipu_global_config_simulation_t;

typedef struct {
  union {
    uint32_t misc;
    uint8_t wt_mem_region : 4;
  };
  int32_t *wt_idxes;
  int32_t wt_idxes_cnt;
  char *extra_weight_path;
  bool put_weight_gm, put_desc_gm, put_ws_gm;
} aipu_load_graph_cfg_t;

typedef struct {
  uint32_t ds_idx;
  uint32_t *ds_data;
} aipu_dynshape_item_t;

typedef struct {
  uint32_t input_shape_cnt;
  aipu_dynshape_item_t *shape_items;
} aipu_dynshape_param_t;

/* All zero but for `qos_level` (0 or 1, which changes nothing): jobs cannot be placed or bound. */
typedef struct {
  union {
    uint32_t misc;
    struct {
      uint8_t partition_id : 4;
      uint8_t dbg_dispatch : 1;
      uint8_t dbg_core_id : 3;
      uint8_t qos_level : 4;
      uint8_t fm_mem_region : 4;
    };
  };
  bool bind_enable;
  uint8_t bind_cluster_ids, bind_core_ids;
  uint32_t reserved_iova_size;
  int32_t *fm_idxes;
  int32_t fm_idxes_cnt;
  void *dynshape;
  aipu_dynshape_param_t dynshape_params;
} aipu_create_job_cfg_t;

/* Called when a flushed job has ended, from a thread of the runtime. */
typedef int (*aipu_job_callback_func_t)(uint64_t job, aipu_job_status_t state);

COMPASS_API aipu_status_t aipu_init_context(aipu_ctx_handle_t **ctx);
/* Unloads everything. */
COMPASS_API aipu_status_t aipu_deinit_context(const aipu_ctx_handle_t *ctx);
COMPASS_API aipu_status_t aipu_get_error_message(const aipu_ctx_handle_t *ctx, aipu_status_t status, const char **msg);
COMPASS_API aipu_status_t aipu_config_global(const aipu_ctx_handle_t *ctx, uint64_t types, void *config);

COMPASS_API aipu_status_t aipu_load_graph(const aipu_ctx_handle_t *ctx, const char *path, uint64_t *graph,
                                          aipu_load_graph_cfg_t *config COMPASS_DEFAULT(NULL));
COMPASS_API aipu_status_t aipu_load_graph_helper(const aipu_ctx_handle_t *ctx, const char *data, uint32_t size,
                                                 uint64_t *graph, aipu_load_graph_cfg_t *config COMPASS_DEFAULT(NULL));
/* Cleans the graph's jobs. One that runs is ended, with the state AIPU_JOB_STATUS_EXCEPTION. */
COMPASS_API aipu_status_t aipu_unload_graph(const aipu_ctx_handle_t *ctx, uint64_t graph);

COMPASS_API aipu_status_t aipu_create_job(const aipu_ctx_handle_t *ctx, uint64_t graph, uint64_t *job,
                                          aipu_create_job_cfg_t *config COMPASS_DEFAULT(NULL));
/* Of the types, AIPU_CONFIG_TYPE_SIMULATION is accepted and changes nothing; dumps are not supported. */
COMPASS_API aipu_status_t aipu_config_job(const aipu_ctx_handle_t *ctx, uint64_t job, uint64_t types, void *config);
/* Runs and waits. `timeout` in milliseconds; without a positive one there is no limit. */
COMPASS_API aipu_status_t aipu_finish_job(const aipu_ctx_handle_t *ctx, uint64_t job, int32_t timeout);
/* Runs without waiting; aipu_get_job_status waits for the end. */
COMPASS_API aipu_status_t aipu_flush_job(const aipu_ctx_handle_t *ctx, uint64_t job,
                                         aipu_job_callback_func_t callback COMPASS_DEFAULT(NULL));
COMPASS_API aipu_status_t aipu_get_job_status(const aipu_ctx_handle_t *ctx, uint64_t job, aipu_job_status_t *status,
                                              int32_t timeout COMPASS_DEFAULT(0));
/* Waits for a job that runs. */
COMPASS_API aipu_status_t aipu_clean_job(const aipu_ctx_handle_t *ctx, uint64_t job);

COMPASS_API aipu_status_t aipu_get_tensor_count(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type,
                                                uint32_t *count);
COMPASS_API aipu_status_t aipu_get_tensor_descriptor(const aipu_ctx_handle_t *ctx, uint64_t id, aipu_tensor_type_t type,
                                                     uint32_t tensor, aipu_tensor_desc_t *descriptor);
/* Copies the descriptor's `size` bytes into an input, out of a tensor of a job that is done, or into an output. */
COMPASS_API aipu_status_t aipu_load_tensor(const aipu_ctx_handle_t *ctx, uint64_t job, uint32_t tensor,
                                           const void *data);
COMPASS_API aipu_status_t aipu_get_tensor(const aipu_ctx_handle_t *ctx, uint64_t job, aipu_tensor_type_t type,
                                          uint32_t tensor, void *data);
COMPASS_API aipu_status_t aipu_load_output_tensor(const aipu_ctx_handle_t *ctx, uint64_t job, uint32_t tensor,
                                                  const void *data);
/* Replaces the word at byte `offset` of the parameter blocks: a scalar that was left open. */
COMPASS_API aipu_status_t aipu_rewrite_rodata(const aipu_ctx_handle_t *ctx, uint64_t job, uint32_t offset,
                                              uint32_t value);
COMPASS_API aipu_status_t aipu_get_device_status(const aipu_ctx_handle_t *ctx, device_status_t *status);

/* What went wrong in the last call of this thread that failed; empty when none did. Valid until its next call. */
COMPASS_API const char *compass_error_detail(void);

#ifdef __cplusplus
}
#endif
#endif
