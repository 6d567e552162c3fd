// SPDX-License-Identifier: BSD-3-Clause
#include "rankmesh/transfer/plan.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>
#include <unordered_map>

#include <fmt/format.h>

#include "detail/plan_data.hpp"

namespace rankmesh {
namespace {

// This limit is far beyond any real job. It bounds the work that damaged text can cause.
constexpr std::int64_t most_ranks = std::int64_t{1} << 22;

// Numbers objects by their address, or by their text if the address is new.
class Numbering {
 public:
  std::uint32_t of(const TensorPlacement& place) {
    const auto [found, is_new] = by_address_.try_emplace(&place.data(), 0);
    if (is_new)
      found->second =
          by_text_.try_emplace(place.to_string(), static_cast<std::uint32_t>(by_text_.size()))
              .first->second;
    return found->second;
  }

 private:
  std::unordered_map<const void*, std::uint32_t> by_address_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
};

// Sums of bytes are 64-bit integers.
void check_size(const TensorTransfer& tensor) {
  std::int64_t bytes = tensor.to.element_count() * 8;
  if (__builtin_mul_overflow(bytes, tensor.to.ranks().size(), &bytes))
    throw UsageError{fmt::format("a transfer of {} elements to {} ranks may move more bytes than "
                                 "a 64-bit number can hold",
                                 tensor.to.element_count(), tensor.to.ranks().size()),
                     "use a smaller tensor or fewer ranks"};
}

bool is_float(DataType type) {
  return is_narrow_float(type) || type == DataType::float32 || type == DataType::float64;
}

void check_ranks(const TensorPlacement& place) {
  if (place.ranks().size() > most_ranks)
    throw UsageError{fmt::format("a transfer between meshes of more than {} ranks cannot be "
                                 "planned, got {}",
                                 most_ranks, place.ranks().size()),
                     "use a smaller mesh"};
}

// The highest rank of a place that is not lost; -1 if there is none.
std::int64_t highest_of(const TensorPlacement& place, const std::vector<Rank>& lost) {
  if (lost.empty()) return place.ranks().highest().value();
  std::int64_t highest = -1;
  for (const Rank rank : place.ranks().to_vector())
    if (!std::ranges::binary_search(lost, rank)) highest = std::max(highest, rank.value());
  return highest;
}

}  // namespace

void detail::check_types(const TensorTransfer& tensor) {
  const DataType from = tensor.from.type(), to = tensor.to.type();
  if (from == to || (is_float(from) && is_float(to))) return;
  throw UsageError{
      fmt::format("the tensor {} cannot become {}",
                  tensor.name.empty() ? tensor.from.to_string() : fmt::format("'{}'", tensor.name),
                  to_string(to)),
      "convert floats to floats; elements of other types keep their type"};
}

TransferPlan plan_transfer(std::vector<TensorTransfer> tensors, const Machine* machine,
                           const TransferOptions& options) {
  auto data = std::make_shared<TransferPlan::Data>();
  data->tensors = std::move(tensors);
  if (machine != nullptr) data->machine = *machine;
  data->options = options;
  std::ranges::sort(data->options.lost);
  data->kinds.reserve(data->tensors.size());

  Numbering places;
  using Places = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
  std::map<Places, std::uint32_t> kinds;  // by the numbers of the places
  for (const TensorTransfer& tensor : data->tensors) {
    const Places key{places.of(tensor.from), places.of(tensor.to),
                     tensor.copy ? 1 + places.of(*tensor.copy) : 0};
    const auto [kind, is_new] =
        kinds.try_emplace(key, static_cast<std::uint32_t>(data->first_of_kind.size()));
    if (is_new) {
      check_ranks(tensor.from);
      check_ranks(tensor.to);
      check_size(tensor);
      detail::check_types(tensor);
      for (const TensorPlacement* place :
           {&tensor.from, &tensor.to, tensor.copy ? &*tensor.copy : &tensor.from})
        data->world_size = std::max(data->world_size, highest_of(*place, data->options.lost) + 1);
      if (machine != nullptr && data->world_size > machine->slot_count())
        throw UsageError{fmt::format("the transfer has rank {}, but the machine has {} slots",
                                     data->world_size - 1, machine->slot_count()),
                         "describe a machine with a slot for every rank"};
      data->first_of_kind.push_back(data->kinds.size());
      data->count_of_kind.push_back(0);
      data->pairs.emplace_back(tensor, data->machine ? &*data->machine : nullptr, data->options);
    }
    data->kinds.push_back(kind->second);
    ++data->count_of_kind[kind->second];
  }
  return TransferPlan{std::move(data)};
}

TransferPlan plan_transfer(const TensorPlacement& from, const TensorPlacement& to,
                           const Machine* machine, const TransferOptions& options) {
  return plan_transfer(std::vector{TensorTransfer{from, to}}, machine, options);
}

// A wider float holds each value of a narrower one, so a forwarded value may be narrowed again.
DataType message_type(const TensorTransfer& tensor, TransferStep step) {
  const DataType from = tensor.from.type();
  const DataType to = tensor.to.type();
  const bool is_forward = step == TransferStep::forward;
  if (!tensor.from.sums().empty() || size_of(from) == size_of(to)) return is_forward ? to : from;
  return size_of(from) < size_of(to) ? from : to;
}

const std::vector<TensorTransfer>& TransferPlan::tensors() const { return data_->tensors; }
std::int64_t TransferPlan::world_size() const { return data_->world_size; }

TransferOfRank TransferPlan::of(Rank rank) const {
  TransferOfRank result;
  result.kind_ = data_->kinds;
  for (const detail::PairPlan& pair : data_->pairs) result.kinds_.push_back(pair.of(rank));
  return result;
}

std::vector<TransferPeer> TransferPlan::peers(Rank rank) const {
  std::map<std::int64_t, TransferPeer> peers;
  for (std::size_t kind = 0; kind < data_->pairs.size(); ++kind) {
    const detail::PairPlan& pair = data_->pairs[kind];
    const TensorTransfer& tensor = data_->tensors[data_->first_of_kind[kind]];
    const auto bytes = [&](const TransferMessage& message) {
      const DataType type = message_type(tensor, message.step);
      return message.elements * static_cast<std::int64_t>(size_of(type)) *
             data_->count_of_kind[kind];
    };
    const TensorTransferOfRank part = pair.of(rank);
    for (const TransferMessage& m : part.sends) peers[m.peer.value()].sent_bytes += bytes(m);
    for (const TransferMessage& m : part.receives) peers[m.peer.value()].received_bytes += bytes(m);
  }
  std::vector<TransferPeer> result;
  for (auto& [peer, amounts] : peers) {
    result.push_back(amounts);
    result.back().peer = peer;
  }
  return result;
}

Hash128 TransferPlan::digest() const {
  std::string text = fmt::format("rankmesh.transfer/1\nfan_out {}\n", data_->options.fan_out);
  for (const Rank rank : data_->options.lost) text += fmt::format("lost {}\n", rank.value());
  if (data_->machine) {
    std::int64_t first = 0;  // of the ranks on one node
    const auto node = [&](std::int64_t rank) {
      return data_->machine->unit(data_->machine->node_level(), rank);
    };
    for (std::int64_t rank = 1; rank <= data_->world_size; ++rank)
      if (rank == data_->world_size || node(rank) != node(first)) {
        text += fmt::format("node {} {}-{}\n", node(first), first, rank - 1);
        first = rank;
      }
  }
  for (const std::size_t first : data_->first_of_kind)
    text += fmt::format("move {} > {}{}\n", data_->tensors[first].from.to_string(),
                        data_->tensors[first].to.to_string(),
                        data_->tensors[first].copy
                            ? " copied " + data_->tensors[first].copy->to_string()
                            : std::string{});
  for (std::size_t t = 0; t < data_->tensors.size(); ++t) {
    text += std::to_string(data_->kinds[t]);
    text += ' ';
    text += data_->tensors[t].name;
    text += '\n';
  }
  return hash_bytes(text);
}

}  // namespace rankmesh
