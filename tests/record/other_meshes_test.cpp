// SPDX-License-Identifier: BSD-3-Clause
// Programs that use several meshes.
#include "record/other_meshes.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "record/records.hpp"
#include "support/checks.hpp"

namespace rankmesh_test::other_meshes_test {

using rankmesh::Rank;
using rankmesh::RankSet;
using rankmesh::record::Activity;
using rankmesh::record::diagnose;
using rankmesh::record::Diagnosis;
using rankmesh::record::Finding;
using enum rankmesh::record::State;

namespace {

const CallDescriptor barrier = collective(Operation::barrier);

// The second mesh of a program.
Job second_mesh(std::int64_t dp_size, std::int64_t tp_size) {
  Job job{dp_size, tp_size};
  for (Record& record : job.records) record.mesh_key = 8;
  return job;
}

// The diagnoses of both meshes, which are known together.
std::vector<Diagnosis> diagnoses_of(const Job& first, const Job& second) {
  std::vector<Record> records = first.records;
  records.insert(records.end(), second.records.begin(), second.records.end());
  add_waits_in_other_meshes(records);
  const auto middle = records.begin() + static_cast<std::ptrdiff_t>(first.records.size());
  return {diagnose(std::vector<Record>(records.begin(), middle)),
          diagnose(std::vector<Record>(middle, records.end()))};
}

}  // namespace

TEST_CASE("ranks that wait for each other in two meshes") {
  Job first{2, 1}, other = second_mesh(2, 1);
  first.call({1}, Job::dp, barrier, issued);
  other.add(0, Job::dp, barrier, issued).begin = 90 * rankmesh_test::second;
  const auto found = diagnoses_of(first, other);
  CHECK_CONTAINS(lines(found[0]),
                 "error circle [0-1] These ranks wait for each other, so none of them can go on: "
                 "rank 0 (dp=0,tp=0) waits for rank 1 in dp.barrier(), call 1 (in another mesh); "
                 "rank 1 (dp=1,tp=0) waits for rank 0 in dp.barrier, call 1.");
}

TEST_CASE("a rank that has said that it waits in another mesh is in the circle, too") {
  Job first{2, 1}, other = second_mesh(2, 1);
  first.call({1}, Job::dp, barrier, issued);
  first[0].wait = {"dp.barrier, call 1 (in another mesh)", 90 * rankmesh_test::second};
  other.add(0, Job::dp, barrier, issued).begin = 90 * rankmesh_test::second;
  CHECK_CONTAINS(lines(diagnoses_of(first, other)[0]), "error circle [0-1]");
}

TEST_CASE("a rank in a call of another mesh is not outside rankmesh") {
  Job first{2, 2}, other = second_mesh(4, 1);
  first.call({0, 1, 2}, Job::world, barrier, issued);
  other.add(3, Job::dp, barrier, issued);
  const auto found = diagnoses_of(first, other);
  CHECK(found[0].ranks[3].activity == Activity::wait);
  CHECK(found[0].ranks[3].text == "in dp.barrier(), call 1 (in the mesh dp=4,tp=1)");
  CHECK(found[0].ranks[3].waits_for == RankSet::parse("0-2"));
}

TEST_CASE("a wait that is published in all meshes is explained by the mesh that it belongs to") {
  Job first{2, 1}, other = second_mesh(2, 1);
  first.call({1}, Job::dp, barrier, issued);
  other[0].wait = {.text = "close of the mesh",
                   .since = 90 * rankmesh_test::second,
                   .point = 5,
                   .ranks = RankSet::parse("0-1")};
  first[0].wait = {.text = "close of the mesh (in another mesh)",
                   .since = 90 * rankmesh_test::second};
  const auto found = diagnoses_of(first, other);
  CHECK(found[0].ranks[0].text == "in close of the mesh (in another mesh)");
  CHECK(found[0].ranks[0].waits_for == RankSet::parse("1"));
  CHECK(found[0].has_error());
}

TEST_CASE("ranks of another mesh that are not in this one are not named") {
  Job first{2, 1}, other = second_mesh(4, 1);
  first.call({1}, Job::dp, barrier, issued);
  other.add(0, Job::dp, barrier, issued);
  const auto found = diagnoses_of(first, other);
  CHECK(found[0].ranks[0].text == "in dp.barrier(), call 1 (in the mesh dp=4,tp=1)");
  CHECK(found[0].ranks[0].waits_for.empty());
}

TEST_CASE("processes with equal numbers on hosts with equal names are not confused") {
  Job first{2, 1}, other = second_mesh(2, 1);
  for (Record& record : other.records) record.host = "container", record.process_id = 1;
  for (Record& record : first.records) record.host = "container", record.process_id = 1;
  other.call({0}, Job::dp, barrier, issued);
  const auto found = diagnoses_of(first, other);
  CHECK(found[0].ranks[0].activity == Activity::outside);
  CHECK(found[0].ranks[1].activity == Activity::outside);
}

TEST_CASE("processes of an earlier run with equal numbers are not those of this job") {
  Job first{2, 1}, earlier = second_mesh(2, 1);
  earlier.call({0}, Job::dp, barrier, issued);
  CHECK(diagnoses_of(first, earlier)[0].ranks[0].activity == Activity::wait);
  for (Record& record : first.records) record.process_origin = {2, 1, 1, 1};
  for (Record& record : earlier.records) record.process_origin = {1, 1, 1, 1};
  CHECK(diagnoses_of(first, earlier)[0].ranks[0].activity == Activity::outside);
}

}  // namespace rankmesh_test::other_meshes_test
