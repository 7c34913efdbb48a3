// Style of the figures that only comparisons, sweeps, plans and validations have.
#include "tools/render/html_page.h"

namespace routesim::tools {

namespace {

// Cells of a goal map are light in either theme, so what lies on them is always dark.
constexpr std::string_view kStudyStyle = R"css(
th.text{text-align:left}
.dot.good{--c:var(--good)}.dot.bad{--c:var(--bad)}.dot.unsure,.plain{--c:var(--mute)}
.goal-cell{stroke:var(--card)}
.crossed{stroke:#111;stroke-opacity:.28}
.goal-line{stroke:#111;stroke-width:3;stroke-linecap:square}
.front{fill:none;stroke:var(--ink);stroke-width:1.4;stroke-opacity:.6}
svg text.over{paint-order:stroke;stroke:var(--card);stroke-width:5px;stroke-linejoin:round}
.verdict li b{font-weight:600}
@media (max-width:560px){td.path:first-child{max-width:12em}}
)css";

}  // namespace

std::string_view study_style() { return kStudyStyle; }

}  // namespace routesim::tools
