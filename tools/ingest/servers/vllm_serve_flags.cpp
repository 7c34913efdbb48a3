#include "tools/ingest/servers/vllm_serve_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/scalar_parse.h"
#include "base/text.h"
#include "tools/ingest/tree/config_merge.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {

namespace {

using Ptr = ConfigNode::Ptr;
using enum Fate;

using enum FlagTakes;
using enum FlagUse;

/// Names and meanings as in vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py,
/// v0.9 to v0.33.
constexpr FlagRule kMeaningful[] = {
    {"model", kValue, kCopied, "model"},
    {"tensor-parallel-size", kValue, kCount, "tensor_parallel"},
    {"pipeline-parallel-size", kValue, kCount, "pipeline_parallel"},
    {"data-parallel-size", kValue, kCount, "data_parallel"},
    {"enable-expert-parallel", kNothing, kSwitch, "expert_parallel"},
    {"api-server-count", kValue, kCount, "api_server.processes"},
    {"kv-cache-dtype", kValue, kKvCacheDtype, "kv_cache_dtype"},
    {"block-size", kValue, kCount, "engine.block_size"},
    {"num-gpu-blocks-override", kValue, kCount, "engine.num_gpu_blocks"},
    {"gpu-memory-utilization", kValue, kCopied, "engine.gpu_memory_utilization"},
    {"device-memory-utilization", kValue, kCopied, "engine.gpu_memory_utilization"},
    {"max-num-batched-tokens", kValue, kCount, "engine.max_num_batched_tokens"},
    {"max-num-seqs", kValue, kCount, "engine.max_num_seqs"},
    {"max-model-len", kValue, kCount, "engine.max_model_len"},
    {"long-prefill-token-threshold", kValue, kCount, "engine.long_prefill_token_threshold"},
    {"prefill-schedule-interval", kValue, kCount, "engine.prefill_schedule_interval"},
    {"watermark", kValue, kCopied, "engine.watermark"},
    {"scheduling-policy", kValue, kCopied, "engine.scheduling_policy"},
    {"enable-chunked-prefill", kNothing, kSwitch, "engine.enable_chunked_prefill"},
    {"enable-prefix-caching", kNothing, kSwitch, "engine.enable_prefix_caching"},
    {"enforce-eager", kNothing, kSwitch, "engine.enforce_eager"},
    {"async-scheduling", kNothing, kSwitch, "engine.async_scheduling"},
    {"scheduler-reserve-full-isl", kNothing, kSwitch, "engine.reserve_full_isl"},
    {"quantization", kValue, kQuantization},
    {"kv-transfer-config", kValue, kTiers},
    {"config", kValue, kConfigFile},
    {"data-parallel-rank", kValue, kBalancing},
    {"data-parallel-start-rank", kValue, kBalancing},
    {"data-parallel-size-local", kValue, kBalancing},
    {"data-parallel-external-lb", kNothing, kBalancing},
    {"data-parallel-multi-port-external-lb", kNothing, kBalancing},
    {"data-parallel-hybrid-lb", kNothing, kBalancing},
    {"kv-offloading-size", kValue, kTiers, "engine.kv_tiers.cpu_gib"},
    {"kv-offloading-backend", kValue, kTiers, "engine.kv_tiers.connector"},
    {"kv-cache-memory-bytes", kValue, kRefused, "engine.num_gpu_blocks",
     "sets the memory of the KV cache", "none null"},
    {"enable-lora", kNothing, kAdapters, "engine.max_loras"},
    {"max-loras", kValue, kAdapters},
    {"max-cpu-loras", kValue, kAdapters, "engine.max_cpu_loras"},
    {"max-lora-rank", kValue, kAdapters, "engine.max_lora_rank"},
    {"disable-hybrid-kv-cache-manager", kNothing, kOffSwitch, "engine.hybrid_kv_manager"},
};

/// SHORT=LONG, between blanks.
constexpr std::string_view kShortForms =
    "tp=tensor-parallel-size pp=pipeline-parallel-size dp=data-parallel-size "
    "ep=enable-expert-parallel asc=api-server-count q=quantization sc=speculative-config "
    "dcp=decode-context-parallel-size pcp=prefill-context-parallel-size dpn=data-parallel-rank "
    "dpr=data-parallel-start-rank dpl=data-parallel-size-local dpa=data-parallel-address "
    "dpp=data-parallel-rpc-port dpb=data-parallel-backend dpe=data-parallel-external-lb "
    "dph=data-parallel-hybrid-lb n=nnodes r=node-rank cc=compilation-config ac=attention-config";

/// Flags that change no key of a pool: why not, and what becomes of them.
struct LeftAlone {
  Fate fate;
  std::string_view why;
  std::string_view names;  ///< Between blanks: `SWITCH`, `VALUE=` and `LIST=*`.
  FlagUse use = kIgnored;
  std::string_view harmless = {};
};

/// Without these flags the answer would be another one.
constexpr LeftAlone refused(std::string_view why, std::string_view names,
                            std::string_view harmless = {}) {
  return {kNotModelled, why, names, kRefused, harmless};
}
/// These change the answer a little.
constexpr LeftAlone warned(std::string_view why, std::string_view names,
                           std::string_view harmless = {}) {
  return {kNotModelled, why, names, kWarned, harmless};
}

constexpr LeftAlone kLeftAlone[] = {
    refused("starts a node without its front end", "headless"),
    refused("computes in a format without a speed here", "dtype=", "auto half float16 bfloat16"),
    refused("makes a step yield more than one token",
            "speculative-config= spec-method= spec-model= spec-tokens=", "none null {} 0"),
    refused("leaves weights in the host's memory", "cpu-offload-gb= offload-group-size=", "0"),
    refused("spreads the KV of one request over GPUs", "decode-context-parallel-size=", "1"),
    refused("spreads a prompt over GPUs", "prefill-context-parallel-size=", "1"),
    refused("replaces the scheduler", "scheduler-cls=",
            "none null vllm.v1.core.sched.scheduler.Scheduler "
            "vllm.v1.core.sched.async_scheduler.AsyncScheduler"),
    refused("serves something else than text",
            "embedding-worker runner= task= convert=", "auto generate none"),
    refused("runs no language model", "mm-encoder-only multimodal-encode-worker"),
    warned("moves experts between GPUs to even out their load; here every expert has the same "
           "load, and moving them takes no time",
           "enable-eplb"),
    warned("may add copies of experts, whose memory is left out", "eplb-config="),
    warned("adds copies of experts, whose memory is left out", "num-redundant-experts=", "0"),
    warned("splits both factors of adapters over the GPUs; one is split here",
           "fully-sharded-loras"),
    warned("sends tokens in groups; here each is sent when it is made", "stream-interval=", "1"),
    warned("overlaps two half batches, whose gain is left out", "enable-dbo"),
    warned("computes several prompts at once in engines before V1; left out",
           "max-num-partial-prefills=", "1"),
    warned("computes several tokens in one call of engines before V1; left out",
           "num-scheduler-steps=", "1"),
    warned("bounds a step apart from --max-num-batched-tokens; left out",
           "max-num-scheduled-tokens=", "none null"),
    warned("bounds the running requests apart from --max-num-seqs; left out",
           "max-num-active-seqs=", "none null"),
    warned("refuses requests above it; here they wait",
           "max-num-queued-reqs= max-num-queued-tokens= engine-request-limit=", "none null"),
    warned("raises the threshold while few requests are there; left out",
           "long-prefill-token-threshold-adaptive"),
    warned("keeps some blocks of windows and recurrent states only; here all are kept",
           "prefix-cache-retention-interval=", "0"),
    warned("sets formats of weights; those of the model are taken",
           "quantization-config=", "none null {}"),
    warned("chooses a connector of Dynamo's; left out", "connector=*", "none nixl"),
    warned("cuts the context to the window; left out", "disable-sliding-window"),
    warned("changes the model's config; the model is taken as it was published",
           "hf-overrides=", "{} none null"),
    warned("skips layers of a prompt; left out", "kv-sharing-fast-prefill"),
    warned("changes several defaults; left out", "performance-mode=", "balanced"),
    warned("says how much is compiled; steps cost what the latency model says",
           "optimization-level=", "2 3"),
    warned("matches prefixes in another unit than the block; left out",
           "prefix-match-unit=", "none null"),
    warned("moves the encoder elsewhere; here prompts are text",
           "ec-transfer-config=", "none null"),
    {kNoEffect, "it is about logs, metrics or profiles",
     "aggregate-engine-logging cudagraph-metrics disable-log-requests disable-log-stats "
     "disable-tqdm disable-uvicorn-access-log enable-layerwise-nvtx-tracing enable-log-deltas "
     "enable-log-outputs enable-log-requests enable-logging-iteration-details enable-mfu-metrics "
     "enable-per-request-metrics enable-return-routed-experts enable-server-load-tracking "
     "fail-on-environ-validation jit-monitor-verbose kv-cache-metrics log-error-stack "
     "use-tqdm-on-load custom-histogram-buckets= logging-config= per-request-spec-decode-metrics= "
     "collect-detailed-traces= disable-access-log-for-endpoints= fingerprint-mode= "
     "fingerprint-value= jit-monitor-mode= kv-cache-metrics-sample= log-config-file= max-log-len= "
     "otlp-traces-endpoint= profiler-config= show-hidden-metrics-for-version= uvicorn-log-level="},
    {kNoEffect, "it is about the front end that answers over HTTP",
     "allow-credentials enable-scale-out disable-fastapi-docs disable-frontend-multiprocessing "
     "enable-force-include-usage enable-offline-docs enable-prompt-tokens-details "
     "enable-request-id-headers enable-ssl-refresh grpc numa-bind return-tokens-as-token-ids "
     "tokens-only allowed-headers= allowed-methods= allowed-origins= grpc-port= "
     "sse-keep-alive-interval= dp-supervisor-probe-failure-threshold= "
     "dp-supervisor-probe-interval-s= dp-supervisor-probe-timeout-s= h11-max-header-count= "
     "h11-max-incomplete-event-size= host= io-processor-plugin= port= renderer-num-workers= "
     "response-role= root-path= shutdown-timeout= ssl-ca-certs= ssl-cert-reqs= ssl-certfile= "
     "ssl-ciphers= ssl-keyfile= uds= api-key=* middleware=* numa-bind-cpus=* numa-bind-nodes=* "
     "served-model-name=*"},
    {kNoEffect, "it is about text, and requests are counted in tokens here",
     "cohere-is-reasoning-model enable-trace-replay return-sampling-mask "
     "disable-logprobs-during-spec-decoding enable-auto-tool-choice enable-prompt-embeds "
     "enable-reasoning enable-tokenizer-info-endpoint exclude-tools-when-tool-choice-none "
     "skip-tokenizer-init trust-request-chat-template anthropic-disabled-thinking-effort= "
     "aux-output-config= cohere-format= reasoning-effort-map= tool-strict-level= "
     "watermark-config= chat-template= chat-template-content-format= "
     "default-chat-template-kwargs= guided-decoding-backend= logits-processor-pattern= "
     "logprobs-mode= max-logprobs= override-pooler-config= pooler-config= reasoning-config= "
     "reasoning-parser= reasoning-parser-plugin= structured-outputs-config= tokenizer= "
     "tokenizer-mode= tokenizer-pool-extra-config= tokenizer-pool-size= tokenizer-pool-type= "
     "tokenizer-revision= tool-call-parser= tool-parser-plugin= tool-server= logits-processors=*"},
    {kNoEffect, "it is about how weights are found and loaded",
     "allow-deprecated-quantization trust-remote-code max-lora-cls-labels= engram-config= "
     "code-revision= config-format= download-dir= hf-config-path= hf-token= ignore-patterns= "
     "load-format= max-parallel-loading-workers= model-class-overrides= model-impl= "
     "model-loader-extra-config= pt-load-map-location= revision= safetensors-load-strategy= "
     "safetensors-prefetch-block-size= safetensors-prefetch-num-threads= weight-transfer-config="},
    {kNoEffect, "prompts are text here",
     "enable-shm-tensor-arena mm-device-do-normalize trust-request-mm-kwargs "
     "disable-chunked-mm-input disable-mm-preprocessor-cache enable-mm-embeds "
     "enable-multimodal-encoder-data-parallel enable-tower-connector-lora interleave-mm-strings "
     "language-model-only skip-mm-profiling ec-manager-config= mm-hasher-algorithm= "
     "mm-processor-device= video-pruning-method= allowed-local-media-path= default-mm-loras= "
     "diffusion-config= limit-mm-per-prompt= media-io-kwargs= mm-encoder-attn-backend= "
     "mm-encoder-attn-dtype= mm-encoder-fp8-scale-path= mm-encoder-fp8-scale-save-margin= "
     "mm-encoder-fp8-scale-save-path= mm-encoder-tp-mode= mm-ipc-gpu-memory-gb= "
     "mm-processor-cache-gb= mm-processor-cache-type= mm-processor-kwargs= "
     "mm-shm-cache-max-object-size-mb= mm-tensor-ipc= video-pruning-rate= allowed-media-domains=*"},
    {kNoEffect, "it is about processes and their addresses",
     "disable-nccl-for-dp-synchronization enable-fault-tolerance enable-nccl-comm-suspend "
     "enable-sleep-mode ray-workers-use-nsight sleep-mode-offload-cudagraph device-ids= "
     "dp-sync-interval= fault-tolerance-config= sleep-mode-backend= watchdog-config= "
     "cpu-distributed-timeout-seconds= data-parallel-address= data-parallel-backend= "
     "data-parallel-rpc-port= data-parallel-supervisor-port= device= "
     "distributed-executor-backend= distributed-timeout-seconds= master-addr= master-port= "
     "nnodes= node-rank= worker-cls= worker-extension-cls= sleep-preserve-parameter-names=*"},
    {kNoEffect, "the pool's role says it",
     "is-prefill-worker is-decode-worker disaggregation-mode="},
    {kNoEffect, "it is about Dynamo's runtime around the engine",
     "dyn-enable-structural-tag enable-multimodal enable-rl enable-local-indexer fpm-trace "
     "gms-shadow-mode route-to-encoder multimodal-worker multimodal-decode-worker "
     "multimodal-processor use-vllm-tokenizer tcp-tls-insecure namespace= endpoint= "
     "kv-state-endpoint= discovery-backend= request-plane= event-plane= store-kv= "
     "migration-limit= dyn-tool-call-parser= dyn-reasoning-parser= dyn-default-thinking-mode= "
     "dyn-structural-tag-scope= dyn-structural-tag-schema= custom-jinja-template= dump-config-to= "
     "sleep-mode-level= mm-prompt-template= embedding-transfer-mode= health-check-payload= "
     "model-express-url= multimodal-embedding-cache-capacity-gb= endpoint-types=*"},
    {kNoEffect, "the router hears of blocks as routing.kv_event_delay says", "kv-events-config="},
    {kNoEffect, "answers have the length that is asked for",
     "generation-config= override-generation-config= seed="},
    {kNoEffect, "the engine simulated, V1, does not have it or recomputes instead",
     "max-long-partial-prefills= prefix-caching-hash-algo= swap-space="},
    {kNoEffect, "it counts where something is offloaded, which is refused",
     "cpu-offload-params= offload-backend= offload-num-in-group= offload-params= "
     "offload-prefetch-step="},
    {kApproximated, "steps cost what the latency model says, whichever kernels run",
     "calculate-kv-scales dcp-q-replicate disable-cascade-attn enable-batch-sharded-sampling "
     "enable-hc-sp monokernel swa-bounded-replay use-replayssm disable-custom-all-reduce "
     "enable-bf16x3-router-gemm enable-cumem-allocator enable-cutedsl-warmup "
     "enable-ep-weight-filter enable-flash-late-interaction enable-flashinfer-autotune "
     "use-fp64-gumbel kda-decode-backend= kda-prefill-backend= max-seq-len-to-capture= "
     "sparse-indexer-topk-backend= additional-config= all2all-backend= attention-backend= "
     "attention-config= compilation-config= cp-kv-cache-interleave-size= "
     "dbo-decode-token-threshold= dbo-prefill-token-threshold= dcp-comm-backend= "
     "dcp-kv-cache-interleave-size= expert-placement-strategy= gdn-prefill-backend= "
     "ir-op-priority= kernel-config= linear-backend= max-cudagraph-capture-size= moe-backend= "
     "override-attention-dtype= ubatch-size= cuda-graph-sizes=* cudagraph-capture-sizes=* "
     "kv-cache-dtype-skip-layers=*"},
    {kApproximated, "adapters cost what their slots and rank say",
     "enable-lora-bias enable-mixed-moe-lora-format enable-moe-shared-loras "
     "specialize-active-lora lora-dtype= lora-extra-vocab-size= lora-modules=* "
     "lora-target-modules=*"},
    {kApproximated, "recurrent state takes what the model's config says",
     "enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint "
     "mamba-ssu-algorithm= replayssm-buffer-len= mamba-backend= mamba-block-size= "
     "mamba-cache-dtype= mamba-cache-mode= mamba-cache-philox-rounds= mamba-ssm-cache-dtype= "
     "rope-scaling= rope-theta="},
    {kApproximated, "experts are loaded evenly here, as a balanced placement makes them",
     "enable-elastic-ep eplb-log-balancedness elastic-ep-max-dp-size= eplb-step-interval= "
     "eplb-window-size="},
};

bool is_left_out(FlagUse use) { return use == kWarned || use == kRefused; }

void add_names(const LeftAlone& group, std::vector<FlagRule>& rules) {
  for (std::string_view names = group.names; !names.empty();) {
    const std::string_view name = names.substr(0, names.find(' '));
    rules.push_back({.name = name.substr(0, name.find('=')),
                     .takes = name.ends_with("=*")  ? kValues
                              : name.ends_with("=") ? kValue
                                                    : kNothing,
                     .use = group.use,
                     .why = group.why,
                     .harmless = group.harmless,
                     .fate = group.fate});
    names.remove_prefix(std::min(name.size() + 1, names.size()));
  }
}

}  // namespace

