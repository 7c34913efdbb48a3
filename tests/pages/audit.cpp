// What is wrong with a page to look at: in a window, in print, and for assistive technology.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "tests/base/slurp.h"
#include "tests/pages/browser.h"
#include "tests/pages/shell.h"

namespace routesim::pages {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Opens what is folded away, so that it is looked at too.
constexpr const char* kUnfold =
    "document.querySelectorAll('details').forEach(d => { d.open = true; }), 0";

/// Gives one sentence per defect of the layout. Text that scrolls inside its own frame is fine in a
/// narrow window; in a wide one (`roomy`) tables have to fit.
constexpr const char* kLayout = R"js((roomy => {
const wrong = [], root = document.documentElement;
const say = (e, text) => {
  const name = e.closest('[id]') || e.closest('figure') || e;
  wrong.push(text + ': "' + (e.textContent || '').trim().slice(0, 60) + '" in <' + e.tagName +
    ' class=' + (e.getAttribute('class') || '') + '> near ' + (name.id || name.tagName));
};
if (root.scrollWidth > innerWidth) wrong.push('the page scrolls sideways: ' + root.scrollWidth);
const style = new Map();
const of = e => { if (!style.has(e)) style.set(e, getComputedStyle(e)); return style.get(e); };
for (const e of document.body.querySelectorAll('*')) {
  const s = of(e);
  if (e.closest('svg') || s.display === 'none' || s.display === 'inline') continue;
  const hides = /hidden|clip/.test(s.overflowX + s.overflowY);
  if (hides && (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1) &&
      !e.matches('.unseen')) say(e, 'cut');
  if (roomy && e.matches('.scroll') && e.scrollWidth > e.clientWidth + 1)
    say(e, 'has to be scrolled at ' + innerWidth + ' px');
}
/* Failed expectations may stand above the picture, and nothing else. */
const first = document.querySelector('figure');
if (first && !document.querySelector('.failed')) {
  const b = first.getBoundingClientRect();
  if (b.top + scrollY + b.height / 2 > 900)
    wrong.push('the first picture begins at ' + Math.round(b.top + scrollY) + ' px');
}
for (const e of document.querySelectorAll('.charts')) {
  const next = e.nextElementSibling, before = e.previousElementSibling;
  for (const [up, down] of [[before, e], [e, next]])
    if (up && down && e.checkVisibility() && e.childElementCount &&
        down.getBoundingClientRect().top - up.getBoundingClientRect().bottom < 8)
      say(e, 'touches what stands before or behind it');
}
/* Every piece of text with the box in which it can be seen. */
const pieces = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const e = node.parentElement;
  if (!node.data.trim() || e.closest('script,style,title,.unseen,pre') ||
      !e.checkVisibility({visibilityProperty: true})) continue;
  let clip = {left: 0, right: innerWidth, top: -1e9, bottom: 1e9}, framed = false;
  for (let p = e; p && p !== document.body; p = p.parentElement) {
    if (p.closest('svg') && p.tagName !== 'svg') continue;
    if (p.tagName === 'svg' && p.closest('figure')) {
      const b = p.getBoundingClientRect();
      clip = {left: b.left - 1.5, right: b.right + 1.5, top: b.top - 1.5, bottom: b.bottom + 1.5};
      break;
    }
    if (/auto|scroll/.test(of(p).overflowX)) { framed = true; break; }
  }
  if (framed && !roomy) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  for (const b of range.getClientRects()) {
    if (b.width < 1 || b.height < 1) continue;
    if (b.left < clip.left - 1 || b.right > clip.right + 1 || b.top < clip.top - 1 ||
        b.bottom > clip.bottom + 1) say(e, 'outside its drawing or window');
    /* Line boxes are taller than letters: a fifth of the height is air above and below. */
    pieces.push({e, left: b.left + 1, right: b.right - 1, top: b.top + b.height * .2,
      bottom: b.bottom - b.height * .2});
  }
}
pieces.sort((a, b) => a.top - b.top);
let found = 0;
for (let i = 0; i < pieces.length && found < 20; ++i)
  for (let j = i + 1; j < pieces.length && pieces[j].top < pieces[i].bottom; ++j) {
    const a = pieces[i], b = pieces[j];
    if (a.e === b.e || a.left >= b.right || b.left >= a.right) continue;
    say(a.e, 'overlaps "' + b.e.textContent.trim().slice(0, 40) + '"');
    ++found;
    break;
  }
return wrong;
}))js";

/// Ids of the rules that the page breaks, each with the elements.
constexpr const char* kAxe = R"js(
axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => v.id + ': ' +
  v.help + ' (' + v.nodes.length + '): ' + v.nodes.slice(0, 4).map(n => n.target.join(' ') + ' ' +
  n.any.map(a => a.message).join(' ').slice(0, 160)).join(' | ')))
)js";

