// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "wait/detail/loss_datagram.hpp"

namespace {

using namespace rankmesh::detail;
using LossMessage = LossAgreement::LossMessage;

LossDatagram example() {
  LossDatagram datagram{.key = 77, .from = 3, .to = 8};
  LossMessage& message = datagram.message;
  message = {
      .kind = LossMessage::MessageKind::promise, .generation = 5, .ballot = 1234, .accepted = 99};
  message.report = {.is_deciding = true,
                    .have_all_come = true,
                    .met = LossAgreement::Attendance::before,
                    .dead = LossAgreement::Members(11),
                    .silent = LossAgreement::Members(11),
                    .steps = {{3, 7}, {4, -1}}};
  message.report.dead[10] = message.report.silent[0] = true;
  message.decision = {.kind = LossAgreement::Decision::DecisionKind::stop,
                      .lost = LossAgreement::Members(11, true),
                      .step = 6};
  return datagram;
}

TEST_CASE("a datagram keeps what a message says") {
  const auto bytes = to_bytes(example());
  CHECK(key_in(bytes) == 77);
  const auto read = to_datagram(bytes, 11);
  REQUIRE(read);
  CHECK(to_bytes(*read) == bytes);
  CHECK(read->from == 3);
  CHECK(read->to == 8);
  CHECK(read->message.decision == example().message.decision);
  CHECK(read->message.report.steps == example().message.report.steps);
  CHECK(read->message.report.dead == example().message.report.dead);
}

TEST_CASE("other bytes are no datagram") {
  const auto bytes = to_bytes(example());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK(!to_datagram(std::span{bytes}.first(size), 11));
  CHECK(!to_datagram(bytes, 8));  // it is sent to rank 8
  CHECK(!to_datagram(bytes, 20));
  std::mt19937 random{1};
  for (int i = 0; i < 20'000; ++i) {
    auto changed = bytes;
    for (int k = 0; k < 3; ++k) changed[random() % changed.size()] = std::byte(random());
    // What can be read can be written.
    if (const auto read = to_datagram(changed, 11)) CHECK(to_datagram(to_bytes(*read), 11));
  }
}

}  // namespace
