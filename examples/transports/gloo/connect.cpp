// SPDX-License-Identifier: BSD-3-Clause
// The rendezvous of Gloo over the MPI communicator of a group.
#include "connect.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/transport/tcp/device.h>

namespace {

/// The store through which the members of a Gloo context find each other. All members call set()
/// the same number of times, and before they ask for the values of others. So set() is an
/// all-gather, and the other functions need no communication.
class MpiStore final : public gloo::rendezvous::Store {
 public:
  explicit MpiStore(MPI_Comm comm) : comm_{comm} {}

  void set(const std::string& key, const std::vector<char>& data) override {
    const std::vector<std::vector<char>> keys = gather({key.begin(), key.end()});
    const std::vector<std::vector<char>> values = gather(data);
    for (std::size_t k = 0; k < keys.size(); ++k)
      values_[{keys[k].begin(), keys[k].end()}] = values[k];
  }
  std::vector<char> get(const std::string& key) override { return values_.at(key); }
  void wait(const std::vector<std::string>&) override {}
  void wait(const std::vector<std::string>&, const std::chrono::milliseconds&) override {}

 private:
  // Returns the bytes of all members.
  [[nodiscard]] std::vector<std::vector<char>> gather(const std::vector<char>& own) const {
    int members = 0;
    MPI_Comm_size(comm_, &members);
    const int size = static_cast<int>(own.size());
    std::vector<int> sizes(static_cast<std::size_t>(members));
    check(MPI_Allgather(&size, 1, MPI_INT, sizes.data(), 1, MPI_INT, comm_));
    std::vector<int> places;
    int total = 0;
    for (const int one : sizes) {
      places.push_back(total);
      total += one;
    }
    std::vector<char> all(static_cast<std::size_t>(total));
    check(MPI_Allgatherv(own.data(), size, MPI_CHAR, all.data(), sizes.data(), places.data(),
                         MPI_CHAR, comm_));
    std::vector<std::vector<char>> result;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      result.emplace_back(all.begin() + places[k], all.begin() + places[k] + sizes[k]);
    return result;
  }
  static void check(int code) {
    if (code != MPI_SUCCESS) throw std::runtime_error{"MPI could not exchange Gloo's addresses"};
  }

  MPI_Comm comm_;
  std::map<std::string, std::vector<char>> values_;
};

gloo::transport::tcp::attr device_of(const rankmesh::TransportGroup& group) {
  gloo::transport::tcp::attr device;
  if (const char* interface = std::getenv("GLOO_IFACE")) {
    device.iface = interface;
  } else if (group.nodes == 1) {
    device.hostname = "127.0.0.1";
  } else {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    device.hostname = name;
  }
  return device;
}

}  // namespace

std::shared_ptr<gloo::Context> connect_gloo(const rankmesh::TransportGroup& group) {
  auto context = std::make_shared<gloo::rendezvous::Context>(static_cast<int>(group.self.value()),
                                                             static_cast<int>(group.ranks.size()));
  context->setTimeout(std::chrono::duration_cast<std::chrono::milliseconds>(group.timeout));
  // What may fail on this rank alone comes first, and all members learn of it: nobody can be called
  // back from MPI.
  std::shared_ptr<gloo::transport::Device> device;
  std::exception_ptr failure;
  try {
    device = gloo::transport::tcp::CreateDevice(device_of(group));
  } catch (...) {
    failure = std::current_exception();
  }
  int is_ready = failure ? 0 : 1;
  if (MPI_Allreduce(MPI_IN_PLACE, &is_ready, 1, MPI_INT, MPI_MIN, group.comm.native()) !=
      MPI_SUCCESS)
    throw std::runtime_error{"MPI could not compare what the members have"};
  if (failure) std::rethrow_exception(failure);
  if (is_ready == 0) throw std::runtime_error{"another member has no network device of Gloo"};
  MpiStore store{group.comm.native()};
  context->connectFullMesh(store, device);
  return context;
}
