#include "tools/render/render.h"
#include "tools/results/described_json.h"
#include "tools/results/result_record.h"
#include "tools/study/run/render_run.h"
#include "tools/study/verdict/run_verdict.h"

namespace routesim::tools {

std::string render_json(const Report& report) {
  RunRecord record = run_record(report);
  record.verdict = verdict_record(verdict_of(page_run(record, "")));
  JsonWriter json;
  write_value(json, record);
  return json.str() + "\n";
}

}  // namespace routesim::tools
