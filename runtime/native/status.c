#include "fail.h"
#include "system.h"

static const struct {
  aipu_status_t status;
  const char *text;
} texts[] = {
    {AIPU_STATUS_SUCCESS, "success"},
    {AIPU_STATUS_ERROR_NULL_PTR, "an argument is a null pointer"},
    {AIPU_STATUS_ERROR_INVALID_CTX, "the context does not exist"},
    {AIPU_STATUS_ERROR_OPEN_DEV_FAIL, "the device cannot be opened"},
    {AIPU_STATUS_ERROR_DEV_ABNORMAL, "the device does not work as it should"},
    {AIPU_STATUS_ERROR_DEINIT_FAIL, "the context cannot be ended"},
    {AIPU_STATUS_ERROR_INVALID_CONFIG, "the configuration is not valid"},
    {AIPU_STATUS_ERROR_UNKNOWN_BIN, "a file does not belong to this graph"},
    {AIPU_STATUS_ERROR_GVERSION_UNSUPPORTED, "the file is no graph of a supported version"},
    {AIPU_STATUS_ERROR_INVALID_GBIN, "the graph file is damaged"},
    {AIPU_STATUS_ERROR_TARGET_NOT_FOUND, "there is no device for the graph's target"},
    {AIPU_STATUS_ERROR_INVALID_GRAPH_ID, "the graph does not exist"},
    {AIPU_STATUS_ERROR_OPEN_FILE_FAIL, "a file cannot be opened"},
    {AIPU_STATUS_ERROR_MAP_FILE_FAIL, "a file cannot be mapped"},
    {AIPU_STATUS_ERROR_READ_FILE_FAIL, "a file cannot be read"},
    {AIPU_STATUS_ERROR_WRITE_FILE_FAIL, "a file cannot be written"},
    {AIPU_STATUS_ERROR_INVALID_JOB_ID, "the job does not exist"},
    {AIPU_STATUS_ERROR_JOB_EXCEPTION, "the job ended with a fault"},
    {AIPU_STATUS_ERROR_JOB_TIMEOUT, "the job did not end in time"},
    {AIPU_STATUS_ERROR_OP_NOT_SUPPORTED, "the operation is not supported"},
    {AIPU_STATUS_ERROR_INVALID_OP, "the operation is not possible in this state"},
    {AIPU_STATUS_ERROR_INVALID_SIZE, "a size or an index is not valid"},
    {AIPU_STATUS_ERROR_BUF_ALLOC_FAIL, "there is not enough device memory"},
    {AIPU_STATUS_ERROR_BUF_FREE_FAIL, "device memory cannot be freed"},
    {AIPU_STATUS_ERROR_INVALID_CORE_ID, "the core does not exist"},
    {AIPU_STATUS_ERROR_RESERVE_SRAM_FAIL, "SRAM cannot be reserved"},
    {AIPU_STATUS_ERROR_INVALID_TENSOR_ID, "the tensor does not exist"},
    {AIPU_STATUS_ERROR_INVALID_CLUSTER_ID, "the cluster does not exist"},
    {AIPU_STATUS_ERROR_INVALID_PARTITION_ID, "the partition does not exist"},
    {AIPU_STATUS_ERROR_PRINTF_FAIL, "what the kernel printed cannot be shown"},
    {AIPU_STATUS_ERROR_INVALID_TENSOR_TYPE, "the tensor type is not valid here"},
    {AIPU_STATUS_ERROR_INVALID_GM, "the graph's use of global memory is not valid"},
    {AIPU_STATUS_ERROR_INVALID_SEGMMU, "the graph's memory segments are not valid"},
    {AIPU_STATUS_ERROR_INVALID_QOS, "the quality of service is not valid"},
    {AIPU_STATUS_ERROR_INVALID_TENSOR_CNT, "the number of tensors is not valid"},
    {AIPU_STATUS_ERROR_TIMEOUT, "waiting took too long"},
    {AIPU_STATUS_ERROR_NO_BATCH_QUEUE, "the batch queue does not exist"},
    {AIPU_STATUS_ERROR_MARK_SHARED_TENSOR, "a tensor cannot be marked as shared"},
    {AIPU_STATUS_ERROR_SET_SHARED_TENSOR, "a shared tensor cannot be set"},
    {AIPU_STATUS_ERROR_DMABUF_SHARED_IO, "a buffer shared by an input and an output cannot be replaced"},
    {AIPU_STATUS_ERROR_GET_SHAPE_FAILED, "the graph has no dynamic shapes"},
    {AIPU_STATUS_ERROR_SET_SHAPE_FAILED, "a shape cannot be set"},
    {AIPU_STATUS_ERROR_NOT_CONFIG_SHAPE, "the shapes of a dynamic graph are not set"},
    {AIPU_STATUS_ERROR_UNMATCH_OUT_SHAPE, "an output's shape is not what was expected"},
    {AIPU_STATUS_ERROR_ZERO_TENSOR_SIZE, "a tensor's size is not known in the file"},
    {AIPU_STATUS_ERROR_ALLOC_GRIP_ID, "there is no free grid number"},
    {AIPU_STATUS_ERROR_ALLOC_GROUP_ID, "there is no free group number"},
    {AIPU_STATUS_ERROR_NOT_FOUND_IN_HASHTABLE, "a constant is not in the hash table"},
    {AIPU_STATUS_ERROR_INVALID_COREDUMP, "the core dump is not valid"},
    {AIPU_STATUS_ERROR_JOB_DISPATCH_FAIL, "the device does not take the job"},
    {AIPU_STATUS_ERROR_UNKNOWN_ERROR, "an operator reports an unknown error"},
    {AIPU_STATUS_ERROR_KEYBOARD_INTERRUPT, "interrupted from the keyboard"},
    {AIPU_STATUS_ERROR_SYSTEM_ERR, "an error of the operating system"},
    {AIPU_STATUS_ERROR_OUT_OF_SPEC, "a value is outside the specification"},
    {AIPU_STATUS_ERROR_OUT_OF_AIFF_SPEC, "a value is outside the specification of the AIFF"},
    {AIPU_STATUS_ERROR_OUT_OF_TPC_SPEC, "a value is outside the specification of the TPC"},
    {AIPU_STATUS_ERROR_OUT_OF_DMA_SPEC, "a value is outside the specification of the DMA"},
    {AIPU_STATUS_ERROR_OUT_OF_MEM_RANGE, "an address is outside memory"},
    {AIPU_STATUS_ERROR_OUT_OF_SRAM_RANGE, "an address is outside SRAM"},
    {AIPU_STATUS_ERROR_OUT_OF_LSRAM0_RANGE, "an address is outside local SRAM 0"},
    {AIPU_STATUS_ERROR_OUT_OF_LSRAM1_RANGE, "an address is outside local SRAM 1"},
    {AIPU_STATUS_ERROR_OUT_OF_LSRAM_RANGE, "an address is outside local SRAM"},
    {AIPU_STATUS_ERROR_OUT_OF_GSRAM0_RANGE, "an address is outside global SRAM 0"},
    {AIPU_STATUS_ERROR_OUT_OF_GSRAM1_RANGE, "an address is outside global SRAM 1"},
    {AIPU_STATUS_ERROR_OUT_OF_GSRAM_RANGE, "an address is outside global SRAM"},
    {AIPU_STATUS_ERROR_ARITHMETIC_ERR, "arithmetic error"},
    {AIPU_STATUS_ERROR_FLOAT_POINT_ERR, "floating point error"},
    {AIPU_STATUS_ERROR_UNDERFLOW_ERR, "underflow"},
    {AIPU_STATUS_ERROR_OVERFLOW_ERR, "overflow"},
    {AIPU_STATUS_ERROR_NOT_A_NUMBER_ERR, "not a number"},
    {AIPU_STATUS_ERROR_INFINITY_ERR, "infinity"},
    {AIPU_STATUS_ERROR_STRING_LENGTH_ERR, "a string is too long"},
    {AIPU_STATUS_ERROR_ZERO_DIVISION_ERR, "division by zero"},
};

static _Thread_local char detail[512];

const char *fail_text(void) { return detail; }
const char *compass_error_detail(void) { return detail; }

aipu_status_t fail(aipu_status_t status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(detail, sizeof detail, format, arguments);
  va_end(arguments);
  return status;
}

const char *status_text(aipu_status_t status) {
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    if (texts[i].status == status) return texts[i].text;
  return "unknown status";
}
