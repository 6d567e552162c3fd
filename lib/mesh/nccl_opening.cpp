// SPDX-License-Identifier: BSD-3-Clause
// Opens NCCL communicators: bootstrap, splits, warm-up.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "detail/nccl_backend.hpp"
#include "device/nccl/detail/phases.hpp"
#include "rankmesh/base/error.hpp"
#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"
#include "rankmesh/device/nccl/mode.hpp"

namespace rankmesh::detail {
namespace {

std::int64_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  device::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return static_cast<std::int64_t>(free);
}

struct ReleaseOnDevice {
  void operator()(void* memory) const noexcept { device::detail::release(memory); }
};

// A group whose communicator was opened in this step.
struct Opened {
  const DeviceGroup* wanted;
  NcclTransport* transport;
};

class Opening {
 public:
  Opening(const DeviceOpening& wanted, const Participants& participants,
          std::shared_ptr<NcclContext> context, ControlPlane& control, std::uint64_t attempt)
      : wanted_{wanted},
        participants_{participants},
        context_{std::move(context)},
        control_{control},
        attempt_{attempt} {}

  OpenedDevices run() {
    try {
      const std::int64_t free_before = free_memory();
      bootstrap();
      make_blocking();
      split();
      warm_up(free_before);
    } catch (const Error& error) {
      abort();
      control_.throw_if_result_of_loss(error);
      throw;
    } catch (...) {
      abort();
      throw;
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::string identity(const GroupDescription& group) const {
    return group.families.empty() ? group.identity : fmt::format("{}#{}", group.identity, attempt_);
  }

  std::unique_ptr<DeviceTransport> transport_of(const DeviceGroup& wanted,
                                                std::unique_ptr<nccl::Communicator> comm,
                                                std::string method) {
    auto transport = std::make_unique<NcclTransport>(
        std::move(comm), wanted.comm.rank(), wanted.comm.size(), wanted.group->timeout,
        wanted.options.priority, context_, BootstrapReport{.method = std::move(method)},
        context_->least_compute_capability(wanted.group->ranks));
    opened_.push_back({&wanted, transport.get()});
    return transport;
  }

  [[nodiscard]] int ids_of(const DeviceGroup& wanted) const {
    return context_->library.CommInitRankScalable != nullptr ? wanted.unique_ids : 1;
  }

  // Whether the group's communicator is replaced by a blocking one after its creation.
  [[nodiscard]] bool is_replaced(const DeviceGroup& wanted) const {
    return !nccl::forced_blocking() &&
           nccl::blocks_after_creation(context_->library, wanted.options.blocking);
  }

  // All groups go through each phase together.
  void bootstrap() {
    std::vector<nccl::BootstrapRequest> requests;
    for (const DeviceGroup& wanted : wanted_.groups) {
      if (wanted.group->ranks.size() == 1) continue;
      GroupOptions options = wanted.options;
      if (is_replaced(wanted)) options.share_resources = false;  // its blocking child shares
      requests.push_back({wanted.group->name, identity(*wanted.group), wanted.group->ranks,
                          wanted.comm, static_cast<int>(wanted.group->leader.value()),
                          ids_of(wanted), std::move(options)});
    }
    nccl::bootstrap(context_->library, requests, control_.monitor, participants_, times_,
                    originals_);
  }

  // Creates the transports of the groups, with blocking communicators where these are wanted.
  void make_blocking() {
    std::vector<nccl::SplitRequest> requests;
    std::size_t i = 0;
    for (const DeviceGroup& wanted : wanted_.groups) {
      if (wanted.group->ranks.size() == 1) continue;
      nccl::Communicator* original = originals_[i++].get();
      if (is_replaced(wanted))
        requests.push_back({wanted.group->name, identity(*wanted.group), original,
                            wanted.group->ranks, 0, original->rank(), wanted.options});
    }
    const bool any = nccl::blocks_after_creation(context_->library, true);
    // The participants may differ in their groups, but not in their options and versions.
    if (any && !nccl::forced_blocking())
      nccl::make_blocking(requests, control_.monitor, participants_, times_, children_);
    if (any) context_->watch.start();
    add_transports(std::exchange(children_, {}));
  }

  // @param blocking  The communicators that replace originals, in the order of the groups.
  void add_transports(std::vector<std::unique_ptr<nccl::Communicator>> blocking) {
    std::vector<std::unique_ptr<nccl::Communicator>> replaced;
    std::size_t i = 0;
    for (const DeviceGroup& wanted : wanted_.groups) {
      if (wanted.group->ranks.size() == 1) {
        result_.groups.push_back(std::make_unique<LocalDeviceTransport>(
            wanted.group->name, context_, wanted.options.priority));
        continue;
      }
      const int ids = ids_of(wanted);
      std::unique_ptr<nccl::Communicator> comm = std::move(originals_[i++]);
      if (is_replaced(wanted)) {
        replaced_groups_.push_back(&wanted);
        replaced.push_back(std::exchange(comm, std::move(blocking[replaced.size()])));
      }
      result_.groups.push_back(transport_of(
          wanted, std::move(comm), ids == 1 ? "unique ID" : fmt::format("{} unique IDs", ids)));
    }
    originals_ = std::move(replaced);
  }

  // Returns the parent's communicator; null if it is not open. A parent of this step is split while
  // it is not blocking, because the split is polled then. Children that share resources share those
  // of the communicator that stays.
  [[nodiscard]] nccl::Communicator* parent_of(const DeviceSplit& split) const {
    const auto replaced = std::ranges::find(replaced_groups_, split.parent,
                                            [](const DeviceGroup* g) { return g->group; });
    if (replaced != replaced_groups_.end() && !(*replaced)->options.share_resources)
      return originals_[static_cast<std::size_t>(replaced - replaced_groups_.begin())].get();
    if (auto* open = dynamic_cast<NcclTransport*>(split.open_parent)) return &open->communicator();
    const auto found = std::ranges::find_if(
        opened_, [&](const Opened& o) { return o.wanted->group == split.parent; });
    return found == opened_.end() ? nullptr : &found->transport->communicator();
  }

  void split() {
    if (!wanted_.has_splits) return;
    std::vector<nccl::SplitRequest> requests;
    std::string failure;
    for (const DeviceSplit& split : wanted_.splits) {
      nccl::Communicator* parent = parent_of(split);
      if (parent == nullptr) {
        failure = fmt::format("'{}' is to be split from '{}', which is not open", split.family,
                              split.options.split_from);
        break;
      }
      parents_.push_back(parent);
      requests.push_back({split.family, fmt::format("{}#{}", split.identity, attempt_), parent,
                          split.parent->ranks, split.colour, split.key, split.options});
    }
    const std::vector<nccl::Communicator*> parents = std::exchange(parents_, {});
    participants_.agree("the splits of NCCL communicators", failure);
    parents_ = parents;  // a failed split leaves them unusable
    nccl::split(requests, control_.monitor, participants_, context_->watch, times_, children_);
    auto comms = std::exchange(children_, {});
    parents_.clear();
    for (std::size_t i = 0; i < comms.size(); ++i)
      result_.children.push_back(
          comms[i] == nullptr
              ? nullptr
              : transport_of(*wanted_.splits[i].child, std::move(comms[i]),
                             fmt::format("split of '{}'", requests[i].options.split_from)));
  }

  [[nodiscard]] WaitPoint warm_up_point(const GroupDescription& group) const {
    return nccl::bootstrap_point(group.name, identity(group), group.ranks, "warm-up");
  }

  // Allocates as many zeros as the largest warm-up needs.
  void allocate_scratch(const device::Stream& stream) {
    std::int64_t largest = 4 * static_cast<std::int64_t>(sizeof(float));
    for (const Opened& o : opened_) largest = std::max(largest, o.wanted->options.warm_up_bytes);
    const std::size_t bytes = static_cast<std::size_t>(largest) + sizeof(float);
    scratch_.reset(static_cast<float*>(device::detail::allocate(bytes)));
    device::detail::zero_on_device(scratch_.get(), bytes, stream);
  }

  void warm_up(std::int64_t free_before) {
    // Any two ranks warm their common groups up in the order of the plan.
    std::ranges::stable_sort(opened_, {}, [](const Opened& o) { return o.wanted->order; });
    const auto count = static_cast<std::int64_t>(opened_.size());
    std::string failure;
    try {
      nccl::release(originals_, control_.deadline(), control_);
      originals_.clear();
      const std::int64_t by_inits = count == 0 ? 0 : (free_before - free_memory()) / count;
      const device::Stream stream = device::Stream::create();
      allocate_scratch(stream);
      for (const auto& [wanted, transport] : opened_) {
        const std::int64_t before = free_memory();
        transport->warm_up(scratch_.get(), wanted->options.warm_up_bytes, stream, control_.monitor,
                           warm_up_point(*wanted->group), control_.deadline());
        fill(transport->report(), count);
        transport->report().device_memory =
            std::max<std::int64_t>(by_inits, 0) + std::max<std::int64_t>(before - free_memory(), 0);
      }
      scratch_.reset();
    } catch (const LostRanks&) {
      throw;  // every survivor finds it
    } catch (const Error& error) {
      failure = error.message();
      for (const Opened& o : opened_)
        control_.monitor.give_up(warm_up_point(*o.wanted->group), failure);
    }
    participants_.agree("the end of the NCCL bootstrap", failure);
    control_.log(
        LogLevel::info,
        fmt::format("rank {} opened {} NCCL communicators: unique IDs {:.4f} s, broadcasts "
                    "{:.4f} s, barriers {:.4f} s, inits {:.4f} s, splits {:.4f} s",
                    control_.rank().value(), count, times_.unique_ids, times_.broadcasts,
                    times_.barriers, times_.inits, times_.splits));
  }

  void fill(BootstrapReport& report, std::int64_t count) const {
    report.opened_together = count;
    report.unique_ids = times_.unique_ids;
    report.broadcasts = times_.broadcasts;
    report.barriers = times_.barriers;
    report.inits = times_.inits;
    report.splits = times_.splits;
  }

  // Aborts everything that this step has opened, and the parents of failed splits. The scratch
  // memory is freed afterwards, because cudaFree waits for work that only the aborts end.
  void abort() noexcept {
    std::vector<nccl::Communicator*> comms = parents_;
    for (const auto& original : originals_)
      if (original != nullptr) comms.push_back(original.get());
    for (const Opened& o : opened_) comms.push_back(&o.transport->communicator());
    for (const auto& child : children_)
      if (child != nullptr) comms.push_back(child.get());
    context_->abort(comms);
    if (!context_->left_behind().empty()) (void)scratch_.release();  // cudaFree would wait for ever
    result_ = {};
    originals_.clear();
    children_.clear();
    scratch_.reset();
  }

  const DeviceOpening& wanted_;
  const Participants& participants_;
  std::shared_ptr<NcclContext> context_;
  ControlPlane& control_;
  std::uint64_t attempt_;
  nccl::BootstrapTimes times_;
  OpenedDevices result_;
  std::vector<Opened> opened_;
  // Communicators that have a blocking child, and their groups. Until add_transports(), all
  // communicators of the bootstrap.
  std::vector<std::unique_ptr<nccl::Communicator>> originals_;
  // The children of splits under way, and the parents of such splits.
  std::vector<std::unique_ptr<nccl::Communicator>> children_;
  std::vector<nccl::Communicator*> parents_;
  std::vector<const DeviceGroup*> replaced_groups_;
  std::unique_ptr<float, ReleaseOnDevice> scratch_;
};

}  // namespace

OpenedDevices open_nccl(const DeviceOpening& wanted, const Participants& participants,
                        std::shared_ptr<NcclContext> context, ControlPlane& control,
                        std::uint64_t attempt) {
  return Opening{wanted, participants, std::move(context), control, attempt}.run();
}

}  // namespace rankmesh::detail
