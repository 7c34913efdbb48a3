#include "tools/render/html_page.h"

namespace routesim::tools {

namespace {

// Okabe and Ito's palette, darkened for paper white and lightened for the dark theme so that every
// colour stands out from its background by 3:1 or more, and text by 4.5:1. Paper is always light.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f8;--card:#fff;--ink:#16191d;--mute:#56616c;--rule:#d7dce1;
--grid:#e7eaed;--good:#00694a;--bad:#b3261e;--accent:#0067a0;
--s0:#0072b2;--s1:#d04f00;--s2:#008060;--s3:#a83d8c;--s4:#8f6a00;--s5:#3391c9;--s6:#7a1f4d;
--s7:#3d4349}
@media screen and (prefers-color-scheme:dark){:root{--bg:#111417;--card:#1a1e22;--ink:#e9ecef;
--mute:#a3adb7;--rule:#343b42;--grid:#282e34;--good:#4fd1a5;--bad:#ff8a80;--accent:#6bc0f2;
--s0:#56b4e9;--s1:#ff9248;--s2:#2fc79b;--s3:#e08ac8;--s4:#e5d54a;--s5:#b5e2ff;--s6:#ff9da7;
--s7:#c9ced3}}
*{box-sizing:border-box}
html{scroll-padding-top:16px}
body{margin:0;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1120px;margin:0 auto;padding:24px clamp(14px,3vw,32px) 48px}
header.run{margin:8px 0 18px}
.kicker{color:var(--mute);font-size:.875rem;overflow-wrap:anywhere}
h1{font-size:clamp(1.35rem,3.6vw,2rem);line-height:1.2;margin:.15em 0 .4em;letter-spacing:-.01em;
text-wrap:balance;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.4rem 0 .7rem}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
h2 a,h3 a{color:inherit;text-decoration:none}
h2 a:hover,h3 a:hover{text-decoration:underline}
p{margin:.4rem 0;max-width:75ch}
a{color:var(--accent)}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
nav.contents{font-size:.875rem;margin:1rem 0}
nav.contents strong{color:var(--mute);font-weight:600}
nav.contents ul{list-style:none;display:flex;flex-wrap:wrap;gap:0 16px;margin:0;padding:0}
nav.contents a{display:inline-block;padding:3px 0;text-decoration:none}
nav.contents a:hover{text-decoration:underline}
.verdict{background:var(--card);border:1px solid var(--rule);border-left:6px solid var(--accent);
border-radius:8px;padding:16px 20px;overflow-wrap:anywhere}
.verdict p.big{font-size:clamp(1.1rem,2.6vw,1.4rem);line-height:1.35;margin:0;font-weight:600}
.verdict ul{margin:.7rem 0 0;padding-left:1.1rem}
.verdict li{margin:.15rem 0}
.verdict .label{font-weight:600;margin:.8rem 0 0}.verdict .label+ul{margin-top:.1rem}
code{font-size:.92em;overflow-wrap:anywhere}
.fine{color:var(--mute);font-size:.875rem;max-width:95ch}.verdict .fine{margin:.7rem 0 0}
.good{color:var(--good)}.bad{color:var(--bad)}
.verdict .expect{list-style:none;margin:8px 0 0;padding:0;font-size:.95rem}
.expect li{padding:5px 0;border-top:1px solid var(--rule)}
.expect b{display:inline-block;min-width:6.5em}
.verdict .failed{border:1px solid var(--bad);border-left-width:6px;border-radius:6px;
padding:8px 14px;margin:0 0 14px}
.failed strong{color:var(--bad)}
.charts{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,400px),1fr));gap:16px}
.charts.three{grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr))}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:14px 14px 8px;min-width:0;position:relative;display:flex;flex-direction:column}
figcaption strong{display:block;font-size:.98rem;line-height:1.3;overflow-wrap:anywhere}
figcaption span{display:block;color:var(--mute);font-size:.84rem;margin-top:2px}
figure>svg.plot,figure>.tools{margin-top:auto}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;margin:8px 0 2px;padding:0;
font-size:.84rem}
.legend li,.legend button{display:flex;align-items:center;gap:6px;overflow-wrap:anywhere}
.legend .note{color:var(--mute)}
svg{display:block;width:100%;height:auto;margin-top:4px;overflow:visible}
svg.key{width:28px;height:14px;margin:0;flex:none}
svg.ramp{width:96px;height:10px;margin:0;flex:none}
svg text{fill:var(--mute);font-size:12px;font-family:inherit}
.three svg text{font-size:14px}svg text.unit{fill:var(--ink)}
svg text.on-dark{fill:#fff}svg text.on-bright{fill:#111}
svg text.tight{font-size:10px}
.grid{stroke:var(--grid)}.axis{stroke:var(--mute)}
.goal{stroke:var(--ink);stroke-width:1.6;stroke-dasharray:1 4;stroke-linecap:round}
.mean{stroke:var(--ink);stroke-width:1.6}
.strip .mark{fill-opacity:.7}
.c0{--c:var(--s0)}.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}
.c4{--c:var(--s4)}.c5{--c:var(--s5)}.c6{--c:var(--s6)}.c7{--c:var(--s7)}
.line{fill:none;stroke:var(--c,var(--mute));stroke-width:2;stroke-linejoin:round}
.thin .line{stroke-width:1.2}
.line.past{stroke-width:1.3;stroke-opacity:.5}
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}
.d4{stroke-dasharray:14 4}.d5{stroke-dasharray:4 2 1 2}.d6{stroke-dasharray:1 3}
.d7{stroke-dasharray:10 2 2 2 2 2}
.mark{fill:var(--c,var(--mute));stroke:none}
.measured .mark,.mark.past{fill:var(--card);stroke:var(--c,var(--mute));stroke-width:1.8}
.mark.past{stroke-width:1.2}
.interval{stroke:var(--c);stroke-width:1.6}
rect.bar{fill:var(--c)}
rect.cell{stroke:var(--card)}
.scroll{overflow-x:auto;border:1px solid var(--rule);border-radius:8px;width:fit-content;
max-width:100%;background:linear-gradient(to left,var(--card) 16px,transparent) right/32px local,
linear-gradient(to left,rgb(0 0 0/.2),transparent) right/12px 100% no-repeat scroll,var(--card)}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 12px;text-align:right;white-space:nowrap;border-top:1px solid var(--grid)}
thead tr:first-child th{border-top:0}
th{font-weight:600}
thead th{color:var(--mute);vertical-align:bottom;white-space:normal;overflow-wrap:break-word}
table.words th,table.words td{text-align:left}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--card)}
td.text{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:9em}
td small,th small{color:var(--mute);font-weight:400}
td small.good{color:var(--good)}td small.bad{color:var(--bad)}
td small.change{margin-left:.7em}th small{display:block;line-height:1.2}
table.many{font-size:.82rem;line-height:1.3}
table.many th,table.many td{padding:4px 7px;white-space:normal}
table.many td small.change{display:block;margin:0}table.many td.text{min-width:0}
thead svg.key{display:inline-block;vertical-align:-2px;margin-right:6px}
table.many thead svg.key{display:block;margin:0 0 2px auto}
table.words thead svg.key{margin-left:0}
details{margin:14px 0}
summary{cursor:pointer;font-weight:600;padding:4px 0}
details>.scroll{margin:8px 0}
pre{margin:8px 0;padding:12px 14px;background:var(--card);border:1px solid var(--rule);
border-radius:8px;
overflow:auto;max-height:28rem;font-size:.8rem;line-height:1.4}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 16px;margin:0;font-size:.9rem}
dt{color:var(--mute)}dd{margin:0;overflow-wrap:anywhere}
.notes{font-size:.9rem;padding-left:1.1rem}
.notes li{overflow-wrap:anywhere;margin:.2rem 0}
footer{margin-top:40px;color:var(--mute);font-size:.84rem}
button,input{font:inherit;color:inherit}
button{background:none;border:0;padding:0;cursor:pointer;text-align:inherit}
.tools{display:flex;flex-wrap:wrap;gap:4px;align-items:center;font-size:.8rem;color:var(--mute)}
.tools button,.tools input{border:1px solid var(--rule);border-radius:5px;padding:2px 8px;
background:var(--card);min-height:26px}
.tools button:hover{border-color:var(--mute);color:var(--ink)}
.tools input{min-width:0;width:14em}
div.tools{margin:0 0 6px}
figure .tools{padding-top:6px}
.legend button[aria-pressed=false]{opacity:.75;text-decoration:line-through}
.legend button[aria-pressed=false] svg{opacity:.25}
.series.off{display:none}.series.dim{opacity:.18}
svg.live{cursor:crosshair;touch-action:pan-y;user-select:none}
.cursor{stroke:var(--mute);stroke-dasharray:2 2;pointer-events:none}
.band{fill:var(--accent);fill-opacity:.15;stroke:var(--accent);pointer-events:none}
.pick{fill:none;stroke:var(--ink);stroke-width:2;pointer-events:none}
th button{font-weight:inherit;width:100%}
th button:hover{color:var(--ink);text-decoration:underline}
th[aria-sort] button{color:var(--ink)}
th[aria-sort=ascending] button::after{content:" ↑"}
th[aria-sort=descending] button::after{content:" ↓"}
dialog{border:0;padding:0;width:min(96vw,150vh);max-width:none;max-height:96vh;background:none;
color:inherit}
dialog figure>svg{max-height:calc(96vh - 200px)}
dialog svg text{font-size:8px}dialog .plot .line{stroke-width:1.4}
dialog::backdrop{background:rgb(0 0 0/.55)}
#tip{position:absolute;z-index:9;pointer-events:none;background:var(--ink);color:var(--bg);
padding:6px 10px;border-radius:6px;font-size:.82rem;max-width:min(360px,92vw);display:none;
line-height:1.35;overflow-wrap:anywhere}
#tip table{font-size:inherit;width:auto}
#tip td{border:0;padding:0 0 0 8px;background:none;position:static;color:inherit}
#tip td:first-child{padding:0;text-align:left;white-space:normal}
#tip tr.near{font-weight:700}
@media (max-width:560px){main{padding-top:12px}.verdict{padding:12px 14px}
figure{padding:10px 8px 6px}th,td{padding:5px 8px;white-space:normal}
th:first-child,td:first-child{max-width:7.5em}td small.change{display:block;margin:0}
thead svg.key{display:block;margin:0 0 2px auto}
.charts{gap:12px}svg text{font-size:13px}svg text.tight{font-size:11px}
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:6px}}
@media screen and (min-width:1280px){main{max-width:1680px;padding-left:250px}
nav.contents{position:fixed;left:24px;top:32px;width:196px;margin:0;max-height:94vh;
overflow-y:auto}
nav.contents ul{display:block;margin-top:4px}nav.contents a{line-height:1.3}}
@page{size:A4;margin:13mm 12mm}
@media print{html{font-size:12.5px}
body{background:#fff;font-size:1rem}main{max-width:none;padding:0}
.screen,nav.contents,#tip{display:none!important}
details::details-content{display:block;content-visibility:visible;height:auto}
.scroll{overflow:visible;width:auto;border-radius:0;background:none}
table{font-size:7.5pt}table.many{font-size:6.3pt}
th,td{padding:2px 4px;white-space:normal}table.many th,table.many td{padding:2px}
th:first-child,td:first-child{position:static}
thead{display:table-header-group}td.text{min-width:0}
thead svg.key{display:block;margin:0 0 1px auto;width:22px}
pre{max-height:none;overflow:visible;white-space:pre-wrap;overflow-wrap:anywhere;font-size:6.5pt;
border:0;padding:0;columns:2}
.charts,.charts.three{grid-template-columns:1fr 1fr;gap:8px}
figure{padding:8px}figure,tr,li{break-inside:avoid}td small,th small{font-size:.95em}
h2,h3,summary,.label{break-after:avoid}h2{margin-top:1.4rem}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
)css";

}  // namespace

std::string_view page_style() { return kStyle; }

}  // namespace routesim::tools
