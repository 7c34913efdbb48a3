// KV tiers in the files that people have: every case of the tables in kv_tiers names files and what
// becomes of them. `pool` is the block of the pool's own keys, `keys` what is decided of its
// `engine.kv_tiers`, as `key=value@file:line:column`, `said` every error and warning. With a block
// `router.yaml` the servers are behind that router.
#include "tools/ingest/servers/kv_tier_files.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "tests/base/case_table.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/prepare.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/tree/data_table.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {
namespace {

class KvTierFiles : public testing::FolderTest,
                    public ::testing::WithParamInterface<case_table::CaseOfTable> {
 protected:
  void load(const case_table::TableCase& one) {
    for (const auto& [name, text] : one.blocks)
      if (name != "pool" && name != "keys" && name != "said") write(name, text);
    const std::string file = write("s.yaml",
                                   "name: s\n"
                                   "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
                                   "cluster:\n"
                                   "  pools:\n"
                                   "  - accelerator: H200\n" +
                                       one.block("pool") + routing(one));
    Diagnostics found;
    LoadedVariant variant =
        load_scenario({.path = file, .sets = {}, .variants = {}, .seed = {}}, found).variants.at(0);
    if (!found.has_errors()) (void)prepare(variant, found);
    said_ = without_folder(messages_of(tidy(found)));
    std::optional<sim::KvTierConfig>& tiers = variant.scenario.cluster.pools.at(0).engine.kv_tiers;
    if (!tiers) return;
    const FieldDescription values = describe_values([&](Describer& d) { describe(d, *tiers); });
    for (const ResolvedValue& value : resolved_values(values, {}))
      add_key(value, variant.provenance);
  }

  /// Behind the router of the case's `router.yaml`, where it has one.
  static std::string routing(const case_table::TableCase& one) {
    return one.block("router.yaml").empty()
               ? ""
               : "routing: {balancer: endpoint-picker, endpoint_picker: router.yaml}\n";
  }

  void add_key(const ResolvedValue& value, const Provenance& provenance) {
    const SourceLocation* at = provenance.find("cluster.pools[0].engine.kv_tiers." + value.path);
    if (at == nullptr) return;
    keys_ += value.path + "=" + value.value + "@" + without_folder(at->file) + ":" +
             std::to_string(at->line) + ":" + std::to_string(at->column) + "\n";
  }

  std::string without_folder(std::string text) const {
    const std::string folder = folder_.string() + "/";
    for (std::size_t p = text.find(folder); p != std::string::npos; p = text.find(folder))
      text.erase(p, folder.size());
    return text;
  }

  std::string keys_;
  std::string said_;
};

/// Set ROUTESIM_UPDATE_EXPECTED=1 to write what is read now, then review the diff.
TEST_P(KvTierFiles, AreReadOrNamed) {
  const case_table::TableCase& one = GetParam().one;
  load(one);
  if (std::getenv("ROUTESIM_UPDATE_EXPECTED") != nullptr) {
    case_table::replace_block(GetParam(), "keys", keys_);
    case_table::replace_block(GetParam(), "said", said_);
    return;
  }
  EXPECT_EQ(keys_, one.block("keys"));
  EXPECT_EQ(said_, one.block("said"));
}

INSTANTIATE_TEST_SUITE_P(Tables, KvTierFiles,
                         ::testing::ValuesIn(case_table::cases_in(std::string(ROUTESIM_SOURCE_DIR) +
                                                                  "/tests/tools/kv_tiers")),
                         [](const auto& given) { return given.param.one.name; });

/// A key without a rule of its own falls to `**`, which says that nobody knows it.
TEST(KvTierKeys, TablesGiveReasonsAndNameAKeyOnce) {
  for (const KeyTable* table :
       {&key_table(kTransferFormat), &key_table("kv-transfer-config between servers"),
        &key_table("LMCache"), &key_table("Mooncake store")}) {
    std::set<std::string_view> patterns;
    for (const KeyRule& rule : table->rules) {
      EXPECT_EQ(rule.fate == Fate::kUsed, rule.why.empty()) << rule.pattern;
      EXPECT_TRUE(patterns.insert(rule.pattern).second) << rule.pattern;
    }
  }
  EXPECT_EQ(find_rule(key_table("LMCache"), "max_local_cpu_sise")->fate, Fate::kNotModelled);
}

}  // namespace
}  // namespace routesim::tools
