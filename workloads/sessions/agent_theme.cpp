#include "workloads/sessions/agent_theme.h"

namespace routesim::workloads {
namespace {

// Health, metrics, logs, deploys, dependencies, budget, flags, pods, probe, trace, config, remedy.
constexpr std::array<AgentTool, 12> kGeneric = {{{25, 45},
                                                 {45, 80},
                                                 {38, 85},
                                                 {25, 90},
                                                 {26, 85},
                                                 {25, 50},
                                                 {26, 55},
                                                 {25, 80},
                                                 {45, 45},
                                                 {26, 150},
                                                 {26, 80},
                                                 {320, 40}}};
// Buffer pool, locks, log, threads, deadlocks, messages, plan, reorganisation, explain.
constexpr std::array<AgentTool, 9> kDatabase = {
    {{38, 105}, {26, 80}, {26, 45}, {27, 75}, {27, 75}, {26, 45}, {36, 45}, {36, 40}, {215, 85}}};
// Search, fetch, retrieve, read, grep, sources, summary, answer.
constexpr std::array<AgentTool, 8> kResearch = {
    {{25, 125}, {25, 85}, {35, 100}, {25, 75}, {35, 80}, {25, 75}, {28, 75}, {330, 40}}};
// List, read, grep, symbol, difference, tests, command, edit, write, patch.
constexpr std::array<AgentTool, 10> kCode = {{{27, 100},
                                              {27, 110},
                                              {25, 85},
                                              {25, 65},
                                              {27, 125},
                                              {28, 150},
                                              {27, 65},
                                              {280, 105},
                                              {685, 75},
                                              {395, 50}}};

constexpr std::array<AgentTheme, kAgentThemes> kThemes = {{
    {.name = "generic",
     .definition = 265,
     .dump = 375,
     .objective = 22,
     .follow_up = 17,
     .intro = {250, 230},
     .recap = 65,
     .tools = kGeneric},
    {.name = "db2_latency_incident",
     .definition = 225,
     .dump = 335,
     .objective = 22,
     .follow_up = 20,
     .intro = {190, 160},
     .recap = 65,
     .tools = kDatabase},
    {.name = "research_rag",
     .definition = 165,
     .dump = 235,
     .objective = 26,
     .follow_up = 17,
     .intro = {115, 100},
     .recap = 60,
     .tools = kResearch},
    {.name = "code_change_task",
     .definition = 165,
     .dump = 240,
     .objective = 30,
     .follow_up = 22,
     .intro = {200, 190},
     .recap = 70,
     .tools = kCode},
}};

}  // namespace

const AgentTheme& agent_theme(std::size_t i) { return kThemes.at(i); }

}  // namespace routesim::workloads
