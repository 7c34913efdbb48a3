// Every case of the profile handlers' and deciders' vector files.
#include <gtest/gtest.h>

#include <map>

#include "policies/plugins/profile_handlers.h"
#include "tests/policies/plugin_bench.h"

namespace routesim::policies {
namespace {

using test::member;
using test::name_of;
using test::vector_cases;

/// Results by profile name: null = failed, a name or list of names = targets.
std::vector<ProfileResult> results_from(const Json& json, const std::vector<std::string>& profiles,
                                        const std::map<std::string, EndpointRow>& rows) {
  std::vector<ProfileResult> results(profiles.size());
  for (std::size_t i = 0; i < profiles.size(); ++i) {
    if (!json.contains(profiles[i])) continue;
    const Json& r = json[profiles[i]];
    results[i].state = r.is_null() ? ProfileState::kFailed : ProfileState::kOk;
    if (r.is_string()) results[i].targets = {rows.at(r.get<std::string>())};
    if (r.is_array())
      for (const Json& target : r) results[i].targets.push_back(rows.at(target.get<std::string>()));
  }
  return results;
}

/// The endpoints every case names: pods, and host:port pairs.
const std::vector<std::string>& endpoint_names() {
  static const std::vector<std::string> kNames = {
      "pod1",          "pod2",          "pod3",          "a",
      "10.0.0.1:8000", "10.0.0.2:8000", "10.0.0.1:8080", "10.0.0.7:8000"};
  return kNames;
}

std::map<std::string, EndpointRow> add_endpoints(EndpointTable& table) {
  std::map<std::string, EndpointRow> rows;
  for (const std::string& name : endpoint_names()) {
    EndpointInfo info;
    info.pod_name = name;
    const std::size_t colon = name.find(':');
    info.address = name.substr(0, colon);
    if (colon != std::string::npos) info.port = std::stoi(name.substr(colon + 1));
    rows[name] = table.add(std::move(info)).value();
  }
  return rows;
}

std::vector<std::string> picked_profiles(PluginBench& bench, const Json& c,
                                         const std::vector<std::string>& profiles,
                                         const RequestView& request) {
  const auto rows = add_endpoints(bench.table());
  if (c.contains("cached_blocks_on_decode_pick"))
    bench.stub().matches.assign(
        bench.table().rows(),
        StubData::Match{c["cached_blocks_on_decode_pick"], 1000, c["block_size"], {}});
  const Json& matched = member(c, "prefix_matched_blocks_on_decode_pick");
  if (!matched.is_null())
    bench.stub().matches.assign(bench.table().rows(), StubData::Match{matched, 1000, 1, {}});
  Cycle cycle;
  Decision decision;
  bench.begin(cycle, request, decision);
  const auto results = results_from(c["results_so_far"], profiles, rows);
  std::vector<std::uint32_t> run;
  bench.subject<ProfileHandler>().next(cycle, profiles, results, run);
  std::vector<std::string> names;
  for (const std::uint32_t i : run) names.push_back(profiles[i]);
  return names;
}

/// Runs process() on the case's results and checks everything the case expects.
void check_process(PluginBench& bench, const Json& c, const std::vector<std::string>& profiles) {
  const auto rows = add_endpoints(bench.table());
  Cycle cycle;
  Decision decision;
  const RequestView request;
  bench.begin(cycle, request, decision);
  decision.profiles = results_from(c["results"], profiles, rows);
  const char* error = bench.subject<ProfileHandler>().process(cycle, profiles, decision);
  if (c.contains("expected_error")) {
    ASSERT_NE(error, nullptr);
    if (c["expected_error"].is_string()) {
      EXPECT_EQ(error, c["expected_error"].get<std::string>());
    }
    return;
  }
  ASSERT_EQ(error, nullptr) << error;
  if (c.contains("expected_primary")) {
    EXPECT_EQ(profiles[static_cast<std::size_t>(decision.primary_profile)],
              c["expected_primary"].get<std::string>());
  }
  if (c.contains("expected_profiles")) {
    std::vector<std::string> kept;
    for (std::size_t i = 0; i < profiles.size(); ++i)
      if (decision.profiles[i].ok()) kept.push_back(profiles[i]);
    auto expected = c["expected_profiles"].get<std::vector<std::string>>();
    std::sort(kept.begin(), kept.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(kept, expected);
  }
  std::vector<std::string> targets;
  for (const EndpointRow r :
       decision.profiles[static_cast<std::size_t>(decision.primary_profile)].targets) {
    const EndpointInfo& info = bench.table().info(r);
    const std::int32_t port =
        decision.destination_port >= 0 ? decision.destination_port : info.port;
    targets.push_back(info.address + ":" + std::to_string(port));
  }
  if (c.contains("expected_targets")) {
    EXPECT_EQ(targets, c["expected_targets"].get<std::vector<std::string>>());
  }
  if (c.contains("expected_target")) {
    EXPECT_EQ(targets, std::vector<std::string>{c["expected_target"].get<std::string>()});
  }
  if (c.contains("expected_headers")) {
    const std::map<std::string, std::string> headers(decision.headers.begin(),
                                                     decision.headers.end());
    EXPECT_EQ(headers, (c["expected_headers"].get<std::map<std::string, std::string>>()));
  }
}

std::vector<std::string> keys_of(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

TEST(HandlerVectors, SingleAndDataParallel) {
  for (const Json& c : vector_cases("data_parallel_profile_handler")) {
    SCOPED_TRACE(name_of(c));
    const std::string type = name_of(c).rfind("single", 0) == 0 ? "single-profile-handler"
                                                                : "data-parallel-profile-handler";
    EXPECT_EQ(type, c.value("handler", type));
    const std::string fn = c["fn"];
    if (fn == "config") {
      PluginBench bench(type, c["params"], 0);
      ASSERT_EQ(bench.built(), !c["expected_error"].get<bool>()) << bench.errors();
      EXPECT_EQ(std::to_string(bench.subject<DataParallelProfileHandler>().primary_port()),
                c["expected_port"].get<std::string>());
      continue;
    }
    Json parameters;
    if (c.contains("primaryPort")) parameters = {{"primaryPort", c["primaryPort"]}};
    PluginBench bench(type, parameters, 0);
    ASSERT_TRUE(bench.built()) << bench.errors();
    if (fn == "pick") {
      const auto profiles = c["profiles"].get<std::vector<std::string>>();
      EXPECT_EQ(picked_profiles(bench, c, profiles, {}),
                c["expected_next_profiles"].get<std::vector<std::string>>());
    } else {
      ASSERT_EQ(fn, "process");
      check_process(bench, c, keys_of(c["results"]));
    }
  }
}

TEST(HandlerVectors, Disagg) {
  for (const Json& c : vector_cases("disagg_profile_handler")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c["fn"];
    if (fn == "stage_order") {
      const auto order = parse_stage_order(c["value"].get<std::string>());
      ASSERT_EQ(!order.has_value(), c["expected_error"].get<bool>());
      PluginBench bench("disagg-profile-handler", {{"stageOrder", c["value"]}}, 0);
      EXPECT_EQ(bench.built(), order.has_value());
      if (!order) continue;
      EXPECT_EQ(*order == StageOrder::kDecodeFirst ? "decode-first" : "prefill-first",
                c["expected"].get<std::string>());
      continue;
    }
    if (fn == "config") {
      PluginBench bench("disagg-profile-handler", c["params"], 0);
      EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>()) << bench.errors();
      continue;
    }
    const std::vector<std::string> profiles =
        c.contains("profiles") ? c["profiles"].get<std::vector<std::string>>()
                               : std::vector<std::string>{"decode", "prefill", "encode"};
    Json parameters = {{"stageOrder", c.value("stage_order", "decode-first")}};
    Json more = Json::array();
    const Json& prefill = member(c, "prefill_decider");
    if (!prefill.is_null()) {
      parameters["deciders"]["prefill"] = prefill["type"];
      more.push_back({{"type", prefill["type"]},
                      {"parameters", {{"nonCachedTokens", prefill["nonCachedTokens"]}}}});
    }
    const Json& encode = member(c, "encode_decider");
    if (!encode.is_null()) {
      parameters["deciders"]["encode"] = encode;
      more.push_back({{"type", encode}});
    }
    PluginBench bench("disagg-profile-handler", parameters, 0, {}, profiles, more);
    ASSERT_TRUE(bench.built()) << bench.errors();
    if (fn == "pick") {
      RequestView request;
      request.prompt_tokens = c["input_tokens"];
      request.multimodal = c["request_has_multimodal"];
      EXPECT_EQ(picked_profiles(bench, c, profiles, request),
                c["expected_next_profiles"].get<std::vector<std::string>>());
    } else if (fn == "process") {
      check_process(bench, c, profiles);
    } else if (fn == "pre_request") {
      Json as_process = {{"results", {{"decode", {"a"}}, {"prefill", c["prefill_targets"]}}},
                         {"expected_headers", c["expected_headers"]}};
      check_process(bench, as_process, profiles);
    } else {
      FAIL() << "unknown case kind " << fn;
    }
  }
}

// Cases of prefix-based-pd-decider.
void check_decider(const Json& c, std::optional<Era> era) {
  Json parameters = {{"nonCachedTokens", c["nonCachedTokens"]}};
  if (c.contains("promptTokens")) parameters["promptTokens"] = c["promptTokens"];
  // Up to v0.7.0 the decider reads the state of prefix-cache-scorer, which must be declared.
  PluginBench bench("prefix-based-pd-decider", parameters, 1,
                    {.era = era, .distribution = {}, .registry = nullptr});
  ASSERT_TRUE(bench.built()) << bench.errors();
  const Json& cached = c["cached_blocks"];
  if (!cached.is_null())
    bench.stub().matches = {StubData::Match{c.value("match_blocks_weighted", cached), 1000,
                                            c["block_size"], cached.get<std::int64_t>()}};
  RequestView request;
  request.prompt_tokens = c["input_tokens"];
  Cycle cycle;
  Decision decision;
  bench.begin(cycle, request, decision);
  const std::optional<EndpointRow> endpoint =
      c["endpoint_present"].get<bool>() ? std::optional<EndpointRow>(0) : std::nullopt;
  EXPECT_EQ(bench.subject<Decider>().disaggregate(cycle, endpoint),
            c["expected_disaggregate"].get<bool>());
}

void check_threshold_era(const Json& c) {
  const std::vector<std::string> profiles = {"prefill", "decode"};
  // The stub takes the place of prefix-cache-scorer's state: every slot holds its matches.
  PluginBench bench("pd-profile-handler",
                    {{"threshold", c["threshold"]}, {"hashBlockSize", c["hashBlockSize"]}}, 0,
                    {.era = Era::kV0_5_0, .distribution = {}, .registry = nullptr}, profiles,
                    Json::array({{{"type", "prefix-cache-scorer"}}}));
  ASSERT_TRUE(bench.built()) << bench.errors();
  RequestView request;
  request.prompt_bytes = c["prompt_bytes"];
  EXPECT_EQ(picked_profiles(bench, c, profiles, request),
            c["expected_next_profiles"].get<std::vector<std::string>>());
}

// llm-d-router ebab6879 disagg_profile_handler.go, ParseStageOrder.
TEST(HandlerVectors, AnEmptyStageOrderIsTheDefault) {
  EXPECT_EQ(parse_stage_order(""), StageOrder::kDecodeFirst);
  PluginBench bench("disagg-profile-handler", {{"stageOrder", ""}}, 0, {}, {"decode"});
  EXPECT_TRUE(bench.built()) << bench.errors();
}

TEST(HandlerVectors, PrefillDecode) {
  const std::vector<std::string> profiles = {"decode", "prefill"};
  for (const Json& c : vector_cases("pd_profile_handler")) {
    SCOPED_TRACE(name_of(c));
    const std::string fn = c["fn"];
    if (fn == "prefix_based_decider") {
      check_decider(c, std::nullopt);
    } else if (fn == "prefix_based_decider_v060") {
      check_decider(c, Era::kV0_6_0);
    } else if (fn == "decider_config") {
      PluginBench bench(
          "prefix-based-pd-decider",
          {{"nonCachedTokens", c["nonCachedTokens"]}, {"promptTokens", c["promptTokens"]}}, 0);
      EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>());
    } else if (fn == "always") {
      PluginBench bench("always-disagg-pd-decider", {}, 1);
      Cycle cycle;
      Decision decision;
      bench.begin(cycle, {}, decision);
      EXPECT_EQ(bench.subject<Decider>().disaggregate(cycle, std::nullopt),
                c["expected_disaggregate"].get<bool>());
    } else if (fn == "pd_pick" || fn == "pd_process" || fn == "pd_config") {
      Json parameters = member(c, "params").is_null() ? Json::object() : c["params"];
      if (c.contains("primaryPort")) parameters["primaryPort"] = c["primaryPort"];
      Json decider = {{"type", "prefix-based-pd-decider"}};
      if (c.contains("decider"))
        decider["parameters"] = {{"nonCachedTokens", c["decider"]["nonCachedTokens"]}};
      PluginBench bench("pd-profile-handler", parameters, 0, {}, profiles, Json::array({decider}));
      if (fn == "pd_config") {
        EXPECT_EQ(bench.built(), !c["expected_error"].get<bool>()) << bench.errors();
        continue;
      }
      ASSERT_TRUE(bench.built()) << bench.errors();
      if (fn == "pd_process") {
        check_process(bench, c, profiles);
        continue;
      }
      RequestView request;
      request.prompt_tokens = c["input_tokens"];
      EXPECT_EQ(picked_profiles(bench, c, profiles, request),
                c["expected_next_profiles"].get<std::vector<std::string>>());
    } else if (fn == "pd_pick_threshold_era") {
      check_threshold_era(c);
    } else {
      FAIL() << "unknown case kind " << fn;
    }
  }
}

TEST(PdHandler, RefusesWhatUpstreamRefuses) {
  const std::vector<std::string> profiles = {"decode", "prefill"};
  PluginBench no_decider("pd-profile-handler", {}, 0, {}, profiles);
  EXPECT_FALSE(no_decider.built());
  EXPECT_NE(no_decider.errors().find("references undefined plugin 'prefix-based-pd-decider'"),
            std::string::npos);
  for (const int port : {-1, 65536})
    EXPECT_FALSE(PluginBench("pd-profile-handler", {{"primaryPort", port}}, 0, {}, profiles,
                             Json::array({{{"type", "prefix-based-pd-decider"}}}))
                     .built());
  PluginBench mixed("disagg-profile-handler",
                    {{"decodeProfile", "d"}, {"profiles", {{"decode", "d"}}}}, 0);
  EXPECT_NE(mixed.errors().find("mixes the older flat field names"), std::string::npos);
  PluginBench order(
      "disagg-profile-handler",
      {{"stageOrder", "prefill-first"}, {"deciders", {{"prefill", "always-disagg-pd-decider"}}}}, 0,
      {}, {"decode"}, Json::array({{{"type", "always-disagg-pd-decider"}}}));
  EXPECT_NE(order.errors().find("cannot be used with stageOrder prefill-first"), std::string::npos);
}

}  // namespace
}  // namespace routesim::policies
