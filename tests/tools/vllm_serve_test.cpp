// A pool's `vllm_serve`: command lines, word lists and maps of flags become the pool's keys.
#include <gtest/gtest.h>

#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/scenario/scenario_yaml.h"
#include "tools/ingest/servers/vllm_serve_flags.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/ledger.h"

namespace routesim::tools {
namespace {

class VllmServe : public testing::FolderTest {
 protected:
  /// The scenario whose only pool has these lines, each indented by four columns; line 6 is the
  /// first of them.
  LoadedVariant load(const std::string& pool_lines, const std::vector<std::string>& sets = {}) {
    const std::string file = write("s.yaml",
                                   "name: s\n"
                                   "workload: {groups: {requests: 10, rate: 5, prefix_len: 100}}\n"
                                   "cluster:\n"
                                   "  pools:\n"
                                   "  - accelerator: H100-SXM\n" +
                                       pool_lines);
    diagnostics_ = {};
    return load_scenario({.path = file, .sets = sets, .variants = {}, .seed = {}}, diagnostics_)
        .variants.at(0);
  }

  /// The keys of the only pool that something else than a default decided, as `key=value@place`.
  std::string decided(const std::string& pool_lines, const std::vector<std::string>& sets = {}) {
    LoadedVariant variant = load(pool_lines, sets);
    const FieldDescription values =
        describe_values([&](Describer& d) { describe(d, variant.scenario.cluster.pools.at(0)); });
    std::string out;
    for (const ResolvedValue& value : resolved_values(values, {})) {
      const SourceLocation* at = variant.provenance.find("cluster.pools[0]." + value.path);
      if (at == nullptr || value.path == "accelerator") continue;
      const std::string file = at->file.substr(at->file.rfind('/') + 1);
      out += value.path + "=" + value.value + "@" + (file == "s.yaml" ? "" : file + ":") +
             std::to_string(at->line) + "\n";
    }
    return out;
  }