const std::vector<FlagRule>& all_flags() {
  static const std::vector<FlagRule> kRules = [] {
    std::vector<FlagRule> rules(std::begin(kMeaningful), std::end(kMeaningful));
    for (FlagRule& rule : rules)
      if (is_left_out(rule.use)) rule.fate = kNotModelled;
    for (const LeftAlone& group : kLeftAlone) add_names(group, rules);
    std::sort(rules.begin(), rules.end(),
              [](const FlagRule& a, const FlagRule& b) { return a.name < b.name; });
    return rules;
  }();
  return kRules;
}

namespace {

const FlagRule* exact(std::string_view name) {
  const std::vector<FlagRule>& rules = all_flags();
  const auto at =
      std::lower_bound(rules.begin(), rules.end(), name,
                       [](const FlagRule& rule, std::string_view n) { return rule.name < n; });
  return at != rules.end() && at->name == name ? &*at : nullptr;
}

/// The flag that a short form stands for; empty for none.
std::string_view long_name(std::string_view form) {
  const std::string wanted = " " + std::string(form) + "=";
  const std::size_t at = (" " + std::string(kShortForms)).find(wanted);
  if (at == std::string::npos || form.find_first_of(" =") != std::string::npos) return {};
  const std::string_view rest = kShortForms.substr(at + form.size() + 1);
  return rest.substr(0, rest.find(' '));
}

std::string_view without_dashes(std::string_view flag) {
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

std::string with_dashes(std::string_view name) {
  std::string out(name);
  std::replace(out.begin(), out.end(), '_', '-');
  return out;
}

bool is_flag_word(const ShellWord& word) {
  const bool is_negative_number =
      word.text.size() > 1 &&
      (std::isdigit(static_cast<unsigned char>(word.text[1])) != 0 || word.text[1] == '.');
  return word.text.starts_with("-") && word.text.size() > 1 && !is_negative_number;
}

std::optional<bool> truth(const std::string& written) {
  const std::string text = lower_case(written);
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return std::nullopt;
}

/// Every name, and `no-NAME` of switches.
const std::vector<std::string>& all_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const FlagRule& rule : all_flags()) {
      names.emplace_back(rule.name);
      if (rule.takes == kNothing) names.push_back("no-" + std::string(rule.name));
    }
    return names;
  }();
  return kNames;
}

