// A mesh that works: the plan carried out over a communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rankmesh/base/buffer.hpp"
#include "rankmesh/base/symmetric_span.hpp"
#include "rankmesh/export.hpp"
#include "rankmesh/group/coordinator.hpp"
#include "rankmesh/layout/mesh_plan.hpp"
#include "rankmesh/layout/placement.hpp"
#include "rankmesh/mesh/options.hpp"
#include "rankmesh/spec/mesh_spec.hpp"

namespace rankmesh {

namespace detail {
struct MeshState;
}

/// One coordinator per name of a mesh, on any intracommunicator. The communicator stays the user's:
/// rankmesh works on communicators of its own, made at construction, and several meshes may share
/// it.
///
/// Cost of construction for P ranks and D names that need creation: one reduction of 40 bytes, one
/// duplicate of the communicator, one node discovery, D MPI_Comm_split (each O(P) bytes per rank);
/// then 8 P bytes for the placement and one communicator per distinct group of this rank.
///
/// Thread safety: one thread at a time; a second one is refused. Move-only.
class RANKMESH_API Mesh {
 public:
  /// Collective over `world`; blocks until all ranks have come. Ranks of the mesh are ranks of
  /// `world`.
  /// @param mesh  a mesh string or a path ending in `.toml`, the same everywhere.
  /// @throws SpecError where the description is bad in the same way on all ranks; MismatchError
  /// (the same text on
  ///         every rank) where ranks differ or one of them failed; TimeoutError naming ranks that
  ///         did not come; UsageError for a null communicator, an intercommunicator, or MPI that is
  ///         not active. Whatever is thrown, nothing stays open.
  Mesh(MPI_Comm world, std::string_view mesh, MeshOptions options = {});
  Mesh(MPI_Comm world, const MeshSpec& mesh, MeshOptions options = {});
  /// The mesh that the environment variable `RANKMESH` describes.
  static Mesh from_environment(MPI_Comm world, MeshOptions options = {});
  /// Never communicates: what close() did not free is freed by MPI_Finalize.
  ~Mesh();
  Mesh(Mesh&&) noexcept;
  Mesh& operator=(Mesh&&) noexcept;

  /// The coordinator of this rank's group of that name. Local. Valid until the mesh is destroyed.
  /// @throws UnknownName (the hint lists the names); NotMember where a partial name leaves this
  /// rank out, or a name
  ///         overlaps and has no coordinator.
  GroupCoordinator& operator[](std::string_view name);

  /// A further communicator of this rank's group of that name, for work on another stream. Local.
  /// The keys are those that the name's options list (GroupOptions::duplicates), so the plan counts
  /// them and construction makes them.
  /// @throws UnknownName (the hint says where keys are listed), NotMember.
  GroupCoordinator& duplicate(std::string_view name, std::string_view key);

  [[nodiscard]] const MeshPlan& plan() const;
  [[nodiscard]] Rank rank() const;
  [[nodiscard]] std::int64_t size() const;
  /// This rank's coordinate along a dimension.
  [[nodiscard]] Coordinate coordinate(std::string_view dimension) const;
  /// The CUDA device that this rank drives; nothing where the mesh has no devices.
  [[nodiscard]] std::optional<int> device() const;
  /// Why the mesh has no devices; empty where it has.
  [[nodiscard]] const std::string& why_no_device() const;
  /// Which node every rank is on; discovered once, at construction.
  [[nodiscard]] const Placement& placement() const;

  /// Opens the NCCL communicators of names that are lazy (GroupOptions::lazy); those that are open
  /// stay as they are. Collective over all ranks of these names' groups (of the parent's, where a
  /// name is split from one), which pass the same names; blocks. Waits until the device has nothing
  /// to do, since no communicator may be made while another is at work. Does nothing where the mesh
  /// has no devices.
  /// @throws UnknownName; MismatchError where ranks pass other names or one of them failed, and
  /// nothing is opened;
  ///         TimeoutError naming the ranks that did not come.
  void open(std::span<const std::string_view> names);
  void open(std::initializer_list<std::string_view> names) {
    open(std::span{names.begin(), names.size()});
  }

  /// Makes progress on every asynchronous operation on host memory that is under way. Never blocks;
  /// local.
  void progress();

  /// Host memory of `count` zeroed elements per rank that all ranks of a node can address.
  /// Collective over the mesh, the same count and names everywhere; blocks. The groups of these
  /// names that lie inside one node use it in place, through the overloads that take a
  /// SymmetricSpan: broadcast and all_gather where the output is symmetric, reduce_scatter and
  /// all_to_all where the input is, all_reduce where both are, alike on all members. Members read
  /// each other's memory then, and nothing is copied in between. For other groups and other
  /// operations it is ordinary memory; groups that span nodes use MPI.
  ///
  /// The mesh owns it: close() takes it away first of all, and spans of it are refused from then
  /// on. Cost: an agreement, one segment per node (see SharedSegment); pages are taken when they
  /// are first written.
  /// @throws UnknownName; MismatchError where ranks pass different sizes or names, or a node has no
  /// memory
  ///         left; SharedMemoryError; TimeoutError naming the ranks that did not come.
  template <Element T, MemoryKind Kind = MemoryKind::host>
    requires(Kind == MemoryKind::host)
  [[nodiscard]] SymmetricSpan<T> allocate_symmetric(std::size_t count,
                                                    std::span<const std::string_view> names) {
    auto window = allocate_window(count, sizeof(T), names);
    T* const data = reinterpret_cast<T*>(window->own());
    return {std::move(window), data, count};
  }