  Diagnostics diagnostics_;
};

TEST_F(VllmServe, ACommandLineBecomesKeysThatKeepTheirLines) {
  EXPECT_EQ(decided("    vllm_serve: |\n"                                             // 6
                    "      # as in production\n"                                      // 7
                    "      HF_TOKEN=secret vllm serve Qwen/Qwen3-32B \\\n"            // 8
                    "        --tensor-parallel-size 4 --block-size=64 -tp 2 \\\n"     // 9
                    "        --max-model-len 16k --max-num-seqs 256 \\\n"             // 10
                    "        --max_num_batched_tokens 8K --kv-cache-dtype fp8_e4m3 "  // 11
                    "\\\n"
                    "        --no-enable-prefix-caching --enforce-eager \\\n"         // 12
                    "        --gpu-memory-utilization 0.92 --port $PORT \\\n"         // 13
                    "        --served-model-name a b --scheduling-policy priority\n"  // 14
                    ),
            "model=Qwen/Qwen3-32B@8\n"
            "tensor_parallel=2@9\n"
            "kv_cache_dtype=fp8@11\n"
            "engine.block_size=64@9\n"
            "engine.gpu_memory_utilization=0.92@13\n"
            "engine.max_num_batched_tokens=8192@11\n"
            "engine.max_num_seqs=256@10\n"
            "engine.max_model_len=16000@10\n"
            "engine.enable_prefix_caching=false@12\n"
            "engine.enforce_eager=true@12\n"
            "engine.scheduling_policy=priority@14\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, EveryFormOfStartIsUnderstood) {
  const std::string expected = "model=Qwen/Qwen3-32B@6\ntensor_parallel=2@6\n";
  for (const std::string start :
       {"vllm serve Qwen/Qwen3-32B -tp 2",
        "vllm serve --tensor-parallel-size=2 --model Qwen/Qwen3-32B",
        "python3 -m vllm.entrypoints.openai.api_server --model Qwen/Qwen3-32B -tp=2",
        "python3 -m vllm.entrypoints.grpc_server --model Qwen/Qwen3-32B -tp=2",
        "python3 -m vllm.entrypoints.cli.main serve Qwen/Qwen3-32B -tp 2",
        "python -m vllm serve Qwen/Qwen3-32B -tp 2",
        "python3 -m dynamo.vllm --model "
        "Qwen/Qwen3-32B -tp 2",
        "bash -lc \"vllm serve Qwen/Qwen3-32B -tp 2\"",
        "[bash, -lc, --, 'vllm serve Qwen/Qwen3-32B -tp 2']",
        "[sh, -ec, 'vllm serve Qwen/Qwen3-32B -tp 2']",
        "[tini, --, bash, -o, pipefail, -c, 'exec vllm serve Qwen/Qwen3-32B -tp 2']",
        "[bash, -euo, pipefail, -c, 'vllm serve $@', name, Qwen/Qwen3-32B, -tp, '2']",
        "exec /opt/venv/bin/vllm serve Qwen/Qwen3-32B -tp 2 2>&1 | tee log",
        "numactl -N 0 vllm serve Qwen/Qwen3-32B --tensor_parallel_size 2",
        "--model Qwen/Qwen3-32B -tp 2",
        "Qwen/Qwen3-32B --tensor-parallel-size 2",
        "[vllm, serve, Qwen/Qwen3-32B, -tp, 2]",
        "[serve, Qwen/Qwen3-32B, -tp=2]",
        "[Qwen/Qwen3-32B, --tensor-parallel-size, '2']",
        "['--model=Qwen/Qwen3-32B', -tp, '2']",
        "[sh, -c, 'vllm serve Qwen/Qwen3-32B -tp 2']",
        "{model: Qwen/Qwen3-32B, tensor-parallel-size: 2}",
        "{model: Qwen/Qwen3-32B, tensor_parallel_size: 2, port: 8000, trust-remote-code: true}"}) {
    EXPECT_EQ(decided("    vllm_serve: " + start + "\n"), expected) << start;
    EXPECT_EQ(messages_of(diagnostics_), "") << start;
  }
}

TEST_F(VllmServe, FlagsOnePerLineNeedNoBackslash) {
  EXPECT_EQ(decided("    vllm_serve: |\n"
                    "      --model Qwen/Qwen3-32B\n"
                    "      --tensor-parallel-size 2\n"),
            "model=Qwen/Qwen3-32B@7\ntensor_parallel=2@8\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, LinesThatYamlJoinsStayOneCommand) {
  for (const std::string style : {"", ">\n      ", "\""}) {
    EXPECT_EQ(decided("    vllm_serve: " + style + "vllm serve Qwen/Qwen3-32B \\" +
                      (style == "\"" ? "\\" : "") + "\n      --tensor-parallel-size 2" +
                      (style == "\"" ? "\"" : "") + "\n"),
              "model=Qwen/Qwen3-32B@6\ntensor_parallel=2@6\n")
        << style << messages_of(diagnostics_);
    EXPECT_EQ(messages_of(diagnostics_), "");
  }
}

TEST_F(VllmServe, VariablesBeforeTheModelMayHoldFlags) {
  load("    vllm_serve: vllm serve $EXTRA Qwen/Qwen3-32B -tp 2\n");
  EXPECT_NE(messages_of(diagnostics_).find("what $EXTRA stands for is not known here"),
            std::string::npos)
      << messages_of(diagnostics_);
  EXPECT_EQ(messages_of(diagnostics_).find("belongs to no flag"), std::string::npos);
}

TEST_F(VllmServe, WhatThePoolSaysItselfWins) {
  EXPECT_EQ(decided("    model: Qwen3-14B\n"                                            // 6
                    "    replicas: 3\n"                                                 // 7
                    "    engine: {block_size: 128}\n"                                   // 8
                    "    vllm_serve: vllm serve $MODEL -tp 2 --block-size $B -q awq\n"  // 9
                    ),
            "replicas=3@7\nmodel=Qwen3-14B@6\ntensor_parallel=2@9\nengine.block_size=128@8\n");
  EXPECT_EQ(messages_of(diagnostics_), "") << "values that nobody needs may be unknown";
  EXPECT_EQ(
      decided("    vllm_serve: vllm serve Qwen/Qwen3-32B -tp 2 --max-num-seqs 64\n",
              {"cluster.pools[0].tensor_parallel=4", "cluster.pools[0].engine.max_num_seqs=8"}),
      "model=Qwen/Qwen3-32B@6\ntensor_parallel=4@--set:0\nengine.max_num_seqs=8@--set:0\n");
}

TEST_F(VllmServe, SetReachesTheCommandAndVariantsReplaceIt) {
  EXPECT_EQ(decided("    vllm_serve: vllm serve Qwen/Qwen3-32B\n",
                    {"cluster.pools[0].vllm_serve=vllm serve Qwen/Qwen3-14B -tp 2"}),
            "model=Qwen/Qwen3-14B@--set:0\ntensor_parallel=2@--set:0\n");
  write("flags.yaml", "model: Qwen/Qwen3-32B\nmax_num_seqs: 64\n");
  EXPECT_EQ(
      decided("    vllm_serve: flags.yaml\n", {"cluster.pools[0].vllm_serve.max-num-seqs=32"}),
      "model=Qwen/Qwen3-32B@flags.yaml:1\nengine.max_num_seqs=32@--set:0\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
  const std::string file = write(
      "v.yaml",
      "name: s\nworkload: {groups: {requests: 10, rate: 5}}\n"
      "cluster: {pools: [{name: a, accelerator: H200, vllm_serve: vllm serve Qwen/Qwen3-32B}]}\n"
      "variants:\n- {name: one}\n"
      "- {name: two, cluster: {pools: [{name: a, vllm_serve: vllm serve Qwen/Qwen3-14B -tp "
      "2}]}}\n");
  Diagnostics d;
  const auto loaded = load_scenario({.path = file, .sets = {}, .variants = {}, .seed = {}}, d);
  ASSERT_EQ(messages_of(d), "");
  EXPECT_EQ(loaded.variants.at(0).scenario.cluster.pools.at(0).model, "Qwen/Qwen3-32B");
  EXPECT_EQ(loaded.variants.at(1).scenario.cluster.pools.at(0).model, "Qwen/Qwen3-14B");
  EXPECT_EQ(loaded.variants.at(1).scenario.cluster.pools.at(0).tensor_parallel, 2);
}

TEST_F(VllmServe, SaysWhoChoosesTheRank) {
  struct Case {
    std::string flags;
    std::string balancing;
    bool warns;
  };
  for (const Case& c : {Case{"-dp 8", "internal", false}, Case{"-dp 8 -dpl 4", "internal", false},
                        Case{"-dp 8 --data-parallel-external-lb", "external", false},
                        Case{"-dp 8 --data-parallel-rank $RANK", "external", false},
                        Case{"-dp 8 -dpl 1 --data-parallel-hybrid-lb", "external", false},
                        Case{"-dp 8 -dpl 8 --data-parallel-hybrid-lb", "internal", false},
                        Case{"-dp 8 -dpl 4 --data-parallel-start-rank 4", "internal", true},
                        Case{"-dp 8 -dpl 4 --data-parallel-hybrid-lb", "internal", true}}) {
    const auto pool =
        load("    vllm_serve: vllm serve m " + c.flags + "\n").scenario.cluster.pools[0];
    EXPECT_EQ(enum_name(pool.data_parallel_balancing), c.balancing) << c.flags;
    EXPECT_EQ(pool.data_parallel, 8) << c.flags;
    EXPECT_EQ(
        messages_of(diagnostics_).find("balances its own 4 of the 8 ranks") != std::string::npos,
        c.warns)
        << messages_of(diagnostics_);
  }
  const auto one = load("    vllm_serve: vllm serve m -dp 1\n").scenario.cluster.pools[0];
  EXPECT_EQ(one.data_parallel_balancing, sim::DataParallelBalancing::kExternal)
      << "no rank to choose";
}

TEST_F(VllmServe, TheEnvironmentCounts) {
  const auto chunk = [&](const std::string& start) {
    return load("    vllm_serve: |\n      " + start + "\n")
        .scenario.cluster.pools[0]
        .engine.moe_dp_chunk_size;
  };
  EXPECT_EQ(chunk("VLLM_MOE_DP_CHUNK_SIZE=384 vllm serve m"), 384);
  EXPECT_EQ(chunk("export VLLM_MOE_DP_CHUNK_SIZE=256; vllm serve m"), 256);
  EXPECT_EQ(chunk("VLLM_ENABLE_MOE_DP_CHUNK=0 VLLM_MOE_DP_CHUNK_SIZE=128 vllm serve m"), 0);
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, MarlinIsAnIntegerOfTheEnvironment) {
  const auto experts = [&](const std::string& value) {
    return load("    vllm_serve: VLLM_MXFP4_USE_MARLIN=" + value + " vllm serve m\n")
        .scenario.cluster.pools[0]
        .engine.moe_backend;
  };
  EXPECT_EQ(experts("1"), sim::MoeBackend::kMarlin);
  EXPECT_EQ(experts("2"), sim::MoeBackend::kMarlin);
  EXPECT_EQ(experts("0"), sim::MoeBackend::kTriton);
  EXPECT_EQ(messages_of(diagnostics_), "");
  EXPECT_EQ(experts("true"), sim::MoeBackend::kAuto);
  EXPECT_NE(messages_of(diagnostics_).find("VLLM_MXFP4_USE_MARLIN must be 0 or 1 (got true)"),
            std::string::npos)
      << messages_of(diagnostics_);
}

/// The fate of each variable, and the warnings.
TEST_F(VllmServe, VariablesOfEnginesAreListedAndUnknownOnesAreSaid) {
  load(
      "    vllm_serve: |\n"
      "      export VLLM_LOGGING_LEVEL=INFO VLLM_ATTENTION_BACKEND=FLASHINFER\n"
      "      export VLLM_NIXL_ABORT_REQUEST_TIMEOUT=120 LMCACHE_CHUNK_SIZE=256\n"
      "      VLLM_MAX_NUM_BATCHED_TOKEN=3 VLLM_MOE_DP_CHUNKSIZE=3 VLLM_NOBODY_KNOWS=1 "
      "DYN_SYSTEM_PORT=1 DYN_KVBM_CPU_CACHE_GB=8 SGLANG_X=1 OTHER=1 vllm serve Qwen/Qwen3-32B\n");
  std::string fates;
  for (const KeyUse& use : diagnostics_.keys())
    if (use.format == kServeFormat && use.path.find("[0].vllm_serve.") != std::string::npos &&
        use.path.find('_', use.path.find("serve.")) != std::string::npos)
      fates +=
          use.path.substr(use.path.rfind('.') + 1) + ": " + std::string(fate_name(use.fate)) + "\n";
  EXPECT_EQ(fates,
            "VLLM_LOGGING_LEVEL: no effect\nVLLM_ATTENTION_BACKEND: approximated\n"
            "VLLM_NIXL_ABORT_REQUEST_TIMEOUT: not modelled\nLMCACHE_CHUNK_SIZE: no effect\n"
            "VLLM_MAX_NUM_BATCHED_TOKEN: no effect\nVLLM_MOE_DP_CHUNKSIZE: approximated\n"
            "VLLM_NOBODY_KNOWS: not modelled\nDYN_SYSTEM_PORT: no effect\n"
            "DYN_KVBM_CPU_CACHE_GB: not modelled\nSGLANG_X: no effect\n");
  const std::string file = path("s.yaml");
  const std::string key = " warning: cluster.pools[0].vllm_serve: ";
  EXPECT_EQ(messages_of(diagnostics_),
            file + ":8:14:" + key +
                "VLLM_NIXL_ABORT_REQUEST_TIMEOUT is not modelled: it belongs to the whole cluster: "
                "write cluster.transfer.lease\n" +
                file + ":9:60:" + key +
                "VLLM_NOBODY_KNOWS is not modelled: no variable of this name is known here\n" +
                file + ":9:98:" + key +
                "DYN_KVBM_CPU_CACHE_GB is not modelled: KV in Dynamo's block manager is left "
                "out\n");
}

TEST_F(VllmServe, SlotsForAdaptersCountWhereTheyAreEnabled) {
  const auto adapters = [this](const std::string& flags) {
    return decided("    vllm_serve: vllm serve Qwen/Qwen3-8B " + flags + "\n");
  };
  const std::string model = "model=Qwen/Qwen3-8B@6\n";
  EXPECT_EQ(adapters("--max-loras 4 --max-lora-rank 64"), model);
  EXPECT_EQ(adapters("--enable-lora"), model + "engine.max_loras=1@6\n");
  EXPECT_EQ(adapters("--enable-lora --max-loras 4 --max-cpu-loras 12 --max-lora-rank 64"),
            model +
                "engine.max_loras=4@6\nengine.max_cpu_loras=12@6\n"
                "engine.max_lora_rank=64@6\n");
}

TEST_F(VllmServe, AnOfficialImagesReleaseIsThePreset) {
  const auto preset = [&](const std::string& image) {
    write("pod.yaml", "spec: {containers: [{image: '" + image + "', args: [vllm, serve, m]}]}\n");
    return std::string(
        enum_name(load("    vllm_serve: pod.yaml\n").scenario.cluster.pools[0].engine.preset));
  };
  EXPECT_EQ(preset("vllm/vllm-openai:v0.9.2"), "2025-Q3");
  EXPECT_EQ(preset("vllm/vllm-openai:v0.11.0"), "2025-H2");
  EXPECT_EQ(preset("docker.io/vllm/vllm-openai:v0.12.0"), "2025-H2");
  EXPECT_EQ(preset("vllm/vllm-openai:v0.20"), "2026-H1");
  EXPECT_EQ(preset("vllm/vllm-openai:v0.22.1-x86_64-cu130"), "2026-H2");
  EXPECT_EQ(preset("ghcr.io/llm-d/llm-d:v0.2.0"), "2025-Q3");
  EXPECT_EQ(preset("ghcr.io/llm-d/llm-d-cuda:v0.3.1"), "2025-H2");
  for (const char* image : {"ghcr.io/llm-d/llm-d-cuda:v0.5.1", "ghcr.io/llm-d/llm-d-cuda:v0.6.0",
                            "ghcr.io/llm-d/llm-d-cuda:v0.7.0"})
    EXPECT_EQ(preset(image), "2026-H1");
  EXPECT_EQ(preset("vllm/vllm-openai-rocm:v0.12.0"), "2025-H2");
  EXPECT_EQ(preset("ghcr.io/llm-d/llm-d-rocm:v0.9.0"), "2026-H2");
  for (const char* image : {"vllm/vllm-openai", "vllm/vllm-openai:latest", "x/vllm-cpu:v0.9.2",
                            "vllm/vllm-openai:v0.9rc1", "ghcr.io/llm-d/llm-d-sidecar:v0.3.0"})
    EXPECT_EQ(preset(image), "2026-H1") << "the default, for " << image;
  EXPECT_EQ(messages_of(diagnostics_), "");
  // A release that no preset stands for is said.
  for (const char* image : {"vllm/vllm-openai:v0.13.0", "vllm/vllm-openai-rocm:v0.8.5"}) {
    EXPECT_EQ(preset(image), "2026-H1");
    EXPECT_NE(messages_of(diagnostics_)
                  .find("no engine preset is known to stand for " + std::string(image)),
              std::string::npos)
        << messages_of(diagnostics_);
  }
}

TEST_F(VllmServe, AModelInAFolderIsKnownByTheNameItIsServedUnder) {
  const auto model = [&](const std::string& start) {
    return load("    vllm_serve: " + start + "\n").scenario.cluster.pools[0].model;
  };
  EXPECT_EQ(model("vllm serve /models/x --served-model-name Qwen/Qwen3-32B"), "Qwen/Qwen3-32B");
  EXPECT_EQ(model("vllm serve $MODEL --served-model-name Qwen/Qwen3-32B"), "Qwen/Qwen3-32B");
  EXPECT_EQ(model("vllm serve Qwen/Qwen3-32B --served-model-name chat"), "Qwen/Qwen3-32B");
  EXPECT_EQ(model("vllm serve /models/x"), "/models/x");
}

TEST_F(VllmServe, ReadsVllmsConfigFileUnderTheFlagsBesideIt) {
  write("conf.yaml",
        "model: Qwen/Qwen3-32B\ntensor-parallel-size: 4\nmax-num-seqs: 64\n"
        "enable-prefix-caching: false\nwatermark: null\n");
  EXPECT_EQ(decided("    vllm_serve: vllm serve --config conf.yaml -tp 2\n"),
            "model=Qwen/Qwen3-32B@conf.yaml:1\ntensor_parallel=2@6\n"
            "engine.max_num_seqs=64@conf.yaml:3\n"
            "engine.enable_prefix_caching=false@conf.yaml:4\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, AScriptIsReadWithItsVariables) {
  write("start.sh",
        "#!/bin/bash\nset -e\nexport TP=2\nMODEL=\"Qwen/Qwen3-32B\"\n"
        "echo vllm serve starts\n"
        "exec vllm serve \"$MODEL\" \\\n  --tensor-parallel-size $TP \\\n"
        "  --data-parallel-size $((TP * 2))\n");
  EXPECT_EQ(decided("    vllm_serve: start.sh\n"),
            "model=Qwen/Qwen3-32B@start.sh:6\ntensor_parallel=2@start.sh:7\n"
            "data_parallel=4@start.sh:8\ndata_parallel_balancing=internal@start.sh:8\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, VllmsSpellingOfKeysIsReadToo) {
  EXPECT_EQ(decided("    model: DeepSeek-R1\n"
                    "    tensor_parallel_size: 2\n"
                    "    pipeline_parallel_size: 2\n"
                    "    data_parallel_size: 4\n"
                    "    enable_expert_parallel: true\n"),
            "model=DeepSeek-R1@6\ntensor_parallel=2@7\npipeline_parallel=2@8\ndata_parallel=4@9\n"
            "expert_parallel=true@10\n");
  EXPECT_EQ(decided("    model: Qwen3-32B\n    tensor_parallel: 2\n",
                    {"cluster.pools[0].tensor_parallel_size=4"}),
            "model=Qwen3-32B@6\ntensor_parallel=4@--set:0\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, QuantizedWeightsMustBeTheModels) {
  const auto complaint = [&](const std::string& flags) {
    load("    vllm_serve: vllm serve " + flags + "\n");
    return messages_of(diagnostics_);
  };
  EXPECT_EQ(complaint("Qwen/Qwen3-32B-FP8 --quantization fp8"), "");
  EXPECT_EQ(complaint("openai/gpt-oss-120b --quantization mxfp4"), "");
  EXPECT_EQ(complaint("nvidia/Qwen3-32B-NVFP4 --quantization modelopt_fp4"), "");
  EXPECT_EQ(complaint("Qwen/Qwen3-32B --quantization none"), "");
  EXPECT_NE(complaint("Qwen/Qwen3-32B -q fp8").find("known in bf16"), std::string::npos);
}

TEST_F(VllmServe, ConnectorsBetweenServersAreFine) {
  const auto complaint = [&](const std::string& config) {
    load("    vllm_serve: |\n      vllm serve m --kv-transfer-config " + config + "\n");
    return messages_of(diagnostics_);
  };
  EXPECT_EQ(complaint(R"('{"kv_connector":"NixlConnector","kv_role":"kv_both"}')"), "");
  EXPECT_EQ(complaint(R"('{"kv_connector":"MultiConnector","kv_connector_extra_config":)"
                      R"({"connectors":[{"kv_connector":"NixlConnector"}]}}')"),
            "");
  const std::string warned =
      complaint(R"('{"kv_connector":"NixlConnector","kv_load_failure_policy":"recompute"}')");
  EXPECT_NE(warned.find("warning: cluster.pools[0].vllm_serve: kv_load_failure_policy belongs to "
                        "the whole cluster here (got 'recompute')"),
            std::string::npos)
      << warned;
  EXPECT_NE(warned.find("hint: write cluster.transfer.load_failure: recompute"), std::string::npos)
      << warned;
  EXPECT_EQ(complaint(R"('{"kv_connector":"NixlConnector","kv_load_failure_policy":"fail"}')"), "");
}

TEST_F(VllmServe, BalancingOfExpertsIsLeftOutWithAWord) {
  load("    vllm_serve: vllm serve m --enable-expert-parallel --enable-eplb\n");
  EXPECT_NE(messages_of(diagnostics_)
                .find("warning: cluster.pools[0].vllm_serve: --enable-eplb moves experts"),
            std::string::npos)
      << messages_of(diagnostics_);
  load("    vllm_serve: vllm serve m --no-enable-eplb\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST(ServeFlags, ReadableNumbersAndSwitches) {
  bool negated = false;
  ASSERT_NE(find_flag("--tensor-parallel-size", negated), nullptr);
  EXPECT_EQ(find_flag("-tp", negated)->name, "tensor-parallel-size");
  EXPECT_EQ(find_flag("--max-num-seq", negated), nullptr) << "names are whole";
  EXPECT_EQ(find_flag("--tp", negated), nullptr);
  EXPECT_EQ(find_flag("--no-enable-eplb", negated)->name, "enable-eplb");
  EXPECT_TRUE(negated);
  EXPECT_EQ(find_flag("--no-block-size", negated), nullptr) << "not a switch";
  EXPECT_EQ(find_flag_key("decode", negated), nullptr) << "files have whole names";
  for (const char* name : {"port", "host", "trust-remote-code", "served-model-name", "seed",
                           "disable-log-requests", "tool-call-parser", "reasoning-parser"})
    EXPECT_EQ(find_flag(std::string("--") + name, negated)->use, FlagUse::kIgnored) << name;
}

TEST_F(VllmServe, TheLastOfTwoSwitchesCounts) {
  const auto chunked = [&](const std::string& flags) {
    return load("    vllm_serve: vllm serve m " + flags + "\n")
        .scenario.cluster.pools[0]
        .engine.enable_chunked_prefill;
  };
  EXPECT_FALSE(chunked("--enable-chunked-prefill --no-enable-chunked-prefill"));
  EXPECT_TRUE(chunked("--no-enable-chunked-prefill --enable-chunked-prefill"));
  EXPECT_EQ(messages_of(diagnostics_), "");
}

// StoreBoolean in vllm/engine/arg_utils.py@v0.8.5 took a value; argparse.BooleanOptionalAction of
// v0.9 and later takes none.
TEST_F(VllmServe, ChunkedPrefillTookAValueOnce) {
  const auto chunked = [&](const std::string& flags) {
    const bool on = load("    vllm_serve: vllm serve m " + flags + "\n")
                        .scenario.cluster.pools[0]
                        .engine.enable_chunked_prefill;
    return std::string(on ? "on" : "off") +
           (messages_of(diagnostics_).find("takes no value from vLLM 0.9 on") == std::string::npos
                ? ""
                : ", warned") +
           (diagnostics_.has_errors() ? ", refused" : "");
  };
  EXPECT_EQ(chunked("--enable-chunked-prefill=false"), "off, warned");
  EXPECT_EQ(chunked("--enable-chunked-prefill=True"), "on, warned");
  EXPECT_EQ(chunked("--enable-chunked-prefill False --max-num-seqs 4"), "off, warned");
  EXPECT_EQ(chunked("--no-enable-chunked-prefill --enable-chunked-prefill"), "on");
  EXPECT_EQ(chunked("--enable-chunked-prefill=perhaps"), "on, refused");
  EXPECT_EQ(chunked("--enable-prefix-caching=false"), "on, refused") << "never took one";
}

TEST_F(VllmServe, ABeginningThatOneFlagHasIsThatFlag) {
  EXPECT_EQ(decided("    vllm_serve: vllm serve Qwen/Qwen3-32B --max-num-seq 64 "
                    "--max-num-batched-token=4k --gpu-memory-util 0.8 --no-enable-prefix\n"),
            "model=Qwen/Qwen3-32B@6\nengine.gpu_memory_utilization=0.8@6\n"
            "engine.max_num_batched_tokens=4000@6\nengine.max_num_seqs=64@6\n"
            "engine.enable_prefix_caching=false@6\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
  load("    vllm_serve: vllm serve m --max-num-s 64 --kv-tra x --tensor-parallel-sizes 2\n");
  const std::string said = messages_of(diagnostics_);
  EXPECT_NE(said.find("is the beginning of several flags (got '--max-num-s')\n"
                      "  hint: write one of --max-num-scheduled-tokens, --max-num-seqs"),
            std::string::npos)
      << said;
  EXPECT_NE(said.find("unknown flag --tensor-parallel-sizes"), std::string::npos) << said;
}

TEST_F(VllmServe, LevelsOfOptimizationHaveAShortForm) {
  const std::string model = "model=Qwen/Qwen3-32B@6\n";
  for (const char* flag : {"-O3", "-O 3", "-O=3", "-O.level=3", "-O.level 3", "-O '{\"level\": 3}'",
                           "-cc.level=3", "--compilation-config.pass_config.fuse_norm=true"}) {
    EXPECT_EQ(
        decided("    vllm_serve: |\n      vllm serve Qwen/Qwen3-32B " + std::string(flag) + "\n"),
        "model=Qwen/Qwen3-32B@7\n")
        << flag;
    EXPECT_EQ(messages_of(diagnostics_), "") << flag;
  }
  load("    vllm_serve: vllm serve m -O0\n");
  EXPECT_NE(messages_of(diagnostics_).find("--optimization-level says how much is compiled"),
            std::string::npos)
      << messages_of(diagnostics_);
}

// vllm/utils/argparse_utils.py@v0.33.0, parse_args: dotted flags become one JSON value, and
// elements of lists follow each other.
TEST_F(VllmServe, DottedFlagsAreKeysOfAJsonValue) {
  const auto tiers = [&](const std::string& flags) {
    return decided("    vllm_serve: |\n      vllm serve Qwen/Qwen3-32B " + flags + "\n");
  };
  EXPECT_EQ(tiers("--kv-transfer-config.kv_connector NixlConnector "
                  "--kv-transfer-config.kv_role=kv_both"),
            "model=Qwen/Qwen3-32B@7\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
  const std::string whole = tiers(
      R"(--kv-transfer-config '{"kv_connector": "OffloadingConnector", "kv_role": "kv_both", )"
      R"("kv_connector_extra_config": {"cpu_bytes_to_use": 1073741824, "block_size": 64}}')");
  EXPECT_EQ(tiers("--kv-transfer-config.kv_connector OffloadingConnector "
                  "--kv-transfer-config.kv_role kv_both "
                  "--kv-transfer-config.kv_connector_extra_config.cpu_bytes_to_use 1073741824 "
                  "--kv-transfer-conf.kv_connector_extra_config.block_size=64"),
            whole);
  EXPECT_NE(whole.find("engine.kv_tiers.chunk_tokens=64@7"), std::string::npos) << whole;
  EXPECT_EQ(messages_of(diagnostics_), "");
  (void)tiers(
      "--kv-transfer-config.kv_connector MultiConnector "
      "--kv-transfer-config.kv_connector_extra_config.connectors+ '{kv_connector: A}' "
      "--kv-transfer-config.kv_connector_extra_config.connectors+='{kv_connector: B}'");
  EXPECT_NE(messages_of(diagnostics_).find("the KV connector A keeps"), std::string::npos);
  EXPECT_NE(messages_of(diagnostics_).find("the KV connector B keeps"), std::string::npos)
      << messages_of(diagnostics_);
}

TEST_F(VllmServe, SpeculationComesFromJsonDottedAndShortFlags) {
  const auto said = [&](const std::string& flags) {
    const LoadedVariant variant = load("    vllm_serve: |\n      vllm serve m " + flags + "\n");
    std::string out;
    if (const auto& s = variant.scenario.cluster.pools.at(0).engine.speculative)
      out += std::string(enum_name(s->method.value_or(sim::SpeculationMethod::kNgram))) + " " +
             s->model + " " + std::to_string(s->num_speculative_tokens.value_or(-1));
    return out;
  };
  EXPECT_EQ(said("--speculative-config '{\"model\": \"R/x.eagle3\", \"method\": \"eagle3\", "
                 "\"num_speculative_tokens\": 3}'"),
            "eagle3 R/x.eagle3 3");
  EXPECT_EQ(said("-sc.method deepseek_mtp -sc.num_speculative_tokens 1"), "mtp  1");
  EXPECT_EQ(said("--speculative-config.model Qwen/Qwen3-0.6B --spec-tokens 4"),
            "draft_model Qwen/Qwen3-0.6B 4");
  EXPECT_EQ(said("--spec-method ngram --spec-tokens 2 "
                 "--speculative-config.method eagle --speculative-config.prompt_lookup_max 4"),
            "ngram  2");
  EXPECT_EQ(messages_of(diagnostics_), "");
  EXPECT_EQ(said("--speculative-config '{}'"), "");
  bool negated = false;
  EXPECT_EQ(flag_text(*find_flag("--spec-tokens", negated), "3"),
            "--speculative-config.num_speculative_tokens 3");
  (void)said("-sc.method dflash -sc.num_speculative_tokens 8");
  EXPECT_NE(messages_of(diagnostics_).find("a method that is not simulated (got 'dflash')"),
            std::string::npos)
      << messages_of(diagnostics_);
  (void)said("-sc.method eagle -sc.num_speculative_tokens 2 -sc.enforce_eager true -sc.guess 1");
  EXPECT_NE(messages_of(diagnostics_).find("guess"), std::string::npos);
}

TEST_F(VllmServe, LaunchServerStartsSglang) {
  EXPECT_EQ(decided("    vllm_serve: |\n"                                                     // 6
                    "      python3 -m sglang.launch_server --model-path Qwen/Qwen3-32B \\\n"  // 7
                    "        --tp 2 --mem-fraction 0.85 --context-length 32768 \\\n"          // 8
                    "        --chunked-prefill-size=4096 --page-size 64 \\\n"                 // 9
                    "        --schedule-policy lpm --schedule-conservativeness 1.2 \\\n"      // 10
                    "        --disable-radix-cache --disable-overlap-schedule \\\n"           // 11
                    "        --max-running-requests 48 --max-total-tokens 200000 \\\n"        // 12
                    "        --cuda-graph-max-bs 160 --kv-cache-dtype fp8_e5m2 --port 1\n"    // 13
                    ),
            "model=Qwen/Qwen3-32B@7\n"
            "tensor_parallel=2@8\n"
            "kv_cache_dtype=fp8@13\n"
            "engine.kind=sglang@7\n"
            "engine.kv_cache_tokens=200000@12\n"
            "engine.gpu_memory_utilization=0.85@8\n"
            "engine.max_num_seqs=48@12\n"
            "engine.max_model_len=32768@8\n"
            "engine.enable_prefix_caching=false@11\n"
            "engine.async_scheduling=false@11\n"
            "engine.sglang.page_size=64@9\n"
            "engine.sglang.schedule_policy=lpm@10\n"
            "engine.sglang.chunked_prefill_size=4096@9\n"
            "engine.sglang.schedule_conservativeness=1.2@10\n"
            "engine.sglang.cuda_graph_max_bs=160@13\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
}

TEST_F(VllmServe, SglangsOtherProgramsAndValues) {
  EXPECT_EQ(decided("    vllm_serve: sglang serve --model Qwen/Qwen3-30B-A3B --tp-size 4 --ep 4 "
                    "--chunked-prefill-size -1 --disable-cuda-graph\n"),
            "model=Qwen/Qwen3-30B-A3B@6\n"
            "tensor_parallel=4@6\n"
            "expert_parallel=true@6\n"
            "engine.kind=sglang@6\n"
            "engine.enforce_eager=true@6\n"
            "engine.sglang.chunked_prefill_size=0@6\n");
  EXPECT_EQ(messages_of(diagnostics_), "");
  // What the pool says itself stays.
  EXPECT_EQ(decided("    model: Qwen3-8B\n"
                    "    engine: {sglang: {page_size: 16}}\n"
                    "    vllm_serve: [python, -m, sglang.launch_server, --model-path, x, "
                    "--page-size, \"1\", --max-prefill-tokens, 8K]\n"),
            "model=Qwen3-8B@6\n"
            "engine.kind=sglang@8\n"
            "engine.sglang.page_size=16@7\n"
            "engine.sglang.max_prefill_tokens=8192@8\n");
}

TEST_F(VllmServe, FlagsOfSglangThatAreNotSimulatedAreNamed) {
  const auto said = [&](const std::string& flags) {
    load("    vllm_serve: sglang serve --model-path Qwen/Qwen3-32B " + flags + "\n");
    return messages_of(diagnostics_);
  };
  EXPECT_NE(
      said("--max-num-seqs 4")
          .find("s.yaml:6:17: error: cluster.pools[0].vllm_serve: unknown flag --max-num-seqs"),
      std::string::npos);
  EXPECT_NE(
      said("--enable-mixed-chunk")
          .find("--enable-mixed-chunk computes prompts and decodes in one batch, which is not "
                "simulated"),
      std::string::npos);
  EXPECT_NE(said("--schedule-policy dfs-weight")
                .find("--schedule-policy is not simulated in this order (got 'dfs-weight')"),
            std::string::npos);
  EXPECT_NE(said("--tp 4 --ep-size 2").find("--ep-size is neither 1 nor as wide"),
            std::string::npos);
  EXPECT_NE(said("--disaggregation-mode prefill").find("splits prompts and answers over servers"),
            std::string::npos);
  EXPECT_NE(said("--enable-dp").find("is the beginning of several flags"), std::string::npos)
      << "--enable-dp-attention and --enable-dp-lm-head";
  EXPECT_NE(said("--no-disable-radix-cache").find("unknown flag --no-disable-radix-cache"),
            std::string::npos)
      << "argparse's switches have no twin";
  EXPECT_NE(said("Qwen/Qwen3-8B").find("the model stands behind --model-path"), std::string::npos);
  EXPECT_NE(said("--stream-interval 10").find("--stream-interval sends tokens in groups"),
            std::string::npos);
  EXPECT_FALSE(diagnostics_.has_errors());
  EXPECT_EQ(said("--speculative-num-steps 3 --scheduler-recv-interval 1 --enable-metrics"), "");
}

TEST(SglangFlags, NamesAreSortedAndKnown) {
  bool negated = false;
  const std::vector<FlagRule>& flags = all_flags(sim::EngineKind::kSglang);
  EXPECT_EQ(flags.size(), 341U) << "all of server_args.py of 0.5.9";
  EXPECT_EQ(find_flag("--tp-size", negated, sim::EngineKind::kSglang)->key, "tensor_parallel");
  EXPECT_EQ(find_flag("--mem-fraction-static", negated), nullptr) << "not vLLM's";
  EXPECT_EQ(find_flag("--max-num-seqs", negated, sim::EngineKind::kSglang), nullptr);
}

}  // namespace
}  // namespace routesim::tools
