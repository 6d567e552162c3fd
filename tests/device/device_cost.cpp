// SPDX-License-Identifier: BSD-3-Clause
// device_cost: calls of all_reduce on device memory, for callgrind (scripts/device-cost).
#include <cstdio>

#include "rankmesh/device/device_buffer.hpp"
#include "rankmesh/device/stream.hpp"
#include "rankmesh/rankmesh.hpp"

using namespace rankmesh;

namespace {

constexpr int repeats = 200;

}  // namespace

extern "C" [[gnu::noinline]] void measured_device_calls(GroupCoordinator& group,
                                                        const DeviceSpan<float>& values,
                                                        StreamRef stream) {
  for (int i = 0; i < repeats; ++i) group.all_reduce(values, stream);
}

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    MeshOptions options;
    options.devices = DeviceUse::required;
    Mesh mesh{MPI_COMM_WORLD, "tp=auto", options};
    const device::Stream stream = device::Stream::create();
    const device::DeviceBuffer<float> values{4};
    const DeviceSpan<float> span = values.span();
    for (int i = 0; i < repeats; ++i) mesh["tp"].all_reduce(span, stream);  // creates the events
    stream.wait(Deadline{Deadline::Duration{60}});
    mesh.progress();
    measured_device_calls(mesh["tp"], span, stream);
    stream.wait(Deadline{Deadline::Duration{60}});
    std::printf("%d calls\n", repeats);
    mesh.close();
  });
}
