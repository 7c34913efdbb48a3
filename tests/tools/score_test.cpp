// routesim score: the documented example files give the numbers that the formulas give by hand, the
// wire format and its spelled-out form are the same, and bad files are refused with their places.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "policies/kv_events/kv_events.h"
#include "tests/policies/kv_encode.h"
#include "tests/tools/command_fixture.h"
#include "tools/cli/cli.h"

namespace routesim::tools {
namespace {

using nlohmann::json;

struct Result {
  ExitCode code;
  std::string out, err;
  json parsed() const { return json::parse(out); }
  json profile(std::size_t i = 0) const { return parsed().at("profiles").at(i); }
  std::string primary() const { return parsed().at("decision").at("primary").at("name"); }
};

class Score : public testing::FolderTest {
 protected:
  static std::string example(const std::string& name) {
    return std::string(ROUTESIM_SOURCE_DIR) + "/tests/tools/score/" + name;
  }

  struct Files {
    std::string config = example("precise.yaml");
    std::string endpoints = example("endpoints.json");
    std::string request = example("request.json");
    std::string events = {};
    std::vector<std::string> more = {};
  };
  static Result score(const Files& files) {
    std::vector<std::string> arguments = {"score",         "--config",  files.config, "--endpoints",
                                          files.endpoints, "--request", files.request};
    if (!files.events.empty()) arguments.insert(arguments.end(), {"--events", files.events});
    arguments.insert(arguments.end(), files.more.begin(), files.more.end());
    testing::TestConsole console;
    const ExitCode code = run_command_line(arguments, console);
    return {.code = code, .out = console.output(), .err = console.errors};
  }
};

TEST_F(Score, ExampleFilesGiveWhatTheFormulasGive) {
  const Result r = score({.events = example("events.jsonl")});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_EQ(r.err, "");
  const json p = r.profile();
  // decode-2 is not ready, prefill-0 does not decode.
  EXPECT_EQ(p.at("candidates"), json({"decode-0", "decode-1", "prefill-0"}));
  EXPECT_EQ(p.at("filters"),
            json({{{"plugin", "decode-filter"}, {"survivors", {"decode-0", "decode-1"}}}}));
  const json& s = p.at("scorers");
  ASSERT_EQ(s.size(), 3U);
  // Both full blocks are cached on decode-1; decode-0 stored one and removed it again.
  EXPECT_EQ(s[0].at("plugin"), "precise-prefix-cache-scorer");
  EXPECT_EQ(s[0].at("weight"), 3.0);
  EXPECT_EQ(s[0].at("scores"), json({{"decode-0", 0.0}, {"decode-1", 1.0}}));
  // 1 - usage, then the queue between its extremes.
  EXPECT_EQ(s[1].at("scores"), json({{"decode-0", 0.5}, {"decode-1", 0.25}}));
  EXPECT_EQ(s[2].at("scores"), json({{"decode-0", 1.0}, {"decode-1", 0.0}}));
  EXPECT_EQ(p.at("totals"), json({{"decode-0", 3.0}, {"decode-1", 3.5}}));
  EXPECT_EQ(p.at("picked"), json({"decode-1"}));
  const json d = r.parsed().at("decision");
  EXPECT_EQ(d.at("outcome"), "routed");
  EXPECT_EQ(d.at("primary").at("address"), "10.0.0.2");
  EXPECT_TRUE(d.at("prefill").is_null());
  EXPECT_EQ(r.parsed().at("kv_events").at("stored"), 2);
  EXPECT_EQ(r.parsed().at("kv_events").at("removed"), 1);
  EXPECT_EQ(r.parsed().at("era"), "2026-08");
}

TEST_F(Score, TheDocumentedExamplesRun) {
  std::ifstream in(std::string(ROUTESIM_SOURCE_DIR) + "/tools/study/score/README.md");
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    const bool fence = line.starts_with("```");
    if (fence && !inside) blocks.emplace_back();
    if (fence) inside = !inside;
    if (!fence && inside) blocks.back() += line + "\n";
  }
  ASSERT_EQ(blocks.size(), 2U) << "one example of E, one of R";
  const Result r =
      score({.endpoints = write("e.json", blocks[0]), .request = write("r.json", blocks[1])});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.primary(), "decode-0");
}

