#include "tools/render/html_page.h"

namespace routesim::tools {

namespace {

// Okabe and Ito's palette, darkened for paper white and lightened for the dark theme so that every
// colour stands out from its background by 3:1 or more.
constexpr std::string_view kStyle = R"css(
:root{color-scheme:light dark;--bg:#f6f7f8;--card:#fff;--ink:#16191d;--mute:#56616c;--rule:#d7dce1;
--grid:#e7eaed;--good:#00694a;--bad:#b3261e;--accent:#0072b2;
--s0:#0072b2;--s1:#c94f00;--s2:#00805c;--s3:#a83d8c;--s4:#7a6300;--s5:#3b7fae;--s6:#882255;
--s7:#4a4f55}
@media (prefers-color-scheme:dark){:root{--bg:#111417;--card:#1a1e22;--ink:#e9ecef;--mute:#a3adb7;
--rule:#343b42;--grid:#282e34;--good:#4fd1a5;--bad:#ff8a80;--accent:#56b4e9;
--s0:#56b4e9;--s1:#ff9248;--s2:#2fc79b;--s3:#e08ac8;--s4:#e5d54a;--s5:#9fd8ff;--s6:#ff9da7;
--s7:#c9ced3}}
*{box-sizing:border-box}
body{margin:0;background:var(--bg);color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
-webkit-text-size-adjust:100%}
main{max-width:1120px;margin:0 auto;padding:24px clamp(14px,3vw,32px) 48px}
header.run{margin:8px 0 18px}
.kicker{color:var(--mute);font-size:.875rem;overflow-wrap:anywhere}
h1{font-size:clamp(1.35rem,3.6vw,2rem);line-height:1.2;margin:.15em 0 .4em;letter-spacing:-.01em;
text-wrap:balance}
h2{font-size:1.15rem;margin:2.2rem 0 .7rem}
h3{font-size:1rem;margin:1.2rem 0 .4rem}
p{margin:.4rem 0;max-width:75ch}
.verdict{background:var(--card);border:1px solid var(--rule);border-left:6px solid var(--accent);
border-radius:8px;padding:16px 20px}
.verdict p.big{font-size:clamp(1.1rem,2.6vw,1.4rem);line-height:1.35;margin:0;font-weight:600}
.verdict ul{margin:.7rem 0 0;padding-left:1.1rem}
.verdict li{margin:.15rem 0}
.verdict .fine{color:var(--mute);font-size:.875rem;margin:.7rem 0 0}
.good{color:var(--good)}.bad{color:var(--bad)}
.expect{list-style:none;margin:12px 0 0;padding:0}
.expect li{padding:6px 0;border-top:1px solid var(--rule)}
.expect b{display:inline-block;min-width:6.5em}
.charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,400px),1fr));gap:16px}
.charts.three{grid-template-columns:repeat(auto-fit,minmax(min(100%,320px),1fr))}
figure{margin:0;background:var(--card);border:1px solid var(--rule);border-radius:8px;
padding:14px 14px 8px;min-width:0}
figcaption strong{display:block;font-size:.98rem;line-height:1.3;text-wrap:balance}
figcaption span{display:block;color:var(--mute);font-size:.84rem;margin-top:2px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;margin:8px 0 2px;padding:0;
font-size:.84rem}
.legend li{display:flex;align-items:center;gap:6px}
svg{display:block;width:100%;height:auto;margin-top:4px;overflow:visible}
svg.key{width:28px;height:14px;margin:0;flex:none}
svg text{fill:var(--mute);font-size:12px;font-family:inherit}
svg text.unit{fill:var(--ink)}
svg text.on-dark{fill:#fff}svg text.on-bright{fill:#111}
svg text.tight{font-size:10px}
.grid{stroke:var(--grid)}.axis{stroke:var(--mute)}
.c0{--c:var(--s0)}.c1{--c:var(--s1)}.c2{--c:var(--s2)}.c3{--c:var(--s3)}
.c4{--c:var(--s4)}.c5{--c:var(--s5)}.c6{--c:var(--s6)}.c7{--c:var(--s7)}
.line{fill:none;stroke:var(--c);stroke-width:2;stroke-linejoin:round}
.thin .line{stroke-width:1.2}
.d1{stroke-dasharray:7 3}.d2{stroke-dasharray:2 3}.d3{stroke-dasharray:9 3 2 3}
.mark{fill:var(--c);stroke:none}
.measured .mark{fill:var(--card);stroke:var(--c);stroke-width:1.8}
.interval{stroke:var(--c);stroke-width:1.6}
rect.bar{fill:var(--c)}
rect.cell{stroke:var(--card)}
.scroll{overflow-x:auto;background:var(--card);border:1px solid var(--rule);border-radius:8px}
table{border-collapse:collapse;width:100%;font-size:.9rem;font-variant-numeric:tabular-nums}
th,td{padding:6px 12px;text-align:right;white-space:nowrap;border-top:1px solid var(--grid)}
thead tr:first-child th{border-top:0}
th{font-weight:600}
thead th{color:var(--mute);vertical-align:bottom}
th:first-child,td:first-child{text-align:left;position:sticky;left:0;background:var(--card)}
td.text{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:9em}
td small{color:var(--mute)}
thead svg.key{display:inline-block;vertical-align:-2px;margin-right:6px}
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
#tip{position:absolute;z-index:2;pointer-events:none;background:var(--ink);color:var(--bg);
padding:5px 9px;border-radius:6px;font-size:.82rem;max-width:min(320px,90vw);display:none}
@media (max-width:560px){main{padding-top:12px}.verdict{padding:12px 14px}
figure{padding:10px 8px 4px}th,td{padding:5px 8px;white-space:normal}
th:first-child,td:first-child{max-width:7.5em}thead svg.key{display:block;margin:0 0 2px auto}
.charts{gap:12px}svg text{font-size:13px}}
@media print{body{background:#fff}.scroll{overflow:visible}pre{max-height:none}}
)css";

// Shows the number of the nearest mark under a pointer or finger; without script the browser's own
// tooltips do.
constexpr std::string_view kScript = R"js(
(function(){
var tip=document.getElementById('tip');
document.querySelectorAll('svg title').forEach(function(t){
t.parentNode.setAttribute('data-tip',t.textContent);t.remove();});
function hide(){tip.style.display='none';}
function show(event){
var svg=event.target.closest?event.target.closest('figure svg:not(.key)'):null;
if(!svg){hide();return;}
var best=null,least=36*36;
svg.querySelectorAll('[data-tip]').forEach(function(m){
var b=m.getBoundingClientRect(),x=b.left+b.width/2-event.clientX,y=b.top+b.height/2-event.clientY;
var d=m===event.target?0:x*x+y*y;
if(d<least){least=d;best=m;}});
if(!best){hide();return;}
tip.textContent=best.getAttribute('data-tip');
tip.style.display='block';
var b=best.getBoundingClientRect(),w=tip.offsetWidth;
var left=Math.max(6,Math.min(b.left+b.width/2-w/2,document.documentElement.clientWidth-w-6));
tip.style.left=(left+window.scrollX)+'px';
tip.style.top=(b.top+window.scrollY-tip.offsetHeight-8)+'px';}
document.addEventListener('pointermove',show);
document.addEventListener('pointerdown',show);
document.addEventListener('scroll',hide,{passive:true});
})();
)js";

}  // namespace

std::string_view page_style() { return kStyle; }
std::string_view page_script() { return kScript; }

}  // namespace routesim::tools
