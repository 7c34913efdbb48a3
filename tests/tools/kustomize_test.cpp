// Kustomize folders as published guides have them: the shape is that of llm-d's guides.
#include "tools/ingest/servers/kustomize.h"

#include <cstdlib>
#include <map>
#include <set>

#include "base/text.h"
#include "tests/base/messages.h"
#include "tests/tools/command_fixture.h"
#include "tools/ingest/servers/kustomize_patch.h"
#include "tools/ingest/servers/vllm_serve_files.h"
#include "tools/ingest/tree/description.h"
#include "tools/ingest/tree/kubernetes_file.h"
#include "tools/ingest/tree/parse_config.h"

namespace routesim::tools {
namespace {

ConfigNode::Ptr parsed(const std::string& text) {
  Diagnostics d;
  const ConfigNode::Ptr root = parse_config(text, {.file = "f.yaml"}, d);
  EXPECT_NE(root, nullptr) << messages_of(d);
  return root;
}

/// The values of a tree with the keys of its maps in order, whatever their quotes. Namespaces are
/// left out: trees of ours have those of the files.
std::string canonical(const ConfigNode& node) {
  if (node.is_scalar()) return in_quotes(node.text());
  std::string out;
  for (const ConfigNode::Ptr& item : node.items()) out += "- " + canonical(*item) + " ";
  std::map<std::string, std::string> members;
  for (const auto& member : node.members())
    if (member.key != "namespace") members[member.key] = canonical(*member.value);
  for (const auto& [key, value] : members) out += key + ": " + value + " ";
  return "(" + out + ")";
}

class Kustomize : public testing::FolderTest {
 protected:
  /// The objects of a folder as YAML, or what is wrong with it.
  std::string built(const std::string& folder) {
    Diagnostics d;
    const Kustomized made =
        build_kustomization(kustomization_in(path(folder)), {.file = "s.yaml"}, "key", d);
    std::string out;
    if (made.objects != nullptr)
      for (const ConfigNode::Ptr& object : made.objects->child("items")->items())
        out += to_yaml(*object);
    return out + without_folder(messages_of(d));
  }

  /// Holds the folder's objects against those of kubectl, where that is installed.
  void expect_as_kubectl(const std::string& folder) {
    if (std::system("kubectl version --client > /dev/null 2>&1") != 0)
      GTEST_SKIP() << "kubectl is not installed";
    const std::string made_by_kubectl = path("kubectl.yaml");
    ASSERT_EQ(std::system(("kubectl kustomize " + path(folder) + " > " + made_by_kubectl).c_str()),
              0);
    Diagnostics d;
    const auto theirs = read_manifest_file(made_by_kubectl, {}, {}, d);
    const Kustomized ours = build_kustomization(kustomization_in(path(folder)), {}, "key", d);
    ASSERT_FALSE(d.has_errors()) << messages_of(d);
    std::set<std::string> expected, made;
    for (const auto& object : theirs->child("items")->items()) expected.insert(canonical(*object));
    for (const auto& object : ours.objects->child("items")->items())
      made.insert(canonical(*object));
    EXPECT_EQ(made, expected);
  }

  std::string without_folder(std::string text) const {
    const std::string folder = folder_.string() + "/";
    for (std::size_t at = 0; (at = text.find(folder, at)) != std::string::npos;)
      text.erase(at, folder.size());
    return text;
  }

  /// A guide: a base with holes, a component that fills in the image, and the guide's own patch.
  void write_guide() {
    write_base();
    write("images/kustomization.yaml",
          "kind: Component\nimages:\n- {name: REPLACE_IMAGE, newName: docker.io/vllm/vllm-openai, "
          "newTag: v0.19.1}\npatches:\n- target: {kind: Deployment}\n  patch: |-\n"
          "    - op: add\n      path: /spec/template/spec/containers/0/env/-\n"
          "      value: {name: USER, value: llm-d}\n");
    write("guide/kustomization.yaml",
          "resources: [../base]\ncomponents: [../images]\nnamePrefix: precise-\nlabels:\n"
          "- pairs: {model: Qwen3-32B}\n  includeTemplates: true\npatches:\n- path: patch.yaml\n");
    write("guide/patch.yaml",
          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: decode}\nspec:\n  replicas: 8\n "
          " template:\n    spec:\n"
          "      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}\n"
          "      containers:\n      - name: server\n        command: [vllm, serve]\n"
          "        args: [Qwen/Qwen3-32B, --tensor-parallel-size=2]\n"
          "        env: [{name: POD_PORT, value: \"8000\"}]\n");
  }

