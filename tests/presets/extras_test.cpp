// SPDX-License-Identifier: BSD-3-Clause
// Tests properties of the systems that groups alone do not show, through the C++ API.
#include <doctest/doctest.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/layout/operations.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "record.hpp"

using golden::Json;
using golden::Lists;
using rankmesh::GroupFamily;
using rankmesh::Layout;
using rankmesh::MeshSpec;

namespace {

rankmesh::MeshPlan plan_of(const Json& record) {
  return MeshSpec::parse(golden::mesh_string(record)).plan();
}

// Returns the dimensions whose names, joined by '_', give `key`, in the order of the layout. Names
// may contain '_'.
std::vector<std::string> names_in(std::string_view key, const Layout& layout) {
  std::vector<std::string> names;
  for (const auto& d : layout.dimensions()) {
    if (!key.starts_with(d.name)) continue;
    const std::string_view rest = key.substr(d.name.size());
    if (!rest.empty() && rest.front() != '_') continue;
    names.push_back(d.name);
    key = rest.empty() ? rest : rest.substr(1);
  }
  REQUIRE(key.empty());
  return names;
}

GroupFamily along(const Layout& layout, std::string_view name) {
  const std::size_t d = layout.find(name).value();
  return GroupFamily::of(std::string{name}, layout, std::span{&d, 1});
}

void check_flatten(const Layout& layout, const std::string& key, const Json& expected,
                   const GroupFamily& product, const std::vector<std::string>& names) {
  CHECK(golden::lists(product) == expected.at("groups").get<Lists>());
  const auto group = product.group(0);
  CHECK(rankmesh::shape_and_stride(group) == expected.at("layout").get<std::string>());
  CHECK((group.modes().size() <= 1) == expected.at("contiguous").get<bool>());
  if (expected.at("contiguous").get<bool>())
    CHECK(golden::lists(along(rankmesh::flatten(layout, names, key), key)) ==
          expected.at("groups").get<Lists>());
  else
    CHECK_THROWS_AS(rankmesh::flatten(layout, names, key), rankmesh::UsageError);
}

// "dp->dp_out(3),dp_in(2)"
void check_unflatten(const Layout& layout, const std::string& key, const Json& expected) {
  const std::string name = key.substr(0, key.find("->"));
  const auto number_after = [&](const std::string& text) {
    return std::stoll(key.substr(key.find(text + "(") + text.size() + 1));
  };
  const std::pair<std::string, std::int64_t> parts[] = {
      {name + "_out", number_after(name + "_out")}, {name + "_in", number_after(name + "_in")}};
  const Layout result = rankmesh::unflatten(layout, name, parts);
  CHECK(golden::lists(along(result, name + "_out")) == expected.at("out").get<Lists>());
  CHECK(golden::lists(along(result, name + "_in")) == expected.at("in").get<Lists>());
  const auto& out = result.dimensions()[result.find(name + "_out").value()];
  const auto& in = result.dimensions()[result.find(name + "_in").value()];
  CHECK("(" + std::to_string(out.size) + ", " + std::to_string(in.size) + "):(" +
            std::to_string(out.stride) + ", " + std::to_string(in.stride) + ")" ==
        expected.at("layout").get<std::string>());
  const std::string both[] = {name + "_in", name + "_out"};
  CHECK(rankmesh::flatten(result, both, name) == layout);
}

}  // namespace

TEST_CASE("torch: flatten and unflatten") {
  std::size_t flattened = 0;
  std::size_t unflattened = 0;
  for (const Json& record : golden::records("torch_devicemesh")) {
    CAPTURE(golden::mesh_string(record));
    const auto plan = plan_of(record);
    const Layout& layout = plan.views().front();
    for (const auto& [key, expected] : record.at("flatten").items()) {
      const auto names = names_in(key, layout);
      std::string product;
      for (const auto& name : names) product += (product.empty() ? "" : "*") + name;
      check_flatten(layout, key, expected, plan.groups_of_product(product), names);
      ++flattened;
    }
    for (const auto& [key, expected] : record.at("unflatten").items()) {
      check_unflatten(layout, key, expected);
      ++unflattened;
    }
  }
  CHECK(flattened == 608);
  CHECK(unflattened > 100);
}

