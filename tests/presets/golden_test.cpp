// SPDX-License-Identifier: BSD-3-Clause
// Compares every golden record, and checks that every rejected configuration is refused.
#include <cstdlib>

#include <doctest/doctest.h>

#include "rankmesh/base/error.hpp"
#include "rankmesh/spec/mesh_spec.hpp"
#include "record.hpp"

using rankmesh::MeshSpec;

namespace {

// The same configuration without the key world_size: every preset that needs it takes it from
// the job.
std::string without_world(const std::string& mesh, const golden::Json& config) {
  const std::string part = "world_size=" + config.at("world_size").dump();
  std::string text = mesh;
  const auto at = text.find(part);
  if (at + part.size() < text.size())
    text.erase(at, part.size() + 1);
  else
    text.erase(at == 0 || text[at - 1] == ':' ? at : at - 1, part.size() + 1);
  return text;
}

void check_all(const std::string& file, std::size_t expected) {
  const auto all = golden::records(file);
  CHECK(all.size() == expected);
  for (const auto& record : all) {
    const std::string mesh = golden::mesh_string(record);
    CAPTURE(mesh);
    const MeshSpec spec = MeshSpec::parse(mesh);
    const auto plan = spec.plan();
    CHECK(golden::difference(record, plan) == "");
    CHECK(spec.world_size() == plan.world_size());
    CHECK(plan.digest() == MeshSpec::parse(mesh).plan().digest());
    CHECK(plan.digest() == MeshSpec::parse(spec.to_string()).plan(plan.world_size()).digest());
    const bool has_offset = record["config"].contains("rank_offset");
    if (!has_offset) CHECK(plan.world_size() == record["config"]["world_size"]);
    const std::string shorter = without_world(mesh, record["config"]);
    CHECK(golden::difference(record, MeshSpec::parse(shorter).plan(plan.world_size())) == "");
  }
}

void check_refused(const std::string& file, std::size_t expected) {
  const auto all = golden::records(file);
  CHECK(all.size() == expected);
  for (const auto& record : all) {
    const std::string mesh = golden::mesh_string(record);
    CAPTURE(mesh);
    try {
      static_cast<void>(MeshSpec::parse(mesh).plan());
      FAIL_CHECK("accepted");
    } catch (const rankmesh::SpecError& error) {
      CHECK(error.position().has_value());
      CHECK_FALSE(error.hint().empty());
    }
  }
}

}  // namespace

TEST_CASE("megatron") { check_all("megatron", 296); }
TEST_CASE("hypercommgrid") { check_all("hypercommgrid", 230); }
TEST_CASE("vllm") { check_all("vllm", 333); }
TEST_CASE("tensorrt_llm") { check_all("tensorrt_llm", 507); }
TEST_CASE("deepspeed") { check_all("deepspeed", 506); }
TEST_CASE("colossalai") { check_all("colossalai", 250); }
TEST_CASE("torch") { check_all("torch_devicemesh", 165); }
TEST_CASE("sglang") { check_all("sglang", 328); }
TEST_CASE("fastertransformer") { check_all("fastertransformer", 198); }
TEST_CASE("jax") { check_all("jax_hybrid", 238); }

TEST_CASE("configurations that the systems reject are refused") {
  check_refused("megatron_rejected", 32);
  check_refused("deepspeed_rejected", 183);
  check_refused("tensorrt_llm_rejected", 171);
}