  void write_base() {
    write("base/kustomization.yaml", "kind: Kustomization\nresources: [deployment.yaml]\n");
    write("base/deployment.yaml",
          "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: decode, labels: {role: d}}\n"
          "spec:\n  template:\n    metadata: {labels: {role: d}}\n    spec:\n      containers:\n"
          "      - {name: server, image: REPLACE_IMAGE, command: [], args: [], env: []}\n");
  }
};

TEST_F(Kustomize, AFolderOfAGuideStartsItsServers) {
  write_guide();
  Diagnostics d;
  const Kustomized made = build_kustomization(kustomization_in(path("guide")), {}, "key", d);
  ASSERT_NE(made.objects, nullptr) << messages_of(d);
  EXPECT_EQ(messages_of(d), "");
  ASSERT_EQ(made.files.size(), 1U);
  EXPECT_EQ(made.files[0], path("base/deployment.yaml"));
  const auto starts = starts_in_tree(made.objects, "key", d);
  ASSERT_EQ(starts.size(), 1U);
  const ServerStart& start = starts[0];
  EXPECT_EQ(start.name, "precise-decode");
  EXPECT_EQ(start.image.text, "docker.io/vllm/vllm-openai:v0.19.1");
  EXPECT_EQ(start.replicas->text(), "8");
  EXPECT_EQ(start.replicas->where().file, path("guide/patch.yaml"));
  EXPECT_EQ(start.replicas->where().line, 5);
  ASSERT_EQ(start.words.size(), 2U);
  EXPECT_EQ(start.words[1].text, "--tensor-parallel-size=2");
  EXPECT_EQ(start.environment.at("USER").text, "llm-d");
  EXPECT_EQ(start.environment.at("POD_PORT").text, "8000");
  ASSERT_EQ(start.labels.size(), 2U);
  EXPECT_EQ(start.labels[1]->text(), "model=Qwen3-32B");
  ASSERT_EQ(start.accelerators.size(), 1U);
  EXPECT_EQ(start.accelerators[0]->text(), "H200");
}

TEST_F(Kustomize, KubectlBuildsTheSameObjects) {
  write_guide();
  write("over/kustomization.yaml",
        "resources: [../guide]\nnameSuffix: -v1\nreplicas: [{name: precise-decode, count: 3}]\n"
        "configMapGenerator: [{name: c, literals: [A=1], options: {disableNameSuffixHash: true}}]\n"
        "patches:\n- target: {kind: Deployment, name: decode}\n  patch: |-\n"
        "    - {op: replace, path: /spec/template/spec/containers/0/args/1, value: -tp=4}\n"
        "- patch: |-\n    apiVersion: apps/v1\n    kind: Deployment\n    metadata: {name: decode}\n"
        "    spec:\n      template:\n        spec:\n          containers:\n"
        "          - {name: sidecar, image: s}\n          - name: server\n"
        "            env: [{name: POD_PORT, value: \"9000\"}, {name: NEW, value: x}]\n");
  expect_as_kubectl("over");
}

/// Patches of one label each, named by their number, for the objects that the targets select.
std::string patches_for(const std::vector<std::string>& targets) {
  std::string text = "patches:\n";
  for (std::size_t i = 0; i < targets.size(); ++i)
    text += "- target: {" + targets[i] + "}\n  patch: |-\n    - op: add\n" +
            "      path: /metadata/labels/p" + std::to_string(i) + "\n      value: \"yes\"\n";
  return text;
}

TEST_F(Kustomize, TargetsSelectWhatKubectlSelects) {
  const std::string pods = "spec: {template: {spec: {containers: [{name: vllm}]}}}\n";
  const auto object = [&](const std::string& api, const std::string& kind, const std::string& name,
                          const std::string& more) {
    return "---\napiVersion: " + api + "\nkind: " + kind + "\nmetadata: {name: " + name + ", " +
           more + "}\n" + (api == "apps/v1" ? pods : "");
  };
  write("base/all.yaml",
        object("apps/v1", "Deployment", "decode", "labels: {role: decode, tier: gold}") +
            object("apps/v1", "StatefulSet", "decode-0", "labels: {role: prefill}") +
            object("v1", "Service", "front",
                   "namespace: edge, labels: {app: x}, annotations: {team: a}") +
            object("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "wide",
                   "labels: {role: decode, app: \"\"}"));
  write("base/kustomization.yaml",
        "resources: [all.yaml]\nnamePrefix: a-\ncommonAnnotations: {from: base}\n");
  write("spaced/kustomization.yaml", "resources: [../base]\nnamespace: team-a\n");
  write("over/kustomization.yaml",
        "resources: [../spaced]\n" +
            patches_for({"kind: \"Deployment|StatefulSet\"",
                         "kind: Set",
                         "kind: \".*Set\"",
                         "name: decode",
                         "name: \"a-decode(-[0-9]+)?\"",
                         "name: \"decode|front\", kind: Service",
                         "labelSelector: \"role=decode\"",
                         "labelSelector: \"role == decode, tier\"",
                         "labelSelector: \"role!=decode\"",
                         "labelSelector: \"role in (decode, prefill),!tier\"",
                         "labelSelector: \"role notin (prefill)\"",
                         "labelSelector: \"!role\"",
                         "labelSelector: \"app in (x,)\"",
                         "labelSelector: \"app=\"",
                         "annotationSelector: \"team=a\"",
                         "annotationSelector: \"from=base\", group: apps",
                         "namespace: edge",
                         "namespace: default",
                         "namespace: \"team-.\", kind: Service",
                         "group: apps",
                         "group: \"leader.*\", version: v1",
                         "version: \"v1|v2\", kind: Service"}));
  expect_as_kubectl("over");
}

TEST_F(Kustomize, GeneratorsCreateMergeAndReplaceAsKubectlDoes) {
  const auto generator = [](const std::string& name, const std::string& more) {
    return "- {name: " + name + ", " + more + ", options: {disableNameSuffixHash: true}}\n";
  };
  write("base/kustomization.yaml", "configMapGenerator:\n" +
                                       generator("merged", "literals: [A=1, B=1]") +
                                       generator("replaced", "literals: [A=1, B=1]"));
  write("part/kustomization.yaml", "kind: Component\nconfigMapGenerator:\n" +
                                       generator("made", "behavior: merge, literals: [D=4]"));
  write("over/kustomization.yaml",
        "resources: [../base]\ncomponents: [../part]\nconfigMapGenerator:\n" +
            generator("merged", "behavior: merge, literals: [B=2, C=2]") +
            generator("replaced", "behavior: replace, literals: [C=2]") +
            generator("made", "behavior: create, literals: [C=2]"));
  expect_as_kubectl("over");
  EXPECT_NE(built("over").find("name: \"replaced\"\ndata:\n  C: \"2\"\n"), std::string::npos)
      << built("over");
}

TEST_F(Kustomize, AGeneratorThatKubectlRefusesIsAnError) {
  write("kustomization.yaml",
        "configMapGenerator:\n- {name: a, literals: [A=1]}\n- {name: a, literals: [B=1]}\n"
        "- {name: b, behavior: replace, literals: [A=1]}\n");
  EXPECT_EQ(built(""),
            "kustomization.yaml:3:3: error: key: creates a ConfigMap that is there already: a\n"
            "  hint: set behavior: merge or replace\n"
            "kustomization.yaml:4:23: error: key: changes a ConfigMap that is not there: b\n");
}

TEST_F(Kustomize, WhatATargetSaysAndIsNotReadIsNamed) {
  write_base();
  write("guide/kustomization.yaml",
        "resources: [../base]\npatches:\n- target: {kind: \"(\", labelSelector: \"n > 2\"}\n"
        "  patch: \"- {op: remove, path: /spec}\"\n- target: {apiVersion: apps/v1, kind: Pod}\n"
        "  options: {allowNameChange: true}\n  patch: \"- {op: remove, path: /spec}\"\n"
        "images: [{name: x, tagSuffix: -v}]\n");
  const std::string said = built("guide");
  EXPECT_EQ(said,
            "guide/kustomization.yaml:5:12: warning: key.patches[1].target.apiVersion: is not "
            "modelled: it is not read; build the folder with kubectl kustomize first\n"
            "guide/kustomization.yaml:6:13: warning: key.patches[1].options.allowNameChange: is "
            "not modelled: a patch leaves the name and the kind\n"
            "guide/kustomization.yaml:8:20: warning: key.images[0].tagSuffix: is not modelled: it "
            "is not read; build the folder with kubectl kustomize first\n"
            "guide/kustomization.yaml:3:18: error: key: is no regular expression that is read "
            "(got ()\n"
            "guide/kustomization.yaml:3:38: error: key: is no selector that is read (got n > 2)\n"
            "  hint: KEY=VALUE, KEY!=VALUE, KEY in (A, B), KEY notin (A), KEY and !KEY are, with "
            "commas between them\n"
            "guide/kustomization.yaml:5:11: warning: key: changes no object: there is no Pod that "
            "it selects\n");
}

TEST_F(Kustomize, PatchesFindAnObjectByTheNameItHadBeforeAPrefix) {
  write_base();
  write("one/kustomization.yaml", "resources: [../base]\nnamePrefix: a-\n");
  write("two/kustomization.yaml",
        "resources: [../one]\nnameSuffix: -z\nreplicas: [{name: a-decode, count: 3}]\n"
        "patches:\n- patch: |\n    kind: Deployment\n    metadata: {name: decode}\n"
        "    spec: {paused: true}\n");
  EXPECT_EQ(built("two"),
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: \"a-decode-z\"\n  labels:\n"
            "    role: d\nspec:\n  template:\n    metadata:\n      labels:\n        role: d\n"
            "    spec:\n      containers:\n        - name: server\n          image: REPLACE_IMAGE\n"
            "          command: []\n          args: []\n          env: []\n  paused: true\n"
            "  replicas: 3\n");
}

TEST_F(Kustomize, AConfigMapIsMadeOfFilesAndLiterals) {
  write("epp.yaml", "kind: EndpointPickerConfig\n");
  write("kustomization.yaml",
        "configMapGenerator:\n- name: epp\n  files: [plugins.yaml=epp.yaml]\n"
        "  literals: [LEVEL=1=2]\n");
  EXPECT_EQ(built(""),
            "apiVersion: \"v1\"\nkind: \"ConfigMap\"\nmetadata:\n  name: \"epp\"\ndata:\n"
            "  plugins.yaml: \"kind: EndpointPickerConfig\\n\"\n  LEVEL: \"1=2\"\n");
}

TEST_F(Kustomize, WhatIsNotReadIsNamed) {
  write_base();
  write("guide/kustomization.yaml",
        "resources:\n- ../base\n- https://github.com/org/repo//config?ref=main\nreplacements:\n"
        "- path: r.yaml\nnamespace: here\npatches:\n- path: patch.yaml\n");
  write("guide/patch.yaml", "kind: Service\nmetadata: {name: other}\n");
  const std::string out = built("guide");
  const std::string said = out.substr(std::min(out.find("guide/"), out.size()));
  EXPECT_EQ(said,
            "guide/kustomization.yaml:5:3: warning: key.replacements[0].path: is not modelled: it "
            "is not read; build the folder with kubectl kustomize first\n"
            "guide/kustomization.yaml:3:3: warning: key: is remote, which is not read (got "
            "https://github.com/org/repo//config?ref=main)\n  hint: clone it, and name its folder\n"
            "guide/patch.yaml:1:1: warning: key: changes no object: there is no Service called "
            "other\n");
}

TEST_F(Kustomize, TheFilesOfAFolderHaveALimitTogether) {
  const std::string filler = "# " + std::string(2U << 20, 'x') + "\n";
  std::string list;
  for (int i = 0; i < 10; ++i) {
    write("f" + std::to_string(i) + ".yaml",
          filler + "kind: ConfigMap\nmetadata: {name: c" + std::to_string(i) + "}\n");
    list += (i == 0 ? "f" : ", f") + std::to_string(i) + ".yaml";
  }
  write("kustomization.yaml", "resources: [" + list + "]\n");
  EXPECT_EQ(built(""),
            "kustomization.yaml:1:76: error: key: leads to files of more than 16 MiB together\n"
            "  hint: name a folder that holds the servers only\n");
}

TEST_F(Kustomize, ErrorsStandAtTheirLines) {
  write("loop/kustomization.yaml", "resources: [../loop]\n");
  EXPECT_EQ(built("loop"),
            "loop/kustomization.yaml:1:13: error: key: leads to more than 1000 files\n"
            "  hint: a folder may not name itself, nor one that names it\n");
  write("empty/readme", "");
  write("bad/kustomization.yaml",
        "resources: [../empty, no.yaml]\npatches:\n- target: {kind: Deployment}\n  patch: |\n"
        "    - {op: move, from: /a, path: /b}\n");
  write("bad/deployment.yaml", "kind: Deployment\nmetadata: {name: d}\n");
  EXPECT_EQ(built("bad"),
            "bad/kustomization.yaml:1:13: error: key: names a folder without a kustomization.yaml "
            "(got ../empty)\n"
            "bad/kustomization.yaml:1:23: error: key: cannot open bad/no.yaml: No such file or "
            "directory\n  hint: paths inside a file are relative to that file\n"
            "bad/kustomization.yaml:3:11: warning: key: changes no object: there is no Deployment "
            "that it selects\n");
  write("scalar/kustomization.yaml",
        "resources: a.yaml\nconfigMapGenerator:\n- literals: [word]\n");
  EXPECT_EQ(built("scalar"),
            "scalar/kustomization.yaml:1:12: error: key: resources must be a list (got a.yaml)\n"
            "scalar/kustomization.yaml:3:14: error: key: must be KEY=VALUE (got word)\n");
}

// What kubectl v1.32 (kustomize v5.5) makes of these two: elements of the patch come first.
TEST(KustomizePatch, ListsOfPodsMergeByTheirKeys) {
  const auto base = parsed(
      "kind: Deployment\nspec: {containers: [{name: a, args: [x, y], env: [{name: P, value: 1}, "
      "{name: Q, value: 2}, {name: S, value: 9}]}, {name: b}], paused: true}\n");
  const auto patch = parsed(
      "spec: {containers: [{name: c}, {name: b, $patch: delete}, {name: a, args: [z], env: [{name: "
      "Q, value: 3}, {name: R, value: 4}]}], paused: null}\n");
  EXPECT_EQ(to_json(*merged_strategically(base, *patch, false)),
            to_json(*parsed("kind: Deployment\nspec: {containers: [{name: c}, {name: a, args: [z], "
                            "env: [{name: Q, value: 3}, {name: R, value: 4}, {name: P, value: 1}, "
                            "{name: S, value: 9}]}]}\n")));
}

TEST(KustomizePatch, ListsOfOtherKindsAreReplacedWithoutASchema) {
  const auto base = parsed("kind: LeaderWorkerSet\nspec: {containers: [{name: a, image: i}]}\n");
  const auto patch = parsed("spec: {containers: [{name: a, args: [x]}]}\n");
  EXPECT_EQ(to_json(*merged_strategically(base, *patch, false)),
            to_json(*parsed("kind: LeaderWorkerSet\nspec: {containers: [{name: a, args: [x]}]}")));
  EXPECT_EQ(to_json(*merged_strategically(base, *patch, true)),
            to_json(*parsed("kind: LeaderWorkerSet\nspec: {containers: [{name: a, image: i, args: "
                            "[x]}]}")));
}

TEST(KustomizePatch, DirectivesDeleteAndReplace) {
  const auto base = parsed("kind: Pod\nspec: {a: {x: 1}, env: [{name: P}, {name: Q}]}\n");
  const auto patch =
      parsed("spec: {a: {$patch: replace, y: 2}, env: [{$patch: replace}, {name: R}]}\n");
  EXPECT_EQ(to_json(*merged_strategically(base, *patch, false)),
            to_json(*parsed("kind: Pod\nspec: {a: {y: 2}, env: [{name: R}]}")));
  EXPECT_EQ(merged_strategically(base, *parsed("{kind: Pod, $patch: delete}"), false), nullptr);
}

// RFC 6902, sections 4.1 to 4.3, and RFC 6901, section 4, for the signs.
TEST(KustomizePatch, OperationsAddReplaceAndRemove) {
  const auto base = parsed("{labels: {llm-d.ai/role: a, t~x: b}, args: [p, q, r]}\n");
  const auto operations = parsed(
      "- {op: replace, path: /labels/llm-d.ai~1role, value: c}\n"
      "- {op: remove, path: /labels/t~0x}\n- {op: add, path: /args/1, value: new}\n"
      "- {op: add, path: /args/-, value: last}\n- {op: remove, path: /args/0}\n"
      "- {op: replace, path: /args/1, value: Q}\n- {op: add, path: /spec, value: {n: 1}}\n");
  Diagnostics d;
  EXPECT_EQ(
      to_json(*patched_by_operations(base, *operations, "key", d)),
      to_json(*parsed("{labels: {llm-d.ai/role: c}, args: [new, Q, r, last], spec: {n: 1}}")));
  EXPECT_EQ(messages_of(d), "");
}

TEST(KustomizePatch, AnOperationWithoutAPlaceIsAnError) {
  const auto base = parsed("{args: [p]}\n");
  const auto operations = parsed(
      "- {op: add, path: /env/-, value: x}\n- {op: remove, path: /args/1}\n"
      "- {op: test, path: /args/0, value: p}\n- {op: replace, path: /none, value: 1}\n");
  Diagnostics d;
  EXPECT_EQ(to_json(*patched_by_operations(base, *operations, "key", d)), to_json(*base));
  EXPECT_EQ(messages_of(d),
            "f.yaml:1:3: error: key: has no place in the object: there is no /env/-\n"
            "f.yaml:2:3: error: key: has no place in the object: there is no /args/1\n"
            "f.yaml:3:3: error: key: is no operation that is read (got a map)\n"
            "  hint: add and replace with path and value are, and remove with path\n"
            "f.yaml:4:3: error: key: has no place in the object: there is no /none\n");
}

}  // namespace
}  // namespace routesim::tools
