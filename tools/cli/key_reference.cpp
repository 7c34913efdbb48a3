#include "tools/cli/key_reference.h"

#include <vector>

#include "policies/document_keys.h"
#include "policies/factory.h"
#include "policies/inert_keys.h"
#include "tools/input/deployment_keys.h"
#include "tools/input/description.h"
#include "tools/input/measured_file.h"
#include "tools/input/vllm_bench_yaml.h"
#include "tools/input/vllm_serve_flags.h"

namespace routesim::tools {

namespace {

/// A table cell; a bar would end it.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

std::string row(std::string_view key, Fate fate, std::string_view why) {
  return "| `" + cell(key) + "` | " + std::string(fate_name(fate)) + " | " + cell(why) + " |\n";
}

std::string heading(std::string_view format, std::string_view source) {
  return "\n## " + std::string(format) + "\n\nFrom " + std::string(source) +
         ".\n\n| Key | Fate | Why |\n|---|---|---|\n";
}

std::string section(const KeyTable& table) {
  std::string out = heading(table.format, table.source);
  for (const KeyRule& rule : table.rules) out += row(rule.pattern, rule.fate, rule.why);
  return out;
}

std::string flags_section() {
  std::string out =
      heading(kServeFormat,
              "vllm/engine/arg_utils.py and vllm/entrypoints/openai/cli_args.py, v0.6 to v0.26");
  for (const FlagRule& rule : all_flags())
    out += row("--" + rule.name, rule.fate, rule.fate == Fate::kUsed ? rule.key : rule.why);
  return out;
}

/// The keys of a plugin's parameters, with the fate of each.
class ParameterRows final : public Describer {
 public:
  ParameterRows(std::string prefix, std::string& out, Fate fate = Fate::kUsed,
                std::string_view why = {})
      : prefix_(std::move(prefix)), out_(out), fate_(fate), why_(why) {}

  void boolean(const Field& f, bool&) override { add(f); }
  void integer(const Field& f, std::int64_t&, const IntRange&) override { add(f); }
  void real(const Field& f, double&, const RealRange&) override { add(f); }
  void text(const Field& f, std::string&) override { add(f); }
  void duration(const Field& f, Duration&, const DurationRange&) override { add(f); }
  void choice(const Field& f, std::size_t&, std::span<const std::string_view>) override { add(f); }
  void document(const Field& f, Document&) override { add(f); }
  void object(const Field& f, const std::function<void(Describer&)>& members) override {
    const std::size_t before = out_.size();
    ParameterRows inner = below(f, "");
    members(inner);
    if (out_.size() == before) add(f);  // Free-form.
  }
  void list(const Field& f, ListAccess& items) override {
    items.resize(1);
    ParameterRows inner = below(f, "[]");
    items.visit(0, inner);
  }
  void optional(const Field& f, OptionalAccess& value) override {
    value.engage(true);
    ParameterRows inner = below(f, "");
    value.visit(inner);
  }

 private:
  std::string path(const Field& f) const {
    if (f.name.empty()) return prefix_;
    return prefix_ + "." + std::string(f.name);
  }
  ParameterRows below(const Field& f, std::string_view behind) const {
    const bool is_own = f.fate != Fate::kUsed;
    return {path(f) + std::string(behind), out_, is_own ? f.fate : fate_, is_own ? f.why : why_};
  }
  void add(const Field& f) {
    const bool is_own = f.fate != Fate::kUsed;
    const Fate fate = is_own ? f.fate : fate_;
    out_ += row(path(f), fate, is_own ? f.why : fate == Fate::kUsed ? f.doc : why_);
  }

  std::string prefix_;
  std::string& out_;
  Fate fate_;
  std::string_view why_;
};

std::string plugins_section() {
  std::string out = heading("parameters of plugins", "policies/config.h, by plugin type");
  const policies::PluginRegistry& registry = policies::PluginRegistry::standard();
  for (const std::string& name : registry.type_names()) {
    const policies::PluginType* type = registry.find(name);
    if (!type->describe_parameters) continue;
    ParameterRows rows(name, out);
    type->describe_parameters(rows);
  }
  return out;
}

}  // namespace

std::string key_reference() {
  std::string out =
      "# What becomes of every key\n\n"
      "`routesim schema keys -o markdown` writes this page from the tables that the readers use. "
      "`routesim check --keys FILE` says it of the keys of one file.\n\n"
      "- *used*: the result depends on it, as in the real system.\n"
      "- *no effect*: the result would not depend on it in the real system either, or routesim "
      "knows by other means what it says.\n"
      "- *approximated*: used, but more simply than the real system uses it.\n"
      "- *not modelled*: the real system uses it and routesim does not. A warning says so, or an "
      "error where the answer would be another one.\n\n"
      "In a key, `*` stands for any one key, `[]` for any index and `**` for any keys. The most "
      "precise row counts. The pages of [scenarios](scenario.md), "
      "[inference-perf](inference-perf.md), [plans](plan.md), [sweeps](sweep.md) and "
      "[catalogues](catalogue.md) list the keys of these formats: one that is not simply used says "
      "so. Of traces, the columns of times, lengths, prefixes and sessions are used, and others "
      "have no effect.\n";
  out += section(policies::document_keys()) + plugins_section() + section(policies::inert_keys());
  out += section(router_values_keys()) + section(server_file_keys()) + flags_section();
  return out + section(vllm_bench_keys()) + section(lifecycle_result_keys()) +
         section(bench_result_keys());
}

}  // namespace routesim::tools
