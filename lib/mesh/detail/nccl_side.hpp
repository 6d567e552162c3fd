// The NCCL communicators of one mesh.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device_side.hpp"
#include "rankmesh/device/captured_graphs.hpp"
#include "rankmesh/device/choice.hpp"
#include "rankmesh/device/nccl/batch.hpp"
#include "rankmesh/device/nccl/bootstrap.hpp"
#include "rankmesh/device/nccl/symmetric_memory.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/wait/wait_monitor.hpp"

namespace rankmesh::detail {

class NcclSide final : public DeviceSide {
 public:
  NcclSide(MeshState& state, const nccl::Library& library, device::Claim claim);
  ~NcclSide() override { NcclSide::abort(); }

  void open(const std::vector<bool>& names, const Settle& settle) override;
  void open(Channel& channel) override;
  void adopt(Channel& channel, ncclComm* native) override;
  void drain(const Deadline& deadline) override;
  [[nodiscard]] std::string living_graphs(const Channel* only) const override;
  void quiesce(const Deadline& deadline) override;
  void close(Channel& channel, const Deadline& deadline) override;
  void close(const Deadline& deadline) override;
  void abort() noexcept override;
  std::byte* allocate_symmetric(std::size_t bytes,
                                const std::vector<std::string_view>& names) override;
  void begin_batch() override { batch_.begin(); }
  void end_batch(const Deadline& deadline) override;

 private:
  struct Member {
    Channel* channel;
    std::unique_ptr<nccl::Communicator> comm;
  };

  void bootstrap(std::span<Channel* const> channels, const Settle& settle,
                 nccl::BootstrapTimes& times);
  void split(const std::vector<bool>& names, const Settle& settle, nccl::BootstrapTimes& times);
  [[nodiscard]] bool is_shared(const Channel& channel) const;
  void finish(std::size_t first, const Settle& settle, const nccl::BootstrapTimes& times,
              std::int64_t free_before);
  void undo(std::size_t first) noexcept;
  [[nodiscard]] WaitPoint step(const std::string& activity, const Channel& channel) const;
  [[nodiscard]] std::vector<const Member*> symmetric_members(
      const std::vector<std::string_view>& names) const;
  void abort_broken() noexcept;
  void add_member(Channel& channel, std::unique_ptr<nccl::Communicator> comm);
  void give_stream(Channel& channel);
  [[nodiscard]] nccl::Communicator* communicator_of(const Channel* channel) const;
  [[nodiscard]] Channel* channel_of(std::size_t family, const std::string& duplicate_key) const;
  [[nodiscard]] std::string identity(const Channel& channel) const;

  MeshState& state_;
  const nccl::Library& library_;
  device::Claim claim_;
  nccl::Batch batch_;
  device::CapturedGraphs graphs_;
  std::vector<std::unique_ptr<nccl::SymmetricMemory>>
      symmetric_;                // freed after the communicators have ended
  std::vector<Member> members_;  // in the order of opening
  std::unique_ptr<float, void (*)(float*)> scratch_{nullptr, [](float* p) { (void)cudaFree(p); }};
  std::map<const Channel*, device::Stream> streams_;  // made when asked for
  std::vector<bool> split_;                           // names whose splits were made
  std::uint64_t attempts_ = 0;  // tells a bootstrap from an earlier one that failed
};

}  // namespace rankmesh::detail
