// SPDX-License-Identifier: BSD-3-Clause
// The structure of pictures. tests/report/page/picture_test looks at them in a browser.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "report/reports.hpp"
#include "report/write.hpp"

using namespace rankmesh;
using nlohmann::json;
using report::Document;
using report::Format;

namespace {

MeshPlan drawn_plan(const std::string& mesh) { return MeshSpec::parse_string(mesh).plan(); }

Machine equal_nodes(std::int64_t slots, std::int64_t per_node) {
  return Machine{slots, {{.name = "node", .size = per_node}}};
}

// Nodes of these sizes.
Machine ragged_nodes(const std::vector<int>& sizes) {
  MachineLevel nodes{.name = "node"};
  for (std::size_t n = 0; n < sizes.size(); ++n)
    nodes.units.insert(nodes.units.end(), static_cast<std::size_t>(sizes[n]), static_cast<int>(n));
  return Machine{static_cast<std::int64_t>(nodes.units.size()), {nodes}};
}

std::size_t occurrences(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + part.size()))
    ++count;
  return count;
}

// Whether every element that is opened is closed, in the right order.
bool is_closed_svg(std::string_view svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string_view::npos; at = svg.find('<', at + 1)) {
    const std::string_view tag = svg.substr(at + 1, svg.find('>', at) - at - 1);
    if (tag.ends_with('/')) continue;
    const bool closes = tag.starts_with('/');
    const std::string name{tag.substr(closes ? 1 : 0, tag.find(' ') - (closes ? 1 : 0))};
    if (!closes) {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty();
}

json picture_data(const std::string& page) {
  const std::string begin = "id=\"data\">";
  const std::size_t at = page.find(begin) + begin.size();
  return json::parse(page.substr(at, page.find("</script>", at) - at));
}

std::vector<std::int64_t> elements_of_set(const json& set) {
  if (set.contains("list")) return set["list"];
  std::vector<std::int64_t> result{set["start"]};
  for (const auto& mode : set["modes"]) {
    std::vector<std::int64_t> next;
    for (const std::int64_t first : result)
      for (std::int64_t i = 0; i < mode[0]; ++i)
        next.push_back(first + i * static_cast<std::int64_t>(mode[1]));
    result = std::move(next);
  }
  return result;
}

}  // namespace

TEST_CASE("a drawing has a cell for each rank, and marks the groups that leave their node") {
  for (const auto& [mesh, per_node, leaving_dp, leaving_tp] :
       std::vector<std::tuple<std::string, int, std::size_t, std::size_t>>{
           {"dp=2,tp=4", 4, 8, 0}, {"dp=3,tp=3", 3, 9, 0}, {"dp=5,tp=2", 5, 10, 2}}) {
    CAPTURE(mesh);
    const MeshPlan plan = drawn_plan(mesh);
    const Machine machine = equal_nodes(plan.world_size(), per_node);
    const std::string svg = to_string(report::show(plan, nullptr, SIZE_MAX, &machine), Format::svg);
    CHECK(is_closed_svg(svg));
    CHECK(occurrences(svg, "<g role=\"img\">") == 2 * static_cast<std::size_t>(plan.world_size()));
    CHECK(occurrences(svg, "of dp, which leaves the node") == leaving_dp);
    CHECK(occurrences(svg, "of tp, which leaves the node") == leaving_tp);
    CHECK(occurrences(svg, " o\" x=") == leaving_dp + leaving_tp + 1);  // and in the legend
    CHECK(svg.find(">dp: ") != std::string::npos);
    CHECK(svg.find("aria-label=\"Legend\"") != std::string::npos);
    CHECK(svg.find("prefers-color-scheme:dark") != std::string::npos);
    CHECK(occurrences(svg, "http") == 1);  // the name of the format, and no address
  }
}

TEST_CASE("large machines are folded") {
  const MeshPlan plan = drawn_plan("pp=16,dp=128,tp=8");
  const Machine machine = equal_nodes(16384, 8);
  const Document document = report::show(plan, nullptr, SIZE_MAX, &machine);
  const std::string svg = to_string(document, Format::svg);
  CHECK(is_closed_svg(svg));
  CHECK(occurrences(svg, "<g role=\"img\">") == std::size_t{3} * 2048);  // one cell per node
  CHECK(svg.find("node0 - node31") != std::string::npos);
  CHECK(svg.find("node7: 8 ranks in 1 group of tp, of which 0 leave the node") !=
        std::string::npos);
  CHECK(svg.size() < 2'000'000);
  CHECK(to_string(document, Format::html).size() < 2'000'000);
}

TEST_CASE("a page has the groups of all ranks, also of ragged nodes and permuted ranks") {
  for (const std::string mesh :
       {"dp=2,tp=3", "megatron:tp=2,pp=3,world_size=12", "ep=7",
        "jax:mesh_shape=2x2,dcn_mesh_shape=2x1,granule_of_rank=0x1x0x1x0x1x0x1"}) {
    CAPTURE(mesh);
    const MeshPlan plan = drawn_plan(mesh);
    const Machine machine = ragged_nodes({static_cast<int>(plan.world_size()) - 2, 1, 1});
    const json data =
        picture_data(to_string(report::show(plan, nullptr, SIZE_MAX, &machine), Format::html));
    CHECK(data["slots"] == plan.world_size());
    CHECK(data["levels"][0]["units"].size() == static_cast<std::size_t>(plan.world_size()));
    CHECK(!data["states"][0]["families"].empty());
    for (const auto& family : data["states"][0]["families"]) {
      const std::vector<std::int64_t> members = elements_of_set(family["members"]);
      const GroupFamily& wanted = plan.groups(static_cast<std::string>(family["name"]));
      for (std::size_t i = 0; i < members.size(); ++i) {
        const auto group = static_cast<std::int64_t>(i) / static_cast<std::int64_t>(family["size"]);
        CHECK(wanted.group(group).contains(members[i]));
      }
    }
  }
}