std::string suggestion(std::string_view name) {
  const std::string written = with_dashes(name);
  if (!long_name(written).empty()) return "did you mean -" + written + "?";
  const std::string close = nearest(written, all_names());
  if (!close.empty()) return "did you mean --" + close + "?";
  return "leave it out if nothing that is simulated depends on it";
}

/// The rule of a flag, of its short form or of its unambiguous beginning; else null and an error.
const FlagRule* find_begun(const std::string& written, const SourceLocation& where,
                           const std::string& key_path, bool& negated, Diagnostics& diagnostics) {
  if (const FlagRule* rule = find_flag(written, negated)) return rule;
  const std::string name = with_dashes(without_dashes(written));
  std::vector<std::string> meant;
  if (written.starts_with("--")) meant = flags_beginning(name, all_names());
  if (meant.size() == 1) return find_flag_key(meant.front(), negated);
  if (meant.empty())
    diagnostics.error(where, key_path, "unknown flag " + printable(written), suggestion(name));
  else
    diagnostics.error(where, key_path,
                      "is the beginning of several flags (got " + in_quotes(written) + ")",
                      fmt::format("write one of --{}", fmt::join(meant, ", --")));
  return nullptr;
}

/// `-O3`, `-O 3` and `-O=3` are an optimization level, `-O.level 3` and `-O JSON` are of the
/// compilation, as releases up to v0.10 have it (vllm/utils/argparse_utils.py@v0.33.0,
/// vllm/utils.py@v0.9.0).
std::string with_long_name(const std::string& flag, const ShellWord* next) {
  if (!flag.starts_with("-O")) return flag;
  const std::string rest = flag.substr(2);
  if (rest.starts_with(".")) return "--compilation-config" + rest;
  if (rest.empty())
    return next != nullptr && next->text.starts_with("{") ? "--compilation-config"
                                                          : "--optimization-level";
  return (rest.front() == '{' ? "--compilation-config=" : "--optimization-level=") +
         rest.substr(rest.front() == '=' ? 1 : 0);
}