TEST_CASE("torch: a slice is the sub-mesh of a rank") {
  const auto plan = MeshSpec::parse("torch:shape=2x3x4,dim_names=a.b.c").plan();
  const std::string names[] = {"c", "a"};
  const Layout part = rankmesh::slice(plan.views().front(), names, 17);  // a=1, b=1, c=1
  CHECK(part.size() == 8);
  CHECK(part.ranks().to_string() == "4,16,5,17,6,18,7,19");
  const std::string unknown[] = {"d"};
  CHECK_THROWS_AS(rankmesh::slice(plan.views().front(), unknown, 0), rankmesh::UnknownName);
  const std::string twice[] = {"a", "a"};
  CHECK_THROWS_AS(rankmesh::slice(plan.views().front(), twice, 0), rankmesh::UsageError);
  CHECK_THROWS_AS(rankmesh::slice(plan.views().front(), names, 24), rankmesh::NotMember);
}

TEST_CASE("hypercommgrid: views") {
  std::size_t views = 0;
  for (const Json& record : golden::records("hypercommgrid")) {
    if (!record.contains("views")) continue;
    REQUIRE(record.at("config").at("rank_offset") == 0);
    const auto text_of = [](const Json& shape, const Json& names) {
      std::string text;  // row-major is the reverse order
      for (std::size_t d = names.size(); d-- > 0;)
        text += (text.empty() ? "" : ",") + names[d].get<std::string>() + "=" + shape[d].dump();
      return text;
    };
    for (const Json& view : record.at("views")) {
      ++views;
      const auto& config = record.at("config");
      const std::string mesh = text_of(config.at("shape"), config.at("dim_names")) + " | " +
                               text_of(view.at("shape"), view.at("dim_names"));
      CAPTURE(mesh);
      if (!view.at("accepted").get<bool>()) {
        CHECK_THROWS_AS((void)MeshSpec::parse(mesh).plan(), rankmesh::SpecError);
        continue;
      }
      const auto plan = MeshSpec::parse(mesh).plan();
      for (const auto& [name, expected] : view.at("groups").items())
        CHECK(golden::lists(plan.groups_of_product(golden::as_product(name))) ==
              expected.get<Lists>());
    }
  }
  CHECK(views == 12);
}

TEST_CASE("jax: the device mesh") {
  for (const Json& record : golden::records("jax_hybrid")) {
    CAPTURE(golden::mesh_string(record));
    const auto plan = plan_of(record);
    Json mesh = record.at("mesh").flatten();
    std::vector<std::int64_t> ranks;
    for (const auto& [pointer, rank] : mesh.items()) ranks.push_back(rank.get<std::int64_t>());
    std::vector<std::int64_t> actual;
    for (const auto rank : plan.views().front().ranks()) actual.push_back(rank.value());
    CHECK(actual == ranks);
  }
}

TEST_CASE("colossalai: coordinates") {
  std::size_t checked = 0;
  for (const Json& record : golden::records("colossalai")) {
    if (!record.contains("coords") || record.at("coords").is_null()) continue;
    ++checked;
    const auto plan = plan_of(record);
    std::int64_t rank = 0;
    for (const Json& expected : record.at("coords")) {
      std::vector<std::int64_t> actual;
      const auto coordinates = plan.views().front().coordinates(rank++);
      for (const auto& c : coordinates.value()) actual.push_back(c.value());
      CHECK(actual == expected.get<std::vector<std::int64_t>>());
    }
  }
  CHECK(checked == 50);
}

TEST_CASE("deepspeed: lists of the ranks that share a coordinate") {
  for (const Json& record : golden::records("deepspeed")) {
    if (!record.contains("axis_lists")) continue;
    CAPTURE(golden::mesh_string(record));
    const auto plan = plan_of(record);
    const Layout& layout = plan.views().front();
    for (const auto& [axis, expected] : record.at("axis_lists").items()) {
      std::vector<std::size_t> others;
      for (std::size_t d = 0; d < layout.dimensions().size(); ++d)
        if (layout.dimensions()[d].name != axis) others.push_back(d);
      CHECK(golden::lists(GroupFamily::of(axis, layout, others)) == expected.get<Lists>());
    }
  }
}
