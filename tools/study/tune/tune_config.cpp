#include "tools/study/tune/tune_config.h"

namespace routesim::tools {

void describe(Describer& d, TuneKnobConfig& k) {
  field(d, {"name", "Name in results; made from the other keys when absent."}, k.name);
  field(d, {"set", "Key that gets the values, as in --set: cluster.pools[vllm].engine.block_size."},
        k.set);
  field(d, {"also", "Further keys that get the same value."}, k.also);
  field(d, {"weight", "Scorer of the EndpointPickerConfig with a weight to choose."}, k.weight);
  field(d, {"profile", "Scheduling profile of that scorer; may be absent when only one has it."},
        k.profile);
  field(d, {"picker", "Scheduling profile with a picker to choose; values are picker types."},
        k.picker);
  field(d, {"split", "Two pools that share the GPUs they have together: [prefill, decode]."},
        k.split);
  field(d, {"values", "The values, a list of whatever the key may hold."}, k.values);
  field(d, {"range", "Lowest and highest number: [0, 10]."}, k.range);
  field(d, {"step", "Distance between the numbers of a range; a twentieth of it when absent."},
        k.step, RealRange{.min = 0, .min_open = true});
  field(d, {"log", "Seven numbers at equal ratios instead of equal distances."}, k.log);
}

void describe(Describer& d, TuneShift& s) {
  field(d, {"name", "Name in results; made from the other keys when absent."}, s.name);
  field(d, {"rate", "Multiplies every rate of the load (workload.rate_scale)."}, s.rate,
        RealRange{.min = 0, .max = 1000, .min_open = true});
  field(d, {"set", "Further assignments that make the other load: KEY=VALUE, as --set."}, s.set);
}

void describe(Describer& d, TuneConfig& c) {
  field(d, {"name", "Name in results; the scenario's when absent."}, c.name);
  field(d, {"question", "The question, one sentence."}, c.question);
  field(d, {"scenario", "The scenario, a path relative to this file.", true}, c.scenario);
  field(d, {"variant", "Variant to tune; may be absent when the scenario has one."}, c.variant);
  field(d, {"set", "Assignments made in every run first: KEY=VALUE, as --set."}, c.set);
  field(d, {"seed", "Seed of the first run and of the search; the scenario's when absent."}, c.seed,
        IntRange{0});
  field(d,
        {"goals",
         "What is better: minimise METRIC or maximise METRIC, such as minimise ttft_ms.p90. Two "
         "goals make a Pareto front."},
        c.goals);
  field(d,
        {"subject_to",
         "What must hold: METRIC < NUMBER, or METRIC < NUMBER% of published. When absent, TTFT "
         "(mean, p90, p99), time per output token, output tokens/s and failures may each get 2 % "
         "worse."},
        c.subject_to);
  field(d,
        {"guards",
         "Whether a candidate leaves that makes something beside the goals worse beyond chance: "
         "failures, the mean and the next tail of a goal's metric, the other throughput. A metric "
         "of subject_to has no such guard."},
        c.guards);
  field(
      d,
      {"budget",
       "Runs that the search may take; when absent 1000, or fewer where a run simulates more than "
       "160 million prompt tokens (a request counts as 1000 more)."},
      c.budget, IntRange{20, 1'000'000});
  field(d, {"block", "Seeds of one round of the race."}, c.block, IntRange{2, 100});
  field(d, {"fresh_seeds", "Seeds of the judgement, which the search does not see."}, c.fresh_seeds,
        IntRange{2, 1000});
  field(d, {"confidence", "The tests in the race have the level 1 - confidence."}, c.confidence,
        RealRange{.min = 0.5, .max = 0.9999, .min_open = true});
  field(d,
        {"shift",
         "Other loads that the result is judged on; rates times 1.25 and times 0.8 when absent."},
        c.shift);
  field(d, {"knobs", "What may be changed; derived from the scenario when absent."}, c.knobs);
}

}  // namespace routesim::tools