/// Whether releases up to v0.8 take a value of the switch (StoreBoolean in
/// vllm/engine/arg_utils.py@v0.8.5).
bool took_truth(const FlagRule& rule) { return rule.name == "enable-chunked-prefill"; }

/// Reads the words of one command line.
class WordReader {
 public:
  WordReader(const std::vector<ShellWord>& words, const std::string& key_path, ServeFlags& flags,
             Diagnostics& diagnostics)
      : words_(words), key_path_(key_path), flags_(flags), diagnostics_(diagnostics) {}

  void run() {
    while (next_ < words_.size()) {
      const ShellWord& word = words_[next_++];
      if (word.text == "--") continue;
      if (is_flag_word(word))
        read_flag(word);
      else
        read_positional(word);
    }
    for (const auto& [name, whole] : dotted_)
      flags_[name] = {.rule = exact(name), .value = {to_json(*whole), whole->where()}};
  }

 private:
  /// The model. A variable before it may hold flags.
  void read_positional(const ShellWord& word) {
    const bool is_first = model_ == nullptr;
    if (is_first || (!model_->unknown.empty() && word.unknown.empty())) {
      if (!is_first) report_unknown(*model_);
      model_ = &word;
      flags_["model"] = {.rule = exact("model"), .off = false, .value = word};
    } else if (!word.unknown.empty()) {
      report_unknown(word);
    } else {
      diagnostics_.error(word.where, key_path_,
                         "belongs to no flag (got " + in_quotes(word.text) + ")",
                         "only the model stands without a flag; put values with blanks in quotes");
    }
  }

