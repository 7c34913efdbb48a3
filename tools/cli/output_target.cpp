#include "tools/cli/output_target.h"

#include <algorithm>
#include <map>

#include "base/printable.h"

namespace routesim::tools {

std::optional<NamedOutput> parse_named_output(const std::string& text,
                                              std::span<const std::string_view> formats,
                                              std::string& error) {
  const std::size_t equals = text.find('=');
  NamedOutput output{.format = text.substr(0, equals), .path = {}};
  if (equals != std::string::npos) output.path = text.substr(equals + 1);
  if (equals != std::string::npos && output.path.empty()) {
    error = "--output " + printable(text) + " has no path; without = it is standard output";
    return std::nullopt;
  }
  if (output.path == "-") output.path.clear();
  if (std::find(formats.begin(), formats.end(), output.format) != formats.end()) return output;
  const std::vector<std::string> names(formats.begin(), formats.end());
  std::string list;
  for (const std::string& name : names) list.append(list.empty() ? "" : ", ").append(name);
  const std::string close = nearest(output.format, names);
  error = "--output: unknown format " + printable(output.format) +
          (close.empty() ? ", one of " + list : ", did you mean " + close + "?");
  return std::nullopt;
}

std::string shared_place(std::span<const std::string> paths) {
  for (auto path = paths.begin(); path != paths.end(); ++path) {
    if (std::find(paths.begin(), path, *path) == path) continue;
    if (path->empty()) return "--output: only one format can go to standard output, add =PATH";
    // Devices take any number of texts; of a file the last one would be all that is left.
    if (!path->starts_with("/dev/")) return "--output: two formats go to " + printable(*path, 200);
  }
  return {};
}

std::optional<std::vector<NamedOutput>> parse_named_outputs(
    const std::vector<std::string>& texts, std::span<const std::string_view> formats,
    std::string& error) {
  std::vector<NamedOutput> outputs;
  std::vector<std::string> paths;
  if (texts.empty()) outputs.push_back({.format = std::string(formats.front()), .path = {}});
  for (const std::string& text : texts) {
    std::optional<NamedOutput> output = parse_named_output(text, formats, error);
    if (!output) return std::nullopt;
    paths.push_back(output->path);
    outputs.push_back(std::move(*output));
  }
  error = shared_place(paths);
  if (!error.empty()) return std::nullopt;
  return outputs;
}

bool finish_file(const std::string& path, const std::string& error, Console& console) {
  if (error.empty()) return true;
  console.complain("routesim: cannot write " + printable(path, 200) + ": " + error + "\n");
  return false;
}

bool check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs,
                   Console& console) {
  std::map<std::string, std::string> read;  // What each file is called where it is named.
  for (const std::string& input : inputs) read.try_emplace(written_file(input), input);
  std::map<std::string, std::string> written;
  bool ok = true;
  const auto refuse = [&](const std::string& output, const std::string& why) {
    console.complain("routesim: " + printable(output, 200) + " " + why + "\n");
    ok = false;
  };
  for (const std::string& output : outputs) {
    const std::string file = output.empty() ? std::string() : written_file(output);
    if (output.empty()) continue;
    if (const auto input = read.find(file); !file.empty() && input != read.end()) {
      refuse(output, "would replace the input " + printable(input->second, 200));
    } else if (const auto [other, is_new] = written.try_emplace(file, output);
               !file.empty() && !is_new) {
      refuse(output, "is written twice, also as " + printable(other->second, 200));
    } else {
      ok = finish_file(output, why_not_writable(output), console) && ok;
    }
  }
  return ok;
}

void OutputBatch::add(const std::string& path, std::string_view content) {
  own_.push_back(std::make_unique<OutputFile>(path));
  own_.back()->write(content);
  open_.push_back(own_.back().get());
}

bool OutputBatch::close(Console& console) {
  bool ok = true;
  for (OutputFile* file : open_) ok = finish_file(file->path(), file->close(), console) && ok;
  return ok;
}

bool OutputBatch::finish(Console& console) {
  bool ok = true;
  for (OutputFile* file : open_) ok = finish_file(file->path(), file->finish(), console) && ok;
  return ok;
}

bool write_named_outputs(const std::vector<NamedOutput>& outputs,
                         const std::function<std::string(const std::string& format)>& render,
                         Console& console) {
  OutputBatch batch;
  for (const NamedOutput& output : outputs) {
    const std::string text = render(output.format);
    if (output.path.empty()) {
      console.print(text);
    } else {
      batch.add(output.path, text);
    }
  }
  return batch.close(console) && batch.finish(console);
}

}  // namespace routesim::tools
