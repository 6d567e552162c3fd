// SPDX-License-Identifier: BSD-3-Clause
#include "device.hpp"

#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "common/settings.hpp"
#include "error.hpp"
#include "fake_cuda.hpp"
#include "memory.hpp"

namespace fake {
namespace {

constexpr int first_bus = 0x10;
constexpr int newest_driver = 13000;

int driver_version() { return static_cast<int>(number("FAKE_CUDA_DRIVER_VERSION", newest_driver)); }

struct Device {
  int physical;
  std::array<unsigned char, 16> uuid;
};

struct Machine {
  bool driver = true;
  std::vector<Device> visible;
};

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> items;
  std::stringstream in(list);
  for (std::string item; std::getline(in, item, ',');) items.push_back(item);
  return items;
}

// From the host's name and the device's number, or as FAKE_CUDA_UUIDS says (32 hex digits each).
std::array<unsigned char, 16> make_uuid(int physical) {
  std::array<unsigned char, 16> uuid{};
  if (const auto given = setting("FAKE_CUDA_UUIDS"); given && !broken("given_uuids")) {
    const auto items = split_list(*given);
    if (static_cast<std::size_t>(physical) < items.size()) {
      for (std::size_t i = 0;
           i < 16 && 2 * i + 2 <= items[static_cast<std::size_t>(physical)].size(); ++i)
        uuid[i] = static_cast<unsigned char>(
            std::stoi(items[static_cast<std::size_t>(physical)].substr(2 * i, 2), nullptr, 16));
      return uuid;
    }
  }
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  unsigned long long hash = 1469598103934665603ULL;
  for (const char* c = host; *c != '\0'; ++c)
    hash = (hash ^ static_cast<unsigned char>(*c)) * 1099511628211ULL;
  std::memcpy(uuid.data(), &hash, sizeof hash);
  uuid[8] = 0xfa;
  uuid[15] = static_cast<unsigned char>(physical);
  return uuid;
}

std::string uuid_text(const Device& device) {
  std::string text = "GPU-";
  char pair[3];
  for (std::size_t i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    std::snprintf(pair, sizeof pair, "%02x", device.uuid[i]);
    text += pair;
  }
  return text;
}

Machine read_machine() {
  Machine machine;
  const std::string devices = setting("FAKE_CUDA_DEVICES").value_or("16");
  if (devices == "none" && !broken("no_driver")) {
    machine.driver = false;
    return machine;
  }
  std::vector<Device> all;
  for (int i = 0; i < std::atoi(devices.c_str()); ++i) all.push_back({i, make_uuid(i)});
  const auto chosen = setting("CUDA_VISIBLE_DEVICES");
  if (!chosen || broken("visible_devices")) {
    machine.visible = all;
    return machine;
  }
  // As the driver does: a name that matches nothing ends the list.
  for (const std::string& item : split_list(*chosen)) {
    const auto found = std::find_if(all.begin(), all.end(), [&](const Device& device) {
      return item == std::to_string(device.physical) ||
             (item.size() > 4 &&
              strncasecmp(uuid_text(device).c_str(), item.c_str(), item.size()) == 0);
    });
    if (found == all.end()) break;
    machine.visible.push_back(*found);
  }
  return machine;
}

const Machine& machine() {
  static const Machine* const read = new Machine(read_machine());
  return *read;
}

thread_local int chosen_device = 0;
std::atomic<long long> wrong_uses{0};

struct Contexts {
  std::mutex mutex;
  std::set<int> devices;
};

Contexts& contexts() {
  static Contexts* const made = new Contexts;
  return *made;
}

// FAKE_CUDA_COMPUTE_CAPABILITIES has a number such as 80 for each device; the last one goes for the
// rest.
int compute_capability(int device) {
  const auto given = setting("FAKE_CUDA_COMPUTE_CAPABILITIES");
  if (!given || broken("given_capability")) return 90;
  const auto items = split_list(*given);
  const auto physical =
      static_cast<std::size_t>(machine().visible[static_cast<std::size_t>(device)].physical);
  return std::stoi(items[std::min(physical, items.size() - 1)]);
}

// MIG instances of one GPU have its bus id.
int bus_of(int device) {
  static const int instances = static_cast<int>(number("FAKE_CUDA_INSTANCES", 1));
  return first_bus + machine().visible[static_cast<std::size_t>(device)].physical / instances;
}

int attribute(cudaDeviceAttr which, int device, bool& known) {
  known = true;
  switch (static_cast<int>(which)) {
    case cudaDevAttrPciBusId:
      return bus_of(device);
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
      return 0;
    case cudaDevAttrComputeCapabilityMajor:
      return compute_capability(device) / 10;
    case cudaDevAttrComputeCapabilityMinor:
      return compute_capability(device) % 10;
    case cudaDevAttrMultiProcessorCount:
      return 8;
    case cudaDevAttrMaxPitch:
      return static_cast<int>(number("FAKE_CUDA_MAX_PITCH", 2147483647));
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerBlock:
      return 1024;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrMemoryPoolsSupported:
      return 1;
    default:
      known =
          static_cast<int>(which) > 0 && static_cast<int>(which) < static_cast<int>(cudaDevAttrMax);
      return 0;
  }
}

}  // namespace