  void report_unknown(const ShellWord& word) {
    diagnostics_.error(word.where, key_path_,
                       "what " + printable(word.unknown) + " stands for is not known here",
                       "write out the flags it holds");
  }

  void read_flag(const ShellWord& word) {
    const std::string written =
        with_long_name(word.text, next_ < words_.size() ? &words_[next_] : nullptr);
    const std::size_t equals = std::min(written.find('='), written.size());
    const bool has_value = equals < written.size();
    const std::string name = written.substr(0, equals);
    const std::size_t dot = std::min(name.find('.'), name.size());
    bool negated = false;
    const FlagRule* rule =
        find_begun(name.substr(0, dot), word.where, key_path_, negated, diagnostics_);
    if (rule == nullptr) return skip_values(has_value);
    ServeFlag flag{.rule = rule, .off = negated, .value = word};
    flag.value.text = has_value ? written.substr(equals + 1) : "";
    if (rule->takes == kNothing) {
      if (take_truth(name, has_value, flag)) flags_[std::string(rule->name)] = std::move(flag);
    } else if (take_value(name, has_value, flag)) {
      if (dot < name.size()) return add_dotted(*rule, name.substr(dot + 1), flag.value);
      flags_[std::string(rule->name)] = std::move(flag);
    }
  }

  /// A switch has no value, but for the flags of took_truth: `--NAME=false` and `--NAME false`.
  bool take_truth(const std::string& name, bool has_value, ServeFlag& flag) {
    const bool took = took_truth(*flag.rule);
    if (!has_value && !(took && next_ < words_.size() && truth(words_[next_].text))) return true;
    if (!has_value) flag.value.text = words_[next_++].text;
    const std::optional<bool> said = truth(flag.value.text);
    if (said) flag.off = flag.off == *said;
    const bool is_fine = took && said;
    diagnostics_.add({.severity = is_fine ? Severity::kWarning : Severity::kError,
                      .where = flag.value.where,
                      .path = key_path_,
                      .message = printable(name) + " is on or off and takes no value" +
                                 (is_fine ? " from vLLM 0.9 on" : "") + " (got " +
                                 in_quotes(flag.value.text) + ")",
                      .hint = fmt::format("write --{0} or --no-{0}", flag.rule->name)});
    return is_fine;
  }