TEST_F(Score, WithoutEventsTheIdlerServerWins) {
  const Result r = score({});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_EQ(r.profile().at("totals").at("decode-1"), 0.5);
  EXPECT_EQ(r.primary(), "decode-0");
  EXPECT_FALSE(r.parsed().contains("kv_events"));
}

TEST_F(Score, BytesOfTheWireAreTheSpelledOutEvents) {
  policies::BlockStored stored;
  stored.hashes = {101, 102};
  stored.tokens = {1, 2, 3, 4, 5, 6, 7, 8};
  stored.block_size = 4;
  policies::KvEventBatch batch;
  batch.events = {stored};
  const auto payload = policies::encode_kv_batch(batch);
  std::string hex;
  for (const std::uint8_t byte : payload)
    for (const int digit : {byte >> 4, byte & 15}) hex += "0123456789abcdef"[digit];
  const std::string spelled = write(
      "spelled.jsonl",
      R"({"endpoint": "decode-1", "events": [{"type": "BlockStored", "block_hashes": [101, 102],)"
      R"( "token_ids": [1, 2, 3, 4, 5, 6, 7, 8], "block_size": 4}]})"
      "\n\n");
  const std::string wire =
      write("wire.jsonl", R"({"endpoint": "10.0.0.2:8000", "payload_hex": ")" + hex + "\"}\n");
  const Result by_text = score({.events = spelled});
  const Result by_wire = score({.events = wire});
  ASSERT_EQ(by_text.code, ExitCode::kSuccess) << by_text.err;
  EXPECT_EQ(by_text.out, by_wire.out) << by_wire.err;
  EXPECT_EQ(by_wire.primary(), "decode-1");
  // An empty batch in base64, and a batch whose first byte is missing.
  const std::string empty =
      write("b64.jsonl", R"({"endpoint": "decode-1", "payload_base64": "k8sAAAAAAAAAAJDA"})");
  EXPECT_EQ(score({.events = empty}).code, ExitCode::kSuccess) << score({.events = empty}).err;
  const std::string cut =
      write("cut.jsonl", R"({"endpoint": "decode-1", "payload_hex": ")" + hex.substr(2) + "\"}\n");
  EXPECT_EQ(score({.events = cut}).code, ExitCode::kInvalid);
}

TEST_F(Score, KeysAreThoseOfTheUpstreamGoldenTest) {
  // llm-d-kv-cache tests/e2e/uds_tokenizer: 7 tokens in blocks of 4 give this one key.
  const std::string request = write("r.json", R"({"model": "ibm-granite/granite-3.1-8b-instruct",
                    "token_ids": [8197, 438, 322, 18926, 432, 45600, 49]})");
  const Result r = score({.request = request});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  const json keys = r.parsed().at("request").at("block_keys");
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(std::stoull(keys[0].get<std::string>(), nullptr, 16), 1334984470577408192ULL);
}

TEST_F(Score, ReadyKeysAndTextAreTakenToo) {
  const Result by_tokens = score({.events = example("events.jsonl")});
  json request = {{"model", "Qwen/Qwen3-32B"},
                  {"block_keys", by_tokens.parsed().at("request").at("block_keys")}};
  const Result by_keys =
      score({.request = write("k.json", request.dump()), .events = example("events.jsonl")});
  ASSERT_EQ(by_keys.code, ExitCode::kSuccess) << by_keys.err;
  EXPECT_EQ(by_keys.profile(), by_tokens.profile());
  const Result by_text =
      score({.request = write("t.json", R"({"model": "m", "text": "0123456789"})")});
  ASSERT_EQ(by_text.code, ExitCode::kSuccess) << by_text.err;
  EXPECT_EQ(by_text.parsed().at("request").at("prompt_tokens"), 3);
  EXPECT_EQ(by_text.parsed().at("request").at("prompt_bytes"), 10);
}

