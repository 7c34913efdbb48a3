// A sharded sweep on a real Slurm: munge, the controller and one node, started here from Debian's
// packages (slurm-wlm, munge) in a private directory with a private key, sockets and ports, as the
// user who runs the test. The shipped script is what is submitted. Skipped, with the reason, where
// the programs are missing or do not start.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/base/slurp.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

using routesim::slurp;

/// A port nobody listens on just now.
int free_port() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      ::bind(descriptor, generic, size) == 0 && ::getsockname(descriptor, generic, &size) == 0;
  ::close(descriptor);
  return bound ? ntohs(address.sin_port) : 0;
}

class Slurm : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("routesim-slurm-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "munge");
    fs::create_directories(folder_ / "state");
    fs::create_directories(folder_ / "spool");
    fs::permissions(folder_ / "munge", fs::perms::owner_all);
    ::setenv("PATH", (std::string(std::getenv("PATH")) + ":/usr/sbin:/sbin").c_str(), 1);
    ::setenv("SLURM_CONF", path("slurm.conf").c_str(), 1);
    // A test inside a Slurm job must not take that job for its own.
    for (const char* name : {"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "SLURM_JOB_ID"})
      ::unsetenv(name);
  }

  void TearDown() override {
    for (const char* name : {"slurmd.pid", "slurmctld.pid", "munge/pid"}) stop(path(name));
    fs::remove_all(folder_);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Runs a shell command with its output in `log`; its exit code.
  int shell(const std::string& command) const {
    const int status = std::system((command + " >>" + path("log") + " 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// Ends the daemon whose process id the file holds, and waits until it has ended.
  static void stop(const fs::path& pid_file) {
    const std::string text = slurp(pid_file);
    const pid_t process = text.empty() ? 0 : static_cast<pid_t>(std::stol(text));
    if (process <= 1) return;
    ::kill(process, SIGTERM);
    const auto deadline = Clock::now() + std::chrono::seconds(10);
    while (::kill(process, 0) == 0 && Clock::now() < deadline)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(process, SIGKILL);
  }

  void write_configuration() const {
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    char host[256] = "localhost";
    ::gethostname(host, sizeof host - 1);
    std::string name = host;
    name.resize(std::min(name.size(), name.find('.')));
    std::ofstream(path("slurm.conf"))
        << "ClusterName=routesim\nSlurmctldHost=" << name << "(127.0.0.1)\nSlurmUser=" << user()
        << "\nSlurmdUser=" << user()
        << "\nAuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket=" << path("munge/socket")
        << "\nSlurmctldPort=" << free_port() << "\nSlurmdPort=" << free_port()
        << "\nStateSaveLocation=" << path("state") << "\nSlurmdSpoolDir=" << path("spool")
        << "\nSlurmctldPidFile=" << path("slurmctld.pid")
        << "\nSlurmdPidFile=" << path("slurmd.pid")
        << "\nSlurmctldLogFile=" << path("slurmctld.log")
        << "\nSlurmdLogFile=" << path("slurmd.log")
        << "\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSwitchType=switch/none\n"
           "SchedulerType=sched/builtin\nSelectType=select/cons_tres\n"
           "SelectTypeParameters=CR_Core\nJobAcctGatherType=jobacct_gather/none\n"
           "AccountingStorageType=accounting_storage/none\nMpiDefault=none\nReturnToService=2\n"
        << "NodeName=" << name << " NodeAddr=127.0.0.1 CPUs=" << cores << " State=UNKNOWN\n"
        << "PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";
  }

  static std::string user() {
    const std::string file = (fs::temp_directory_path() / ("user-" + std::to_string(::getpid())));
    const int status = std::system(("id -un >" + file).c_str());
    std::string name = status == 0 ? slurp(file) : "root";
    fs::remove(file);
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }

  bool wait_until_idle() const {
    const auto deadline = Clock::now() + std::chrono::seconds(20);
    while (Clock::now() < deadline) {
      if (shell("sinfo --noheader --format=%t | grep --quiet --line-regexp idle") == 0) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    return false;
  }

  /// What keeps Slurm from running here; empty when it runs.
  std::string start() const {
    for (const char* program : {"munged", "slurmctld", "slurmd", "sbatch", "sinfo"})
      if (shell(std::string("command -v ") + program) != 0)
        return std::string(program) + " is missing (apt-get install slurm-wlm munge)";
    if (shell("head -c 1024 /dev/urandom >" + path("munge/key") + " && chmod 400 " +
              path("munge/key")) != 0)
      return "no key could be made";
    if (shell("munged --force --key-file=" + path("munge/key") +
              " --socket=" + path("munge/socket") + " --pid-file=" + path("munge/pid") +
              " --log-file=" + path("munge/log") + " --seed-file=" + path("munge/seed")) != 0)
      return "munged does not start: " + slurp(folder_ / "log");
    write_configuration();
    if (shell("slurmctld -c") != 0) return "slurmctld does not start: " + slurp(folder_ / "log");
    if (shell("slurmd") != 0)
      return "slurmd does not start (it may need root): " + slurp(folder_ / "log");
    if (!wait_until_idle())
      return "the node does not come up: " + slurp(folder_ / "slurmd.log") +
             slurp(folder_ / "slurmctld.log");
    return {};
  }

  void write_sweep() const {
    std::ofstream(path("base.yaml"))
        << "name: base\nworkload:\n  groups: {requests: 300, rate: 20, groups: 4, prefix_len: 512,"
           " suffix_len: 64, output_len: 32}\ncluster:\n  pools:\n  - {name: a, replicas: 2,"
           " accelerator: H100-SXM, model: Qwen3-32B, tensor_parallel: 2}\nvariants:\n"
           "- {name: rotation, routing: {balancer: round-robin}}\n"
           "- {name: chance, routing: {balancer: random}}\n";
    std::ofstream(path("sweep.yaml"))
        << "name: slurm\nscenario: base.yaml\nreplications: 2\naxes:\n"
           "- {name: rate, path: workload.groups.rate, range: {from: 10, to: 50, step: 10}}\n";
  }

  fs::path folder_;
};

TEST_F(Slurm, AJobArrayGivesTheBytesOfAnUnshardedSweep) {
  const std::string reason = start();
  if (!reason.empty()) GTEST_SKIP() << reason;
  write_sweep();
  const std::string routesim = ROUTESIM_BINARY;
  ASSERT_EQ(shell(routesim + " sweep " + path("sweep.yaml") + " --output jsonl=" + path("whole")),
            0);
  // Fewer tasks than rows; then one task is lost, and submitted again alone.
  const std::string script = ROUTESIM_SOURCE_DIR "/scenarios/sweeps/slurm-array.sh";
  for (const char* array : {"1-4", "2"}) {
    ASSERT_EQ(shell("ROUTESIM=" + routesim + " sbatch --wait --array=" + array +
                    " --output=" + path("task-%a.log") + " " + script + " " + path("sweep.yaml") +
                    " " + path("rows") + " 4"),
              0)
        << slurp(folder_ / "log") << slurp(folder_ / "task-2.log");
    if (std::string(array) == "1-4") fs::remove(folder_ / "rows" / "shard-2.jsonl");
  }
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "rows"))
    if (entry.path().extension() == ".jsonl") ++files;
  EXPECT_EQ(files, 4U);
  EXPECT_NE(slurp(folder_ / "task-2.log").find("shard 2/4 (from --shard)"), std::string::npos)
      << slurp(folder_ / "task-2.log");
  ASSERT_EQ(shell(routesim + " sweep --merge " + path("rows") +
                  "/shard-*.jsonl --output jsonl=" + path("merged")),
            0)
      << slurp(folder_ / "log");
  const std::string whole = slurp(folder_ / "whole");
  EXPECT_FALSE(whole.empty());
  EXPECT_EQ(slurp(folder_ / "merged"), whole);
}

}  // namespace
