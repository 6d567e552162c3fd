// SPDX-License-Identifier: BSD-3-Clause
// Every wait, and every test(), advances all operations in flight. Rank 0 starts an operation and
// goes on to another wait. The other ranks first wait for the operation, which needs further steps
// of rank 0, and come to the other wait only then.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mesh/progress_job.hpp"
#include "rankmesh/exchange/lockstep.hpp"
#include "rankmesh/exchange/work_list.hpp"
#include "rankmesh/rankmesh.hpp"
#include "support/checks.hpp"
#include "support/mpi_world.hpp"

using namespace rankmesh;
using rankmesh_test::last;

// Other tests have the same names.
namespace progress_test {
namespace {

constexpr std::size_t large = 200'000;  // elements of a message that MPI does not send at once

// ---- What is in flight.

struct InFlight {
  std::vector<Work> works;
  std::function<void()> check;
};
struct Kind {
  std::string_view name;
  std::function<InFlight(Job&)> start;
  std::function<void(Job&)> prepare{};
};

InFlight start_sum(GroupCoordinator& group, std::size_t count) {
  auto values = std::make_shared<std::vector<std::int32_t>>(count, rank() + 1);
  InFlight flying;
  flying.works.push_back(group.all_reduce_async(std::span{*values}));
  flying.check = [values] {
    CHECK(std::ranges::count(*values, size() * (size() + 1) / 2) == std::ssize(*values));
  };
  return flying;
}

// Rank 0 sends to all others, which receive.
InFlight start_messages(GroupCoordinator& group, int number, std::size_t count) {
  auto buffers = std::make_shared<std::vector<std::vector<std::int32_t>>>();
  InFlight flying;
  buffers->reserve(static_cast<std::size_t>(number));  // their addresses must stay
  for (int i = 0; i < number; ++i) {
    auto& buffer = buffers->emplace_back(count, rank() == 0 ? i : -1);
    if (rank() != 0) flying.works.push_back(group.recv_async(std::span{buffer}, 0, 7));
    for (int r = 1; r < size() && rank() == 0; ++r)
      flying.works.push_back(group.send_async(std::span<const std::int32_t>{buffer}, r, 7));
  }
  flying.check = [buffers] {
    for (std::size_t i = 0; i < buffers->size(); ++i)
      CHECK(std::ranges::count((*buffers)[i], static_cast<int>(i)) == std::ssize((*buffers)[i]));
  };
  return flying;
}

void prepare_transfer(Job& job) {
  const std::string ranks = std::to_string(size());
  const std::string rows = std::to_string(64 * size());
  const std::string tensor = "[" + rows + "," + rows + "] f32 @ tp=" + ranks;
  job.move = std::make_unique<exchange::Redistribution>(
      job.mesh["tp"],
      plan_transfer(TensorPlacement::parse(tensor + " : (tp, _)"),
                    TensorPlacement::parse(tensor + " : (_, tp)")),
      exchange::RedistributionOptions{.memory = 4096});
}

InFlight start_transfer(Job& job) {
  const auto part = static_cast<std::size_t>(64 * 64 * size());
  auto source = std::make_shared<std::vector<float>>(part, static_cast<float>(rank()));
  auto target = std::make_shared<std::vector<float>>(part, -1.0F);
  InFlight flying;
  flying.works.push_back(job.move->start(*source, *target));
  flying.check = [source, target] {
    for (int r = 0; r < size(); ++r)
      CHECK(std::ranges::count(*target, static_cast<float>(r)) == 64 * 64);
  };
  return flying;
}

std::vector<Kind> kinds() {
  return {
      {"a sum of 8 KiB", [](Job& job) { return start_sum(job.mesh["tp"], 2048); }},
      {"a sum of 400 KB", [](Job& job) { return start_sum(job.mesh["tp"], 100'000); }},
      {"a sum in another mesh", [](Job& job) { return start_sum(job.other["dp"], 100'000); }},
      {"a sum over MPI", [](Job& job) { return start_sum(job.by_mpi["dp"], 100'000); }},
      {"a sum over MPI without shared memory",
       [](Job& job) { return start_sum(*job.adopted, 100'000); }},
      {"a sum by a transport of the program",
       [](Job& job) { return start_sum(job.steps["dp"], 1000); }},
      {"more small messages than there is space for",
       [](Job& job) { return start_messages(job.mesh["tp"], 200, 1000); }},
      {"a large message", [](Job& job) { return start_messages(job.mesh["tp"], 1, large); }},
      {"a redistribution", start_transfer, prepare_transfer},
  };
}

// ---- Where rank 0 waits.

struct Wait {
  std::string_view name;
  std::function<void(Job&)> wait;
  std::function<void(Job&)> prepare{};  // before the operation starts
};

// Rank 0 receives what the last rank sends, or sends what the last rank receives.
void to_first(GroupCoordinator& group, std::size_t count,
              const std::function<void(std::vector<int>&)>& receive) {
  std::vector<int> values(count, rank() == last() ? 5 : -1);
  if (rank() == last()) group.send(values, 0);
  if (rank() == 0) receive(values);
  if (rank() == 0) CHECK(values.back() == 5);
}
void to_last(GroupCoordinator& group, std::size_t count) {
  std::vector<int> values(count, rank() == 0 ? 5 : -1);
  if (rank() == 0) group.send(values, last());
  if (rank() == last()) group.recv(values, 0);
  if (rank() == last()) CHECK(values.back() == 5);
}

void blocking_calls(std::vector<Wait>& waits) {
  const auto add = [&](std::string_view name, std::function<void(Job&)> wait) {
    waits.push_back({name, std::move(wait)});
  };
  add("barrier", [](Job& job) { job.waits->barrier(); });
  add("a sum with a function, over MPI", [](Job& job) {
    CHECK(job.waits->all_reduce(1, [](int a, int b) { return a + b; }) == size());
  });
  add("barrier of MPI", [](Job& job) { job.adopted->barrier(); });
  add("scan", [](Job& job) { CHECK(job.waits->scan(1, ReduceOp::sum) == rank() + 1); });
  add("recv", [](Job& job) {
    to_first(*job.waits, 10, [&](auto& values) { job.waits->recv(values, last()); });
  });
  add("recv of a large message", [](Job& job) {
    to_first(*job.waits, large, [&](auto& values) { job.waits->recv(values, last()); });
  });
  add("recv over MPI", [](Job& job) {
    to_first(*job.adopted, 10, [&](auto& values) { job.adopted->recv(values, last()); });
  });
  add("send of a large message", [](Job& job) { to_last(*job.waits, large); });
  add("send over MPI", [](Job& job) { to_last(*job.adopted, large); });
  add("send_recv", [](Job& job) {
    std::vector<int> in(100, rank()), out(100, -1);
    job.waits->send_recv(in, out, next, prev);
    CHECK(out.back() == (rank() + size() - 1) % size());
  });
  add("agree", [](Job& job) {
    exchange::Lockstep lockstep{*job.waits};
    CHECK(lockstep.agree({.tokens = 3}).padded == 3);
  });
}

void waits_for_works(std::vector<Wait>& waits) {
  const auto add = [&](std::string_view name, std::function<void(Job&)> wait) {
    waits.push_back({name, std::move(wait)});
  };
  add("wait for another operation", [](Job& job) { job.waits->barrier_async().wait(); });
  add("wait with a time limit",
      [](Job& job) { job.waits->barrier_async().wait(std::chrono::seconds{20}); });
  add("wait in another mesh", [](Job& job) { job.other["dp"].barrier_async().wait(); });
  add("test of another operation", [](Job& job) {
    Work work = job.waits->barrier_async();
    while (!work.test()) continue;
  });
  add("test of an operation over MPI", [](Job& job) {
    Work work = job.by_mpi["dp"].barrier_async();
    while (!work.test()) continue;
  });
  add("test in another mesh", [](Job& job) {
    Work work = job.other["dp"].barrier_async();
    while (!work.test()) continue;
  });
  add("test of a list", [](Job& job) {
    exchange::WorkList list;
    for (int i = 0; i < 3; ++i) list.add(job.waits->barrier_async());
    while (!list.test()) continue;
  });
  add("wait for a list", [](Job& job) {
    exchange::WorkList list;
    for (int i = 0; i < 3; ++i) list.add(job.waits->barrier_async());
    list.wait();
  });
  add("wait_any", [](Job& job) {
    std::vector<Work> works;
    for (int i = 0; i < 3; ++i) works.push_back(job.waits->barrier_async());
    works.push_back(job.other["dp"].barrier_async());
    std::vector<bool> ended(works.size(), false);
    while (const auto index = wait_any(works)) ended[*index] = true;
    CHECK(ended == std::vector<bool>(works.size(), true));
  });
  add("probe", [](Job& job) {
    to_first(*job.waits, 10, [&](auto& values) {
      while (!job.waits->probe(last())) continue;
      job.waits->recv(values, last());
    });
  });
  add("try_recv", [](Job& job) {
    to_first(*job.waits, 10, [&](auto& values) {
      while (!job.waits->try_recv(values, last())) continue;
    });
  });
  add("progress", [](Job& job) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (int done = 0; done == 0;) {
      job.mesh.progress();
      MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    }
  });
}

void waits_of_meshes(std::vector<Wait>& waits) {
  waits.push_back(
      {"new_group", [](Job& job) { job.mesh.close(job.mesh.new_group(Job::everyone(), "late")); }});
  waits.push_back({"new_groups", [](Job& job) {
                     for (const auto& group : job.mesh.new_groups({Job::everyone()}))
                       job.mesh.close(group);
                   }});
  waits.push_back({"the first mesh[\"world\"]",
                   [](Job& job) { CHECK((*job.spare_mesh)["world"].size() == size()); },
                   [](Job& job) {
                     const char* layout = size() % 2 == 0 ? "dp=2,tp=auto" : "tp=auto";
                     job.spare_mesh = std::make_unique<Mesh>(MPI_COMM_WORLD, layout);
                   }});
  waits.push_back({"allocate_symmetric", [](Job& job) {
                     CHECK(job.mesh.allocate_symmetric<float>(100, {"tp"}).size() == 100);
                   }});
  waits.push_back({"native_mpi", [](Job& job) { CHECK(job.spare->native_mpi() != MPI_COMM_NULL); },
                   [](Job& job) { job.spare = job.mesh.new_group(Job::everyone(), "spare"); }});
  waits.push_back({"close of a group", [](Job& job) { job.mesh.close(job.spare); },
                   [](Job& job) { job.spare = job.mesh.new_group(Job::everyone(), "spare"); }});
  waits.push_back({"opening a mesh", [](Job&) {
                     Mesh mesh{MPI_COMM_WORLD, "tp=auto"};
                     mesh.close();
                   }});
  waits.push_back(
      {"close of another mesh", [](Job& job) { job.spare_mesh->close(); },
       [](Job& job) { job.spare_mesh = std::make_unique<Mesh>(MPI_COMM_WORLD, "tp=auto"); }});
}

void waits_of_queues(std::vector<Wait>& waits) {
  const auto open = [](int writer) {
    return [writer](Job& job) {
      job.queue = std::make_unique<exchange::ControlQueue>(
          *job.waits, writer == 0 ? 0 : last(),
          exchange::ControlQueueOptions{.slots = 2, .slot_bytes = 64});
    };
  };
  waits.push_back({"opening a control queue", [open](Job& job) { open(0)(job); }});
  waits.push_back({"read",
                   [](Job& job) {
                     const std::vector<std::byte> message(10);
                     if (job.queue->is_writer())
                       job.queue->write(message);
                     else
                       CHECK(job.queue->read().size() == 10);
                   },
                   open(1)});
  waits.push_back({"write",
                   [](Job& job) {
                     const std::vector<std::byte> message(10);
                     for (int i = 0; i < 6; ++i)
                       if (job.queue->is_writer())
                         job.queue->write(message);
                       else
                         CHECK(job.queue->read().size() == 10);
                   },
                   open(0)});
  waits.push_back({"try_read",
                   [](Job& job) {
                     const std::vector<std::byte> message(10);
                     exchange::Bytes read;
                     if (job.queue->is_writer()) job.queue->write(message);
                     while (!job.queue->is_writer() && !job.queue->try_read(read)) continue;
                   },
                   open(1)});
}

std::vector<Wait> all_waits() {
  std::vector<Wait> waits;
  blocking_calls(waits);
  waits_for_works(waits);
  waits_of_meshes(waits);
  waits_of_queues(waits);
  return waits;
}

void run(Job& job, const Kind& kind, const Wait& wait) {
  CAPTURE(kind.name);
  CAPTURE(wait.name);
  if (wait.prepare) wait.prepare(job);
  if (kind.prepare) kind.prepare(job);
  // The other ranks start the operation later, so that rank 0 cannot complete its part at once.
  if (rank() != 0) MPI_Barrier(MPI_COMM_WORLD);
  InFlight flying = kind.start(job);
  if (rank() == 0) MPI_Barrier(MPI_COMM_WORLD);
  const auto finish = [&] {
    for (Work& work : flying.works) work.wait();
    flying.check();
  };
  if (rank() != 0) finish();
  wait.wait(job);
  if (rank() == 0) finish();
}

}  // namespace

TEST_CASE("every wait advances every kind of operation in flight") {
  NEEDS_RANKS(2);
  for (const bool check : {false, true}) {
    CAPTURE(check);
    Job job{check};
    int pair = 0;
    for (const Kind& kind : kinds())
      for (const Wait& wait : all_waits())
        // With comparison, jobs of 2, 3 and 4 ranks take turns at the pairs.
        if (++pair % 3 == size() % 3 || !check) run(job, kind, wait);
    job.close();
  }
}

}  // namespace progress_test