TEST_F(Score, DisaggregationNamesBothServersAndTheHeader) {
  const Result r = score({.config = example("disaggregated.yaml")});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  const json d = r.parsed().at("decision");
  EXPECT_EQ(d.at("primary").at("name"), "decode-0");
  EXPECT_EQ(d.at("prefill").at("name"), "prefill-0");
  EXPECT_EQ(d.at("headers"), json({{"x-prefiller-host-port", "10.0.0.4:8000"}}));
  EXPECT_EQ(r.profile(0).at("name"), "decode");
  EXPECT_EQ(r.profile(1).at("name"), "prefill");
}

TEST_F(Score, ARequestWithoutAServerIsAnAnswerToo) {
  const std::string pool = write("e.json", R"([{"name": "p", "address": "10.1.0.1",
      "labels": {"llm-d.ai/role": "prefill"}}])");
  const Result r = score({.endpoints = pool});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_EQ(r.parsed().at("decision").at("outcome"), "filtered-out");
  EXPECT_EQ(r.parsed().at("decision").at("http_status"), 429);
  EXPECT_TRUE(r.parsed().at("decision").at("primary").is_null());
  EXPECT_EQ(r.profile().at("state"), "failed");
}

TEST_F(Score, SeedsDecideWhatIsRandomAndNothingElseDoes) {
  std::set<std::string> picked;
  for (int seed = 0; seed < 32; ++seed) {
    const Files files{.config = example("random.yaml"), .more = {"--seed", std::to_string(seed)}};
    const Result r = score(files);
    ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
    EXPECT_EQ(r.out, score(files).out);
    picked.insert(r.primary());
  }
  // 32 draws from three ready servers miss one of them with probability below 1e-5.
  EXPECT_EQ(picked, (std::set<std::string>{"decode-0", "decode-1", "prefill-0"}));
}

TEST_F(Score, ASubsetNarrowsTheCandidates) {
  const std::string request =
      write("r.json", R"({"model": "m", "prompt_tokens": 9, "subset": ["default/decode-1"]})");
  const Result r = score({.config = example("random.yaml"), .request = request});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_EQ(r.profile().at("candidates"), json({"decode-1"}));
}

TEST_F(Score, WarnsAboutWhatIsReadAndMissing) {
  const std::string request = write("r.json", R"({"model": "m", "prompt_tokens": 9})");
  const Result r = score({.request = request});
  EXPECT_EQ(r.code, ExitCode::kSuccess);
  EXPECT_NE(r.err.find("r.json:1:1: warning: has no block keys"), std::string::npos) << r.err;
  const Result unused =
      score({.config = example("random.yaml"), .events = example("events.jsonl")});
  EXPECT_EQ(unused.code, ExitCode::kSuccess);
  EXPECT_NE(unused.err.find("no plugin of this configuration reads KV events"), std::string::npos);
}

// An endpoint picker that subscribes to nothing knows nothing, whatever engines publish.
TEST_F(Score, EventsThatNoSubscriberHearsAreNotUsed) {
  std::ifstream in(example("precise.yaml"));
  std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::string socket = "    kvEventsConfig: {zmqEndpoint: \"tcp://*:5557\"}\n";
  ASSERT_NE(text.find(socket), std::string::npos);
  text.erase(text.find(socket), socket.size());
  const Result r = score({.config = write("c.yaml", text), .events = example("events.jsonl")});
  ASSERT_EQ(r.code, ExitCode::kSuccess) << r.err;
  EXPECT_NE(r.err.find("c.yaml:7:3: warning: plugins[2]: plugin 'precise-prefix-cache-scorer' "
                       "receives no KV events, so every endpoint scores 0"),
            std::string::npos)
      << r.err;
  EXPECT_FALSE(r.parsed().contains("kv_events"));
  EXPECT_EQ(r.out, score({}).out) << "as without the file";
}

