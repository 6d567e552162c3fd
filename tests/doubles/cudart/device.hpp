// SPDX-License-Identifier: BSD-3-Clause
// The devices that the environment describes, and the one that each thread works on.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace fake {

int device_count();    // visible devices; 0 without a driver
bool have_driver();    // FAKE_CUDA_DEVICES=none takes it away
int current_device();  // of this thread
bool valid_device(int device);

// The first call of a process that needs a device creates a context on it, which costs some of its
// memory: on the thread's current device, which is device 0 if the thread has chosen none.
void use_context();

// cudaSuccess, or what every call answers where no device can be used.
cudaError_t usable();

// "0000:10:00.0" for physical device 0, one bus further for each.
std::string bus_id(int device);

// Counts a wrong-device use and gives the error that says so.
cudaError_t wrong_device();
long long wrong_device_uses();

}  // namespace fake
