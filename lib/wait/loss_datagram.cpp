// SPDX-License-Identifier: BSD-3-Clause
#include "detail/loss_datagram.hpp"

#include <cstring>

namespace rankmesh::detail {
namespace {

using Members = LossAgreement::Members;
using MessageKind = LossAgreement::LossMessage::MessageKind;
using Attendance = LossAgreement::Attendance;
using DecisionKind = LossAgreement::Decision::DecisionKind;

constexpr std::uint64_t mark_of_format = 0x31'30'73'73'6f'4c'6d'72;  // "rmLoss01"

// A datagram begins with this. Then come the sets dead, silent and lost, and the steps. Each set
// has one bit per rank, or is left out.
struct DatagramHead {
  std::uint64_t mark = mark_of_format;
  std::uint64_t key = 0;
  std::uint32_t from = 0, to = 0;
  std::uint32_t generation = 0, steps = 0;
  std::uint64_t ballot = 0, accepted = 0;
  std::int64_t step = 0;
  std::uint8_t kind = 0, decision = 0, met = 0;
  std::uint8_t is_deciding = 0, have_all_come = 0;
  std::uint8_t has_dead = 0, has_silent = 0, has_lost = 0;
};
static_assert(sizeof(DatagramHead) == 64);

struct StepInDatagram {
  std::uint32_t rank = 0, unused = 0;
  std::int64_t step = 0;
};

void append(std::vector<std::byte>& bytes, const void* data, std::size_t size) {
  const auto* const begin = static_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

void append(std::vector<std::byte>& bytes, const Members& members) {
  const std::size_t begin = bytes.size();
  bytes.resize(begin + (members.size() + 7) / 8);
  for (std::size_t m = 0; m < members.size(); ++m)
    if (members[m]) bytes[begin + m / 8] |= std::byte{1} << m % 8;
}

class DatagramReader {
 public:
  explicit DatagramReader(std::span<const std::byte> bytes) : left_{bytes} {}
  bool take(void* data, std::size_t size) {
    if (left_.size() < size) return false;
    std::memcpy(data, left_.data(), size);
    left_ = left_.subspan(size);
    return true;
  }
  bool take(Members& members, std::size_t ranks) {
    if (left_.size() < (ranks + 7) / 8) return false;
    members.resize(ranks);
    for (std::size_t m = 0; m < ranks; ++m)
      members[m] = (left_[m / 8] >> m % 8 & std::byte{1}) != std::byte{0};
    left_ = left_.subspan((ranks + 7) / 8);
    return true;
  }
  [[nodiscard]] bool is_at_end() const { return left_.empty(); }

 private:
  std::span<const std::byte> left_;
};

}  // namespace

std::vector<std::byte> to_bytes(const LossDatagram& datagram) {
  const LossAgreement::LossMessage& message = datagram.message;
  const LossAgreement::LossReport& report = message.report;
  const DatagramHead head{.key = datagram.key,
                          .from = datagram.from,
                          .to = datagram.to,
                          .generation = message.generation,
                          .steps = static_cast<std::uint32_t>(report.steps.size()),
                          .ballot = message.ballot,
                          .accepted = message.accepted,
                          .step = message.decision.step,
                          .kind = static_cast<std::uint8_t>(message.kind),
                          .decision = static_cast<std::uint8_t>(message.decision.kind),
                          .met = static_cast<std::uint8_t>(report.met),
                          .is_deciding = report.is_deciding,
                          .have_all_come = report.have_all_come,
                          .has_dead = !report.dead.empty(),
                          .has_silent = !report.silent.empty(),
                          .has_lost = !message.decision.lost.empty()};
  std::vector<std::byte> bytes;
  append(bytes, &head, sizeof head);
  append(bytes, report.dead);
  append(bytes, report.silent);
  append(bytes, message.decision.lost);
  for (const auto& [rank, step] : report.steps) {
    const StepInDatagram one{.rank = rank, .step = step};
    append(bytes, &one, sizeof one);
  }
  return bytes;
}

std::optional<std::uint64_t> key_in(std::span<const std::byte> bytes) {
  DatagramHead head;
  if (!DatagramReader{bytes}.take(&head, sizeof head) || head.mark != mark_of_format)
    return std::nullopt;
  return head.key;
}

std::optional<LossDatagram> to_datagram(std::span<const std::byte> bytes, std::size_t ranks) {
  DatagramReader reader{bytes};
  DatagramHead head;
  if (!reader.take(&head, sizeof head) || head.mark != mark_of_format || head.from >= ranks ||
      head.to >= ranks || head.generation == 0 ||
      head.kind > static_cast<std::uint8_t>(MessageKind::left) ||
      head.decision > static_cast<std::uint8_t>(DecisionKind::stop) ||
      head.met > static_cast<std::uint8_t>(Attendance::closed) || head.steps > ranks)
    return std::nullopt;
  LossDatagram datagram{.key = head.key, .from = head.from, .to = head.to};
  LossAgreement::LossMessage& message = datagram.message;
  message.kind = static_cast<MessageKind>(head.kind);
  message.generation = head.generation;
  message.ballot = head.ballot;
  message.accepted = head.accepted;
  message.decision.kind = static_cast<DecisionKind>(head.decision);
  message.decision.step = head.step;
  message.report.is_deciding = head.is_deciding != 0;
  message.report.have_all_come = head.have_all_come != 0;
  message.report.met = static_cast<Attendance>(head.met);
  // Only a decision that a message carries, and a doubt, have losses.
  const bool needs_lost = message.kind == MessageKind::decision ||
                          message.kind == MessageKind::doubt ||
                          message.kind == MessageKind::accept ||
                          (message.kind == MessageKind::promise && message.accepted != 0);
  if ((head.has_dead != 0 && !reader.take(message.report.dead, ranks)) ||
      (head.has_silent != 0 && !reader.take(message.report.silent, ranks)) ||
      (head.has_lost != 0 && !reader.take(message.decision.lost, ranks)) ||
      (head.has_lost == 0 && needs_lost))
    return std::nullopt;
  for (std::uint32_t i = 0; i < head.steps; ++i) {
    StepInDatagram one;
    if (!reader.take(&one, sizeof one) || one.rank >= ranks) return std::nullopt;
    message.report.steps.emplace_back(one.rank, one.step);
  }
  if (!reader.is_at_end()) return std::nullopt;
  return datagram;
}

}  // namespace rankmesh::detail