int device_count() { return static_cast<int>(machine().visible.size()); }
bool have_driver() { return machine().driver; }
int current_device() { return chosen_device; }
void use_context() {
  if (broken("contexts")) return;
  std::lock_guard lock(contexts().mutex);
  contexts().devices.insert(chosen_device);
}
bool valid_device(int device) { return device >= 0 && device < device_count(); }

// A runtime runs on drivers of its own major release and of later ones ("CUDA Compatibility", minor
// version compatibility); on an older driver every call answers as without a driver.
cudaError_t usable() {
  if (!have_driver()) return cudaErrorInsufficientDriver;
  if (driver_version() / 1000 < CUDART_VERSION / 1000 && !broken("old_driver"))
    return cudaErrorInsufficientDriver;
  if (const double error = number("FAKE_CUDA_ERROR", 0); error != 0 && !broken("driver_error"))
    return static_cast<cudaError_t>(static_cast<int>(error));
  if (device_count() == 0) return cudaErrorNoDevice;
  return cudaSuccess;
}

std::string bus_id(int device) {
  char text[32];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", bus_of(device));
  return text;
}

cudaError_t wrong_device() {
  ++wrong_uses;
  return cudaErrorInvalidResourceHandle;
}

long long wrong_device_uses() { return wrong_uses; }

}  // namespace fake

using namespace fake;

extern "C" {

void fake_cuda_note_wrong_device(void) { wrong_device(); }

bool fake_cuda_has_context(int device) {
  std::lock_guard lock(contexts().mutex);
  return contexts().devices.count(device) != 0;
}

void fake_cuda_forget_contexts(void) {
  std::lock_guard lock(contexts().mutex);
  contexts().devices.clear();
}

int fake_cuda_exchange_device(int device) { return std::exchange(chosen_device, device); }

cudaError_t cudaGetDeviceCount(int* count) {
  if (count == nullptr) return record(cudaErrorInvalidValue);
  if (const cudaError_t error = usable(); error != cudaSuccess) {
    if (error == cudaErrorNoDevice) *count = 0;  // without a driver the output stays untouched
    return record(error);
  }
  *count = device_count();
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (!valid_device(device)) return record(cudaErrorInvalidDevice);
  chosen_device = device;
  use_context();  // since CUDA 12 ("CUDA Runtime API", cudaSetDevice)
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (device == nullptr) return record(cudaErrorInvalidValue);
  *device = chosen_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* prop, int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (prop == nullptr) return record(cudaErrorInvalidValue);
  if (!valid_device(device)) return record(cudaErrorInvalidDevice);
  *prop = cudaDeviceProp{};
  std::snprintf(prop->name, sizeof prop->name, "Fake GPU (CPU double of libcudart)");
  std::memcpy(prop->uuid.bytes, machine().visible[static_cast<std::size_t>(device)].uuid.data(),
              16);
  prop->totalGlobalMem = device_memory();
  prop->warpSize = 32;
  prop->maxThreadsPerBlock = 1024;
  prop->major = compute_capability(device) / 10;
  prop->minor = compute_capability(device) % 10;
  prop->multiProcessorCount = 8;
  prop->canMapHostMemory = 1;
  prop->pciBusID = bus_of(device);
  prop->unifiedAddressing = 1;
  prop->streamPrioritiesSupported = 1;
  prop->memoryPoolsSupported = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attr, int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (value == nullptr) return record(cudaErrorInvalidValue);
  if (!valid_device(device)) return record(cudaErrorInvalidDevice);
  bool known = false;
  const int answer = attribute(attr, device, known);
  if (!known) return record(cudaErrorInvalidValue);
  *value = answer;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (!valid_device(device)) return record(cudaErrorInvalidDevice);
  if (text == nullptr || length < 13) return record(cudaErrorInvalidValue);
  std::snprintf(text, static_cast<std::size_t>(length), "%s", bus_id(device).c_str());
  return cudaSuccess;
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  if (const cudaError_t error = usable(); error != cudaSuccess) return record(error);
  if (device == nullptr || text == nullptr) return record(cudaErrorInvalidValue);
  for (int i = 0; i < device_count(); ++i)
    if (strcasecmp(bus_id(i).c_str(), text) == 0) {
      *device = i;
      return cudaSuccess;
    }
  return record(cudaErrorInvalidDevice);
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  if (can == nullptr || !valid_device(device) || !valid_device(peer))
    return record(cudaErrorInvalidDevice);
  *can = device != peer;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return record(cudaErrorInvalidValue);
  *version = have_driver() ? driver_version() : 0;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

}  // extern "C"
