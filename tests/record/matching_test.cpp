// SPDX-License-Identifier: BSD-3-Clause
#include "record/matching.hpp"

#include <doctest/doctest.h>

#include "record/synthetic_job.hpp"

using namespace rankmesh;
using namespace rankmesh::test;
using record::Matching;

TEST_CASE("a meeting has the calls of one number in one group") {
  SyntheticJob job{3};
  for (std::size_t r : {0U, 1U, 2U}) job.add(r, descriptor_of(Operation::barrier));
  for (std::size_t r : {0U, 2U}) job.add(r, descriptor_of(Operation::all_reduce, 4));
  job.add(1, descriptor_of(Operation::all_reduce, 5));
  job.add(0, descriptor_of(Operation::barrier));
  const Matching matching{job.records};
  REQUIRE(matching.meetings().size() == 3);
  CHECK(matching.meetings()[0].has_all_members);
  CHECK(matching.meetings()[0].agrees);
  CHECK(matching.meetings()[1].has_all_members);
  CHECK(!matching.meetings()[1].agrees);
  CHECK(!matching.meetings()[2].has_all_members);
  CHECK(matching.meeting_of({2, 1}) == 1);
  CHECK(matching.meeting_of({0, 2}) == 2);
}

TEST_CASE("groups of other meshes and calls of a graph do not meet") {
  SyntheticJob job{2};
  for (std::size_t r : {0U, 1U}) job.add(r, descriptor_of(Operation::barrier));
  job.records[1].mesh_key = 8;
  CHECK(Matching{job.records}.meetings().size() == 2);
  job.records[1].mesh_key = 7;
  job.records[1].calls[0].is_captured = true;
  const Matching matching{job.records};
  CHECK(matching.meetings().size() == 1);
  CHECK(matching.meeting_of({1, 0}) == Matching::none);
}

TEST_CASE("messages are counted for each two members and tag") {
  SyntheticJob job{2};
  job.add(0, descriptor_of(Operation::send, 4, 1, 3));
  job.add(0, descriptor_of(Operation::send, 4, 1, 5));
  job.add(0, descriptor_of(Operation::send, 8, 1, 3));
  job.add(1, descriptor_of(Operation::recv, 4, 0, 3));
  job.add(1, descriptor_of(Operation::recv, 8, 0, 3));
  const Matching matching{job.records};
  REQUIRE(matching.messages().size() == 2);
  CHECK(matching.messages()[0].send == record::CallIndex{0, 0});
  CHECK(matching.messages()[0].receive == record::CallIndex{1, 0});
  CHECK(matching.messages()[1].send == record::CallIndex{0, 2});
  CHECK(matching.messages()[1].receive == record::CallIndex{1, 1});
  CHECK(matching.messages()[1].is_certain);
}

TEST_CASE("a receive that was cancelled is no end of a message") {
  SyntheticJob job{2};
  job.add(0, descriptor_of(Operation::send, 4, 1, 3));
  job.add(1, descriptor_of(Operation::recv, 4, 0, 3)).is_cancelled = true;
  job.add(1, descriptor_of(Operation::recv, 4, 0, 3));
  const Matching matching{job.records};
  REQUIRE(matching.messages().size() == 1);
  CHECK(matching.messages()[0].receive == record::CallIndex{1, 1});
}

TEST_CASE("send_recv is both ends of messages") {
  SyntheticJob job{3};
  for (std::uint64_t r : {0U, 1U, 2U})
    job.add(r, descriptor_of(Operation::send_recv, 4, (r + 1) % 3, 0, (r + 2) % 3));
  const Matching matching{job.records};
  REQUIRE(matching.messages().size() == 3);
  for (const auto& message : matching.messages())
    CHECK(message.receive.record == (message.send.record + 1) % 3);
}

TEST_CASE("records that lost calls count messages from a collective that both have") {
  SyntheticJob job{2};
  job.add(0, descriptor_of(Operation::send, 4, 1));  // its receive is lost
  for (std::size_t r : {0U, 1U}) job.add(r, descriptor_of(Operation::barrier)).number = 40;
  job.add(0, descriptor_of(Operation::send, 4, 1));
  job.add(1, descriptor_of(Operation::recv, 4, 0));
  job.records[1].calls_made += 900;
  const Matching matching{job.records};
  REQUIRE(matching.messages().size() == 1);
  CHECK(matching.messages()[0].send == record::CallIndex{0, 2});
  CHECK(!matching.messages()[0].is_certain);

  job.records[1].calls.back().descriptor.count = 5;
  CHECK(Matching{job.records}.messages().empty());
  job.records[1].calls.back().descriptor.count = 4;
  job.records[1].calls[0].number = 41;
  CHECK(Matching{job.records}.messages().empty());
}

TEST_CASE("the bytes of a call are those of its largest buffer") {
  SyntheticJob job{4};
  const auto bytes = [&](const CallDescriptor& call) {
    return record::bytes_of(job.records[0], job.add(0, call));
  };
  CHECK(bytes(descriptor_of(Operation::barrier)) == 0);
  CHECK(bytes(descriptor_of(Operation::all_reduce, 8)) == 32);
  CHECK(bytes(descriptor_of(Operation::all_gather, 8)) == 128);
  CHECK(bytes(descriptor_of(Operation::all_to_all, 8)) == 32);  // its count is that of all blocks
  CHECK(bytes(descriptor_of(Operation::scan, 8)) == 32);
  CHECK(bytes(descriptor_of(Operation::send, 8, 1)) == 32);
  CallDescriptor blocks = descriptor_of(Operation::all_gather, 8);
  blocks.kind |= CallDescriptor::blocks;
  CHECK(bytes(blocks) == 32);
  CHECK(bytes(descriptor_of(Operation::all_gather, std::int64_t{1} << 62)) ==
        std::numeric_limits<std::int64_t>::max());
}