  /// `--NAME.a.b VALUE`: one key of the JSON value of NAME; `--NAME.a+ x,y`: elements of a list.
  void add_dotted(const FlagRule& rule, std::string path, const ShellWord& word) {
    std::string value = word.text;
    if (path.ends_with('+')) {
      path.pop_back();
      std::string& items = lists_[std::string(rule.name) + "." + path];
      items += (items.empty() ? "" : ",") + value;
      value = "[" + items + "]";
    }
    Ptr& whole = dotted_[std::string(rule.name)];
    if (whole == nullptr) whole = ConfigNode::make_map({}, word.where);
    if (const auto key = parse_assignment_at(path + "=" + value, word.where, diagnostics_))
      whole = apply_assignment(whole, *key, diagnostics_);
  }

  void skip_values(bool has_value) {
    while (!has_value && next_ < words_.size() && !is_flag_word(words_[next_])) ++next_;
  }

  /// The words that belong to a flag with a value. `--flag=` leaves the default.
  bool take_value(const std::string& name, bool has_value, ServeFlag& flag) {
    if (has_value) return !flag.value.text.empty();
    if (next_ == words_.size() || is_flag_word(words_[next_])) {
      diagnostics_.error(flag.value.where, key_path_, printable(name) + " has no value");
      return false;
    }
    flag.value = words_[next_++];
    if (flag.rule->takes == kValues) skip_values(false);
    return true;
  }

