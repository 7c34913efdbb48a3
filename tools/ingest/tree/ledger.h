// The ledger of keys: what becomes of everything that the files of one command say.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/config_node.h"
#include "base/key_fate.h"

namespace routesim::tools {

/// Formats whose keys share a text: the flags of a command, and the JSON in one of them.
inline constexpr std::string_view kServeFormat = "vllm serve";
inline constexpr std::string_view kLaunchFormat = "sglang serve";
inline constexpr std::string_view kTransferFormat = "kv-transfer-config";

/// Notes the fate of every key below `root` that has a value of its own, by the format's table,
/// and warns of what is not modelled. `path` is the key path of the root; what stands at
/// `elsewhere` is left to another reader. A key without a rule counts as used, and the tests look
/// for it.
void note_keys(const ConfigNode& root, const std::string& path, const KeyTable& table,
               const ConfigNode* elsewhere, Diagnostics& diagnostics);

/// Every key once, by file and line. Where variants make different things of one key, the fate that
/// says most about the result: not modelled, approximated, used, no effect.
std::vector<KeyUse> ledger(const Diagnostics& diagnostics);

/// `41 keys used, 6 without effect, 1 approximated, 2 not modelled`, without the zeros.
std::string summary_text(std::span<const KeyUse> keys);

/// One line per key: `file:line:col: fate: path (why)`.
std::string keys_text(std::span<const KeyUse> keys);

}  // namespace routesim::tools
