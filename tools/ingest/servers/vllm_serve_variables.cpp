// Variables of the environment that engines read: what becomes of each.
#include "base/text.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {

namespace {

using enum Fate;

/// Variables whose names begin so, between blanks. The longest begin that fits a name counts.
struct VariableRule {
  Fate fate;
  std::string_view why;
  std::string_view begins;
};

/// Names as in vllm/envs.py@v0.33.0 and v0.9, Dynamo's runtime of August 2026, llm-d-benchmark.
constexpr VariableRule kVariables[] = {
    {kUsed, "",
     "VLLM_USE_V1 VLLM_MOE_DP_CHUNK_SIZE VLLM_ENABLE_MOE_DP_CHUNK VLLM_USE_SIMPLE_KV_OFFLOAD "
     "VLLM_P2P_SIDE_CHANNEL_PORT DYN_VLLM_DISAGGREGATION_MODE"},
    {kNotModelled, "say it with the flag of this name", "DYN_VLLM_IS_PREFILL_WORKER"},
    {kNotModelled, "each token is sent when it is made", "DYN_VLLM_STREAM_INTERVAL"},
    {kNotModelled, "each node has its front end", "DYN_VLLM_HEADLESS"},
    {kNotModelled, "it belongs to the whole cluster: write cluster.transfer.lease",
     "VLLM_NIXL_ABORT_REQUEST_TIMEOUT VLLM_MOONCAKE_ABORT_REQUEST_TIMEOUT"},
    {kNotModelled, "the KV cache would have another size",
     "VLLM_MLA_DISABLE VLLM_PP_LAYER_PARTITION VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS "
     "VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE"},
    {kNotModelled, "all blocks are kept until others need the room",
     "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"},
    {kNotModelled, "KV in Dynamo's block manager is left out", "DYN_KVBM_"},
    {kApproximated, "a request costs what api_server says", "VLLM_USE_RUST_FRONTEND"},
    {kApproximated, "steps cost what the latency model says, whichever kernels run",
     "VLLM_USE_ VLLM_ENABLE_ VLLM_DISABLE VLLM_ROCM_ VLLM_X VLLM_TPU_ VLLM_CPU_ VLLM_SPYRE_ "
     "VLLM_TRITON_ VLLM_ATTENTION_ VLLM_FLASH VLLM_DEEP VLLM_MOE_ VLLM_FUSED_ VLLM_MARLIN_ "
     "VLLM_HUMMING_ VLLM_ALL VLLM_FLOAT32_ VLLM_BLOCKSCALE_ VLLM_B12X_ VLLM_KIMI_ VLLM_COHERE2_ "
     "VLLM_STEP5_ VLLM_GDN_ VLLM_MXFP VLLM_FP8_ VLLM_DSV4_ VLLM_DCP_ VLLM_DBO_ "
     "VLLM_KV_CACHE_LAYOUT VLLM_SSM_ VLLM_SPARSE_ VLLM_SHARED_ VLLM_MULTI_STREAM_ "
     "VLLM_MAX_TOKENS_PER_EXPERT_ VLLM_BATCH_ VLLM_V1_ VLLM_TUNED_ VLLM_SLEEP_ VLLM_GPU_SYNC_ "
     "VLLM_LORA_ VLLM_RANDOMIZE_ VLLM_COMPUTE_ VLLM_RAISE_ VLLM_ZENTORCH_ VLLM_REPLICATE_ "
     "VLLM_WEIGHT_ VLLM_KV_OFFLOAD_ VLLM_ADAPTIVE_ VLLM_SKIP_ VLLM_HAS_ VLLM_FORCE_ VLLM_COMPILE "
     "VLLM_NCCL_"},
    {kNoEffect, "it is about logs, processes, addresses, weights or media",
     "VLLM_LOG VLLM_CONFIGURE_ VLLM_TRACE_ VLLM_DEBUG_ VLLM_NO_ VLLM_DO_NOT_ VLLM_USAGE_ VLLM_GC_ "
     "VLLM_PATTERN_ VLLM_CUSTOM_ VLLM_NVTX_ VLLM_PROCESS_ VLLM_RINGBUFFER_ VLLM_TORCH_ "
     "VLLM_REQUEST_ VLLM_NIXL_ VLLM_MOONCAKE_ VLLM_P2P_ VLLM_EC_ VLLM_HOST_ VLLM_PORT VLLM_RPC_ "
     "VLLM_DP_ VLLM_RAY_ VLLM_WORKER_ VLLM_LOOPBACK_ VLLM_MQ_ VLLM_ENGINE_ VLLM_EXECUTE_ "
     "VLLM_KEEP_ VLLM_HTTP_ VLLM_API_KEY VLLM_MSGPACK_ VLLM_OBJECT_ VLLM_GPU_NIC_ VLLM_NIC_ "
     "VLLM_DISTRIBUTED_ VLLM_ELASTIC_ VLLM_CUDA VLLM_WSL2_ VLLM_TARGET_ VLLM_PLUGINS VLLM_SERVER_ "
     "VLLM_KV_EVENTS_ VLLM_SYSTEM_ VLLM_CACHE_ROOT VLLM_CONFIG_ROOT VLLM_ASSETS_ VLLM_MODEL_ "
     "VLLM_TEST_ VLLM_ALLOW_ VLLM_FASTSAFETENSORS_ VLLM_LORA_RESOLVER_ VLLM_IMAGE_ VLLM_VERSION "
     "VLLM_BUILD_ VLLM_RUST_ VLLM_VIDEO_ VLLM_AUDIO_ VLLM_MEDIA_ VLLM_MAX_ VLLM_MM_ "
     "VLLM_XGRAMMAR_ VLLM_REGEX_ VLLM_TOOL_ VLLM_ENFORCE_ VLLM_CHAT_ VLLM_GPT_OSS_ VLLM_BEAM_"},
    {kNoEffect, "it is about Dynamo's runtime around the engine",
     "DYN_LOG DYN_REQUEST_ DYN_FORWARDPASS_ DYN_SYSTEM_ DYN_HTTP_ DYN_TCP_ DYN_EVENT_ "
     "DYN_DISCOVERY_ DYN_STORE_ DYN_FILE_ DYN_NAMESPACE DYN_HEALTH_ DYN_WORKER_ DYN_RUNTIME_ "
     "DYN_COMPUTE_ DYN_PARENT_ DYN_VLLM_ DYN_DISAGG_ DYN_MODEL DYN_LORA_ DYN_CUSTOM_ DYN_MM_ "
     "DYN_MULTIMODAL_ DYN_TOOL_ DYN_REASONING_ DYN_CHAT_ DYN_ENABLE_ DYN_ENDPOINT DYN_CONNECTOR"},
    {kNoEffect, "it counts where the command names it",
     "VLLM_BLOCK_SIZE VLLM_MAX_MODEL_LEN VLLM_ACCELERATOR_MEM_UTIL VLLM_MAX_NUM_ "
     "VLLM_TENSOR_PARALLELISM VLLM_API_SERVER_COUNT VLLM_IS_ VLLM_INFERENCE_ VLLM_METRICS_ "
     "VLLM_LOAD_FORMAT VLLM_ARGS VLLM_EXTRA_ VLLM_MODEL"},
    {kNoEffect, "it counts where an LLMInferenceService states no command", "VLLM_ADDITIONAL_ARGS"},
    {kNoEffect, "it counts with a connector of LMCache", "LMCACHE_"},
    {kNoEffect, "vLLM does not read it", "SGLANG_"},
};

}  // namespace