  const std::vector<ShellWord>& words_;
  const std::string& key_path_;
  ServeFlags& flags_;
  Diagnostics& diagnostics_;
  std::size_t next_ = 0;
  const ShellWord* model_ = nullptr;          ///< The word that stands without a flag.
  std::map<std::string, Ptr> dotted_;         ///< The values that dotted flags make.
  std::map<std::string, std::string> lists_;  ///< Elements of lists in them, so far.
};

}  // namespace

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

const FlagRule* find_flag_key(std::string_view key, bool& negated) {
  const std::string name = with_dashes(key);
  const FlagRule* rule = exact(name);
  negated = false;
  if (rule != nullptr || !name.starts_with("no-")) return rule;
  rule = exact(std::string_view(name).substr(3));
  negated = rule != nullptr && rule->takes == kNothing;
  return negated ? rule : nullptr;
}

const FlagRule* find_flag(std::string_view written, bool& negated) {
  negated = false;
  if (!written.starts_with("--") && written.size() > 1)
    if (const std::string_view name = long_name(written.substr(1)); !name.empty())
      return exact(name);
  return find_flag_key(without_dashes(written), negated);
}

void read_flag_words(const std::vector<ShellWord>& words, const std::string& key_path,
                     ServeFlags& flags, Diagnostics& diagnostics) {
  WordReader(words, key_path, flags, diagnostics).run();
}

void read_flag_map(const ConfigNode& map, const std::string& key_path, ServeFlags& flags,
                   Diagnostics& diagnostics) {
  for (const ConfigNode::Member& member : map.members()) {
    const ConfigNode& node = *member.value;
    ServeFlag flag;
    const std::string name =
        member.key == "model-tag" || member.key == "model_tag" ? "model" : member.key;
    flag.rule = find_begun("--" + name, member.key_where, key_path, flag.off, diagnostics);
    if (flag.rule == nullptr) continue;
    if (flag.rule->use == kConfigFile)
      diagnostics.error(member.key_where, key_path,
                        "names a second file, which vLLM does not read");
    flag.value.where = node.is_null() ? member.key_where : node.where();
    flag.value.text = node.is_scalar() ? node.text() : node.is_null() ? "" : to_json(node);
    const bool is_switch = flag.rule->takes == kNothing;
    const std::optional<bool> said = truth(flag.value.text);
    if (is_switch && !said && !flag.value.text.empty()) {
      diagnostics.error(node.where(), key_path, member.key + " is on or off (" + got(node) + ")",
                        "write true or false");
      continue;
    }
    if (is_switch && said) flag.off = flag.off == *said;
    if (is_switch || !flag.value.text.empty())
      flags[std::string(flag.rule->name)] = std::move(flag);
  }
}

}  // namespace routesim::tools
