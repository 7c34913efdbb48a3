#include "models/catalogue.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/diagnostic.h"

namespace routesim::models {

void describe(Describer& d, FittedCurve& c) {
  field(d, {"accelerator", "Catalogue name of the accelerator.", true}, c.accelerator);
  field(d, {"model", "Catalogue name of the model.", true}, c.model);
  field(d, {"parallelism", "How one replica is spread over GPUs."}, c.parallelism);
  field(d, {"preset", "Engine preset it was fitted on; empty fits any."}, c.preset);
  field(d, {"kv_cache_dtype", "KV format it was fitted on; absent fits any."}, c.kv_cache_dtype);
  field(d, {"parameters", "The coefficients.", true}, c.parameters);
  field(d, {"range", "Batches the fit has seen."}, c.range);
  field(d, {"provenance", "From what data, by what command."}, c.provenance);
}

namespace {

/// Lower-case letters and digits of the part after the organisation.
std::string normalised(std::string_view name) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

/// Whether normalised(name) is `key`, without making it: a curve is looked for among many names.
bool is_spelling_of(std::string_view name, std::string_view key) {
  if (const auto slash = name.rfind('/'); slash != std::string_view::npos)
    name.remove_prefix(slash + 1);
  std::size_t at = 0;
  for (const char c : name) {
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (!(lower >= 'a' && lower <= 'z') && !(lower >= '0' && lower <= '9')) continue;
    if (at == key.size() || key[at] != lower) return false;
    ++at;
  }
  return at == key.size();
}

template <class Entry>
bool answers_to(const Entry& entry, const std::string& key) {
  return is_spelling_of(entry.name, key) ||
         std::any_of(entry.aliases.begin(), entry.aliases.end(),
                     [&key](const std::string& alias) { return is_spelling_of(alias, key); });
}

template <class Entry>
const Entry* find(const std::vector<Entry>& entries, std::string_view name) {
  const std::string key = normalised(name);
  for (auto it = entries.rbegin(); it != entries.rend(); ++it)
    if (answers_to(*it, key)) return &*it;
  return nullptr;
}

/// Compares normalised spellings, answers with the entry's own name.
template <class Entry>
std::string suggest(const std::vector<Entry>& entries, std::string_view name) {
  std::vector<std::string> keys;
  std::vector<const Entry*> owners;
  for (const Entry& entry : entries) {
    keys.push_back(normalised(entry.name));
    owners.push_back(&entry);
    for (const std::string& alias : entry.aliases) {
      keys.push_back(normalised(alias));
      owners.push_back(&entry);
    }
  }
  const std::string best = nearest(normalised(name), keys);
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (!best.empty() && keys[i] == best) return owners[i]->name;
  return {};
}

/// Endings of the names of checkpoints in a format. The first one makes the name of the entry.
const std::vector<std::string>& endings(WeightDtype weights) {
  static const std::array<std::vector<std::string>, EnumNames<WeightDtype>::value.size()> kAll = {{
      {"-BF16"},
      {"-FP8", "-FP8-dynamic", "-FP8-block"},
      {"-MXFP4"},
      {"-AWQ", "-AWQ-INT4", "-GPTQ-Int4", "-GPTQ", "-quantized.w4a16"},
      {"-NVFP4", "-FP4"},
  }};
  return kAll[static_cast<std::size_t>(weights)];
}

/// The same model with weights in another format.
ModelSpec in_format(const ModelSpec& m, const WeightFormat& format) {
  ModelSpec out = m;
  out.weights = format.weights;
  out.scaled_blocks = format.scaled_blocks;
  out.bf16_attention = format.bf16_attention;
  out.aliases.clear();
  for (const std::string& ending : endings(format.weights)) {
    out.aliases.push_back(m.name + ending);
    for (const std::string& alias : m.aliases) out.aliases.push_back(alias + ending);
  }
  out.name = out.aliases.front();
  out.aliases.erase(out.aliases.begin());
  return out;
}

}  // namespace

void Catalogue::add(ModelSpec m) {
  const std::vector<WeightFormat> formats = std::exchange(m.formats, {});
  models_.push_back(m);
  for (const WeightFormat& format : formats) models_.push_back(in_format(m, format));
}

const AcceleratorSpec* Catalogue::find_accelerator(std::string_view name) const {
  return find(accelerators_, name);
}

const ModelSpec* Catalogue::find_model(std::string_view name) const { return find(models_, name); }

const FittedCurve* Catalogue::find_cost_curve(std::string_view accelerator, std::string_view model,
                                              const Parallelism& p, std::string_view preset,
                                              bool any_preset, std::optional<KvDtype> kv) const {
  const AcceleratorSpec* a = find_accelerator(accelerator);
  const ModelSpec* m = find_model(model);
  const std::string accelerator_key = normalised(a ? a->name : accelerator);
  const std::string model_key = normalised(m ? m->name : model);
  const FittedCurve* best = nullptr;
  int best_rank = 0;
  for (auto it = curves_.rbegin(); it != curves_.rend(); ++it) {
    if (!(it->parallelism == p)) continue;
    if (kv && it->kv_cache_dtype.value_or(*kv) != *kv) continue;
    const int rank = it->preset == preset ? 3 : it->preset.empty() ? 2 : any_preset ? 1 : 0;
    if (rank <= best_rank) continue;
    // Names are looked up last: that is a search of the whole catalogue.
    const AcceleratorSpec* its_a = find_accelerator(it->accelerator);
    if (!is_spelling_of(its_a ? its_a->name : it->accelerator, accelerator_key)) continue;
    const ModelSpec* its_m = find_model(it->model);
    if (!is_spelling_of(its_m ? its_m->name : it->model, model_key)) continue;
    best = &*it;
    best_rank = rank;
  }
  return best;
}

std::string Catalogue::suggest_accelerator(std::string_view name) const {
  return suggest(accelerators_, name);
}

std::string Catalogue::suggest_model(std::string_view name) const { return suggest(models_, name); }

std::shared_ptr<const LatencyModel> make_latency_model(const Catalogue& catalogue,
                                                       const AcceleratorSpec& a, const ModelSpec& m,
                                                       const Parallelism& p,
                                                       std::string_view preset,
                                                       const RooflineOptions& options) {
  const FittedCurve* curve =
      catalogue.find_cost_curve(a.name, m.name, p, preset, true, options.kv_dtype);
  if (curve == nullptr) return std::make_shared<Roofline>(a, m, p, options);
  std::string provenance =
      "cost curve " + curve->accelerator + " / " + curve->model + " tp" + std::to_string(p.tp);
  if (p.dp > 1) provenance += " dp" + std::to_string(p.dp);
  if (p.ep > 1) provenance += " ep" + std::to_string(p.ep);
  if (!curve->preset.empty()) provenance += " (" + curve->preset + ")";
  provenance += ": " + curve->provenance;
  if (!curve->preset.empty() && curve->preset != preset)
    provenance += "; fitted on another engine preset than the requested " + std::string(preset);
  return std::make_shared<CostCurve>(curve->parameters, curve->range, std::move(provenance));
}

}  // namespace routesim::models
