#include "tools/cli/output_target.h"

#include <map>

#include "base/text.h"
#include "tools/results/output_file.h"

namespace routesim::tools {

bool finish_file(const std::string& path, const std::string& error, Console& console) {
  if (error.empty()) return true;
  console.complain("routesim: cannot write " + printable(path, 200) + ": " + error + "\n");
  return false;
}

bool check_outputs(std::span<const std::string> outputs, std::span<const std::string> inputs,
                   Console& console) {
  std::map<std::string, std::string> read;  // By file, its name on the command line.
  for (const std::string& input : inputs) read.try_emplace(written_file(input), input);
  std::map<std::string, std::string> written;
  bool ok = true;
  const auto refuse = [&](const std::string& output, const std::string& why) {
    console.complain("routesim: " + printable(output, 200) + " " + why + "\n");
    ok = false;
  };
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    const std::string file = written_file(output);
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

bool check_outputs(const std::vector<Output>& outputs, std::span<const std::string> inputs,
                   Console& console) {
  std::vector<std::string> paths;
  for (const Output& output : outputs) paths.push_back(output.path);
  return check_outputs(paths, inputs, console);
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

bool write_text(const std::string& path, std::string_view text, Console& console) {
  if (!path.empty()) return finish_file(path, write_file(path, text), console);
  console.print(text);
  return true;
}

std::size_t width_of(const Output& output, const Console& console) {
  return output.path.empty() ? console.output_width() : 0;
}

bool write_outputs(const std::vector<Output>& outputs, const RenderOutput& render, Console& console,
                   bool partial) {
  OutputBatch batch;
  for (const Output& output : outputs) {
    const std::string text = render(output.format, width_of(output, console));
    if (output.path.empty()) {
      console.print(text);
    } else {
      batch.add(partial ? partial_path(output.path) : output.path, text);
    }
  }
  return batch.close(console) && batch.finish(console);
}

}  // namespace routesim::tools
