// SPDX-License-Identifier: BSD-3-Clause
#include "collective.hpp"

#include <cstring>

#include "common/settings.hpp"
#include "reduce.hpp"
#include "transfer.hpp"

namespace fake {
namespace {

class Run {
 public:
  Run(Comm& comm, const Operation& o, std::uint64_t number)
      : comm_(comm),
        o_(o),
        number_(number),
        n_(static_cast<std::size_t>(comm.seat.ranks)),
        me_(static_cast<std::size_t>(comm.seat.rank)),
        root_(static_cast<std::size_t>(o.root)),
        size_(type_bytes(o.type)),
        bytes_(o.count * size_),
        from_(static_cast<const char*>(o.send)),
        to_(static_cast<char*>(o.receive)) {}

  Outcome operator()() {
    switch (o_.kind) {
      case fake_all_reduce:
        return all_reduce();
      case fake_reduce:
        return reduce();
      case fake_broadcast:
        return broadcast();
      case fake_all_gather:
        return all_gather();
      case fake_reduce_scatter:
        return reduce_scatter();
      case fake_all_to_all:
        return all_to_all();
      case fake_gather:
        return gather();
      case fake_scatter:
        return scatter();
      case fake_send:
      case fake_recv:
      case fake_calls_end:
        break;
    }
    return failed(ncclInternalError, "not a collective: %d", static_cast<int>(o_.kind));
  }

 private:
  struct Part {
    const char* data;
    std::size_t bytes;
  };

  // One round (data == null: no message): to_send(peer) goes to each other rank, and what comes
  // from it lands at receive_at(peer).
  template <class ToSend, class ReceiveAt>
  Outcome round(ToSend to_send, ReceiveAt receive_at) {
    std::vector<Outgoing> sends;
    std::vector<Incoming> receives;
    const Label label{number_ * 2 + static_cast<std::uint64_t>(rounds_++), o_.kind};
    for (std::size_t step = 1; step < n_; ++step) {
      const std::size_t peer = (me_ + step) % n_;
      if (const Part part = to_send(peer); part.data != nullptr)
        sends.push_back({static_cast<int>(peer), part.data, part.bytes, label});
      if (const Part part = receive_at(peer); part.data != nullptr)
        receives.push_back(
            {static_cast<int>(peer), const_cast<char*>(part.data), part.bytes, label});
    }
    return exchange(
        comm_, call_name(o_.kind) + std::string(" (collective ") + std::to_string(number_) + ")",
        sends, receives);
  }

  static constexpr Part nothing{nullptr, 0};
  static void copy(char* to, const char* from, std::size_t bytes) {
    if (bytes > 0 && to != from) std::memmove(to, from, bytes);
  }

  // The block of the data that rank r reduces.
  std::size_t block_begin(std::size_t r) const { return o_.count * r / n_ * size_; }
  std::size_t block_bytes(std::size_t r) const { return block_begin(r + 1) - block_begin(r); }

  // What goes into the reduction from this rank.
  const char* scaled_input(std::size_t count) {
    if (!o_.premultiplies()) return from_;
    scaled_.resize(count * size_);
    premultiply(from_, scaled_.data(), count, o_.type, o_.scalar);
    return scaled_.data();
  }

  // Reduces own data and what the others sent (rank by rank in `others`) into `out`.
  void combine(char* out, const char* own, const std::vector<char>& others, std::size_t bytes) {
    std::vector<const void*> inputs(n_);
    for (std::size_t r = 0; r < n_; ++r) inputs[r] = r == me_ ? own : others.data() + r * bytes;
    fake::combine(inputs, out, bytes / size_, o_.type, o_.op);
  }

  Outcome all_reduce() {
    const char* const input = scaled_input(o_.count);
    const std::size_t mine = block_bytes(me_);
    std::vector<char> others(n_ * mine + 1);
    Outcome done = round(
        [&](std::size_t r) {
          return Part{input + block_begin(r), block_bytes(r)};
        },
        [&](std::size_t r) {
          return Part{others.data() + r * mine, mine};
        });
    if (!done.ok()) return done;
    combine(to_ + block_begin(me_), input + block_begin(me_), others, mine);
    return round(
        [&](std::size_t) {
          return Part{to_ + block_begin(me_), mine};
        },
        [&](std::size_t r) {
          return Part{to_ + block_begin(r), block_bytes(r)};
        });
  }

  Outcome reduce() {
    const char* const input = scaled_input(o_.count);
    std::vector<char> others(me_ == root_ ? n_ * bytes_ + 1 : 0);
    Outcome done = round(
        [&](std::size_t r) {
          return r == root_ ? Part{input, bytes_} : nothing;
        },
        [&](std::size_t r) {
          return me_ == root_ ? Part{others.data() + r * bytes_, bytes_} : nothing;
        });
    if (done.ok() && me_ == root_) combine(to_, input, others, bytes_);
    return done;
  }

  Outcome broadcast() {
    if (me_ == root_) copy(to_, from_, bytes_);
    return round(
        [&](std::size_t) {
          return me_ == root_ ? Part{from_, bytes_} : nothing;
        },
        [&](std::size_t r) {
          return r == root_ ? Part{to_, bytes_} : nothing;
        });
  }

  Outcome all_gather() {
    copy(to_ + me_ * bytes_, from_, bytes_);
    return round(
        [&](std::size_t) {
          return Part{from_, bytes_};
        },
        [&](std::size_t r) {
          return Part{to_ + r * bytes_, bytes_};
        });
  }

  Outcome reduce_scatter() {
    const char* const input = scaled_input(n_ * o_.count);
    std::vector<char> others(n_ * bytes_ + 1);
    Outcome done = round(
        [&](std::size_t r) {
          return Part{input + r * bytes_, bytes_};
        },
        [&](std::size_t r) {
          return Part{others.data() + r * bytes_, bytes_};
        });
    if (done.ok()) combine(to_, input + me_ * bytes_, others, bytes_);
    return done;
  }

  Outcome all_to_all() {
    copy(to_ + me_ * bytes_, from_ + me_ * bytes_, bytes_);
    return round(
        [&](std::size_t r) {
          return Part{from_ + r * bytes_, bytes_};
        },
        [&](std::size_t r) {
          return Part{to_ + r * bytes_, bytes_};
        });
  }

  Outcome gather() {
    if (me_ == root_) copy(to_ + me_ * bytes_, from_, bytes_);
    return round(
        [&](std::size_t r) {
          return r == root_ ? Part{from_, bytes_} : nothing;
        },
        [&](std::size_t r) {
          return me_ == root_ ? Part{to_ + r * bytes_, bytes_} : nothing;
        });
  }

  Outcome scatter() {
    if (me_ == root_) copy(to_, from_ + me_ * bytes_, bytes_);
    return round(
        [&](std::size_t r) {
          return me_ == root_ ? Part{from_ + r * bytes_, bytes_} : nothing;
        },
        [&](std::size_t r) {
          return r == root_ ? Part{to_, bytes_} : nothing;
        });
  }

  Comm& comm_;
  const Operation& o_;
  std::uint64_t number_;
  std::size_t n_, me_, root_, size_, bytes_;
  const char* from_;
  char* to_;
  int rounds_ = 0;
  std::vector<char> scaled_;
};

}  // namespace

Outcome run_collective(Comm& comm, const Operation& operation, std::uint64_t number) {
  if (operation.count == 0) return {};  // nothing to move or to wait for
  return Run(comm, operation, number)();
}

}  // namespace fake