TEST_F(Score, ReportsTheErrorsOfAllFilesAtOnce) {
  const Result r = score(
      {.config = write("c.yaml",
                       "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
                       "- type: queue-scorrer\n"),
       .endpoints = write("e.json",
                          "[{\"name\": \"a\", \"address\": \"x\", \"prot\": 1},\n"
                          " {\"name\": \"a\", \"address\": \"y\", \"labels\": {\"k\": 1},\n"
                          "  \"metrics\": {\"waiting\": -1, \"running\": 0, \"kv_usage\": 1.5}}]"),
       .request = write("r.json",
                        "{\"model\": \"m\", \"text\": \"a\",\n \"token_ids\": [-1],\n"
                        " \"headers\": {\"x-llm-d-slo-ttft-ms\": \"fast\"}}"),
       .events = write("f.jsonl",
                       "{\"endpoint\": \"a\"}\n"
                       "{\"endpoint\": \"a\", \"events\": [{\"type\": \"BlockRemoved\","
                       " \"block_hashes\": [\"0xzz\"], \"token_ids\": []}]}\n")});
  EXPECT_EQ(r.code, ExitCode::kInvalid);
  EXPECT_EQ(r.out, "");
  for (const char* expected :
       {"c.yaml:4:", "e.json:1:32: error: [0].prot: unknown key",
        "e.json:2:11: error: [1].name: belongs to another endpoint too (got a)",
        "e.json:2:48: error: [1].labels.k: ",
        "e.json:3:26: error: [1].metrics.waiting: must be at least 0",
        "[1].metrics.kv_usage: must be at most 1", "r.json:2:16: error: token_ids[0]: ",
        "token_ids: cannot stand beside text", "r.json:3:37: error: headers.x-llm-d-slo-ttft-ms: ",
        "f.jsonl:1:1: error: must have exactly one of events",
        "f.jsonl:2:72: error: events[0].block_hashes[0]: must be a 64-bit key",
        "events[0].token_ids: unknown key"})
    EXPECT_NE(r.err.find(expected), std::string::npos) << expected << "\n" << r.err;
}

TEST_F(Score, AFileOfAnotherKindIsNotReadToItsEnd) {
  std::string text;
  for (int line = 0; line < 100'000; ++line) text += "not an event\n";
  const Result r = score({.events = write("huge.txt", text)});
  EXPECT_EQ(r.code, ExitCode::kInvalid);
  EXPECT_EQ(r.out, "");
  EXPECT_NE(r.err.find("huge.txt:1:1: error: must be a map"), std::string::npos);
  EXPECT_NE(r.err.find("... and 801 more"), std::string::npos) << r.err.substr(r.err.size() - 100);
}

TEST_F(Score, UsageErrorsNameTheOption) {
  const auto usage = [&](const std::vector<std::string>& more) {
    const Result r = score({.more = more});
    EXPECT_EQ(r.code, ExitCode::kInvalid);
    EXPECT_EQ(r.out, "");
    return r.err;
  };
  EXPECT_NE(usage({"--era", "v9"}).find("--era is not a router release (got v9)"),
            std::string::npos);
  EXPECT_NE(usage({"--seed", "-1"}).find("--seed must be at least 0"), std::string::npos);
  EXPECT_NE(usage({"--now", "soon"}).find("--now must be a number"), std::string::npos);
  testing::TestConsole console;
  EXPECT_EQ(run_command_line({"score", "--config", "x"}, console), ExitCode::kInvalid);
  EXPECT_NE(console.errors.find("--endpoints is missing"), std::string::npos);
}

TEST_F(Score, TheEraDecidesHowKeysAreMade) {
  const std::string config = write(
      "c.yaml",
      "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n"
      "- type: single-profile-handler\n- type: precise-prefix-cache-scorer\n"
      "- type: max-score-picker\nschedulingProfiles:\n- name: default\n  plugins:\n"
      "  - pluginRef: precise-prefix-cache-scorer\n  - pluginRef: max-score-picker\n");
  const auto algorithm = [&](const std::string& era) {
    const Result r = score({.config = config, .more = {"--era", era}});
    EXPECT_EQ(r.code, ExitCode::kSuccess) << r.err;
    EXPECT_EQ(r.parsed().at("era"), era);
    return r.parsed().at("request").at("key_algorithm").get<std::string>();
  };
  EXPECT_EQ(algorithm("v0.3.2"), "sha256-cbor");
  EXPECT_EQ(algorithm("v0.7.0"), "cbor-fnv");
}

}  // namespace
}  // namespace routesim::tools
