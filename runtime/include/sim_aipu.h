/* The interface between the Zhouyi user mode driver and the simulator library that it loads.
 *
 * The driver opens libaipu_simulator_x2.so, _x3p.so or _x3s.so, calls sim_aipu_api_init and uses the table it gets. It
 * owns all device memory: the simulator reads and writes it through the functions of mem_interface_t, by 64-bit
 * physical address. A job is a chain of task control blocks that the driver has put there; registers say where it
 * begins.
 *
 * Names, order and meaning are the driver's. Where its public sources do not show a function's whole type, the comment
 * says what is assumed. */
#ifndef SIM_AIPU_H
#define SIM_AIPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SIM_AIPU_PATH_MAX 4096

/* config_t.code: one of these, or for X3 targets a number made of counts. */
enum {
  SIM_AIPU_X2_1204 = 1,
  SIM_AIPU_X2_1204MP3 = 2,
  SIM_AIPU_X3P_1304 = 8,
  SIM_AIPU_X3P_1304MP2 = 9,
  SIM_AIPU_X3P_1304MP4 = 10,
  SIM_AIPU_X3S_1304 = 11,
  SIM_AIPU_X3S_1304MP2 = 12,
  SIM_AIPU_X3S_1304MP4 = 13
};
#define SIM_AIPU_X3_CODE(tecs, aiffs, cores, clusters) \
  ((int)(1u << 31 | (clusters) << 12 | (cores) << 8 | (aiffs) << 4 | (tecs)))

enum { SIM_AIPU_LOG_ERROR = 0, SIM_AIPU_LOG_WARNING = 1, SIM_AIPU_LOG_INFO = 2, SIM_AIPU_LOG_DEBUG = 3 };
enum { SIM_AIPU_PERF_NONE = 0, SIM_AIPU_PERF_FAST = 1, SIM_AIPU_PERF_EVAL = 2 };

typedef struct {
  int code;
  bool enable_avx, enable_calloc;
  int64_t max_pkg_num; /* instruction packets to run at most; -1: no limit */
  uint32_t gm_size;
  struct {
    char filepath[SIM_AIPU_PATH_MAX]; /* folder of the log file */
    int level;
    bool verbose; /* log to the console, too */
  } log;
  char plugin_filename[SIM_AIPU_PATH_MAX];
  char graph_filename[SIM_AIPU_PATH_MAX];
  bool print_subg_info;
  int8_t fp_mode;
  struct {
    int mode;
    char report_filename[SIM_AIPU_PATH_MAX];
    uint32_t sys_freq;
    struct {
      uint32_t rd_latency, wr_latency, bandwidth;
    } ddr;
  } perf; /* the driver's structure goes on behind this */
} config_t;

/* Device memory, which is the driver's. The numbers of bytes done are returned, negative ones are errors. */
typedef struct {
  void *cxt; /* given back to every function */
  int64_t (*read)(uint64_t addr, void *dest, size_t size, void *cxt);
  int64_t (*write)(uint64_t addr, const void *src, size_t size, void *cxt);
  int64_t (*zeroize)(uint64_t addr, size_t size, void *cxt);
  size_t (*size)(void *cxt); /* bytes of ASID 0 */
  bool (*invalid)(uint64_t addr, void *cxt);
  bool (*get_info)(uint64_t addr, uint64_t *base, size_t *size, void *cxt); /* the buffer that holds an address */
} mem_interface_t;

/* A TEC as debuggers see it. Its layout is not public; NULL is passed. */
typedef struct tec_interface tec_interface_t;

enum { EV_RT_PRT = 0 }; /* data is text that the kernels of a job printed */
typedef struct {
  void *cxt;
  bool (*check_break)(tec_interface_t *tec, void *cxt);
  void (*handle)(tec_interface_t *tec, void *cxt);
  void (*on_event)(tec_interface_t *tec, int event, const void *data, size_t size, void *cxt);
} dbg_lite_t;

/* Called from a thread of the simulator, when the job's results are in memory. Assumed: that the context comes last, as
 * in all other functions. */
