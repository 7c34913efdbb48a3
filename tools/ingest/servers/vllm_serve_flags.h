// The flags of `vllm serve` and of SGLang's `launch_server`: which there are, what each takes, and
// what it means for a simulation.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "sim/plan/scenario.h"
#include "tools/ingest/tree/shell_words.h"

namespace routesim::tools {

/// The words that follow a flag on the command line. A switch has a twin that turns it off:
/// `--no-NAME`.
enum class FlagTakes { kNothing, kValue, kValues };

/// The fate of a flag.
enum class FlagUse {
  kIgnored,       ///< Nothing that a simulation shows depends on it.
  kCopied,        ///< Its value is that of the pool's key `key`.
  kCount,         ///< The same, for whole numbers that may be written `16k` or `1M`.
  kSwitch,        ///< `key` is on, or off.
  kOffSwitch,     ///< The other way round.
  kKvCacheDtype,  ///< The formats of the KV cache, of which there are fewer here.
  kQuantization,  ///< Must agree with the model's weights.
  kTiers,         ///< Says together with others what is kept outside GPU memory.
  kConfigFile,    ///< Names a file with more flags.
  kAdapters,      ///< Says together with others which LoRA adapters fit.
  kBalancing,     ///< Says together with others who chooses the DP rank.
  kSpeculation,   ///< Says together with others how tokens are guessed.
  kExpertRanks,   ///< Expert parallelism is on where it is as wide as tensor parallelism.
  kChunk,         ///< A whole number, or -1 for none.
  kPolicy,        ///< Orders of the queue, of which there are fewer here.
  kWarned,        ///< Changes the answer a little, and is left out: `why`.
  kRefused,       ///< Without it the answer would be another one: `why`.
};

struct FlagRule {
  std::string_view name = {};        ///< Without dashes before it: `tensor-parallel-size`.
  std::string_view short_form = {};  ///< `tp`; empty for none.
  FlagTakes takes = FlagTakes::kValue;
  FlagUse use = FlagUse::kIgnored;
  std::string_view key = {};       ///< Key path inside the pool.
  std::string_view why = {};       ///< Its effect, for the sentence "--NAME WHY"; if ignored, why.
  std::string_view harmless = {};  ///< Values that change nothing, between blanks.
  Fate fate = Fate::kUsed;         ///< In the ledger of keys.
};

/// A flag as it was given.
struct ServeFlag {
  const FlagRule* rule = nullptr;
  bool off = false;  ///< `--no-NAME`, or `NAME: false` in a file.
  ShellWord value;   ///< Its place, and its value if it takes one.
};

/// The flags in force, by name.
using ServeFlags = std::map<std::string, ServeFlag>;

/// Reads the words after `vllm serve` or `sglang serve` over what `flags` holds: the last of two
/// wins, as both have it. For vLLM a first word that is no flag is the model. Unknown flags and
/// missing values are errors.
void read_flag_words(const std::vector<ShellWord>& words, const std::string& key_path,
                     ServeFlags& flags, Diagnostics& diagnostics,
                     sim::EngineKind engine = sim::EngineKind::kVllm);

/// Reads a map of flags (dashes or underscores) over what `flags` holds, such as vLLM's own
/// `--config` file.
void read_flag_map(const ConfigNode& map, const std::string& key_path, ServeFlags& flags,
                   Diagnostics& diagnostics, sim::EngineKind engine = sim::EngineKind::kVllm);

/// Lists what becomes of each variable that engines read, and warns of those that are not modelled
/// or not known. Where a connector of LMCache is used, its reader says it of LMCACHE_*.
void note_variables(const ShellVariables& variables, bool with_lmcache, const std::string& key_path,
                    Diagnostics& diagnostics, sim::EngineKind engine = sim::EngineKind::kVllm);

/// Every flag, sorted by name: vllm_serve_flags.csv, with names and meanings as in
/// vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py, v0.9 to v0.33; or
/// sglang_serve_flags.csv, as in sglang/srt/server_args.py of 0.5.9.
const std::vector<FlagRule>& all_flags(sim::EngineKind engine = sim::EngineKind::kVllm);

/// The rule of a flag of the command line, by its name or its short form; null when it is unknown.
/// `negated` tells whether it was `--no-NAME`.
const FlagRule* find_flag(std::string_view written, bool& negated,
                          sim::EngineKind engine = sim::EngineKind::kVllm);

/// The same for a key of a file, which has no short forms.
const FlagRule* find_flag_key(std::string_view key, bool& negated,
                              sim::EngineKind engine = sim::EngineKind::kVllm);

/// `--max-num-seqs 256`: the flag as it gives its key this value, where it does so alone; else "".
std::string flag_text(const FlagRule& rule, const std::string& value);

}  // namespace routesim::tools