  /// Device memory of `count` zeroed elements per rank that NCCL knows beforehand: its allocator's
  /// (NCCL 2.19), registered with the communicators of these names, in the order of the plan, as
  /// symmetric windows (2.27) or user buffers (2.19). What was made of it is logged; where the
  /// library or the devices offer nothing, it is ordinary device memory. NCCL finds the
  /// registration by the address, so operations take the span like any other; all members of a
  /// group pass such memory, at the same offset, or none does (NCCL's rule). Collective over the
  /// mesh, the same count and names everywhere; blocks, and waits until the device has nothing to
  /// do. Goes with the mesh's close(): the span dangles then.
  /// @throws UnknownName, on the rank that passes one: the others time out; NoDeviceError where the
  /// mesh
  ///         has no devices; MismatchError where ranks pass different sizes or names, one has no
  ///         memory left or a name is not open (`lazy`); TimeoutError naming the ranks that did not
  ///         come. Where a registration failed, the groups of these names are broken.
  template <Element T, MemoryKind Kind>
    requires(Kind == MemoryKind::device)
  [[nodiscard]] DeviceSpan<T> allocate_symmetric(std::size_t count,
                                                 std::span<const std::string_view> names) {
    return {reinterpret_cast<T*>(allocate_on_device(count, sizeof(T), names)), count};
  }
  template <Element T, MemoryKind Kind = MemoryKind::host>
  [[nodiscard]] auto allocate_symmetric(std::size_t count,
                                        std::initializer_list<std::string_view> names) {
    return allocate_symmetric<T, Kind>(count, std::span{names.begin(), names.size()});
  }

  /// A group of any ranks, in the given order. Collective over those ranks alone, which must make
  /// overlapping groups in one order that is consistent across all members. The members meet first:
  /// k-1 messages of 24 bytes each, with the mesh's timeout.
  /// @param name  for messages; empty: `group(<ranks>)`.
  /// @throws UsageError where this rank is not in the list or a rank is outside the mesh;
  /// TimeoutError
  ///         naming the members that did not come.
  /// The mesh keeps the group open until it is closed, or the mesh is; later use throws
  /// ClosedError.
  std::shared_ptr<GroupCoordinator> new_group(std::span<const Rank> ranks, std::string name = {});
  /// Several groups at once: sorted in one canonical order, so that overlapping batches of
  /// different ranks cannot wait for each other in a circle. Lists without this rank are skipped
  /// (null in the result).
  std::vector<std::shared_ptr<GroupCoordinator>> new_groups(
      std::span<const std::vector<Rank>> groups);
  /// Closes one dynamic or adopted group. Collective over it; waits for its members (with the
  /// timeout).
  /// @throws UsageError where the group is a name of the mesh, which close() ends, or of another
  /// mesh, or a CUDA graph
  ///         that holds its operations is alive.
  void close(GroupCoordinator& group);

  /// A coordinator on communicators of the user's, whose ranks must all be ranks of the mesh.
  /// Local. The communicators are not freed; they must outlive their use here.
  /// @param nccl  an ncclComm_t of the same ranks in the same order on the mesh's device, for
  /// device memory.
  /// @throws UsageError where they do not fit; NoDeviceError for `nccl` where the mesh has no
  /// devices.
  std::shared_ptr<GroupCoordinator> adopt(MPI_Comm comm, std::string name,
                                          ncclComm* nccl = nullptr);

  /// Ends the mesh: waits for all ranks (with the timeout), then frees every communicator in one
  /// order. Collective over the world; must come before MPI_Finalize. A second call does nothing.
  /// @throws MismatchError, the same on every rank, where CUDA graphs that hold operations of the
  /// mesh are alive on
  ///         one (destroy them first; the mesh stays open); TimeoutError naming ranks that did not
  ///         come.
  void close();
  [[nodiscard]] bool is_closed() const;
  /// Ends all NCCL communicators at once, in one group call, whatever their peers do; every group
  /// is broken afterwards. Local: for a rank that has seen a failure. Peers see it as an error of
  /// their next operation.
  void abort();

 private:
  friend class NcclGroup;
  explicit Mesh(std::unique_ptr<detail::MeshState> state);
  std::shared_ptr<const SymmetricWindow> allocate_window(std::size_t count,
                                                         std::size_t size_of_element,
                                                         std::span<const std::string_view> names);
  std::byte* allocate_on_device(std::size_t count, std::size_t size_of_element,
                                std::span<const std::string_view> names);
  [[nodiscard]] detail::MeshState& state() const;  // throws ClosedError after a move
  [[nodiscard]] detail::MeshState& open_state(const char* activity) const;  // and after close()
  std::unique_ptr<detail::MeshState> state_;
};

}  // namespace rankmesh
