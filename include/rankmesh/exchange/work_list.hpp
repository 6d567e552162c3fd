// Several operations that are under way.
#pragma once

#include <utility>
#include <vector>

#include "rankmesh/export.hpp"
#include "rankmesh/group/work.hpp"

namespace rankmesh::exchange {

/// What an operation made of several returns; complete when all of them are. As with Work, buffers
/// must stay valid until then, also where this is dropped. Empty: complete.
class RANKMESH_API WorkList {
 public:
  void add(Work work) { works_.push_back(std::move(work)); }
  /// Makes progress; true once all are complete. Never blocks. @throws what one of them failed
  /// with.
  [[nodiscard]] bool test();
  /// As Work::wait(), for each: host memory, until it is complete; device memory, the stream waits.
  void wait();
  /// The host waits; the time is for all together. @throws TimeoutError.
  void wait(Deadline::Duration timeout);

 private:
  std::vector<Work> works_;
};

}  // namespace rankmesh::exchange
