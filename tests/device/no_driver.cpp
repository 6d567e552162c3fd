// SPDX-License-Identifier: BSD-3-Clause
// no_driver TEXT: device memory without a usable driver is a NoDeviceError whose message contains
// TEXT. The environment describes the driver to the CPU double.
#include <iostream>
#include <string>

#include "rankmesh/device/device_buffer.hpp"

int main(int, char** argv) {
  try {
    const rankmesh::device::DeviceBuffer<float> buffer{16};
    std::cout << "FAILED: the buffer was allocated\n";
  } catch (const rankmesh::NoDeviceError& error) {
    if (error.message().find(argv[1]) != std::string::npos) return 0;
    std::cout << "FAILED: the message is: " << error.message() << "\n";
  } catch (const rankmesh::Error& error) {
    std::cout << "FAILED: another error than NoDeviceError: " << error.message() << "\n";
  }
  return 1;
}
