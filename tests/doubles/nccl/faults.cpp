// SPDX-License-Identifier: BSD-3-Clause
#include "faults.hpp"

#include <chrono>
#include <sstream>
#include <thread>

#include "common/settings.hpp"
#include "fake_nccl.hpp"

namespace fake {
namespace {

struct Fault {
  std::string kind;
  int rank = -1;   // -1: any
  int comm = -1;   // number of the communicator in its process; -1: any
  long after = 0;  // operations that still succeed
  int code = ncclInternalError;
  long ms = 0;
  std::string name;  // commName; empty: any
};

struct Faults {
  std::mutex mutex;
  bool read = false;
  std::vector<Fault> list;
};

Faults& faults() {
  static Faults* const made = new Faults;
  return *made;
}

// kind:key=value,key=value;kind:...
bool parse(const std::string& text, std::vector<Fault>& list) {
  std::stringstream entries(text);
  for (std::string entry; std::getline(entries, entry, ';');) {
    if (entry.empty()) continue;
    Fault fault;
    const auto colon = entry.find(':');
    fault.kind = entry.substr(0, colon);
    if (fault.kind != "id" && fault.kind != "id_late" && fault.kind != "init" &&
        fault.kind != "late" && fault.kind != "window" && fault.kind != "async" &&
        fault.kind != "hang")
      return false;
    std::stringstream keys(colon == std::string::npos ? "" : entry.substr(colon + 1));
    for (std::string pair; std::getline(keys, pair, ',');) {
      const auto equals = pair.find('=');
      if (equals == std::string::npos) return false;
      const std::string key = pair.substr(0, equals), value = pair.substr(equals + 1);
      const long number_value = std::strtol(value.c_str(), nullptr, 10);
      if (key == "rank")
        fault.rank = static_cast<int>(number_value);
      else if (key == "comm")
        fault.comm = static_cast<int>(number_value);
      else if (key == "after")
        fault.after = number_value;
      else if (key == "code")
        fault.code = static_cast<int>(number_value);
      else if (key == "ms")
        fault.ms = number_value;
      else if (key == "name")
        fault.name = value;
      else
        return false;
    }
    list.push_back(fault);
  }
  return true;
}

std::vector<Fault> faults_of(const char* kind, const Comm* comm) {
  if (broken("faults")) return {};
  std::lock_guard lock(faults().mutex);
  if (!faults().read) {
    faults().read = true;
    if (const auto given = setting("FAKE_NCCL_FAULTS")) parse(*given, faults().list);
  }
  std::vector<Fault> found;
  for (const Fault& fault : faults().list) {
    if (fault.kind != kind) continue;
    if (comm != nullptr) {
      if (fault.rank >= 0 && fault.rank != comm->seat.rank) continue;
      if (fault.comm >= 0 && fault.comm != comm->number) continue;
      if (!fault.name.empty() && (comm->config.name == nullptr || fault.name != comm->config.name))
        continue;
    }
    found.push_back(fault);
  }
  return found;
}

}  // namespace

Outcome injected_id_failure() {
  for (const Fault& fault : faults_of("id_late", nullptr))
    std::this_thread::sleep_for(std::chrono::milliseconds(fault.ms));
  for (const Fault& fault : faults_of("id", nullptr))
    return failed(static_cast<ncclResult_t>(fault.code), "injected: ncclGetUniqueId fails");
  return {};
}

Outcome injected_init_failure(Comm& comm) {
  for (const Fault& fault : faults_of("late", &comm)) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(fault.ms);
    while (std::chrono::steady_clock::now() < end && !comm.seat.cancelled())
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  for (const Fault& fault : faults_of("init", &comm))
    return failed(static_cast<ncclResult_t>(fault.code), "injected: init of rank %d fails",
                  comm.seat.rank);
  return {};
}

Outcome injected_window_failure(Comm& comm) {
  for (const Fault& fault : faults_of("window", &comm))
    return failed(static_cast<ncclResult_t>(fault.code), "injected: a window of rank %d fails",
                  comm.seat.rank);
  return {};
}

bool injected_hang(Comm& comm) { return !faults_of("hang", &comm).empty(); }

Outcome injected_async_error(Comm& comm) {
  long before = 0;
  {
    std::lock_guard lock(comm.mutex);
    before = static_cast<long>(comm.operations++);
  }
  for (const Fault& fault : faults_of("async", &comm))
    if (before >= fault.after)
      return failed(static_cast<ncclResult_t>(fault.code),
                    "injected: asynchronous error of rank %d after %ld operations", comm.seat.rank,
                    fault.after);
  return {};
}

}  // namespace fake

extern "C" int fake_nccl_inject(const char* text) {
  std::vector<fake::Fault> more;
  if (!fake::parse(text, more)) return -1;
  std::lock_guard lock(fake::faults().mutex);
  if (*text == '\0') {
    fake::faults().read = true;
    fake::faults().list.clear();
    return 0;
  }
  fake::faults().list.insert(fake::faults().list.end(), more.begin(), more.end());
  return 0;
}
