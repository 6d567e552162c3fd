// SPDX-License-Identifier: BSD-3-Clause
// Compares the records with the output of meshinfo.
#include <cstdio>
#include <cstdlib>

#include <sys/wait.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "record.hpp"
#include "support/checks.hpp"

using golden::Json;

namespace {

struct Result {
  int status = -1;
  std::string output;
};

Result run(const std::string& arguments) {
  const char* const meshinfo = std::getenv("MESHINFO");
  Result result;
  if (meshinfo == nullptr) return result;
  std::FILE* const pipe = popen(fmt::format("'{}' {} 2>&1", meshinfo, arguments).c_str(), "r");
  REQUIRE(pipe != nullptr);
  char buffer[65536];
  while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, n);
  result.status = WEXITSTATUS(pclose(pipe));
  return result;
}

void check_record(const Json& record) {
  const std::string mesh = golden::mesh_string(record);
  CAPTURE(mesh);
  Json plain = Json::object();
  Json products = Json::object();
  std::string dims;
  for (const auto& [name, groups] : record.at("groups").items()) {
    const std::string product = golden::as_product(name);
    (product == name ? plain : products)[product] = groups;
    if (product != name) dims += fmt::format(" --dim '{}'", product);
  }
  const Result all = run(fmt::format("groups --offline --format json '{}'", mesh));
  REQUIRE(all.status == 0);
  CHECK(Json::parse(all.output).at("groups").dump() == plain.dump());
  if (products.empty()) return;
  const Result some = run(fmt::format("groups --offline --format json '{}'{}", mesh, dims));
  REQUIRE(some.status == 0);
  CHECK(Json::parse(some.output).at("groups").dump() == products.dump());
}

}  // namespace

TEST_CASE("meshinfo groups prints the records") {
  SKIP_UNLESS(std::getenv("MESHINFO") != nullptr, "meshinfo is not built");
  for (const char* file :
       {"megatron", "hypercommgrid", "vllm", "tensorrt_llm", "deepspeed", "colossalai",
        "torch_devicemesh", "sglang", "fastertransformer", "jax_hybrid"}) {
    const auto all = golden::records(file);
    for (std::size_t i = 0; i < all.size(); i += 37) check_record(all[i]);
  }
}

TEST_CASE("meshinfo takes the world size as an option, and reports errors") {
  SKIP_UNLESS(std::getenv("MESHINFO") != nullptr, "meshinfo is not built");
  const Result groups = run("groups --offline megatron:tp=2,pp=2 --world-size 8 --dim 'tp*pp'");
  CHECK(groups.status == 0);
  CHECK(groups.output == "tp*pp  2 groups of 4\n  0  0-1,4-5\n  1  2-3,6-7\n");
  const Result refused = run("groups --offline vllm:world_size=16,dp=2,tp=4");
  CHECK(refused.status == 2);
  CHECK_CONTAINS(refused.output, "write external_dp=2");
}