/// The words of every table and every list, as they stand on the page.
constexpr const char* kWords = R"js((() => {
const words = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node; (node = walker.nextNode());) {
  const e = node.parentElement;
  if (e.closest('h1,h2,th,td,.verdict,figcaption') && !e.closest('.screen,svg,#tip') &&
      e.checkVisibility()) words.push(...node.data.split(/[\s-]+/));
}
return words.filter(w => w.length > 1 && w.length <= 14);
})())js";

void append(std::vector<std::string>& problems, const std::string& where, const Json& found) {
  if (!found.is_array()) {
    problems.push_back(where + ": no answer");
    return;
  }
  for (const Json& text : found) problems.push_back(where + ": " + text.get<std::string>());
}

/// Letters smaller than this cannot be read on paper, in points.
constexpr double kSmallestPrintPt = 5;

void audit_print(Browser& browser, const fs::path& page, std::vector<std::string>& problems,
                 std::vector<std::string>& skipped) {
  if (one_line(shell("command -v pdftotext")).empty()) {
    skipped.push_back("print: needs pdftotext (Debian: poppler-utils)");
    return;
  }
  browser.open(page, 1400);
  const fs::path pdf = browser.folder() / "page.pdf";
  browser.print(pdf);
  const std::string boxes = shell("pdftotext -bbox " + pdf.string() + " -");
  std::map<std::string, int> printed;
  double width = 0;
  const std::regex line(
      "<page width=\"([0-9.]+)\"|<word xMin=\"([-0-9.]+)\" yMin=\"([-0-9.]+)\" "
      "xMax=\"([-0-9.]+)\" yMax=\"([-0-9.]+)\">([^<]*)<");
  double smallest = 1e9;
  for (std::sregex_iterator it(boxes.begin(), boxes.end(), line), end; it != end; ++it) {
    if ((*it)[1].matched) {
      width = std::stod((*it)[1]);
      continue;
    }
    std::string word = (*it)[6];
    for (const auto& [entity, letter] :
         {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}})
      for (std::size_t at; (at = word.find(entity)) != std::string::npos;)
        word.replace(at, std::string(entity).size(), letter);
    // Lines break at hyphens.
    std::istringstream parts(std::regex_replace(word, std::regex("-"), " "));
    for (std::string part; parts >> part;) ++printed[part];
    smallest = std::min(smallest, std::stod((*it)[5]) - std::stod((*it)[3]));
    if (std::stod((*it)[2]) < 0 || std::stod((*it)[4]) > width)
      problems.push_back("A4: \"" + word + "\" is outside the paper");
  }
  if (std::abs(width - 595) > 2)
    problems.push_back("A4: the paper is " + std::to_string(width) + " pt wide, not 595");
  if (smallest < kSmallestPrintPt)
    problems.push_back("A4: letters of " + std::to_string(smallest) + " pt");
  browser.evaluate(kUnfold);
  std::map<std::string, int> shown;
  for (const Json& word : browser.evaluate(kWords)) ++shown[word.get<std::string>()];
  if (shown.empty()) problems.push_back("A4: the page has no words");
  for (const auto& [word, count] : shown)
    if (printed[word] < count)
      problems.push_back("A4: \"" + word + "\" is printed " + std::to_string(printed[word]) +
                         " times of " + std::to_string(count));
}

}  // namespace

const std::string& axe() {
  static const std::string kText = [] {
    if (const char* file = std::getenv("ROUTESIM_AXE")) return slurp(file);
    const fs::path folder = ROUTESIM_BUILD_FOLDER;
    const fs::path file = folder / "package" / "axe.min.js";
    if (!fs::exists(file))
      shell("cd " + folder.string() +
            " && mkdir -p package && { timeout 60 npm pack --silent axe-core@4 && tar xzf "
            "axe-core-4*.tgz package/axe.min.js || timeout 60 python3 -m pip download -q --no-deps "
            "axe-playwright-python && python3 -m zipfile -e axe_playwright_python-*.whl . && mv "
            "axe_playwright_python/axe.min.js package; }");
    return slurp(file);
  }();
  return kText;
}

std::vector<std::string> audit(Browser& browser, const fs::path& page,
                               std::vector<std::string>& skipped) {
  std::vector<std::string> problems;
  if (axe().empty()) skipped.push_back("axe-core: needs npm or pip, or ROUTESIM_AXE");
  struct Look {
    int width;
    bool dark, axe;
  };
  for (const Look& look :
       {Look{390, false, true}, {1400, false, true}, {1400, true, true}, {1920, false, false}}) {
    const std::string where = std::to_string(look.width) + (look.dark ? " px, dark" : " px");
    browser.open(page, look.width, look.dark);
    browser.evaluate(kUnfold);
    if (!look.dark)
      append(problems, where,
             browser.evaluate(std::string(kLayout) + (look.width >= 1400 ? "(true)" : "(false)")));
    if (look.axe && !axe().empty()) {
      browser.run_program(axe());
      append(problems, "axe-core at " + where, browser.evaluate(kAxe));
    }
    for (const std::string& complaint : browser.complaints())
      problems.push_back(where + ": " + complaint);
  }
  audit_print(browser, page, problems, skipped);
  return problems;
}

}  // namespace routesim::pages