void note_variables(const ShellVariables& variables, bool with_lmcache, const std::string& key_path,
                    Diagnostics& diagnostics) {
  for (const auto& [name, word] : variables) {
    const bool is_engines = name.starts_with("VLLM_") || name.starts_with("DYN_") ||
                            name.starts_with("SGLANG_") || name.starts_with("LMCACHE_");
    if (!is_engines || (with_lmcache && name.starts_with("LMCACHE_"))) continue;
    VariableRule rule{kNotModelled, "no variable of this name is known here", ""};
    std::size_t longest = 0;
    for (const VariableRule& row : kVariables)
      for (std::size_t at = 0; at < row.begins.size();) {
        const std::size_t end = std::min(row.begins.find(' ', at), row.begins.size());
        if (end - at > longest && name.starts_with(row.begins.substr(at, end - at)))
          rule = row, longest = end - at;
        at = end + 1;
      }
    if (rule.fate == kNotModelled)
      diagnostics.warning(word.where, key_path,
                          printable(name) + " is not modelled: " + std::string(rule.why));
    diagnostics.key({.where = word.where,
                     .format = kServeFormat,
                     .path = key_path + "." + name,
                     .fate = rule.fate,
                     .why = std::string(rule.why)});
  }
}

}  // namespace routesim::tools
