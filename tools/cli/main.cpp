#include <string>
#include <vector>

#include "tools/cli/cli.h"
#include "tools/cli/console.h"
#include "tools/cli/heap.h"
#include "tools/results/output_file.h"

int main(int argc, char** argv) {
  namespace tools = routesim::tools;
  tools::keep_heap();
  tools::install_signal_handlers();
  tools::SystemConsole console;
  tools::ExitCode code = tools::run_command_line(
      std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), console);
  if (!console.flush()) code = tools::ExitCode::kInvalid;
  return static_cast<int>(code);
}