TEST_CASE("every report about meshes has a picture, and plans compare two states") {
  const MeshPlan plan = drawn_plan("tp=4,dp=4");
  const MeshPlan other = drawn_plan("dp=4,tp=4");
  const Machine machine = equal_nodes(16, 4);
  const auto traffic = usual_traffic(plan);
  const Arrangements found = arrange(plan, machine, traffic);
  const std::vector<Document> documents{
      report::show(plan, nullptr),
      report::groups(plan, {{"tp", plan.groups("tp")}}),
      report::diff(diff(plan, other), plan, other, "a", "b"),
      report::check(plan, machine, check_placement(plan, machine), {}),
      report::plan(plan, machine, traffic, "relative", found),
      report::count(plan, count(plan))};
  for (const Document& document : documents) {
    CAPTURE(document.schema);
    const std::string svg = to_string(document, Format::svg);
    CHECK(is_closed_svg(svg));
    CHECK(svg.find("tp: 4 groups of 4 ranks") != std::string::npos);
    const json data = picture_data(to_string(document, Format::html));
    CHECK(data["states"].size() ==
          (document.schema == "rankmesh.plan/1" || document.schema == "rankmesh.diff/1" ? 2 : 1));
  }
  const json data = picture_data(to_string(documents[4], Format::html));
  CHECK(elements_of_set(data["states"][1]["slots"]) == found.best.slots);
  CHECK(data["states"][0]["name"] == "today");
  CHECK(to_string(documents[4], Format::svg).find("best, tp: 4 groups") != std::string::npos);
  CHECK(picture_data(to_string(documents[3], Format::html))["notes"].dump().find("leaves-domain") !=
        std::string::npos);
}

TEST_CASE("a difference and counts are drawn on a machine") {
  const MeshPlan plan = drawn_plan("tp=4,dp=4");
  const MeshPlan other = drawn_plan("dp=2,tp=4");
  const Machine machine = equal_nodes(16, 4);
  const Document difference =
      report::diff(diff(plan, other), plan, other, "tp=4,dp=4", "dp=2,tp=4", &machine);
  const json page = picture_data(to_string(difference, Format::html));
  CHECK(page["levels"][0]["name"] == "node");
  CHECK(page["states"].size() == 2);
  CHECK(to_string(difference, Format::svg).find("B, tp: 2 groups of 4 ranks") != std::string::npos);
  const json fields = json::parse(to_string(difference, Format::json));
  CHECK(fields["machine"] == "16 slots: 4 nodes of 4");
  for (const json& name : fields["names"]) {
    if (name["name"] != "tp") continue;
    CHECK(name["place_a"]["node"]["inside"] == 0);
    CHECK(name["place_b"]["node"]["inside"] == 2);
  }
  const Document counted = report::count(plan, count(plan), &machine);
  CHECK(picture_data(to_string(counted, Format::html))["levels"][0]["name"] == "node");
  CHECK(json::parse(to_string(counted, Format::json))["groups_inside"]["node"] == 4);
}

TEST_CASE("texts do not become markup") {
  Document document = report::show(drawn_plan("dp=2,tp=2"), nullptr);
  const std::string evil = "</script></svg><b id=\"evil\">&";
  report::Picture& picture = *document.picture;
  picture.title = evil;
  picture.notes = {evil};
  picture.machine = Machine{4, {{.name = "node", .size = 2, .names = {evil, "b"}}}};
  const std::string svg = to_string(document, Format::svg);
  CHECK(is_closed_svg(svg));
  CHECK(svg.find("<b id") == std::string::npos);
  const std::string page = to_string(document, Format::html);
  CHECK(page.find("<b id=") == std::string::npos);
  CHECK(picture_data(page)["levels"][0]["names"][0] == evil);
}

TEST_CASE("without a machine, the boxes are coordinates") {
  const std::string svg =
      to_string(report::show(drawn_plan("pp=2,dp=3,tp=5"), nullptr), Format::svg);
  CHECK(svg.find(">pp=1,dp=2<") != std::string::npos);
  CHECK(svg.find("no machine: boxes are coordinates") != std::string::npos);
  // Not numbered row by row: one box.
  const std::string one = to_string(
      report::show(drawn_plan("deepspeed:kind=grid,pp=2,dp=2,mp=2"), nullptr), Format::svg);
  CHECK(is_closed_svg(one));
}

TEST_CASE("a mesh that leaves slots and ranks out is drawn") {
  for (const std::string mesh : {"x=1", "dp=1,tp=1"}) {
    const Document document = report::show(drawn_plan(mesh), nullptr);
    CHECK(is_closed_svg(to_string(document, Format::svg)));
    CHECK(picture_data(to_string(document, Format::html))["states"][0]["families"].empty());
  }
  const MeshPlan small = drawn_plan("tp=2");
  const MeshPlan large = drawn_plan("tp=6");
  const Document document = report::diff(diff(small, large), small, large, "tp=2", "tp=6");
  CHECK(to_string(document, Format::svg).find("slot 5 is empty") != std::string::npos);
}

TEST_CASE("a report without a picture says so") {
  CHECK_THROWS_WITH_AS(to_string(Document{.schema = "rankmesh.x/1"}, Format::svg),
                       doctest::Contains("the report rankmesh.x/1 has no picture"), UsageError);
}