enum {
  AIPU_EV_GRID_END = 0,
  AIPU_EV_SYNC_FLAG = 1
}; /* GRID_END: the value is the grid id of the task control blocks */
typedef void (*sim_aipu_event_handler_t)(uint32_t event, uint64_t value, void *cxt);

typedef struct sim_aipu sim_aipu_t;

/* Registers are accessed with the number of bytes, 4, as result; -1 when there is no such register or the command
 * cannot be done. Assumed: that the driver takes positive numbers for success, and that `version` gives text. */
typedef struct {
  sim_aipu_t *(*create)(const config_t *config, const mem_interface_t *mem); /* NULL: the log says why */
  sim_aipu_t *(*create1)(void *);
  void (*destroy)(sim_aipu_t *sim);
  int (*read_register)(sim_aipu_t *sim, uint32_t addr, uint32_t *value);
  int (*write_register)(sim_aipu_t *sim, uint32_t addr, uint32_t value);
  void (*set_dbg_lite)(sim_aipu_t *sim, const dbg_lite_t *dbg);
  const char *(*version)(void);
  void (*enable_profiling)(sim_aipu_t *sim, bool enable);
  void (*dump_profiling)(sim_aipu_t *sim);
  void (*set_event_handler)(sim_aipu_t *sim, sim_aipu_event_handler_t handler, void *cxt);
} sim_aipu_api_t;

const sim_aipu_api_t *sim_aipu_api_init(void);

/* Registers. Those of pools are SIM_AIPU_POOL_STEP apart, those of clusters SIM_AIPU_CLUSTER_STEP. */
enum {
  SIM_AIPU_SCHED_CTRL = 0x0, /* pool << 16 | qos << 8 | command; X3: partition << 19, too */
  SIM_AIPU_SCHED_ADDR_HI = 0x8,
  SIM_AIPU_SCHED_ADDR_LO = 0xc,
  SIM_AIPU_BUILD_INFO = 0x14, /* bits 16-19: pools, 24-27: partitions less one */
  SIM_AIPU_STATUS = 0x18,     /* X3, bit 0: no room for jobs, bit 8: none for those of high qos */
  SIM_AIPU_TCB_NUMBER = 0x1c, /* X3: how many blocks lie at the address */
  SIM_AIPU_POOL_CONFIG = 0x800,
  SIM_AIPU_POOL_STATUS = 0x804,
  SIM_AIPU_CLUSTER0_CONFIG = 0xc00, /* bits 0-3: TECs of a core, 8-11: cores, 12: present */
  SIM_AIPU_CLUSTER0_CTRL = 0xc04,   /* X3: the same bits, of what is enabled; they cannot be changed */
  SIM_AIPU_POOL_STEP = 0x40,
  SIM_AIPU_CLUSTER_STEP = 0x20
};
/* Commands. DISPATCH starts the chain that the address registers name, in a pool that CREATE has made; on X2 that is
 * the pool of the last CREATE, on X3 the one in the command. A pool that is busy is destroyed when its jobs have ended.
 *
 * X2: until its pool is destroyed, a chain can be made longer by writing the address of another chain into `next` of its
 * last block, also when it has ended; the pool looks there when its status is read and at each command to it. */
enum { SIM_AIPU_CREATE = 1, SIM_AIPU_DESTROY = 2, SIM_AIPU_DISPATCH = 4 };

/* The driver waits for bit 6 of POOL_STATUS. Bits 16 and up are of this simulator: in which ways the jobs ended that the
 * pool has run since a chain was dispatched to it when it was idle, with the bits of interrupt_en in task control
 * blocks. */
#define SIM_AIPU_POOL_IDLE (1u << 6)
#define SIM_AIPU_POOL_END(status) ((status) >> 16)
enum {
  SIM_AIPU_END_DONE = 1,
  SIM_AIPU_END_EXCEPTION = 4, /* a kernel faulted */
  SIM_AIPU_END_FAULT = 8,     /* the simulator's process was lost */
  SIM_AIPU_END_ERROR = 16     /* the chain, or what it points to, is damaged */
};

#ifdef __cplusplus
}
#endif
#endif
